"""How much a second of waiting is worth, learned from what visits buy.

A visit τ after the last one has a value W by the model (`visit_value.py`). What it buys is known at
the next visit: the share V of the time until then that its copy was fresh, if the page had changed
before, else 0. V is fitted by b + a W/τ over the visits of a host. If the model is right, b is 0,
and a between 1 and 2 as of Poisson pages. It is wrong

- where one cause changes many pages: a robot edits half a wiki, and the pages where a visit has
  found that look lively;
- where pages are lively when they are young: what is known of a page is as of its last visit, and
  weeks later it is taken for as lively.

In both cases visits after a long wait buy more than the model says. W + (b/a) τ is then in the
order of the best prediction; with a large share it is round robin.

What the *former* copy gave has the same mean where pages keep their pace. Where they calm down it
is little, and confirms the model that does not see it.

Only shares of `SHARES` are returned, since with another share all pages are valued again.

Source: ours; ridge regression, Hoerl & Kennard, Technometrics 1970.
"""

from __future__ import annotations

import math
from typing import Final

from crawld.core.revisit.visit_value import ROUND_ROBIN_SHARE

SHARES: Final = tuple(ROUND_ROBIN_SHARE * 2.0**step for step in range(7))
"""With the last one, 3.84, values differ from round robin by a quarter at most."""

MEMORY_VISITS: Final = 1_000.0
"""Visits after which evidence weighs 1/e."""

_PRIOR: Final = 10.0
"""Weight of the model that is right, in visits to pages that have half changed."""

_LEAST_VISITS: Final = 250
"""Visits between two changes of the share: where the model says nothing, the estimate wanders."""

_STEP: Final = 0.75
"""Another share is chosen when the estimate is so many steps away; half a step would do, but each
change makes the queue value its pages again."""


class WaitingShare:
    """Learns the value of a second of waiting on one host."""

    __slots__ = ("_index", "_unchanged", "_x", "_xx", "_xy", "_y", "visits")

    def __init__(self) -> None:
        self.visits = self._x = self._y = self._xx = self._xy = 0.0
        self._index = 0
        self._unchanged = _LEAST_VISITS  # visits since the share changed

    @property
    def share(self) -> float:
        """The share of `SHARES` to use."""
        return SHARES[self._index]

    def record(self, expected: float, found: float) -> bool:
        """Learn from a visit; return whether another share is to be used.

        Args:
            expected: W/τ by the model, in [0, 1].
            found: V, in [0, 1].
        """
        kept = 1.0 - 1.0 / MEMORY_VISITS
        self.visits = self.visits * kept + 1.0
        self._x = self._x * kept + expected
        self._y = self._y * kept + found
        self._xx = self._xx * kept + expected * expected
        self._xy = self._xy * kept + expected * found
        self._unchanged += 1
        if self._unchanged <= _LEAST_VISITS:
            return False
        step = math.log2(max(self.estimate() / ROUND_ROBIN_SHARE, 1.0))
        if abs(step - self._index) < _STEP:
            return False
        before, self._index = self._index, round(min(step, len(SHARES) - 1.0))
        if self._index == before:
            return False
        self._unchanged = 0
        return True

    def estimate(self) -> float:
        """Return b/a, at least `ROUND_ROBIN_SHARE`; ∞ if the model says nothing."""
        # The prior: visits that found what was expected, half of them at 0 and half at 1/2.
        visits, x, y = self.visits + _PRIOR, self._x + _PRIOR / 4, self._y + _PRIOR / 4
        xx, xy = self._xx + _PRIOR / 8, self._xy + _PRIOR / 8
        slope = (visits * xy - x * y) / (visits * xx - x * x)
        level = (y - slope * x) / visits
        if slope <= 0.0:
            return math.inf
        return max(level / slope, ROUND_ROBIN_SHARE)
