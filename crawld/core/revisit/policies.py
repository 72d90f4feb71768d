"""The one interface of every selection policy, and the policy all others are measured against.

A policy orders the pages of one host: at each free slot of the host it names the page to visit.
It knows no clock, no network and no database: time is an argument, what a visit found comes in as
an `VisitObservation`, and everything it holds is derived state that can be rebuilt from the pages.
The daemon, the laboratory and the benchmarks drive the same objects.

Rule 1: `select` hands a page out once; until `record_visit` or `release` it is in flight and is not
selected again. Rule 2: an unknown page in `record_visit`, `release`, `record_hint`, `remove` or
`set_weight` is no error: it was removed while in flight, or a hint came late. Rule 3: a clock that
jumps neither starves a page nor lets one be visited twice in a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.model import PageModel
from crawld.core.revisit.heap import ABSENT, SlotHeap
from crawld.core.revisit.slots import FREE, PageSlots


@dataclass(frozen=True, slots=True)
class VisitObservation:
    """What one successful visit revealed of the page's changes.

    Attributes:
        changed: the page is not as it was at the visit before (a first visit: True).
        changed_at: exact instants of changes since the visit before, oldest first, Unix seconds,
            as far as the server tells them: none, the last one (Last-Modified), or all of them
            (a revision history). At a first visit: of all changes up to now.
        model: the page's change model after this visit, for policies that learn.
    """

    changed: bool
    changed_at: tuple[float, ...] = ()
    model: PageModel | None = None


class Policy(Protocol):
    """Which page of a host is visited next."""

    def __len__(self) -> int:
        """Return the number of pages held, in flight or not."""
        ...

    def __contains__(self, page: int) -> bool:
        """Whether the page is held."""
        ...

    def contains_many(self, pages: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each of many pages is held, same order."""
        ...

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Hold a page; a page already held is left as it is.

        Args:
            page: key of the page.
            last_visit_at: instant of its last successful visit, Unix seconds; None = never.
            weight: importance, ≥ 0; a page of weight 0 is visited only where nothing else waits.
        """
        ...

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Hold many pages at once, none of them held yet.

        Args:
            pages: distinct page keys, the longest unvisited first.
            last_visit_at: instants of their last visits, Unix seconds, NaN = never; same length.
                Without it all of them count as never visited.
            weights: importance of each, same length; 1 without it.

        Raises:
            ValueError: a page is given twice or is held already.
        """
        ...

    def remove(self, page: int) -> None:
        """Forget a page, in flight or not."""
        ...

    def set_weight(self, page: int, weight: float) -> None:
        """Change the importance of a page."""
        ...

    def select(self, now: float) -> int | None:
        """Return the page to visit now and take it out of selection; None where none waits."""
        ...

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """End a visit; the page waits again.

        Args:
            page: the page visited, in flight or not (an operator may visit any page).
            now: instant of the visit, Unix seconds.
            observation: what the visit revealed; None where it failed to reveal anything.
        """
        ...

    def release(self, page: int) -> None:
        """Give a selected page back as if it had never been selected."""
        ...

    def record_hint(self, page: int, at: float, *, trust: float = 1.0) -> None:
        """Note a report that the page changed.

        Args:
            page: key of the page; an unknown one is passed over.
            at: instant of the change as reported, Unix seconds.
            trust: share of the source's hints that are real (`change/reliability.py`), in [0, 1];
                at 0 the report is worth nothing and changes nothing.
        """
        ...


class MonotonicClock:
    """Time as the wall clock goes, but for its steps back: then time stands still and goes on.

    Attributes:
        now: the policy's time of the last call. lead: how far it is ahead of the wall clock.
    """

    def __init__(self) -> None:
        self.now = -math.inf
        self.lead = 0.0

    def advance(self, now: float) -> float:
        """Return the policy's time at a wall clock time."""
        if now + self.lead < self.now:
            self.lead = self.now - now
        self.now = now + self.lead
        return self.now

    def visit_time(self, at: float) -> float:
        """Return the policy's time of a visit that may be told late: time does not go back for it.

        Args:
            at: its instant, Unix seconds; one later than all calls so far moves the clock.
        """
        return at + self.lead if at + self.lead < self.now else self.advance(at)


NEVER = -(2.0**52)
"""Key of the first page that was never visited; later ones count up from here, all before time."""


class PageSet:
    """Base of the policies: which pages are held, and the slot of each in the policy's arrays.

    A policy that does not override `set_weight` or `record_hint` ignores them.
    """

    def __init__(self) -> None:
        self._slots = PageSlots()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, page: int) -> bool:
        return page in self._slots

    def contains_many(self, pages: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each of many pages is held, same order."""
        return np.asarray(self._slots.find_many(pages) != FREE)

    def set_weight(self, page: int, weight: float) -> None:
        """Ignore the importance."""

    def record_hint(self, page: int, at: float, *, trust: float = 1.0) -> None:
        """Ignore the hint."""


class UniformPolicy(PageSet):
    """Round robin by age: the page whose last visit is oldest, new pages first and in order.

    32 bytes a page; every call O(log n). Weights and hints are accepted and change nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heap = SlotHeap()
        self._latest = -math.inf
        self._new_count = 0

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Hold a page, among the new ones where it was never visited."""
        if page in self._slots:
            return
        self._heap.push(self._slots.add(page), self._key(last_visit_at))

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Hold many pages, the longest unvisited first."""
        slots = self._slots.load(pages)
        never = NEVER + self._new_count + np.arange(len(slots), dtype=np.float64)
        self._new_count += len(slots)
        keys: NDArray[np.float64] = never
        if last_visit_at is not None:
            given = np.asarray(last_visit_at, dtype=np.float64)
            keys = np.where(np.isnan(given), never, given)
            self._latest = max(self._latest, np.nanmax(given, initial=-math.inf))
        self._heap.load(keys)

    def remove(self, page: int) -> None:
        """Forget a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._heap.remove(slot)

    def select(self, now: float) -> int | None:
        """Return the page visited longest ago."""
        slot = self._heap.first()
        if slot == ABSENT:
            return None
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Put the page at the end of the round."""
        slot = self._slots.find(page)
        if slot != FREE:
            self._heap.push(slot, self._turn(now))

    def release(self, page: int) -> None:
        """Put a selected page back where it was."""
        slot = self._slots.find(page)
        if slot != FREE and slot not in self._heap:
            self._heap.push(slot, self._heap.key(slot))

    def _key(self, last_visit_at: float | None) -> float:
        if last_visit_at is not None:
            self._latest = max(self._latest, last_visit_at)
            return last_visit_at
        self._new_count += 1
        return NEVER + self._new_count

    def _turn(self, now: float) -> float:
        # Later than every turn before, even where the clock stepped back: else the page just
        # visited would be the oldest and be visited again.
        self._latest = max(now, math.nextafter(self._latest, math.inf))
        return self._latest
