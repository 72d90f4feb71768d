"""Visited pages that may not be visited yet: they rest after a visit, or wait for a retry."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawld.core.revisit.due import AT_LEISURE, Due
from crawld.core.revisit.policies import Policy, VisitObservation

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
    due: Due | None = None

    def record(self, policy: Policy, page: int) -> None:
        """Pass it to a policy that holds the page."""
        policy.record_hint(
            page,
            self.changed_at,
            trust=self.trust,
            indirect=self.indirect,
            due=self.due,
        )

    def after(self, visited_at: float) -> LateHint:
        """Return it as one of a change after a visit, which did not show the change."""
        return self._replace(changed_at=max(self.changed_at, math.nextafter(visited_at, math.inf)))

    def joined(self, other: LateHint | None) -> LateHint:
        """Return one hint for both: the newest, direct if one of them is, due with the first.

        Of a direct and an indirect one, the direct one is due.
        """
        if other is None:
            return self
        newest = max(self, other, key=lambda hint: hint[:2])
        if self.indirect != other.indirect:
            return newest._replace(indirect=False, due=(other if self.indirect else self).due)
        due = self.due or other.due
        if self.due is not None and other.due is not None:
            due = self.due.joined(other.due)
        return newest._replace(due=due)


class RevisitQueue:
    """Pages of one host and site that rest after a visit, the earliest visit first.

    A reliable hint ends a rest. Hints are looked up when the host has its next turn, for all pages
    at once, since ten thousand may come between two turns. If the clock is set back, a rest becomes
    twice as long at most.

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
        self._begin_anew(now)
        if not self._heap:
            return None
        return now if self._hints else self._heap[0][0] + self.rest_s

    def take_rested(self, now: float) -> Iterable[RestingPage]:
        """Remove and return the pages whose rest is over."""
        self._begin_anew(now)
        over = self._take_hinted() if self._hints else []
        while self._heap and self._heap[0][0] + self.rest_s <= now:
            over.append(heapq.heappop(self._heap))
        return over

    def _begin_anew(self, now: float) -> None:
        """Let pages rest from now on if all visits are later: the clock was set back since."""
        if self._heap and self._heap[0][0] > now:
            self._heap = [(now, page, observation) for _, page, observation in self._heap]
            heapq.heapify(self._heap)

    def _take_hinted(self) -> list[RestingPage]:
        hints, self._hints = self._hints or {}, None
        over = [rest for rest in self._heap if hints.get(rest[1], -math.inf) > rest[0]]
        self._heap = [rest for rest in self._heap if hints.get(rest[1], -math.inf) <= rest[0]]
        heapq.heapify(self._heap)
        return over


class AgainQueue:
    """Visited pages of one host and site to be visited whatever their policy, until due times.

    They are few: pages whose noise is learnt, that an audit has drawn, or that are to be confirmed.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: tuple[tuple[float, int], ...] = ()

    def add(self, page: int, due_at: float) -> None:
        """Add a page to be visited until a time (Unix seconds)."""
        self._pages = tuple(sorted((*self._pages, (due_at, page))))

    def advance(self, page: int, due_at: float) -> None:
        """Let a page, if it is here, be due no later than a time."""
        if page in self:
            self._pages = tuple(
                sorted((min(at, due_at) if each == page else at, each) for at, each in self._pages)
            )

    @property
    def due_at(self) -> float:
        """Until when (Unix seconds) the first page should be visited; ∞ if there is none."""
        return self._pages[0][0] if self._pages else math.inf

    @property
    def is_dated(self) -> bool:
        """Whether there is a page with a due time; the others are visited at leisure."""
        return self.due_at < math.inf

    def take(self) -> int:
        """Remove and return the page that is due first."""
        (_, page), *rest = self._pages
        self._pages = tuple(rest)
        return page

    def __len__(self) -> int:
        return len(self._pages)

    def __iter__(self) -> Iterator[int]:
        """Return the pages, in the order of their due times."""
        return (page for _, page in self._pages)


class RetryQueue:
    """Pages of one host and site with a retry time of their own, the earliest first.

    They failed, were deferred, or are gone. Some of them have a due time, too: they are known to
    show something else now.
    """

    # One list until more is needed: there may be 10,000 of these.
    __slots__ = ("_dated", "_heap", "_recalled")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._recalled: list[tuple[float, int]] | None = None  # may be visited; due times, a heap
        self._dated: dict[int, tuple[float, float]] | None = None  # retry times and due times

    def add(self, page: int, retry_at: float, due_at: float = math.inf) -> None:
        """Add a page to be visited from a time on, and until another (Unix seconds)."""
        if due_at == math.inf:
            heapq.heappush(self._heap, (retry_at, page))
        else:
            self._dated = self._dated or {}
            self._dated[page] = (retry_at, due_at)

    def add_recalled(self, page: int, due_at: float) -> None:
        """Add a page to be visited from now until a time (Unix seconds)."""
        self._recalled = self._recalled or []
        heapq.heappush(self._recalled, (due_at, page))

    def recall(self, pages: Set[int], due_at: float) -> None:
        """Let these pages, as far as they are here, be visited from now until a time.

        Args:
            due_at: `AT_LEISURE` is a turn that nothing else wants; pages due sooner stay so.
        """
        sooner = {page: at for at, page in self._recalled or () if at <= due_at}
        for page in self._remove(pages - sooner.keys()):
            if due_at == AT_LEISURE:
                self.add(page, 0.0)
            else:
                self.add_recalled(page, due_at)

    def advance(self, page: int, due_at: float) -> None:
        """Let a page, if it is here, be visited from its retry time until a time."""
        for at, each in self._heap:
            if each == page:
                self._remove({page})
                self.add(page, at, due_at)
                return

    @property
    def has_recalled(self) -> bool:
        """Whether a page was recalled."""
        return bool(self._recalled)

    @property
    def has_undated(self) -> bool:
        """Whether a page without a due time waits for its retry time, or no longer."""
        return bool(self._heap)

    def first_at(self, now: float) -> float | None:
        """Return when (Unix seconds) a page may be visited; None: the queue is empty."""
        if self._recalled:
            return now
        first_at = self._heap[0][0] if self._heap else math.inf
        if self._dated:
            first_at = min(first_at, *(at for at, _ in self._dated.values()))
        return first_at if len(self) else None

    def due_at(self, now: float) -> float:
        """Return until when (Unix seconds) the first page that may be visited should be, or ∞."""
        if self._dated:
            for page, (retry_at, due_at) in list(self._dated.items()):
                if retry_at <= now:
                    self._remove({page})
                    self.add_recalled(page, due_at)
        return self._recalled[0][0] if self._recalled else math.inf

    def take_due(self) -> int | None:
        """Remove and return the page that `due_at` means."""
        return heapq.heappop(self._recalled)[1] if self._recalled else None

    def take(self, now: float) -> int | None:
        """Remove and return the first page without a due time whose time has come, or None."""
        if not self._heap or self._heap[0][0] > now:
            return None
        return heapq.heappop(self._heap)[1]

    def drop(self, page: int) -> bool:
        """Remove a page; return whether it was here."""
        return bool(self._remove({page}))

    def _remove(self, pages: Set[int]) -> list[int]:
        found = [page for page in self if page in pages]
        if found:
            self._heap = [each for each in self._heap if each[1] not in pages]
            heapq.heapify(self._heap)
            self._recalled = [each for each in self._recalled or () if each[1] not in pages]
            heapq.heapify(self._recalled)
            dated = (self._dated or {}).items()
            self._dated = {page: times for page, times in dated if page not in pages}
        return found

    def __len__(self) -> int:
        return len(self._heap) + len(self._recalled or ()) + len(self._dated or ())

    def __iter__(self) -> Iterator[int]:
        """Return the pages, in no order."""
        yield from (page for _, page in self._heap)
        yield from (page for _, page in self._recalled or ())
        yield from self._dated or ()
