"""Group commit: many small writes, one transaction, one fsync.

A call is a sync store function with its arguments. Calls gather in a batch; the batch is run whole
on the writer's thread between one BEGIN IMMEDIATE and one COMMIT; only then does any caller hear
of its result. So what was reported is on the disk, and a crash costs at most the batch that nobody
was told of.

1. An exception of one call undoes this call alone and is raised to its caller; the other calls of
   the batch commit. The batch is first run plainly; only where a call raises, it is rolled back and
   run again with a savepoint around each call. (Always a savepoint: +5 µs for a call that touches
   three B-tree pages, +50 µs for a visit with its copy, since SQLite keeps the former content of
   each page that a savepoint touches.)
2. A condition of the machine (full disk, read-only file system, input/output error) is nobody's
   fault: the transaction is rolled back, the batch is kept and tried again with growing pauses
   until it commits. Therefore a call may run more than once and must not change its arguments.
3. A damaged file ends the matter: every caller gets `CorruptDatabaseError`.
4. A caller that is cancelled waits on: its write may be in the middle of a COMMIT, and a result
   that is neither reported nor undone is worse than a short wait.
5. Transactions are explicit statements, never `with connection:`, which commits while holding the
   interpreter lock and would stall every fetch slot at each fsync.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw
import trio

from crawld.errors import CrawldError, StoreError
from crawld.store.connection import CORRUPTION_ERRORS, STALL_ERRORS, stall_text, store_error

FLUSH_CALLS: Final = 256
"""A batch of this many calls is run at once, however young."""

WAITING_CALLS: Final = 1024
"""Calls that may wait; the next caller waits for room before its call counts as accepted."""

STALL_RETRY_S: Final = 30.0
"""Longest pause between two tries of a batch that cannot be written."""

Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]
"""A store function and what it is called with after the connection."""


@dataclass(slots=True)
class _Batch:
    """Calls that will commit together; results are in the order of the calls."""

    calls: list[Call] = field(default_factory=list)
    done: trio.Event = field(default_factory=trio.Event)
    results: list[object] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)
    lost: CrawldError | None = None

    def result(self, position: int) -> object:
        if self.lost is not None:
            # a fresh object a caller: a shared one would gather every caller's traceback
            raise type(self.lost)(self.lost.message, hint=self.lost.hint)
        if position in self.failures:
            raise self.failures[position]
        return self.results[position]


def run_calls(connection: apsw.Connection, calls: list[Call], batch: _Batch) -> None:
    """Run calls in one transaction and keep their results in the batch; on the writer's thread.

    Raises:
        apsw.Error: nothing was committed; a condition of the machine or a damaged file.
    """
    try:
        batch.results = _transaction(connection, calls, _run_plain)
        return
    except (*STALL_ERRORS, *CORRUPTION_ERRORS):
        raise
    except Exception as error:
        if len(calls) == 1:
            batch.results, batch.failures = [None], {0: error}
            return
    failures: dict[int, Exception] = {}
    batch.results = _transaction(connection, calls, functools.partial(_run_guarded, failures))
    batch.failures = failures


def _transaction(
    connection: apsw.Connection,
    calls: list[Call],
    run: Callable[[apsw.Connection, list[Call]], list[object]],
) -> list[object]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        results = run(connection, calls)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some of its errors
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return results


def _run_plain(connection: apsw.Connection, calls: list[Call]) -> list[object]:
    return [fn(connection, *args, **kwargs) for fn, args, kwargs in calls]


def _run_guarded(
    failures: dict[int, Exception], connection: apsw.Connection, calls: list[Call]
) -> list[object]:
    """Run each call in a savepoint of its own; those that fail again are left out."""
    results: list[object] = []
    for position, (fn, args, kwargs) in enumerate(calls):
        connection.execute("SAVEPOINT call")
        try:
            results.append(fn(connection, *args, **kwargs))
        except (*STALL_ERRORS, *CORRUPTION_ERRORS):
            raise
        except Exception as error:
            connection.execute("ROLLBACK TO call")
            results.append(None)
            failures[position] = error
        connection.execute("RELEASE call")
    return results


class GroupCommit:
    """The queue in front of the one writing connection.

    Attributes:
        stalled: why nothing can be committed now, None while all is well.
    """

    def __init__(
        self, connection: apsw.AsyncConnection, path: Path, *, max_age_s: float, retry_s: float
    ) -> None:
        self.stalled: str | None = None
        self._connection = connection
        self._path = path
        # the other half of the age is left for the transaction itself
        self._gather_s = max_age_s / 2
        self._retry_s = retry_s
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
        while len(self._batch.calls) >= WAITING_CALLS:
            await self._room.wait()
        batch = self._batch
        position = len(batch.calls)
        batch.calls.append(call)
        if position == 0:
            self._oldest_at = trio.current_time()
            self._first.set()
        elif position + 1 >= FLUSH_CALLS:
            self._full.set()
        with trio.CancelScope(shield=True):
            if not self._gathering:
                await self.flush()
            await batch.done.wait()
        return batch.result(position)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Gather and commit until cancelled; what waits then is still committed."""
        self._gathering = True
        task_status.started()
        try:
            while True:
                await self._first.wait()
                if not self._batch.calls:
                    continue  # a flush of somebody else was quicker
                with trio.move_on_at(self._oldest_at + self._gather_s):
                    await self._full.wait()
                with trio.CancelScope(shield=True):
                    await self.flush()
        finally:
            self._gathering = False
            with trio.CancelScope(shield=True):
                await self.flush()

    async def flush(self) -> None:
        """Commit what waits now; without a running `run` every write does this itself."""
        async with self._committing:
            batch = self._take()
            if batch.calls:
                await self._commit(batch)

    async def close(self) -> None:
        """Try once more to commit what waits; what cannot be written is refused to its caller."""
        self._closing = True
        self._stall_over.set()
        await self.flush()

    async def wait_stalled(self) -> None:
        """Return as soon as nothing can be committed."""
        await self._stall_begun.wait()

    async def wait_flowing(self) -> None:
        """Return as soon as commits go through; at once while all is well."""
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
        pause_s = self._retry_s
        while True:
            try:
                await self._connection.async_run(run_calls, self._connection, batch.calls, batch)
            except STALL_ERRORS as error:
                self._stall(stall_text(error, self._path))
                if self._closing:
                    batch.lost = StoreError(self.stalled or "", hint="what waited was not stored")
                    break
                with trio.move_on_after(pause_s):
                    await self._stall_over.wait()
                pause_s = min(2 * pause_s, STALL_RETRY_S)
            except apsw.Error as error:
                batch.lost = store_error(error, self._path)
                break
            else:
                self._flow()
                break
        batch.done.set()

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
