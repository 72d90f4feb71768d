"""Visited pages that may not be visited yet: they rest after a visit, or wait for a retry."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawld.core.revisit.policies import Policy, VisitObservation

RECALLED_AT = 0.0
"""Retry time of pages that are due at once, before all others (Unix seconds)."""

RestingPage = tuple[float, int, VisitObservation | None]
"""Time of the visit (Unix seconds), page, observation (None: loaded from the file)."""


@dataclass(frozen=True, slots=True)
class VisitedPages:
    """Visited pages read from the file, the oldest visit first.

    Attributes:
        pages: (n,) int64.
        last_visit_at: (n,) float64, Unix seconds, ascending.
        weights: (n,) float64, importance; None: not read yet, taken as 1.
    """

    pages: npt.NDArray[np.int64]
    last_visit_at: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64] | None = None


class LateHint(NamedTuple):
    """A hint of a page that is not in the policy: it rests, or is in flight."""

    changed_at: float
    trust: float
    indirect: bool
    due_at: float | None = None

    def record(self, policy: Policy, page: int) -> None:
        """Pass it to a policy that holds the page."""
        policy.record_hint(
            page, self.changed_at, trust=self.trust, indirect=self.indirect, due_at=self.due_at
        )

    def joined(self, other: LateHint | None) -> LateHint:
        """Return one hint for both: the newest, direct if one of them is, due with the first."""
        if other is None:
            return self
        newest = max(self, other, key=lambda hint: hint[:2])
        due_at = min((at for at in (self.due_at, other.due_at) if at is not None), default=None)
        return newest._replace(indirect=self.indirect and other.indirect, due_at=due_at)


class RevisitQueue:
    """Pages of one host and site that rest after a visit, the earliest visit first.

    A reliable hint ends a rest. Hints are looked up when the host has its next turn, for all pages
    at once, since ten thousand may come between two turns.

    Attributes:
        rest_s: how long a page rests.
    """

    # A list and no dict until one is needed: there may be 10,000 of these.
    __slots__ = ("_heap", "_hints", "rest_s")

    def __init__(self, rest_s: float) -> None:
        self.rest_s = rest_s
        self._heap: list[RestingPage] = []
        self._hints: dict[int, float] | None = None

    def add(
        self, visited_at: float, page: int, observation: VisitObservation | None = None
    ) -> None:
        """Let a page rest."""
        heapq.heappush(self._heap, (visited_at, page, observation))

    def hinted(self, page: int, changed_at: float) -> None:
        """Add a hint that a page changed (Unix seconds); it need not rest here."""
        if self._heap:
            hints = self._hints = self._hints or {}
            hints[page] = max(changed_at, hints.get(page, -math.inf))

    @property
    def has_hints(self) -> bool:
        """Whether hints came since the last turn."""
        return bool(self._hints)

    def drop(self, pages: Set[int]) -> bool:
        """Remove pages; return whether any of them rested."""
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
        return now if self._hints else self._heap[0][0] + self.rest_s

    def take_rested(self, now: float) -> Iterable[RestingPage]:
        """Remove and return the pages whose rest is over."""
        over = self._take_hinted() if self._hints else []
        while self._heap and self._heap[0][0] + self.rest_s <= now:
            over.append(heapq.heappop(self._heap))
        return over

    def _take_hinted(self) -> list[RestingPage]:
        hints, self._hints = self._hints or {}, None
        over = [rest for rest in self._heap if hints.get(rest[1], -math.inf) > rest[0]]
        self._heap = [rest for rest in self._heap if hints.get(rest[1], -math.inf) <= rest[0]]
        heapq.heapify(self._heap)
        return over


class RetryQueue:
    """Pages of one host and site with a retry time of their own, the earliest first.

    They failed, were deferred, or are gone.
    """

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []

    def add(self, page: int, retry_at: float) -> None:
        """Add a page to be visited from a time on (Unix seconds)."""
        heapq.heappush(self._heap, (retry_at, page))

    @property
    def has_recalled(self) -> bool:
        """Whether a page is due at once."""
        return bool(self._heap) and self._heap[0][0] == RECALLED_AT

    def first_at(self) -> float | None:
        """Return the earliest retry time (Unix seconds); None: the queue is empty."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> int | None:
        """Remove and return the first page whose time has come, or None."""
        if not self._heap or self._heap[0][0] > now:
            return None
        return heapq.heappop(self._heap)[1]

    def drop(self, page: int) -> bool:
        """Remove a page; return whether it was here."""
        kept = [each for each in self._heap if each[1] != page]
        found = len(kept) < len(self._heap)
        heapq.heapify(kept)
        self._heap = kept
        return found

    def recall(self, pages: Set[int]) -> None:
        """Set the retry time of these pages, as far as they are here, to now."""
        self._heap = [(RECALLED_AT if page in pages else at, page) for at, page in self._heap]
        heapq.heapify(self._heap)

    def __iter__(self) -> Iterator[int]:
        """Return the pages, in no order."""
        return (page for _, page in self._heap)
