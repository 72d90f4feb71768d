"""From a rank to a probability, learnt from what the pages say and not from the score itself.

Some candidates betray by their texts what they are: many equal texts under equal paths, or many
paths compared and none equal. Among those the share of replicas rises with the rank; isotonic
regression makes it a probability. Pairs whose texts say nothing get the probability of their rank.

Source: pool adjacent violators, Ayer et al. 1955; Zadrozny & Elkan 2002 for calibration by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import Content
from crawld.core.replica.vectors import Floats

LEAST_COMPARED = 4
"""Paths compared before their texts say anything ..."""

ALIKE_SHARE = 0.5
"""... a replica if this share of them is equal ..."""

APART_SHARE = 0.05
"""... none if no more than this share is; in between nothing is said."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probability by rank, a rising staircase.

    Attributes:
        share: lowest share of the reference dominated of each step, ascending.
        step: probability from there on.
    """

    share: tuple[float, ...]
    step: tuple[float, ...]

    @classmethod
    def of(cls, share: Floats, content: Content) -> Calibration:
        """Learn it from pairs: the share each dominates, and what their texts say."""
        compared = np.maximum(content.compared, 1)
        alike = (content.compared >= LEAST_COMPARED) & (content.equal / compared >= ALIKE_SHARE)
        apart = (content.compared >= LEAST_COMPARED) & (content.equal / compared <= APART_SHARE)
        use = alike | apart
        return cls(*_isotonic(share[use], alike[use]))

    def probability(self, share: Floats) -> Floats:
        """Return the probability at each share; 0 below all that was learnt from."""
        if not self.share:
            return np.zeros(len(share))
        at = np.searchsorted(np.array(self.share), share, side="right") - 1
        return np.where(at < 0, 0.0, np.array(self.step)[np.maximum(at, 0)])


def _isotonic(
    share: Floats, alike: NDArray[np.bool_]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the steps of the rising staircase nearest to the outcomes (least squares)."""
    levels, number = np.unique(share, return_inverse=True)
    total = np.bincount(number, minlength=len(levels)).tolist()
    positive = np.bincount(number, alike, minlength=len(levels)).tolist()
    blocks: list[list[float]] = []  # lowest share, positives, all
    for level, good, many in zip(levels.tolist(), positive, total, strict=True):
        blocks.append([level, good, many])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            _, good, many = blocks.pop()
            blocks[-1][1] += good
            blocks[-1][2] += many
    # Half an instance more of each outcome: nothing seen few times is certain.
    steps = np.array([(block[1] + 0.5) / (block[2] + 1.0) for block in blocks])
    return tuple(block[0] for block in blocks), tuple(np.maximum.accumulate(steps).tolist())
