"""Group commit: many small writes, one transaction, one fsync.

A call is a sync store function with its arguments. Calls gather in a batch, which runs between one
BEGIN IMMEDIATE and one COMMIT; only after the COMMIT does a caller get its result. So every
reported result is on the disk, and a crash loses at most one unreported batch.

BEGIN, COMMIT and the calls of `write` run on a thread. The calls of `write_each`, which are many
and small (one per visit), run on the event loop, in slices, and a call with many rows in parts: on
a thread each of their statements
would release the interpreter lock and then wait for it, up to the switch interval each time while
the loop is busy, and a batch of a tenth of a second would take seconds.

1. An exception of one call undoes this call alone and is raised to its caller; the other calls of
   the batch commit. The batch first runs without savepoints; if a call raises, it is rolled back
   and run again with a savepoint around each call. (Savepoints always would cost 5 µs for a call
   that touches three B-tree pages and 50 µs for a visit with its copy, since SQLite keeps the old
   content of each page that a savepoint touches.)
2. A temporary condition of the machine (full disk, read-only file system, input/output error) is no
   caller's fault: the transaction is rolled back, and the batch is tried again with growing pauses
   until it commits. So a call may run more than once and must not change its arguments.
3. If the file is damaged, every caller gets `CorruptDatabaseError`.
4. A cancelled caller still waits: its write may be in the middle of a COMMIT, and a result that is
   neither reported nor undone is worse than a short wait.
5. Transactions are explicit statements, never `with connection:`, which commits with the
   interpreter lock held and would stop every fetch slot at each fsync.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, Final, Literal, ParamSpec, TypeVar, cast

import apsw
import tenacity
import trio

from crawld.errors import CrawldError, StoreError
from crawld.store.engine.connection import (
    CORRUPTION_ERRORS,
    STALL_ERRORS,
    stall_text,
    store_error,
)
from crawld.store.engine.in_parts import Apart, InParts, finish
from crawld.workers import Workers

P = ParamSpec("P")
T = TypeVar("T")

FLUSH_CALLS: Final = 256
"""A batch of this many calls runs at once, regardless of its age."""

WAITING_CALLS: Final = 1024
"""Length of the queue; when it is full, the next caller waits for space."""

STALL_RETRY_S: Final = 30.0
"""Longest pause between two attempts to write a batch."""

SLICE_S: Final = 0.004
"""Longest time that calls run on the event loop before other tasks get their turn. A much shorter
slice would starve the batch on a busy loop: each slice waits once for all other tasks."""

Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]
"""A store function and its arguments after the connection."""

RunsOn = Literal["loop", "thread"]
"""Where a call runs."""


@dataclass(slots=True)
class _Batch:
    """Calls that commit together; results are in the order of the calls."""

    calls: list[Call] = field(default_factory=list)
    places: list[RunsOn] = field(default_factory=list)
    done: trio.Event = field(default_factory=trio.Event)
    results: list[object] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)
    lost: CrawldError | None = None

    def result(self, position: int) -> object:
        if self.lost is not None:
            # one new object per caller: a shared one would collect every caller's traceback
            raise type(self.lost)(self.lost.message, hint=self.lost.hint)
        if position in self.failures:
            raise self.failures[position]
        return self.results[position]


class Writer:
    """The writing connection: used by one task at a time, with blocking work on a thread."""

    def __init__(self, connection: apsw.Connection, workers: Workers) -> None:
        self.connection = connection
        self.lock = trio.Lock()
        self._workers = workers
        self._limiter = trio.CapacityLimiter(1)

    async def run(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function on the thread; the caller holds the lock."""
        call = functools.partial(fn, self.connection, *args, **kwargs)
        return await self._workers.run(call, limiter=self._limiter)

    async def run_batch(self, batch: _Batch) -> None:
        """Run a batch in one transaction and store its results in it.

        Raises:
            apsw.Error: nothing was committed: a condition of the machine or a damaged file.
        """
        async with self.lock:
            try:
                batch.results = await self._run_plain(batch)
                return
            except (*STALL_ERRORS, *CORRUPTION_ERRORS):
                raise
            except Exception as error:
                if len(batch.calls) == 1:
                    batch.results, batch.failures = [None], {0: error}
                    return
            batch.results, batch.failures = await self.run(_run_guarded, batch.calls)

    async def _run_plain(self, batch: _Batch) -> list[object]:
        if "loop" not in batch.places:
            return await self.run(_run_transaction, batch.calls)
        await self.run(_execute, "BEGIN IMMEDIATE")
        try:
            results: list[object] = []
            placed = zip(batch.places, batch.calls, strict=True)
            for place, group in itertools.groupby(placed, key=operator.itemgetter(0)):
                calls = [call for _, call in group]
                if place == "thread":
                    results += await self.run(_run_all, calls)
                else:
                    await self._run_here(calls, results)
            await self.run(_execute, "COMMIT")
        except BaseException:
            await self.run(_roll_back)
            raise
        return results

    async def _run_here(self, calls: list[Call], results: list[object]) -> None:
        until = trio.current_time() + SLICE_S
        for fn, args, kwargs in calls:
            call = cast("InParts[object]", fn(self.connection, *args, **kwargs))
            under_way = True
            while under_way:
                apart = None
                try:
                    apart = next(call)
                except StopIteration as end:
                    results.append(end.value)
                    under_way = False
                if apart is not None:
                    await self.run(_call, apart)
                    until = trio.current_time() + SLICE_S
                elif trio.current_time() >= until:
                    await trio.lowlevel.checkpoint()
                    until = trio.current_time() + SLICE_S


def _call(_connection: apsw.Connection, call: Apart) -> None:
    call()


def _execute(connection: apsw.Connection, statement: str) -> None:
    connection.execute(statement)


def _roll_back(connection: apsw.Connection) -> None:
    # SQLite has already rolled back after some of its errors
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _run_transaction(connection: apsw.Connection, calls: list[Call]) -> list[object]:
    """Run a whole batch in one call of a thread: each further one costs a hop there and back."""
    _execute(connection, "BEGIN IMMEDIATE")
    try:
        results = _run_all(connection, calls)
        _execute(connection, "COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    return results


def _run_all(connection: apsw.Connection, calls: list[Call]) -> list[object]:
    return [_run_one(connection, call) for call in calls]


def _run_one(connection: apsw.Connection, call: Call) -> object:
    fn, args, kwargs = call
    result = fn(connection, *args, **kwargs)
    return finish(result) if isinstance(result, Generator) else result


def _run_guarded(
    connection: apsw.Connection, calls: list[Call]
) -> tuple[list[object], dict[int, Exception]]:
    """Run each call in its own savepoint; undo those that fail again."""
    results: list[object] = []
    failures: dict[int, Exception] = {}
    connection.execute("BEGIN IMMEDIATE")
    try:
        for position, call in enumerate(calls):
            connection.execute("SAVEPOINT call")
            try:
                results.append(_run_one(connection, call))
            except (*STALL_ERRORS, *CORRUPTION_ERRORS):
                raise
            except Exception as error:
                connection.execute("ROLLBACK TO call")
                results.append(None)
                failures[position] = error
            connection.execute("RELEASE call")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    return results, failures


class GroupCommit:
    """The queue in front of the writing connection.

    Attributes:
        stalled: why nothing can be committed now, None while all is well.
    """

    def __init__(
        self,
        writer: Writer,
        path: Path,
        *,
        max_age_s: float,
        retry_s: float,
        on_committed: Callable[[], None],
    ) -> None:
        """Make an empty queue; `on_committed` is called after each batch."""
        self.stalled: str | None = None
        self._on_committed = on_committed
        self._writer = writer
        self._path = path
        # the other half of the age is left for the transaction itself
        self._gather_s = max_age_s / 2
        self._retry_s = retry_s
        self._retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(STALL_ERRORS),
            wait=tenacity.wait_exponential(multiplier=2.0 * retry_s, max=STALL_RETRY_S),
            stop=lambda _: self._closing,
            sleep=self._pause,
            reraise=True,
        )
        self._batch = _Batch()
        self._oldest_at = math.inf
        self._full = trio.Event()
        self._room = trio.Event()
        self._first = trio.Event()
        self._committing = trio.Lock()
        self._gathering = False
        self._closing = False
        self._stall_begun = trio.Event()
        self._stall_over = trio.Event()
        self._stall_over.set()

    async def write(self, call: Call) -> object:
        """Add a call to the batch and return its result after the COMMIT."""
        await self._wait_room()
        batch, position = self._add([call], "thread")
        await self._wait_done(batch)
        return batch.result(position)

    async def write_each(self, calls: list[Call]) -> list[object]:
        """Add calls that run in parts on the event loop, and commit at once.

        Returns:
            The result of each call, or the exception that it raised.
        """
        if not calls:
            return []
        await self._wait_room()
        batch, first = self._add(calls, "loop")
        self._full.set()
        await self._wait_done(batch)
        return [
            batch.failures[position] if position in batch.failures else batch.result(position)
            for position in range(first, first + len(calls))
        ]

    async def _wait_room(self) -> None:
        while len(self._batch.calls) >= WAITING_CALLS:
            await self._room.wait()

    def _add(self, calls: list[Call], place: RunsOn) -> tuple[_Batch, int]:
        batch = self._batch
        position = len(batch.calls)
        batch.calls += calls
        batch.places += [place] * len(calls)
        if position == 0:
            self._oldest_at = trio.current_time()
            self._first.set()
        if len(batch.calls) >= FLUSH_CALLS:
            self._full.set()
        return batch, position

    async def _wait_done(self, batch: _Batch) -> None:
        with trio.CancelScope(shield=True):
            if not self._gathering:
                await self.flush()
            await batch.done.wait()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Gather and commit until cancelled; pending calls are still committed then."""
        self._gathering = True
        task_status.started()
        try:
            while True:
                await self._first.wait()
                if not self._batch.calls:
                    continue  # another task has flushed already
                with trio.move_on_at(self._oldest_at + self._gather_s):
                    await self._full.wait()
                with trio.CancelScope(shield=True):
                    await self.flush()
        finally:
            self._gathering = False
            with trio.CancelScope(shield=True):
                await self.flush()

    async def flush(self) -> None:
        """Commit the pending calls now; without a running `run` every write does this itself."""
        async with self._committing:
            # Taking an empty batch would remove the event that `run` waits for.
            if self._batch.calls:
                await self._commit(self._take())

    def give_up(self) -> None:
        """Try to commit pending calls a last time; calls that cannot be written raise."""
        self._closing = True
        self._stall_begun = trio.Event()
        self._stall_over.set()

    async def close(self) -> None:
        """Commit pending calls, after `give_up`."""
        self.give_up()
        await self.flush()

    async def wait_stalled(self) -> None:
        """Return as soon as nothing can be committed."""
        await self._stall_begun.wait()

    async def wait_flowing(self) -> None:
        """Return as soon as commits succeed; at once while all is well."""
        await self._stall_over.wait()

    def _take(self) -> _Batch:
        batch, self._batch = self._batch, _Batch()
        self._oldest_at = math.inf
        self._first, self._full = trio.Event(), trio.Event()
        self._room.set()
        self._room = trio.Event()
        return batch

    async def _commit(self, batch: _Batch) -> None:
        """Run one batch until it is committed or given up, then wake its callers."""
        try:
            await self._attempt_until_done(batch)
        except STALL_ERRORS as error:
            text = stall_text(error, self._path)
            batch.lost = StoreError(text, hint="pending writes were not stored")
        except apsw.Error as error:
            batch.lost = store_error(error, self._path)
        batch.done.set()

    async def _attempt_until_done(self, batch: _Batch) -> None:
        try:  # nearly always the only attempt: a tenth of the cost of a small commit is saved
            await self._attempt(batch)
        except STALL_ERRORS:
            if self._closing:
                raise
            await self._pause(self._retry_s)
            await self._retrying(self._attempt, batch)

    async def _attempt(self, batch: _Batch) -> None:
        try:
            await self._writer.run_batch(batch)
        except STALL_ERRORS as error:
            self._stall(stall_text(error, self._path))
            raise
        self._flow()
        self._on_committed()

    async def _pause(self, pause_s: float) -> None:
        """Wait before the next attempt; `give_up` ends the pause at once."""
        with trio.move_on_after(pause_s):
            await self._stall_over.wait()

    def _stall(self, text: str) -> None:
        if self.stalled is None and not self._closing:
            self._stall_over = trio.Event()
            self._stall_begun.set()
        self.stalled = text

    def _flow(self) -> None:
        if self.stalled is not None:
            self.stalled = None
            self._stall_begun = trio.Event()
            self._stall_over.set()
