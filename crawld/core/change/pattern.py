"""Whether a page changes at random, in bursts, or regularly.

A page whose changes are a Poisson process has exponential intervals. A likelihood ratio test
compares the histogram of its intervals with the exponential distribution that fits it best (Sokal
and Rohlf, Biometry, 1995, chapter 17: G test). The spread of the intervals says how they differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.gamma import gamma_cdf
from crawld.core.change.model import PageModel
from crawld.core.change.record import MEMORY_S
from crawld.core.change.renewal import EDGES_S, exponential_mass

FloatArray = npt.NDArray[np.float64]

LEAST_INTERVALS: Final = 20
"""Intervals below which nothing is said."""

SIGNIFICANCE: Final = 0.01
"""Probability that a Poisson page is taken for another."""

_LEAST_EXACT: Final = 0.8
"""Least share of the time watched in which every change was told: visits hide short intervals."""

_LEAST_EXPECTED: Final = 3.0
"""Expected intervals of a cell of the test; neighbours are joined up to this."""

_STEPS: Final = 60


class ChangePattern(StrEnum):
    """How the intervals between changes of a page are spread."""

    RANDOM = "random"
    """As of a Poisson process."""

    BURSTY = "bursty"
    """Some much shorter and some much longer."""

    REGULAR = "regular"
    """More alike than at random."""


def change_pattern(model: PageModel) -> ChangePattern | None:
    """Return the pattern of a page; None with too few intervals, or if visits hid changes."""
    watched_s = MEMORY_S * -math.expm1(-(model.last_visit_at - model.first_at) / MEMORY_S)
    if model.exact_exposure_s < _LEAST_EXACT * watched_s:
        return None
    return pattern_of(model.bins)


def pattern_of(bins: Sequence[float]) -> ChangePattern | None:
    """Return the pattern of a histogram in the bins of `EDGES_S`; None if it says nothing."""
    counts = np.asarray(bins, np.float64)
    total = float(counts.sum())
    if total < LEAST_INTERVALS:
        return None
    mass = exponential_mass(np.array([1.0 / _exponential_mean(counts)]))[0]
    observed, expected = _cells(counts, mass * total)
    freedom = len(observed) - 2
    if freedom < 1:
        return None
    filled = observed > 0.0
    ratio = 2.0 * float(np.sum(observed[filled] * np.log(observed[filled] / expected[filled])))
    if 1.0 - gamma_cdf(0.5 * ratio, 0.5 * freedom) >= SIGNIFICANCE:
        return ChangePattern.RANDOM
    bursty = _spread(counts / total) > _spread(mass)
    return ChangePattern.BURSTY if bursty else ChangePattern.REGULAR


def _exponential_mean(counts: FloatArray) -> float:
    """Return the mean of the exponential distribution that fits the counts best, seconds.

    Each step replaces the intervals of a bin by their mean in it (expectation maximisation).
    """
    low, high = EDGES_S[:-1], EDGES_S[1:]
    mean = float(counts @ (0.5 * (low + high)) / counts.sum())
    for _ in range(_STEPS):
        width = np.minimum((high - low) / mean, 700.0)
        inside = low + mean - (high - low) / np.expm1(width)
        # The last bin has no upper end.
        inside[-1] = low[-1] + mean
        mean = float(counts @ inside / counts.sum())
    return mean


def _cells(counts: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Join neighbouring bins until each cell has enough expected intervals."""
    cells: list[tuple[float, float]] = []
    seen = due = 0.0
    for count, mean in zip(counts.tolist(), expected.tolist(), strict=True):
        seen, due = seen + count, due + mean
        if due >= _LEAST_EXPECTED:
            cells.append((seen, due))
            seen = due = 0.0
    if cells:
        last_seen, last_due = cells[-1]
        cells[-1] = (last_seen + seen, last_due + due)
    joined = np.array(cells).reshape(-1, 2)
    return joined[:, 0], joined[:, 1]


def _spread(mass: FloatArray) -> float:
    """Return the variance over the squared mean of intervals at the middles of their bins."""
    middles = 0.5 * (EDGES_S[:-1] + EDGES_S[1:])
    mean = float(mass @ middles)
    return float(mass @ (middles * middles)) / (mean * mean) - 1.0
