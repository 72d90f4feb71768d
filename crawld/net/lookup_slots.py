"""Which lookups may run now: a bounded number at once, and no name server can use them all up.

- Names that were found before start first, and fresh names leave them a quarter of the slots.
- The names of one registrable domain share `PER_DOMAIN` slots, since they share name servers: a
  domain with thousands of names and slow name servers delays itself only. Fresh names do not take
  the share of names found before.
- A lookup beyond its time limit may still hold a thread of the C library, so it keeps its place
  among those of its domain until it ends; up to `at_once` of these leave their slots to others.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from crawld.core.url import registrable_domain

LOOKUPS_AT_ONCE = 32
"""Lookups within their time limit; with 20 ms each they find 1,600 names a second."""

PER_DOMAIN = 4
"""Lookups of one registrable domain at once: eight slow domains fill all slots, for one limit."""


class QueuedLookup:
    """A name that waits for its lookup, or is being looked up.

    Attributes:
        host: the name.
        known: whether its last lookup found it.
    """

    __slots__ = ("domain", "host", "known")

    def __init__(self, host: str, *, known: bool) -> None:
        self.host = host
        self.known = known
        self.domain = registrable_domain(host)


L = TypeVar("L", bound=QueuedLookup)


class _Class(Generic[L]):
    """The waiting lookups of known or of fresh names, by domain."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: dict[str, deque[L]] = {}
        # Domains that may start a lookup, in the order of their turns.
        self.ready: OrderedDict[str, None] = OrderedDict()
        self.held: Counter[str] = Counter()

    def put_in_turn(self, domain: str) -> None:
        if domain in self.waiting and self.held[domain] < PER_DOMAIN:
            self.ready[domain] = None

    def pop(self) -> L:
        domain, _ = self.ready.popitem(last=False)
        lookup = self.waiting[domain].popleft()
        if not self.waiting[domain]:
            del self.waiting[domain]
        self.held[domain] += 1
        self.put_in_turn(domain)
        return lookup


class LookupSlots(Generic[L]):
    """The lookups that wait and those that run."""

    def __init__(self, at_once: int = LOOKUPS_AT_ONCE) -> None:
        """Make empty slots for so many lookups at once; with those that are late, twice as many."""
        self._at_once = at_once
        self._classes: dict[bool, _Class[L]] = {
            True: _Class(at_once),
            False: _Class(max(1, at_once * 3 // 4)),
        }
        self._waiting = 0
        self._running = 0
        self._late = 0

    @property
    def waiting(self) -> int:
        """Lookups that wait."""
        return self._waiting

    @property
    def running(self) -> int:
        """Lookups that run, late ones included."""
        return self._running

    def add(self, lookup: L) -> None:
        """Let a lookup wait; `take` returns it when it may run."""
        known = self._classes[lookup.known]
        known.waiting.setdefault(lookup.domain, deque()).append(lookup)
        known.put_in_turn(lookup.domain)
        self._waiting += 1

    def discard(self, lookup: L) -> None:
        """Remove a waiting lookup."""
        known = self._classes[lookup.known]
        known.waiting[lookup.domain].remove(lookup)
        self._waiting -= 1
        if not known.waiting[lookup.domain]:
            del known.waiting[lookup.domain]
            known.ready.pop(lookup.domain, None)

    def take(self) -> Iterator[L]:
        """Remove and return the lookups that may start now; each holds a slot until `end`."""
        for each in self._classes.values():
            while each.ready and self._running - min(self._late, self._at_once) < each.most:
                self._waiting -= 1
                self._running += 1
                yield each.pop()

    def note_late(self) -> None:
        """Note that a running lookup is beyond its time limit."""
        self._late += 1

    def end(self, lookup: L, *, late: bool = False) -> None:
        """Free the slot of a lookup; `late`: it was noted as late."""
        self._running -= 1
        self._late -= late
        known = self._classes[lookup.known]
        known.held[lookup.domain] -= 1
        if not known.held[lookup.domain]:
            del known.held[lookup.domain]
        known.put_in_turn(lookup.domain)
