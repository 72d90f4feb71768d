"""Bytes that remote data may take in the whole process: who holds them, who waits for them.

A `MemoryLease` belongs to bytes that live: the pieces of a body while it is received, the body
while its page is compared and waits for its commit, the tree of a page while it is parsed. It is
given back when they are dropped: `release` where their life ends, `__del__` where an exception
ended it elsewhere.

The limit is divided at the start (`MemoryShares`):

    fetches    a fixed amount for each fetch in flight: its buffers, and a body up to `FREE_BYTES`
    waiters    a piece of body that a waiting fetch has already decoded
    records    links and small copies that wait for their commit (`daemon/visit/recorder.py`)
    robots     rules of robots.txt files (`daemon/fetch/robots_cache.py`)
    replies    copies that the web listener keeps rendered or sends (`daemon/mirror_listener.py`)
    bodies     the rest of larger bodies, by leases
    analyses   trees and texts of larger pages, by leases

So a small page takes no lease and never waits. A task may hold a lease on bodies while it waits for
analyses, never the other way round.

There is no deadlock inside a pool either, although leases grow while others wait: so much of the
pool is kept back that one lease can always grow to the largest size. It goes to the lease that is
served next, until that one ends or the rest of the pool suffices again. Those who wait are served
in an order that is fair by host and size (`crawld/fair_order.py`), so that a medium page passes
large ones. A body that hardly grows while others wait loses its lease (`evict_slow`).
"""

from __future__ import annotations

import heapq
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import trio

from crawld.fair_order import FairOrder

KIB: Final = 1024
MIB: Final = 1024 * 1024

FREE_BYTES: Final = 64 * KIB
"""Body bytes that each fetch may hold without a lease: nine of ten pages of the web are smaller."""

FETCH_BYTES: Final = 2 * FREE_BYTES
"""Set aside for each fetch in flight: the free bytes, and as much for header and buffers."""

WAITER_BYTES: Final = 256 * KIB
"""What a waiting fetch holds beyond its lease: one decoded piece."""

LARGEST_STEP_BYTES: Final = 4 * MIB
"""A lease doubles up to this step, so that a sender that stops keeps little more than it sent."""

WINDOW_BYTES: Final = 8 * MIB
"""The window of one zstd body; it is filled while the body is decoded."""

HEAP_BLOCK_BYTES: Final = 4 * MIB
"""Blocks up to this size stay in the C library's heap when they are freed, larger ones do not."""

STALE_DIVISOR: Final = 4
"""So much of a pool, one part in this many, may be stale before it is returned at once."""

KEPT_DIVISOR: Final = 16
"""One part in this many of the limit is for what the allocators keep between used blocks."""

LEAST_BODIES_BYTES: Final = 80 * MIB
"""The pool of bodies has this size where it takes half of the rest: one body of 64 MiB fits."""

LEAST_BYTES: Final = 64 * MIB
"""The least limit: below it not even common images and pages fit."""

MOST_RECORD_BYTES: Final = 64 * MIB

REFILL_S: Final = 60.0
"""A body that receives less in this time than it holds is slow."""


class MemoryShortage(Exception):
    """Too many others wait for memory already."""


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """How a limit is divided, in bytes.

    Attributes:
        limit_bytes: all of it.
        max_in_flight: fetches that may be in flight at a time.
        max_waiting: fetches of these that may wait for memory.
        records_bytes: records that may wait for their commit.
        robots_bytes: rules of robots.txt files.
        replies_bytes: copies that readers are sent, and rendered pages that are kept for them.
        bodies_bytes: the pool of bodies.
        analyses_bytes: the pool of analyses.
    """

    limit_bytes: int
    max_in_flight: int
    max_waiting: int
    records_bytes: int
    robots_bytes: int
    replies_bytes: int
    bodies_bytes: int
    analyses_bytes: int

    @classmethod
    def of(cls, limit_bytes: int, max_in_flight: int, *, has_readers: bool = False) -> MemoryShares:
        """Divide a limit; `max_in_flight` is lowered if they took more than an eighth.

        Args:
            has_readers: whether the daemon serves the mirror, too.
        """
        limit_bytes = max(limit_bytes, LEAST_BYTES)
        in_flight = min(max_in_flight, limit_bytes // 8 // FETCH_BYTES)
        records = min(limit_bytes // 16, MOST_RECORD_BYTES)
        waiting = min(limit_bytes // 16 // WAITER_BYTES, max(in_flight // 2, 1))
        fixed = in_flight * FETCH_BYTES + waiting * WAITER_BYTES + 2 * records
        # A few of the largest bodies suffice; trees are larger.
        rest = limit_bytes - fixed
        bodies = max(rest // 3, min(rest // 2, LEAST_BODIES_BYTES))
        replies = limit_bytes // 16 if has_readers else 0
        return cls(
            limit_bytes=limit_bytes,
            max_in_flight=in_flight,
            max_waiting=waiting,
            records_bytes=records,
            robots_bytes=records,
            replies_bytes=replies,
            bodies_bytes=bodies,
            analyses_bytes=rest - bodies - replies - limit_bytes // KEPT_DIVISOR,
        )


class Filling(Protocol):
    """A body that is being received into a lease.

    Attributes:
        received_bytes: bytes on the wire so far.
    """

    received_bytes: int

    def evict(self) -> None:
        """End it: others wait for its memory."""


class MemoryLease:
    """Bytes of a pool that one holder keeps; made by `MemoryPool.lease`.

    Attributes:
        held_bytes: what it keeps now.
        host: whose bytes they are; hosts have equal shares of the order.
        filling: what fills it; None: nothing that may be ended.
    """

    __slots__ = ("__weakref__", "_pool", "filling", "held_bytes", "host")

    def __init__(self, pool: MemoryPool, host: str) -> None:
        self._pool = pool
        self.held_bytes = 0
        self.host = host
        self.filling: Filling | None = None

    def __del__(self) -> None:
        if self.held_bytes:
            self.release()

    async def grow(self, size_bytes: int) -> None:
        """Hold at least `size_bytes`; wait for a share that is not free.

        More than the largest size of the pool counts as that size. The caller may hold no other
        lease of this pool.

        Raises:
            MemoryShortage: too many wait already.
        """
        await self._pool.grow(self, size_bytes)

    def shrink(self, size_bytes: int) -> None:
        """Hold at most `size_bytes`."""
        self._pool.shrink(self, size_bytes)

    def release(self) -> None:
        """Hold nothing; allowed more than once."""
        self._pool.shrink(self, 0)


@dataclass(slots=True, eq=False)
class _Wish:
    """What a lease that waits wants."""

    lease: MemoryLease
    place: float
    size_bytes: int
    granted: trio.Event = field(default_factory=trio.Event)


class MemoryPool:
    """Bytes that leases share.

    Invariants: leases and stale bytes together never exceed `size_bytes`; while any lease waits,
    one lease can grow to `largest_bytes` without waiting, or once the stale bytes are returned.

    Attributes:
        size_bytes: what all leases may hold together.
        largest_bytes: what one lease may hold.
        max_waiting: leases that may wait.
        used_bytes: what they hold now.
        stale_bytes: given back by their holders, but kept by the C library: no room before
            `MemoryBudget.trimmed`.
    """

    def __init__(
        self,
        size_bytes: int,
        *,
        largest_bytes: int,
        max_waiting: int,
        on_stale: Callable[[], None] | None = None,
        mapped_bytes: int | None = None,
    ) -> None:
        """Make an empty pool.

        Args:
            on_stale: called when bytes become stale or are needed; None: none ever become stale.
            mapped_bytes: blocks from this size return to the system at once; None: no block does.
        """
        self.size_bytes = size_bytes
        self.largest_bytes = min(largest_bytes, size_bytes)
        self.max_waiting = max_waiting
        self.used_bytes = 0
        self.stale_bytes = 0
        self._on_stale = on_stale
        self._mapped_bytes = mapped_bytes
        # Not the lease itself, which must end with its holder. No other object takes its id before.
        self._favoured_id: int | None = None
        self._favoured_bytes = 0
        self._waiting: dict[MemoryLease, _Wish] = {}
        self._places: list[tuple[float, int, _Wish]] = []
        self._order = FairOrder()
        self._wishes = 0
        self._lacking = trio.Event()
        self._filled: weakref.WeakSet[MemoryLease] = weakref.WeakSet()

    @property
    def waiting(self) -> int:
        """Leases that wait now."""
        return len(self._waiting)

    @property
    def room_bytes(self) -> int:
        """What neither leases nor stale bytes take."""
        return self.size_bytes - self.used_bytes - self.stale_bytes

    def lease(self, host: str = "", filling: Filling | None = None) -> MemoryLease:
        """Return a lease that holds nothing yet."""
        lease = MemoryLease(self, host)
        if filling is not None:
            lease.filling = filling
            self._filled.add(lease)
        return lease

    def grow_nowait(self, lease: MemoryLease, size_bytes: int) -> bool:
        """Let a lease hold at least `size_bytes`; return whether that needs no waiting."""
        size_bytes = min(size_bytes, self.largest_bytes)
        if size_bytes <= lease.held_bytes:
            return True
        may_pass = not self._waiting or id(lease) == self._favoured_id
        return may_pass and self._grant(lease, size_bytes)

    async def grow(self, lease: MemoryLease, size_bytes: int) -> None:
        """See `MemoryLease.grow`."""
        if self.grow_nowait(lease, size_bytes):
            return
        size_bytes = min(size_bytes, self.largest_bytes)
        if len(self._waiting) >= self.max_waiting:
            raise MemoryShortage
        place = self._order.place(lease.host, size_bytes)
        wish = self._waiting[lease] = _Wish(lease, place, size_bytes)
        self._wishes += 1
        heapq.heappush(self._places, (place, self._wishes, wish))
        self._lacking.set()
        # What comes first in the order may fit where another does not.
        self.serve()
        try:
            await wish.granted.wait()
        finally:
            if lease in self._waiting:
                self._remove(wish)
                self.serve()  # cancelled: others may have waited behind this one

    def shrink(self, lease: MemoryLease, size_bytes: int) -> None:
        """See `MemoryLease.shrink`."""
        back_bytes = lease.held_bytes - size_bytes
        if back_bytes <= 0:
            return
        lease.held_bytes = size_bytes
        self.used_bytes -= back_bytes
        if id(lease) == self._favoured_id:
            self._favour(lease if size_bytes else None)
        is_mapped = self._mapped_bytes is not None and back_bytes >= self._mapped_bytes
        if self._on_stale is not None and not is_mapped:
            self.stale_bytes += back_bytes
            self._on_stale()
        self.serve()

    def trimmed(self, stale_bytes: int) -> None:
        """So many stale bytes were returned to the system."""
        self.stale_bytes -= stale_bytes
        self.serve()

    def serve(self) -> None:
        """Grant what those who wait want, in order, as far as there is room."""
        if self._favoured_id is not None and self.room_bytes >= self.largest_bytes:
            self._favour(None)
        while self._places:
            wish = self._places[0][2]
            if not self._grant(wish.lease, wish.size_bytes):
                self._serve_favoured()
                self._ask_for_stale()
                return
            self._order.served(wish.place)
            self._remove(wish)
            wish.granted.set()
        self._order.restart()

    async def wait_lacking(self) -> None:
        """Return when a lease waits."""
        while not self._waiting:
            self._lacking = trio.Event()
            await self._lacking.wait()

    def received(self) -> weakref.WeakKeyDictionary[MemoryLease, int]:
        """Return how much each body that is being received has received."""
        found: weakref.WeakKeyDictionary[MemoryLease, int] = weakref.WeakKeyDictionary()
        for lease in self._filled:
            if lease.filling is not None and lease.held_bytes and lease not in self._waiting:
                found[lease] = lease.filling.received_bytes
        return found

    def evict_slow(
        self, before: weakref.WeakKeyDictionary[MemoryLease, int], elapsed_s: float
    ) -> int:
        """End bodies that hardly grew while others waited, the largest first; return how many.

        No more are ended than the next in the order needs. A body is slow if it would take longer
        than `REFILL_S` to receive again what it holds.

        Args:
            before: what `received` returned.
            elapsed_s: the time since.
        """
        if not self._places:
            return 0
        wish, ended = self._places[0][2], 0
        lacking_bytes = wish.size_bytes - wish.lease.held_bytes
        by_size = sorted(self.received().items(), key=lambda each: -each[0].held_bytes)
        for lease, received_bytes in by_size:
            grown_bytes = received_bytes - before.get(lease, received_bytes - lease.held_bytes)
            if lacking_bytes <= 0 or lease.filling is None:
                continue
            if grown_bytes * REFILL_S < lease.held_bytes * elapsed_s:
                lacking_bytes -= lease.held_bytes
                lease.filling.evict()
                ended += 1
        return ended

    def _serve_favoured(self) -> None:
        """Let the favoured lease grow if it waits, although it is not the next."""
        for wish in self._waiting.values():
            if id(wish.lease) == self._favoured_id and self._grant(wish.lease, wish.size_bytes):
                self._remove(wish)
                wish.granted.set()
                return

    def _remove(self, wish: _Wish) -> None:
        del self._waiting[wish.lease]
        self._places = [entry for entry in self._places if entry[2] is not wish]
        heapq.heapify(self._places)

    def _ask_for_stale(self) -> None:
        if self.stale_bytes and self._on_stale is not None:
            self._on_stale()

    def _grant(self, lease: MemoryLease, size_bytes: int) -> bool:
        """Let a lease grow if there is room.

        Room for one lease of the largest size is kept back. A lease that needs it is favoured, and
        may use it until it ends.
        """
        more_bytes = size_bytes - lease.held_bytes
        if more_bytes > self.room_bytes:
            return False
        is_favoured = id(lease) == self._favoured_id
        kept_back_bytes = 0 if is_favoured else self.largest_bytes - self._favoured_bytes
        if more_bytes + kept_back_bytes > self.room_bytes:
            if self._favoured_id is not None:
                return False
            is_favoured = True
        lease.held_bytes = size_bytes
        self.used_bytes += more_bytes
        if is_favoured:
            self._favour(lease)
        return True

    def _favour(self, lease: MemoryLease | None) -> None:
        self._favoured_id = None if lease is None else id(lease)
        self._favoured_bytes = 0 if lease is None else lease.held_bytes


class MemoryBudget:
    """The pools of a process.

    Attributes:
        shares: how the limit is divided.
        max_body_bytes: the largest body that the pool of bodies can hold.
        bodies: the pool of bodies.
        analyses: the pool of analyses.
    """

    def __init__(
        self, shares: MemoryShares, *, max_body_bytes: int, returns_stale: bool = False
    ) -> None:
        """Make empty pools.

        Args:
            max_body_bytes: the largest body of any fetch; larger ones than the pool allows are
                refused.
            returns_stale: whether someone waits for `stale` and calls `trimmed`.
        """
        self.shares = shares
        self.max_body_bytes = min(max_body_bytes, shares.bodies_bytes - WINDOW_BYTES)
        self._stale = trio.Event()
        self._pressing = trio.Event()
        on_stale = self._note_stale if returns_stale else None
        self.bodies = MemoryPool(
            shares.bodies_bytes,
            largest_bytes=self.max_body_bytes + WINDOW_BYTES,
            max_waiting=shares.max_waiting,
            on_stale=on_stale,
            mapped_bytes=HEAP_BLOCK_BYTES,
        )
        self.analyses = MemoryPool(
            shares.analyses_bytes,
            largest_bytes=shares.analyses_bytes * 3 // 4,
            max_waiting=sys.maxsize,  # each belongs to a turn, a job or a poll, which are few
            on_stale=on_stale,
        )

    @property
    def used_bytes(self) -> int:
        """What all leases hold now."""
        return self.bodies.used_bytes + self.analyses.used_bytes

    @property
    def stale_bytes(self) -> int:
        """What was given back and is not yet returned to the system."""
        return self.bodies.stale_bytes + self.analyses.stale_bytes

    @property
    def waiting(self) -> int:
        """Fetches and analyses that wait for memory now."""
        return self.bodies.waiting + self.analyses.waiting

    # --- memory that the C library keeps -------------------------------------------------------

    def _note_stale(self) -> None:
        self._stale.set()
        for pool in (self.bodies, self.analyses):
            stale_bytes = pool.stale_bytes
            if stale_bytes and (pool.waiting or stale_bytes >= pool.size_bytes // STALE_DIVISOR):
                self._pressing.set()

    async def wait_stale(self, patience_s: float) -> None:
        """Return when bytes are stale, after `patience_s` or as soon as they are in the way."""
        await self._stale.wait()
        with trio.move_on_after(patience_s):
            await self._pressing.wait()

    def begin_trim(self) -> tuple[int, int]:
        """Return the bytes that are stale now, for `trimmed`."""
        self._stale, self._pressing = trio.Event(), trio.Event()
        return self.bodies.stale_bytes, self.analyses.stale_bytes

    def trimmed(self, bodies_bytes: int, analyses_bytes: int) -> None:
        """The bytes that were stale at `begin_trim` have been returned to the system."""
        self.bodies.trimmed(bodies_bytes)
        self.analyses.trimmed(analyses_bytes)
