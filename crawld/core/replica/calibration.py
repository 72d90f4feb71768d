"""Converts ranks to probabilities, calibrated on the texts of pairs that are certainly replicas.

No pair is labelled, but the obvious positives are replicas by their names; they show in which share
of their common paths replicas have equal texts. Other hosts hardly ever agree in a third of their
paths. Hence, at any rank,

    share of pairs that are replicas = share of pairs that are alike / share of replicas that are,

made to rise with the rank by isotonic regression. Among the pairs at that rank whose texts agree to
the same degree (a *kind*), the expected share of replicas is

    share of replicas · pairs at this rank · share of replicas of this kind / pairs of this kind.

A high-ranked pair whose texts differ therefore gets the low probability of a look-alike, and a
low-ranked pair whose texts agree gets a high one. Obvious positives agree slightly more than other
replicas, so that probabilities err on the low side.

Source: pool adjacent violators, Ayer et al. 1955; Zadrozny & Elkan 2002 for calibration by it;
Elkan & Noto 2008 for the division by the frequency in the certain positives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import SharedContent
from crawld.core.replica.hosts import Ids
from crawld.core.replica.vectors import Floats

LEAST_COMPARED = 4
"""Paths compared before the share of equal texts among them decides the kind."""

SHARES = (0.05, 0.15, 0.3, 0.5)
"""Shares of equal texts that separate the kinds."""

LEAST_PAIRS = 300
"""Pairs at a rank and its neighbours before kinds are distinguished there."""

_NOTHING, _FEW_UNEQUAL, _FEW_EQUAL, _COMPARED = range(4)
"""Kinds: no text compared; few compared, none or some equal; all later kinds by share."""

_KINDS = _COMPARED + len(SHARES) + 1
_ALIKE = _KINDS - 2
"""From this kind on, only replicas agree this much."""


def agreement_kinds(content: SharedContent) -> Ids:
    """Return the kind of each pair: how far its texts agree."""
    share = content.equal / np.maximum(content.compared, 1)
    by_share = _COMPARED + np.searchsorted(np.array(SHARES), share)
    few = np.where(content.equal > 0, _FEW_EQUAL, _FEW_UNEQUAL)
    kind = np.where(content.compared >= LEAST_COMPARED, by_share, few)
    return np.where(content.compared > 0, kind, _NOTHING)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probability by rank and kind.

    Attributes:
        share: lowest share of the reference dominated in each step, ascending.
        table: probability, shape (steps, kinds).
    """

    share: Floats
    table: Floats

    @classmethod
    def of(cls, share: Floats, content: SharedContent, certain: NDArray[np.bool_]) -> Calibration:
        """Fit a calibration.

        Args:
            share: share of the reference that each pair dominates.
            certain: mask of the certain replicas; the others are unknown.
        """
        kind = agreement_kinds(content)
        certain_counts = np.bincount(kind[certain], minlength=_KINDS) + 0.5
        typical: Floats = certain_counts / certain_counts.sum()
        share, kind = share[~certain], kind[~certain]
        levels, level = np.unique(share, return_inverse=True)
        if not len(levels):
            return cls(np.zeros(0), np.zeros((0, _KINDS)))
        pairs = np.bincount(level, minlength=len(levels))
        alike = np.bincount(level, kind >= _ALIKE, minlength=len(levels))
        replicas = isotonic(alike / typical[_ALIKE:].sum() / pairs, pairs)
        begins = _steps(replicas, pairs)
        step = (np.cumsum(begins) - 1)[level]
        count = np.bincount(step * _KINDS + kind, minlength=(step.max() + 1) * _KINDS)
        count = count.reshape(-1, _KINDS)
        table = np.array([_row(row, typical) for row in count])
        return cls(levels[begins], np.maximum.accumulate(table))

    def probability(self, share: Floats, content: SharedContent) -> Floats:
        """Return the probability of pairs, given as in `of`; 0 below the ranks of the fit."""
        if not len(self.share):
            return np.zeros(len(share))
        at = np.searchsorted(self.share, share, side="right") - 1
        found = self.table[np.maximum(at, 0), agreement_kinds(content)]
        return np.where(at < 0, 0.0, found)


def isotonic(values: Floats, weight: Ids | Floats) -> Floats:
    """Return the non-decreasing values nearest to some values (weighted least squares).

    >>> isotonic(np.array([0.0, 2.0, 1.0]), np.array([1, 1, 3])).tolist()
    [0.0, 1.25, 1.25]
    """
    blocks: list[list[float]] = []  # mean, weight, length
    for value, heavy in zip(values.tolist(), weight.tolist(), strict=True):
        blocks.append([value, heavy, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, mass, length = blocks.pop()
            last = blocks[-1]
            both = last[1] + mass
            last[0] = (last[0] * last[1] + mean * mass) / both if both else mean
            last[1] = both
            last[2] += length
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def _steps(replicas: Floats, pairs: Ids) -> NDArray[np.bool_]:
    """Return the levels at which a step begins: where the share rises after enough pairs."""
    begins = np.zeros(len(pairs), dtype=bool)
    begins[0] = True
    left, inside = int(pairs.sum()), 0
    for at, many in enumerate(pairs.tolist()):
        if at and replicas[at] > replicas[at - 1] and inside >= LEAST_PAIRS <= left:
            begins[at] = True
            inside = 0
        inside += many
        left -= many
    return begins


def _row(count: Ids, typical: Floats) -> Floats:
    """Return the probability of each kind in one step, from its number of pairs of each kind."""
    replicas = min(1.0, float(count[_ALIKE:].sum() / typical[_ALIKE:].sum() / count.sum()))
    # Add one pair of each kind, so that a few observations give no certainty.
    share: Floats = np.minimum(replicas * count.sum() * typical / (count + 1.0), 1.0)
    share[_NOTHING] = replicas
    share[_FEW_UNEQUAL] = min(replicas, share[_FEW_UNEQUAL])
    # The probability rises with the agreement of the texts.
    for part in (slice(_FEW_UNEQUAL, _COMPARED), slice(_COMPARED, _KINDS)):
        share[part] = isotonic(share[part], count[part] + 1)
    return share
