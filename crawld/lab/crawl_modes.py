"""Freshness of a collection that is crawled steadily or in batches, in place or as a shadow.

Every page is visited once in each cycle. A steady crawler spreads the visits over the cycle, a
batch crawler makes them in its active part. In place, a copy is shown from its visit on; a shadow
collection replaces the shown one as a whole when its crawl is complete. The order of the visits is
the same in each cycle, at random.

With Poisson changes, T the cycle, w the active part and A(x) = (1 − e^(−x))/x, freshness is A(λT)
in place, and A(λw) A(λT) as a shadow (w = T if steady).

Source: Cho & Garcia-Molina, VLDB 2000, section 4 (table 2: changes every four months, a cycle of a
month, active for a week); Oslo thesis, chapter 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from crawld.core.units import DAY_S
from crawld.lab.histories import FloatArray, Histories

PUBLISHED: Final = {
    "steady, in place": 0.88,
    "steady, shadow": 0.77,
    "batch, in place": 0.88,
    "batch, shadow": 0.86,
}
"""Freshness printed in the source."""

PUBLISHED_INTERVAL_S: Final = 120 * DAY_S
"""Mean time between changes there: four months."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to crawl.

    Attributes:
        active_s: time in which all visits of a cycle are made.
        shadow: whether the copies are shown when all are there.
    """

    name: str
    active_s: float
    shadow: bool


def modes(cycle_s: float, active_s: float) -> tuple[Mode, ...]:
    """Return the four modes of a cycle whose batches take `active_s`."""
    return tuple(
        Mode(f"{pace}, {'shadow' if shadow else 'in place'}", active, shadow)
        for pace, active in (("steady", cycle_s), ("batch", active_s))
        for shadow in (False, True)
    )


def poisson_freshness(mode: Mode, cycle_s: float, rate: float) -> float:
    """Return the freshness in closed form; `rate` in changes per second."""
    fresh = _mean_survival(rate * cycle_s)
    return fresh * _mean_survival(rate * mode.active_s) if mode.shadow else fresh


def _mean_survival(expected: float) -> float:
    return -math.expm1(-expected) / expected if expected > 0 else 1.0


def recorded_freshness(
    histories: Histories, mode: Mode, cycle_s: float, *, start: float, end: float, seed: int = 0
) -> float:
    """Return the mean freshness over whole cycles of recorded pages.

    Copies of the cycle before the start are shown at it, so that no copy is missing.

    Args:
        histories: pages that exist at the start.
    """
    cycles = int((end - start) / cycle_s)
    place = (np.random.default_rng(seed).permutation(len(histories)) + 0.5) / len(histories)
    begins = start + cycle_s * np.arange(-2.0, cycles + 1.0)
    total = 0.0
    for page, share in enumerate(place.tolist()):
        visited = begins + share * mode.active_s
        shown = np.asarray(begins + mode.active_s) if mode.shadow else visited
        total += _fresh_s(histories.page(page), visited, shown, start, start + cycles * cycle_s)
    return total / (len(histories) * cycles * cycle_s)


def _fresh_s(
    changed_at: FloatArray, visited: FloatArray, shown: FloatArray, start: float, end: float
) -> float:
    """Return the seconds in which the shown copy equals the page."""
    following = np.append(changed_at, np.inf)[np.searchsorted(changed_at, visited, side="right")]
    until = np.minimum(np.append(shown[1:], np.inf), following)
    return float(np.maximum(np.minimum(until, end) - np.maximum(shown, start), 0.0).sum())
