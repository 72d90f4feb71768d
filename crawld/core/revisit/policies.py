"""The interface of all selection policies, and UNIFORM, the reference policy.

A policy orders the pages of one host: at each free slot of the host it selects the page to visit.
It has no clock, no network and no database: time is an argument, and the result of a visit is a
`VisitObservation`. Its whole state can be rebuilt from the pages. The daemon, the laboratory and
the benchmarks use the same classes.

Rule 1: `select` takes a page in flight; it is not selected again until `record_visit` or `release`.
Rule 2: an unknown page in `record_visit`, `release`, `record_hint`, `remove` or `set_weight` is
ignored: it was removed while in flight, or the hint came late. Rule 3: a clock jump must neither
starve a page nor cause two consecutive visits to one page.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.model import PageModel
from crawld.core.revisit.due import Due
from crawld.core.revisit.heap import ABSENT, SlotHeap
from crawld.core.revisit.slots import FREE, PageSlots
from crawld.core.value_type import value_type


@value_type
class VisitObservation:
    """Changes of a page found by one successful visit.

    Attributes:
        changed: whether the page changed since the previous visit (at a first visit: True).
        changed_at: exact times of changes since the previous visit (at a first visit: of all
            changes), Unix seconds, oldest first. Empty if the server reports none; one element for
            Last-Modified; all of them for a revision history.
        model: the page's change model after this visit, for policies that learn.
    """

    changed: bool
    changed_at: tuple[float, ...] = ()
    model: PageModel | None = None


class Policy(Protocol):
    """Selects the page of a host to visit next."""

    def __len__(self) -> int:
        """Return the number of pages held, including those in flight."""
        ...

    def __contains__(self, page: int) -> bool:
        """Whether the page is held."""
        ...

    def contains_many(self, pages: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each page is held, in the same order."""
        ...

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page; do nothing if it is already held.

        Args:
            last_visit_at: time of its last successful visit, Unix seconds; None = never.
            weight: importance, ≥ 0; a page of weight 0 is visited only when no other page waits.
        """
        ...

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages at once, none of them already held.

        Args:
            pages: distinct page keys, oldest last visit first.
            last_visit_at: times of their last visits, Unix seconds, NaN = never; same length. None:
                no page was ever visited.
            weights: importance of each, same length; None: all 1.

        Raises:
            ValueError: a page is given twice or is already held.
        """
        ...

    def remove(self, page: int) -> None:
        """Remove a page, in flight or not."""
        ...

    def set_weight(self, page: int, weight: float) -> None:
        """Set the importance of a page."""
        ...

    def select(self, now: float) -> int | None:
        """Return the page to visit now and mark it in flight; None if no page waits."""
        ...

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Record a visit; the page waits again.

        Args:
            page: the page visited; it need not be in flight (an operator may visit any page).
            observation: the changes seen; None if the visit failed.
        """
        ...

    def release(self, page: int) -> None:
        """Put a selected page back, as if it had not been selected."""
        ...

    def record_hint(
        self,
        page: int,
        at: float,
        *,
        trust: float = 1.0,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Record a report that the page changed.

        Args:
            trust: share of the source's hints that are true (`change/reliability.py`), in [0, 1];
                at 0 the hint has no effect.
            indirect: whether something that the page includes has changed, not the page itself.
            due: until when the page should be visited; None: by `at`, of an indirect hint never.
        """
        ...


class MonotonicClock:
    """A clock that never steps back: if the wall clock does, it continues from the old time.

    Attributes:
        now: time at the last call. lead: how far it is ahead of the wall clock, seconds.
    """

    def __init__(self) -> None:
        self.now = -math.inf
        self.lead = 0.0

    def advance(self, now: float) -> float:
        """Move the clock to a wall clock time and return the monotonic time."""
        if now + self.lead < self.now:
            self.lead = self.now - now
        self.now = now + self.lead
        return self.now

    def visit_time(self, at: float) -> float:
        """Return the monotonic time of a visit that may be reported late, without moving back.

        A visit later than now moves the clock.
        """
        visited_at = at + self.lead
        if visited_at > self.now:
            self.now = visited_at
        return visited_at


NEVER = -(2.0**52)
"""Key of the first new page; the keys of later ones count up from here, below all real times."""


class PageSet:
    """Base of the policies: the pages held and the slot of each in the policy's arrays.

    A policy that does not override `set_weight` or `record_hint` ignores them.
    """

    def __init__(self) -> None:
        self._slots = PageSlots()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, page: int) -> bool:
        return page in self._slots

    def contains_many(self, pages: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each page is held, in the same order."""
        return np.asarray(self._slots.find_many(pages) != FREE)

    def set_weight(self, page: int, weight: float) -> None:
        """Ignore the importance."""

    def record_hint(
        self,
        page: int,
        at: float,
        *,
        trust: float = 1.0,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Ignore the hint."""


class UniformPolicy(PageSet):
    """Round robin by age: new pages first, in order of arrival, then the oldest last visit.

    32 bytes a page; every call is O(log n). Weights and hints have no effect.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heap = SlotHeap()
        self._latest = -math.inf
        self._new_count = 0

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page; one that was never visited goes to the end of the new pages."""
        if page in self._slots:
            return
        self._heap.push(self._slots.add(page), self._key(last_visit_at))

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages, oldest last visit first."""
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
        """Remove a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._heap.remove(slot)

    def select(self, now: float) -> int | None:
        """Return the page with the oldest last visit."""
        slot = self._heap.first()
        if slot == ABSENT:
            return None
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Move the page to the end of the round."""
        slot = self._slots.find(page)
        if slot != FREE:
            self._heap.push(slot, self._next_turn(now))

    def release(self, page: int) -> None:
        """Put a selected page back in its place in the round."""
        slot = self._slots.find(page)
        if slot != FREE and slot not in self._heap:
            self._heap.push(slot, self._heap.key(slot))

    def _key(self, last_visit_at: float | None) -> float:
        if last_visit_at is not None:
            self._latest = max(self._latest, last_visit_at)
            return last_visit_at
        self._new_count += 1
        return NEVER + self._new_count

    def _next_turn(self, now: float) -> float:
        # Later than every earlier turn, even after the clock stepped back; otherwise the page just
        # visited would be the oldest and would be visited again.
        self._latest = max(now, math.nextafter(self._latest, math.inf))
        return self._latest


class OrderedPolicy(UniformPolicy):
    """Visits the page with the smallest key first; the base of policies of plug-ins.

    New pages come before all others, in order of arrival. At the start a page has the time of its
    last visit as its key.
    """

    def key_after(self, page: int, now: float, observation: VisitObservation | None) -> float:
        """Return the key of a page after a visit; the time of the visit is a round robin.

        Args:
            observation: the changes seen; None if the visit failed.
        """
        return now

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Give the page its new key."""
        super().record_visit(page, now, observation)
        slot = self._slots.find(page)
        if slot != FREE:
            self._heap.move(slot, self.key_after(page, now, observation))
