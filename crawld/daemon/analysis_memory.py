"""Memory of the analyses: leases of the pages that are parsed, until their visits end.

What a visit parses lives until its record is made, across several analyses. So the visit holds one
lease, which grows; an analysis outside of visits holds a lease while it runs. Small bodies, which
are analysed on the event loop, take no lease.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar, Token
from typing import Final

import trio

from crawld.core.content.tree_memory import comparison_bytes, size_within, working_set_bytes
from crawld.memory import FREE_BYTES, MemoryBudget, MemoryLease

PARSED_PER_BYTE: Final = 24
"""Most bytes of parsed JSON or XML per byte."""

COPY_FACTOR: Final = 2
"""A stored copy takes its size, and so much again while it is decoded or cut."""

OVERDRAFT: Final = 2
"""Two pages are compared if they take at most so many times the pool; the estimate is a bound, and
nothing else is analysed meanwhile."""


class AnalysisDroppedError(Exception):
    """The daemon stops, and the analysis of a visit waited for memory or for a thread."""


class VisitMemory:
    """What one visit holds, and the context in which it does.

    Attributes:
        has_parsed: whether an analysis of the visit has ended, so that a tree may live.
    """

    __slots__ = ("_token", "has_parsed", "lease")

    def __init__(self) -> None:
        self.lease: MemoryLease | None = None
        self.has_parsed = False
        self._token: Token[VisitMemory | None] | None = None

    def __enter__(self) -> None:
        self._token = _VISIT.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _VISIT.reset(self._token)
        if self.lease is not None:
            self.lease.release()


class CopyMemory:
    """What one stored copy and its analysis hold, outside of visits.

    Attributes:
        left_bytes: how much its analysis may take; None: any amount.
    """

    __slots__ = ("_lease", "_size_bytes", "left_bytes")

    def __init__(self, lease: MemoryLease | None, size_bytes: int, left_bytes: int | None) -> None:
        self._lease = lease
        self._size_bytes = size_bytes
        self.left_bytes = left_bytes

    async def hold(self, analysis_bytes: int) -> None:
        """Hold memory for the analysis, beside the copy."""
        if self._lease is not None:
            await self._lease.grow(self._size_bytes + analysis_bytes)


_VISIT: ContextVar[VisitMemory | None] = ContextVar("visit", default=None)


class AnalysisMemory:
    """Leases for analyses.

    Attributes:
        page_bytes: how much of a page can be analysed; None: all of it.
    """

    def __init__(self, budget: MemoryBudget | None) -> None:
        """Make the leases; without a budget nothing waits."""
        self._pool = budget.analyses if budget is not None else None
        self.page_bytes: int | None = None
        self._is_closing = False
        self._waiting_visits: set[trio.CancelScope] = set()
        if self._pool is not None and working_set_bytes(2**26) > self._pool.largest_bytes:
            self.page_bytes = size_within(self._pool.largest_bytes)

    def visit(self) -> VisitMemory:
        """Return a context in which the analyses of this task share one lease."""
        return VisitMemory()

    def in_visit(self) -> bool:
        """Whether this task makes a visit."""
        return _VISIT.get() is not None

    def ends_visit(self) -> bool:
        """Whether the visit of this task has parsed its page, and should now come to its end."""
        memory = _VISIT.get()
        return memory is not None and memory.has_parsed

    def note_parsed(self) -> None:
        """Record that an analysis of this task has ended."""
        memory = _VISIT.get()
        if memory is not None:
            memory.has_parsed = True

    @asynccontextmanager
    async def held(self, size_bytes: int, host: str = "") -> AsyncIterator[None]:
        """Hold memory for one analysis of a page of a host; within a visit, until it ends."""
        lease, kept = self._lease(host)
        try:
            if lease is not None:
                await self._grow(lease, size_bytes)
            yield
        finally:
            if lease is not None and not kept:
                lease.release()

    @asynccontextmanager
    async def copy(self, size_bytes: int, host: str = "") -> AsyncIterator[CopyMemory | None]:
        """Hold memory to read one stored copy outside of visits; None: it is too large.

        A small copy takes no lease. The caller holds no other, and analyses with
        `Analyser.read_copy` only.
        """
        if self._pool is None or size_bytes <= FREE_BYTES:
            yield CopyMemory(None, size_bytes, None)
            return
        left_bytes = self._pool.largest_bytes - COPY_FACTOR * size_bytes
        if left_bytes <= 0:
            yield None
            return
        lease = self._pool.lease(host)
        try:
            await lease.grow(COPY_FACTOR * size_bytes)
            yield CopyMemory(lease, COPY_FACTOR * size_bytes, left_bytes)
        finally:
            lease.release()

    async def reserve(self, *sizes_bytes: int) -> bool:
        """Hold memory to compare two bodies of these sizes in a visit; False: they are too large.

        Call it before the second is read from the file.

        Raises:
            AnalysisDroppedError: within a visit, after `drop_waiting`.
        """
        needed_bytes = comparison_bytes(*sizes_bytes)
        if self._pool is None:
            return True
        if needed_bytes > OVERDRAFT * self._pool.size_bytes:
            return False
        lease, kept = self._lease()
        if lease is not None and kept:
            await self._grow(lease, needed_bytes)
        return True

    def drop_waiting(self) -> None:
        """End the waiting of visits for memory, from now on."""
        self._is_closing = True
        for scope in self._waiting_visits:
            scope.cancel()

    async def _grow(self, lease: MemoryLease, size_bytes: int) -> None:
        """Let a lease grow.

        Raises:
            AnalysisDroppedError: within a visit, `drop_waiting` was called before or meanwhile.
        """
        if not self.in_visit():
            await lease.grow(size_bytes)
            return
        with trio.CancelScope() as scope:
            if self._is_closing:
                scope.cancel()
            self._waiting_visits.add(scope)
            try:
                await lease.grow(size_bytes)
            finally:
                self._waiting_visits.discard(scope)
        if scope.cancelled_caught:
            raise AnalysisDroppedError

    def _lease(self, host: str = "") -> tuple[MemoryLease | None, bool]:
        """Return the lease of the visit or a new one, and whether it belongs to a visit."""
        if self._pool is None:
            return None, False
        memory = _VISIT.get()
        if memory is None:
            return self._pool.lease(host), False
        if memory.lease is None:
            memory.lease = self._pool.lease(host)
        return memory.lease, True


def bodies_bytes(bodies: Sequence[bytes]) -> int:
    """Return the most memory that the analysis of bodies takes."""
    return sum(working_set_bytes(len(body)) for body in bodies)
