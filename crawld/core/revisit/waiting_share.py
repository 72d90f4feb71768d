"""How much a second of waiting is worth, learned from what visits find.

A visit τ after the last one has a value W by the model (`visit_value.py`), and finds a value V: how
long the copy was fresh, if the page changed since, else 0. If the model is right, V is W on
average. It is wrong where one cause changes many pages: a robot edits half a wiki, and the pages
where a visit has found that look lively. So V/τ is fitted by b + a W/τ over the visits of a host.
W + (b/a) τ is then in the order of the best prediction; with a large share it is round robin.

Only shares of `SHARES` are returned, since with another share all pages are valued again.

Source: ours; ridge regression, Hoerl & Kennard, Technometrics 1970.
"""

from __future__ import annotations

import math
from typing import Final

from crawld.core.revisit.visit_value import ROUND_ROBIN_SHARE

SHARES: Final = tuple(ROUND_ROBIN_SHARE * 2.0**step for step in range(-4, 7))
"""From 0.00375 on; with the last one, 3.84, values differ from round robin by a quarter at most."""

_FIRST: Final = SHARES.index(ROUND_ROBIN_SHARE)

MEMORY_VISITS: Final = 1_000.0
"""Visits after which evidence weighs 1/e."""

_KEPT: Final = 1.0 - 1.0 / MEMORY_VISITS

_PRIOR: Final = 50.0
"""Weight of the model that is right, in visits to pages that have half changed."""

_PRIOR_SHARE: Final = 100.0
"""Weight of `ROUND_ROBIN_SHARE` beside what visits say, in visits. It falls where the model is
right: pages that change far more often than they are visited are then given up, as by MERGE."""

_LEAST_VISITS: Final = 250
"""Visits between two changes of the share: where the model says nothing, the estimate wanders."""

_CHECKED: Final = 8
"""The estimate is made at every eighth visit."""

_STEP: Final = 2.0**0.75
"""Another share is chosen when the estimate is so many times larger or smaller; the root of two
would do, but each change makes the queue value its pages again."""


class WaitingShare:
    """Learns the value of a second of waiting on one host."""

    __slots__ = ("_index", "_unchanged", "_x", "_xx", "_xy", "_y", "visits")

    def __init__(self) -> None:
        self.visits = self._x = self._y = self._xx = self._xy = 0.0
        self._index = _FIRST
        self._unchanged = _LEAST_VISITS  # visits since the share changed

    @property
    def share(self) -> float:
        """The share of `SHARES` to use."""
        return SHARES[self._index]

    def record(self, expected: float, found: float) -> bool:
        """Learn from a visit; return whether another share is to be used.

        Args:
            expected: W/τ by the model, in [0, 1].
            found: V/τ, in [0, 1].
        """
        self.visits = self.visits * _KEPT + 1.0
        self._x = self._x * _KEPT + expected
        self._y = self._y * _KEPT + found
        self._xx = self._xx * _KEPT + expected * expected
        self._xy = self._xy * _KEPT + expected * found
        self._unchanged += 1
        if self._unchanged <= _LEAST_VISITS or self._unchanged % _CHECKED:
            return False
        estimate = self.estimate()
        if 1.0 / _STEP < estimate / SHARES[self._index] < _STEP:
            return False
        step = math.log2(estimate / SHARES[0])
        before, self._index = self._index, round(min(step, len(SHARES) - 1.0))
        if self._index == before:
            return False
        self._unchanged = 0
        return True

    def estimate(self) -> float:
        """Return b/a, at least the first of `SHARES`; ∞ if the model says nothing."""
        # The prior: visits that found what was expected, half of them at 0 and half at 1/2.
        visits, x, y = self.visits + _PRIOR, self._x + _PRIOR / 4, self._y + _PRIOR / 4
        xx, xy = self._xx + _PRIOR / 8, self._xy + _PRIOR / 8
        slope = (visits * xy - x * y) / (visits * xx - x * x)
        level = (y - slope * x) / visits
        if slope <= 0.0:
            return math.inf
        told = self.visits * level / slope + _PRIOR_SHARE * ROUND_ROBIN_SHARE
        return max(told / (self.visits + _PRIOR_SHARE), SHARES[0])
