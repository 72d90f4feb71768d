"""Analyse remote bytes: small bodies on the event loop, larger ones on two threads of their own.

Parsing is Python code that holds the interpreter lock, so more threads make nothing faster. There
are two, so that a page that takes seconds delays no page that takes 20 ms; and no more, since each
busy thread adds one switch interval to every wait of the event loop for the lock.

A page can be built that takes a hundred times its estimate. So each call on the event loop is
timed, and `analysis_time` sends the next pages of such a domain to a thread.

Each queue is fair by host and by cost (`crawld/fair_order.py`), and so is the memory for which a
call waits before. One host with large pages therefore delays another's small page by no more than
the call that runs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar, TypeVarTuple

import trio

from crawld.core.content.documents import has_structure
from crawld.core.content.page_memory import analysable_size, analysis_bytes
from crawld.core.content.tree_memory import count_tags
from crawld.core.url import split_url
from crawld.daemon.analysis_memory import (
    PARSED_PER_BYTE,
    AnalysisDroppedError,
    AnalysisMemory,
    CopyMemory,
    bodies_bytes,
)
from crawld.daemon.analysis_time import NOTED_S, AnalysisTime
from crawld.daemon.clock import thread_cpu_s
from crawld.daemon.stall_meter import StallMeter
from crawld.fair_order import FairOrder
from crawld.marks import NO_MARKS, Marks
from crawld.memory import MemoryBudget
from crawld.workers import Workers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BYTE_S: Final = 30e-9
TAG_S: Final = 1.5e-6
"""Time that a comparison takes per byte of prose and per tag of both bodies, about.

A parse alone takes a third. Tags cost more than bytes: a table of 100 KB takes as long as 1 MB of
prose.
"""

FEED_WEIGHT: Final = 12
"""A feed or a JSON document takes so many times as long as a page of the same size and tags."""

PACKED_PER_PARSED: Final = 16
"""Bytes that are hashed or compressed while one is parsed."""

PACKED_BYTES: Final = 256 * 1024
"""Bodies that are hashed or compressed at once, within half a millisecond."""

INLINE_S: Final = 0.010
"""Estimated time up to which a call runs on the event loop.

First copies up to 150 KB with 3,500 tags stay there, and pairs of 75 KB. A thread would cost them
0.2 ms, and the event loop a wait for the lock of the interpreter at each of its system calls.
"""

PASS_S: Final = 0.020
"""Time of all calls in one pass of the event loop; others wait for the next pass.

Without it the turns of 180 hosts that become ready together would hold the loop for a second.
"""

SERVED_S: Final = PASS_S / 2
"""Estimated time of the calls that waited and go on in one pass.

With one call in each pass a crawl at full speed makes three times as many passes. Estimates may be
too low: a call that comes when the time of its pass is spent waits again.
"""

SERVED_AT_ONCE: Final = 4
"""Most of these calls: on a busy machine each that comes in vain costs time."""

LONG_S: Final = 0.1
"""Estimated time from which a call belongs to the second thread."""

LONG_BYTES: Final = int(LONG_S / BYTE_S)
"""Bodies that belong to the second thread whatever their tags."""


def cost_s(size_bytes: int, tags: int = 0) -> float:
    """Return about how long the analysis of a body takes."""
    return BYTE_S * size_bytes + TAG_S * tags


def weight_of(content_type: str | None) -> int:
    """Return how many times as long a body takes as a page of its size.

    Args:
        content_type: as sniffed.
    """
    return FEED_WEIGHT if content_type and has_structure(content_type) else 1


def weigh(body: bytes, most_bytes: int) -> tuple[int, int]:
    """Return how much of a body can be analysed within so much memory, and what that takes."""
    size = analysable_size(body, most_bytes)
    return size, min(analysis_bytes(body, size), most_bytes)


Place = tuple[float, int]
"""The place of a call in a queue: that of its `FairOrder`, then the order of arrival."""


class FairQueue:
    """Calls that wait for one place, in an order that is fair by host and by cost."""

    def __init__(self) -> None:
        self._heap: list[tuple[Place, float, trio.Event]] = []
        self._order = FairOrder()
        self._arrivals = 0
        self._is_taken = False
        self._may_drop: set[trio.Event] = set()
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._heap)

    def pop(self) -> float:
        """Let the next call go on; return its cost."""
        place, cost, event = heapq.heappop(self._heap)
        self._order.served(place[0])
        self._may_drop.discard(event)
        event.set()
        if not self._heap:
            self._order.restart()
        return cost

    def remove(self, event: trio.Event) -> None:
        """Remove a call that waits no more."""
        self._heap = [entry for entry in self._heap if entry[2] is not event]
        heapq.heapify(self._heap)

    @asynccontextmanager
    async def place(self, host: str, cost: float, *, may_drop: bool = False) -> AsyncIterator[None]:
        """Hold the one place.

        Raises:
            AnalysisDroppedError: `drop` was called, before or meanwhile, and it may be dropped.
        """
        if may_drop and self._is_closing:
            raise AnalysisDroppedError
        if self._is_taken:
            await self.wait(host, cost, may_drop=may_drop)
        self._is_taken = True
        try:
            yield
        finally:
            self._release()

    async def wait(
        self, host: str, cost: float, *, may_drop: bool = False, place: Place | None = None
    ) -> Place:
        """Wait until `pop` lets this call go on; return its place.

        Args:
            place: that of a call which has waited and could not go on; None: a new one.

        Raises:
            AnalysisDroppedError: `drop` was called, before or meanwhile, and it may be dropped.
        """
        if may_drop and self._is_closing:
            raise AnalysisDroppedError
        if place is None:
            self._arrivals += 1
            place = self._order.place(host, cost), self._arrivals
        else:
            place = self._order.again(place[0]), place[1]
        event = trio.Event()
        heapq.heappush(self._heap, (place, cost, event))
        if may_drop:
            self._may_drop.add(event)
        try:
            await event.wait()
        except trio.Cancelled:
            self._may_drop.discard(event)
            self.remove(event)
            raise
        if event in self._may_drop:
            self._may_drop.discard(event)
            raise AnalysisDroppedError
        return place

    def drop(self) -> None:
        """Let the calls that may be dropped wait no more, from now on."""
        self._is_closing = True
        for event in self._may_drop:
            self.remove(event)
            event.set()

    def _release(self) -> None:
        self._is_taken = bool(self._heap)
        if self._heap:
            self.pop()


class Analyser:
    """Runs every analysis of remote bytes in the daemon.

    Attributes:
        meter: learns which pages are analysed.
        marks: notes which page is analysed, also for what reads stored copies.
        memory: of the pages that are analysed.
    """

    def __init__(
        self,
        workers: Workers,
        marks: Marks = NO_MARKS,
        meter: StallMeter | None = None,
        budget: MemoryBudget | None = None,
        cpu_time: Callable[[], float] = thread_cpu_s,
    ) -> None:
        self.memory = AnalysisMemory(budget)
        self.meter = meter or StallMeter()
        self._workers = workers
        self.marks = marks
        self._time = AnalysisTime()
        self._cpu_time = cpu_time
        self._limiter = trio.CapacityLimiter(2)
        self._inline = FairQueue()
        self._short = FairQueue()
        self._long = FairQueue()
        self._on_threads: set[trio.CancelScope] = set()
        self._drop_at = math.inf
        self._pass = -1
        self._spent_s = 0.0
        self._analysed = ""

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        url: str,
        size_bytes: int,
        tags: int = 0,
        memory_bytes: int | None = None,
    ) -> T:
        """Return what `call(*args)` returns, or raise what it raises.

        Args:
            call: a sync function that touches nothing the event loop writes meanwhile.
            url: the page or document that the bytes came from.
            size_bytes: length of the bytes it reads.
            tags: number of `<` in them, where it parses markup.
            memory_bytes: what it takes at most; None: as much as parsed JSON.

        Raises:
            AnalysisDroppedError: within a visit, after `drop`.
        """
        expected_s = cost_s(size_bytes, tags)
        if await self._stays(url, expected_s):
            return self._run_here(call, args, url, expected_s)
        if memory_bytes is None:
            memory_bytes = PARSED_PER_BYTE * size_bytes
        return await self._run_on_thread(call, args, url, expected_s, memory_bytes)

    async def read(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        url: str,
        bodies: Sequence[bytes],
        weight: int = 1,
    ) -> T:
        """Run a call that parses bodies; see `run`.

        Args:
            weight: how many times as long it takes as a comparison of pages.
        """
        size_bytes = sum(map(len, bodies))
        tags = 0
        if size_bytes <= LONG_BYTES:
            tags = sum([count_tags(body, len(body)) for body in bodies])
        expected_s = weight * cost_s(size_bytes, tags)
        if await self._stays(url, expected_s):
            return self._run_here(call, args, url, expected_s)
        return await self._run_on_thread(call, args, url, expected_s, bodies_bytes(bodies))

    async def read_copy(
        self,
        call: Callable[[bytes], T],
        body: bytes,
        memory: CopyMemory,
        *,
        url: str,
        weight: int = 1,
    ) -> T:
        """Run a call on a stored body, or on as much of it as there is memory for; see `run`.

        Args:
            memory: from `AnalysisMemory.copy`.
            weight: see `read`.
        """
        most_bytes = memory.left_bytes
        if most_bytes is None:
            return await self.read(call, body, url=url, bodies=(body,), weight=weight)
        weighed_bytes = len(body) // PACKED_PER_PARSED
        size, needed_bytes = await self.run(
            weigh, body, most_bytes, url=url, size_bytes=weighed_bytes, memory_bytes=0
        )
        await memory.hold(needed_bytes)
        part = body if size == len(body) else body[:size]
        tags = count_tags(part, size) if size <= LONG_BYTES else 0
        return await self.run(
            call, part, url=url, size_bytes=weight * size, tags=weight * tags, memory_bytes=0
        )

    async def pack(self, call: Callable[[*Ts], T], *args: *Ts, url: str, body: bytes) -> T:
        """Run a call that hashes or compresses a body; see `run`."""
        if len(body) <= PACKED_BYTES:
            return call(*args)
        return await self.run(
            call,
            *args,
            url=url,
            size_bytes=len(body) // PACKED_PER_PARSED,
            memory_bytes=len(body),
        )

    async def run_guest(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        url: str,
        label: str,
        memory_bytes: int,
        limit_s: float,
        limiter: trio.CapacityLimiter,
    ) -> T:
        """Run code that is not ours on a thread that no other analysis waits for.

        Args:
            label: names it, where its page alone would not.
            limit_s: after this time it is abandoned; its thread goes on.
            limiter: bounds how many such calls run at once, abandoned ones included.

        Raises:
            trio.TooSlowError: it did not end in time.
            AnalysisDroppedError: within a visit, after `drop`.
        """
        async with self.memory.held(memory_bytes, split_url(url).host):
            with self.meter.on_thread(f"{label}: {url}"):
                return await self._unless_dropped(
                    self._marked, url, call, args, limit_s=limit_s, limiter=limiter
                )

    def drop(self, running_until: float) -> None:
        """Stop with the daemon: visits that are dropped are made again.

        Visits wait no more for their turn. Calls on threads are abandoned at a time of trio's
        clock, since a thread cannot be ended.
        """
        self._drop_at = running_until
        for scope in self._on_threads:
            scope.deadline = running_until
        self.memory.drop_waiting()
        self._inline.drop()
        self._short.drop()
        self._long.drop()

    # --- calls on a thread -----------------------------------------------------------------------

    async def _run_on_thread(
        self,
        call: Callable[[*Ts], T],
        args: tuple[*Ts],
        url: str,
        expected_s: float,
        memory_bytes: int,
    ) -> T:
        estimate_s = expected_s * self._time.factor(url)
        queue = self._short if estimate_s <= LONG_S else self._long
        host = split_url(url).host
        async with self.memory.held(memory_bytes, host):
            may_drop = self.memory.in_visit()
            async with queue.place(host, estimate_s, may_drop=may_drop):
                with self.meter.on_thread(url):
                    result = await self._unless_dropped(self._marked, url, call, args)
            self.memory.note_parsed()
            return result

    async def _unless_dropped(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limit_s: float = math.inf,
        limiter: trio.CapacityLimiter | None = None,
    ) -> T:
        """Run a call on a thread, until it is dropped.

        Every other cancellation waits for the thread, which uses the memory that the caller holds.

        Raises:
            trio.TooSlowError: it took longer than `limit_s`.
            AnalysisDroppedError: within a visit, it was dropped.
        """
        late_at = trio.current_time() + limit_s
        with trio.CancelScope(shield=True, deadline=min(self._drop_at, late_at)) as scope:
            self._on_threads.add(scope)
            try:
                return await self._workers.run(
                    call, *args, limiter=limiter or self._limiter, abandon_on_cancel=True
                )
            finally:
                self._on_threads.discard(scope)
        if trio.current_time() < self._drop_at:
            raise trio.TooSlowError
        if self.memory.in_visit():
            raise AnalysisDroppedError
        # Background work is cancelled next; it has no use for an error.
        await trio.sleep_forever()

    def _marked(self, url: str, call: Callable[[*Ts], T], args: tuple[*Ts]) -> T:
        with self.marks.under(url):
            return call(*args)

    # --- calls on the event loop -----------------------------------------------------------------

    async def _stays(self, url: str, expected_s: float) -> bool:
        """Whether a call runs on the event loop; wait until it has time there."""
        if not self._is_short(url, expected_s):
            return False
        has_time = self._left_s() > 0.0
        # A page that was analysed in this pass goes on: each wait costs more than to list what a
        # small page requires.
        if has_time and (not self._inline or url == self._analysed):
            return True
        if self.memory.ends_visit():
            return True
        before, place = self.meter.passes, await self._next_pass(url, expected_s)
        # A meter that is not installed counts no passes.
        while self._left_s() <= 0.0 and self.meter.passes != before:
            before, place = self.meter.passes, await self._next_pass(url, expected_s, place)
        # Meanwhile others may have shown that the estimates of this domain are too low.
        return self._is_short(url, expected_s)

    def _is_short(self, url: str, expected_s: float) -> bool:
        if expected_s > INLINE_S:
            return False
        return expected_s * self._time.factor(url) * self._time.doubt() <= INLINE_S

    def _run_here(
        self, call: Callable[[*Ts], T], args: tuple[*Ts], url: str, expected_s: float
    ) -> T:
        began_at, cpu_s = trio.current_time(), self._cpu_time()
        self.meter.page = self._analysed = url
        with self.marks.under(url):
            result = call(*args)
        took_s = trio.current_time() - began_at
        self._spent_s += took_s
        if took_s >= NOTED_S:
            # Not the page is slow if another program, or a thread, had the processor meanwhile.
            self._time.note(url, expected_s, self._cpu_time() - cpu_s)
        self.memory.note_parsed()
        return result

    def _left_s(self) -> float:
        """Return how much time the calls of this pass have left."""
        if self._pass != self.meter.passes:
            self._pass = self.meter.passes
            self._spent_s = 0.0
            self._analysed = ""
        return PASS_S - self._spent_s

    async def _next_pass(self, url: str, estimate_s: float, place: Place | None = None) -> Place:
        if not self._inline:
            trio.lowlevel.spawn_system_task(self._serve_inline)
        host, may_drop = split_url(url).host, self.memory.in_visit()
        return await self._inline.wait(host, estimate_s, may_drop=may_drop, place=place)

    async def _serve_inline(self) -> None:
        """Let the calls that wait go on, in each pass as many as have time."""
        while self._inline:
            await trio.lowlevel.checkpoint()
            served_s, served = 0.0, 0
            while self._inline and served_s < SERVED_S and served < SERVED_AT_ONCE:
                served_s += self._inline.pop()
                served += 1
