"""Scores the simulated copies of a mirror: freshness and age.

A copy is fresh from a visit to the next change; its age then grows from that change to the next
visit. A copy is stale from the creation of its page to the first visit. A visit finds all changes
up to and including its time.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from crawld.lab.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Score:
    """Result of a run.

    Attributes:
        freshness: share of page time the copies were fresh.
        age_s: mean age over page time, seconds; a fresh copy has age 0.
        useful: visits that found a copy stale.
    """

    freshness: float
    age_s: float
    visits: int
    useful: int


class Copies:
    """The copies of all pages of a scenario; the visits of a page come in order of time."""

    def __init__(self, scenario: Scenario) -> None:
        self._end = scenario.end
        self._born: list[float] = scenario.born_at.tolist()
        self._changes: list[list[float]] = [
            times.tolist() for times in scenario.histories.page_times
        ]
        self._seen = [0] * scenario.pages
        # When the copy became or becomes stale: the first change it has missed.
        self._stale_at = list(self._born)
        self._visited_at = list(self._born)
        self._stale_s = 0.0
        self._age_s2 = 0.0
        self._visits = 0
        self._useful = 0

    def visit(self, page: int, at: float) -> list[float]:
        """Refresh the copy of a page and return the changes found, oldest first."""
        self._account(page, at)
        changes, before = self._changes[page], self._seen[page]
        after = bisect_right(changes, at, before)
        self._seen[page] = after
        self._visits += 1
        self._useful += self._stale_at[page] <= at
        self._stale_at[page] = changes[after] if after < len(changes) else np.inf
        self._visited_at[page] = at
        return changes[before:after]

    def score(self) -> Score:
        """Return the result at the end of the period."""
        for page in range(len(self._born)):
            self._account(page, self._end)
        total = sum(self._end - born for born in self._born)
        return Score(1.0 - self._stale_s / total, self._age_s2 / total, self._visits, self._useful)

    def _account(self, page: int, until: float) -> None:
        stale_s = until - self._stale_at[page]
        if stale_s > 0:
            self._stale_s += stale_s
            self._age_s2 += 0.5 * stale_s * stale_s
