"""Pages that were visited a moment ago and rest before a policy may choose them again.

A page that is said to have changed meanwhile rests no longer. That is looked up when the host has
its next turn, for all such pages at once: ten thousand reports may come between two turns.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Set

from crawld.core.revisit.policies import VisitObservation

RestingPage = tuple[float, int, VisitObservation | None]
"""Instant of the visit (Unix seconds), page, what the visit found (None: from the file)."""


class RevisitQueue:
    """Resting pages of one host and site, the earliest visit first.

    Attributes:
        rest_s: how long a page rests.
    """

    # A list where a deque would do, and no dict until it is needed: there may be 10,000 of these.
    __slots__ = ("_heap", "_told", "rest_s")

    def __init__(self, rest_s: float) -> None:
        """Begin with none; each rests for `rest_s`."""
        self.rest_s = rest_s
        self._heap: list[RestingPage] = []
        self._told: dict[int, float] | None = None

    def add(
        self, visited_at: float, page: int, observation: VisitObservation | None = None
    ) -> None:
        """Let a page rest."""
        heapq.heappush(self._heap, (visited_at, page, observation))

    def told(self, page: int, changed_at: float) -> None:
        """Note that a page, which may rest, is said to have changed."""
        if self._heap:
            told = self._told = self._told or {}
            told[page] = max(changed_at, told.get(page, -math.inf))

    def drop(self, pages: Set[int]) -> bool:
        """Forget pages; returns whether any of them rested."""
        kept = [rest for rest in self._heap if rest[1] not in pages]
        found = len(kept) < len(self._heap)
        heapq.heapify(kept)
        self._heap = kept
        return found

    def __iter__(self) -> Iterator[int]:
        """Return the pages, in no order."""
        return (page for _, page, _ in self._heap)

    def until(self, now: float) -> float | None:
        """Return when (Unix seconds) the first rest is over; None: nothing rests."""
        if not self._heap:
            return None
        return now if self._told else self._heap[0][0] + self.rest_s

    def rested(self, now: float) -> Iterable[RestingPage]:
        """Take out the pages whose rest is over."""
        over = self._take_told() if self._told else []
        while self._heap and self._heap[0][0] + self.rest_s <= now:
            over.append(heapq.heappop(self._heap))
        return over

    def _take_told(self) -> list[RestingPage]:
        told, self._told = self._told or {}, None
        over = [rest for rest in self._heap if told.get(rest[1], -math.inf) > rest[0]]
        self._heap = [rest for rest in self._heap if told.get(rest[1], -math.inf) <= rest[0]]
        heapq.heapify(self._heap)
        return over
