"""The open database: one writer, a few readers, and checkpoints.

The writer is one connection, on which `group_commit` runs batches. Each reader is a read-only
connection on its own thread: a read waits for neither the writer nor the event loop, and sees one
snapshot from its first to its last statement. Store functions are sync: no transaction is open
across an `await`.

The write-ahead log is bounded: a timer copies it back with PASSIVE checkpoints on a separate
connection, for which no writer waits. Only past `WAL_LIMIT_BYTES` the writer itself truncates it
between two batches.

The process that opens the file for writing holds `DatabaseLock` from before it reads the first byte
until it has closed the last connection.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Concatenate, Final, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast

import apsw
import trio

from crawld.errors import ClosedDatabaseError, StoreError
from crawld.store import changed
from crawld.store.changed import Table
from crawld.store.engine import migrate
from crawld.store.engine.background import in_background
from crawld.store.engine.connection import (
    PAGE_BYTES,
    configure,
    fit_writer_cache,
    open_arguments,
    open_connection,
    retry_while_locked,
    store_error,
)
from crawld.store.engine.group_commit import STALL_RETRY_S, Call, GroupCommit, Writer
from crawld.store.engine.in_parts import InParts
from crawld.store.engine.lock import DatabaseLock, lock_path, network_filesystem
from crawld.workers import THREADS, WorkerConnection, Workers

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

_Purpose: TypeAlias = Literal["background", "brief"]

READERS: Final = 2
"""Two: one for exports, one for turns; jobs have another. Each costs a thread and its cache."""

CHECKPOINT_EVERY_S: Final = 2.0
CHECKPOINT_BYTES: Final = 8 * 1024 * 1024
"""A smaller log is not copied back yet, so that pages written often are copied only once."""

LOGGED_PAGE_BYTES: Final = PAGE_BYTES + 24
"""A page in the log has a header: SQLite's file format, section 4.1."""

CLOSE_BUSY_MS: Final = 500
"""How long the last checkpoint waits for readers; what it leaves is not lost."""

WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Past this the writer truncates the log itself; a long reader can still prevent it."""


class Database:
    """A handle on the file, made by `open` and ended by `aclose`.

    Attributes:
        path: the file.
        workers: runs everything here that leaves the event loop.
        warning: a problem with the location of the file, for the operator; None: there is none.
        migrated: the migrations applied to an older file, one line each.
        opened_at: when (trio's clock) its lock was taken: no process that had it before runs any
            more.
    """

    def __init__(
        self,
        path: Path,
        lock: DatabaseLock | None,
        warning: str | None,
        workers: Workers,
        *,
        held_s: float = 0.0,
    ) -> None:
        self.path = path
        self.workers = workers
        self.warning = warning
        self.migrated: list[str] = []
        self.opened_at = trio.current_time() - held_s
        self._lock = lock
        self._writer: Writer | None = None
        self._commit: GroupCommit | None = None
        self._checkpoints: WorkerConnection | None = None
        self._local: apsw.Connection | None = None
        self._readers: list[WorkerConnection] = []
        self._idle: list[WorkerConnection] = []
        self._idle_count = trio.Semaphore(0)
        self._own: dict[_Purpose, WorkerConnection] = {}
        self._own_lock = trio.Lock()
        self._changes: Counter[Table] = Counter()
        self._awaited: dict[Table, trio.Event] = {}
        self._log_bytes = 0
        self._long_log = trio.Event()
        self._used: set[WorkerConnection] = set()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        batch_max_age_s: float = 0.2,
        stall_retry_s: float = 1.0,
        workers: Workers = THREADS,
        lock: DatabaseLock | None = None,
        lock_held_s: float = 0.0,
    ) -> Self:
        """Open the file; create and migrate it if needed.

        Args:
            create: whether to create a missing file.
            read_only: take no lock and refuse `write`; works beside a running daemon.
            batch_max_age_s: about the longest time from a write to its commit.
            stall_retry_s: first pause before a batch that cannot be written is tried again.
            workers: runs calls off the event loop.
            lock: of this file, if it is taken already; released with the database.
            lock_held_s: for how long it has been held.

        Raises:
            DatabaseInUseError: another process has it open for writing, or a program that is no
                crawld locks it for longer than half a minute.
            StoreError: the file is missing, foreign, newer, damaged or not writable.
        """
        path = Path(path)
        if not path.exists() and (read_only or not create):
            raise StoreError(f"there is no database {path}", hint="name an existing file with --db")
        if lock is not None and (read_only or lock.path != lock_path(path)):
            lock.release()
            lock = None
        if lock is None:
            lock, lock_held_s = None if read_only else DatabaseLock.acquire(path), 0.0
        warning = network_filesystem(path)
        database = cls(path, lock, warning, workers, held_s=lock_held_s)
        try:
            database.migrated = await _prepare(workers, path, read_only)
            if not read_only:
                await database._open_writer(batch_max_age_s, min(stall_retry_s, STALL_RETRY_S))
            await database._open_readers()
        except BaseException:
            with trio.CancelScope(shield=True):
                await database._close_connections()
            raise
        return database

    @property
    def stalled(self) -> str | None:
        """Why nothing can be committed now (full disk, read-only); None while all is well."""
        return self._commit.stalled if self._commit else None

    async def wait_stalled(self) -> None:
        """Return as soon as nothing can be committed."""
        await self._group().wait_stalled()

    async def wait_flowing(self) -> None:
        """Return as soon as commits succeed; at once while all is well."""
        await self._group().wait_flowing()

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a store function in the next transaction and return its result after the COMMIT.

        Shielded: a cancelled caller still waits for the commit. While the disk is full it waits
        until there is space. `fn` may run more than once and must not change its arguments.

        Raises:
            CorruptDatabaseError: the file is damaged.
            StoreError: the database was closed before the write could be stored.
        """
        return cast("T", await self._group().write((fn, args, kwargs)))

    async def write_each(
        self, fn: Callable[[apsw.Connection, A], InParts[T]], arguments: Sequence[A]
    ) -> list[T | Exception]:
        """Run a store function for each argument, all in one transaction, committed at once.

        The calls run on the event loop, a few at a time, and each in parts: use it for many quick
        calls. Shielded like `write`.

        Returns:
            For each argument the result, or the exception that undid its call alone.

        Raises:
            CorruptDatabaseError: the file is damaged.
            StoreError: the database was closed before they could be stored.
        """
        calls: list[Call] = [(fn, (argument,), {}) for argument in arguments]
        return cast("list[T | Exception]", await self._group().write_each(calls))

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a store function on a reader, on one snapshot; a cancelled read is interrupted.

        Raises:
            CorruptDatabaseError: the file is damaged.
            ClosedDatabaseError: the database was closed meanwhile.
        """
        if in_background():
            return await self._read_on(await self._own_reader("background"), fn, args, kwargs)
        async with self._idle_count:
            if not self._idle:
                raise ClosedDatabaseError(self.path)
            reader = self._idle.pop()
            try:
                return await self._read_on(reader, fn, args, kwargs)
            finally:
                self._idle.append(reader)

    async def read_briefly(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do the same as `read` on a reader that only such reads use, each of a few milliseconds.

        They wait for no longer read: operators have their answer also beside an export.
        """
        return await self._read_on(await self._own_reader("brief"), fn, args, kwargs)

    async def _own_reader(self, purpose: _Purpose) -> WorkerConnection:
        if purpose not in self._own:
            async with self._own_lock:
                if not self._readers:
                    raise ClosedDatabaseError(self.path)
                if purpose not in self._own:
                    self._own[purpose] = await self._connect(read_only=True)
                    self._readers.append(self._own[purpose])
        return self._own[purpose]

    async def _read_on(
        self,
        reader: WorkerConnection,
        fn: Callable[..., T],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> T:
        self._used.add(reader)
        try:
            return await reader.run(_snapshot, fn, args, kwargs)
        except apsw.ConnectionClosedError as error:
            raise ClosedDatabaseError(self.path) from error
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.CantOpenError) as error:
            raise store_error(error, self.path) from error

    async def shrink(self) -> None:
        """Free the page caches of readers that idle after a use; the system keeps the pages."""
        for reader in [each for each in (*self._idle, *self._own.values()) if each in self._used]:
            self._used.discard(reader)
            with contextlib.suppress(apsw.ConnectionClosedError):
                await reader.run(_shrink)

    def look_up(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a store function that reads a row or two by key, on the event loop, without a thread.

        A hop to a reader costs several times as much as such a read (90 against 15 µs). Not for
        scans: they would block the event loop.

        Raises:
            CorruptDatabaseError: the file is damaged.
        """
        if self._local is None:
            self._local = open_connection(self.path, read_only=True)
        try:
            return fn(self._local, *args, **kwargs)
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.CantOpenError) as error:
            raise store_error(error, self.path) from error

    async def run_writer(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Gather writes into batches and keep the log short, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_checkpoints)
            await self._group().run(task_status)

    def changes(self, table: Table) -> int:
        """Return how many rows of a table were added or changed since the start, about.

        Whoever looks for new rows asks before the look, and has nothing to read while it stays.
        """
        return self._changes[table]

    async def wait_changed(self, table: Table, since: int) -> None:
        """Return as soon as a table has changed since it had `since` changes."""
        while self._changes[table] == since:
            await self._awaited.setdefault(table, trio.Event()).wait()

    async def flush(self) -> None:
        """Commit the pending writes now."""
        await self._group().flush()

    async def on_writer(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function on the writer's thread between two batches, outside any transaction."""
        self._group()
        try:
            return await _exclusively(cast("Writer", self._writer), fn, *args, **kwargs)
        finally:
            self._committed()

    async def shorten_log(self) -> None:
        """Copy the log into the file if it is long."""
        if self._log_bytes > WAL_LIMIT_BYTES and self._writer is not None:
            await _exclusively(self._writer, _checkpoint, TRUNCATE)
        elif self._log_bytes > CHECKPOINT_BYTES:
            await self.checkpoint()

    async def checkpoint(self) -> None:
        """Copy the log into the file as far as readers allow; nothing waits for it."""
        if self._checkpoints is not None:
            await self._checkpoints.run(_checkpoint, PASSIVE)

    def give_up(self) -> None:
        """Stop waiting for disk space: a `write` that cannot be stored raises."""
        self._group().give_up()

    async def aclose(self) -> None:
        """Commit pending writes, copy the whole log back, close connections, release the lock."""
        with trio.CancelScope(shield=True):
            if self._commit is not None:
                await self._commit.close()
            await self._close_connections()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _group(self) -> GroupCommit:
        if self._commit is None:
            raise StoreError(f"{self.path} is not open for writing")
        return self._commit

    async def _open_writer(self, batch_max_age_s: float, stall_retry_s: float) -> None:
        connection = await self.workers.run(open_connection, self.path)
        connection.set_wal_hook(self._note_log)
        changed.begin(connection)
        self._writer = Writer(connection, self.workers)
        self._checkpoints = await self._connect(read_only=False)
        self._commit = GroupCommit(
            self._writer,
            self.path,
            max_age_s=batch_max_age_s,
            retry_s=stall_retry_s,
            on_committed=self._committed,
        )

    async def _open_readers(self) -> None:
        for _ in range(READERS):
            reader = await self._connect(read_only=True)
            self._readers.append(reader)
            self._idle.append(reader)
            self._idle_count.release()

    async def _connect(self, *, read_only: bool) -> WorkerConnection:
        filename, flags = open_arguments(self.path, read_only=read_only)
        # A caller that is cancelled halfway would leave the thread of a connection behind.
        with trio.CancelScope(shield=True):
            try:
                connection = await self.workers.connect(filename, flags)
            except apsw.Error as error:
                raise store_error(error, self.path) from error
            try:
                await connection.run(configure, self.path, read_only=read_only)
            except apsw.Error as error:
                await connection.aclose()
                raise store_error(error, self.path) from error
        return connection

    async def _close_connections(self) -> None:
        try:
            if self._local is not None:
                self._local.close()
            for reader in self._readers:
                await reader.aclose()
            if self._checkpoints is not None:
                await self._checkpoints.aclose()
            if self._writer is not None:
                await _exclusively(self._writer, _checkpoint_last)
                await self._writer.run(apsw.Connection.close)
        finally:
            self._readers, self._idle, self._own = [], [], {}
            self._used.clear()
            self._writer = self._checkpoints = self._commit = self._local = None
            if self._lock is not None:
                self._lock.release()

    async def _run_checkpoints(self) -> None:
        while True:
            await self._long_log.wait()
            await self.shorten_log()
            if self._writer is not None:
                await _exclusively(self._writer, fit_writer_cache)
            self._long_log = trio.Event()
            await trio.sleep(CHECKPOINT_EVERY_S)

    def _committed(self) -> None:
        if self._writer is not None:
            noted = changed.take(self._writer.connection)
            self._changes.update(noted)
            for table in noted:
                if (awaited := self._awaited.pop(table, None)) is not None:
                    awaited.set()
        if self._log_bytes > CHECKPOINT_BYTES:
            self._long_log.set()

    def _note_log(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        """Note the length of the log after a commit; its file stays long when it starts again.

        SQLite calls it on the thread of the writer.
        """
        self._log_bytes = pages * LOGGED_PAGE_BYTES
        return apsw.SQLITE_OK


PASSIVE: Final = apsw.SQLITE_CHECKPOINT_PASSIVE
TRUNCATE: Final = apsw.SQLITE_CHECKPOINT_TRUNCATE


@retry_while_locked(sleep=trio.sleep)
async def _prepare(workers: Workers, path: Path, read_only: bool) -> list[str]:
    """Check and migrate the file; see `_check`."""
    return await workers.run(_check, path, read_only)


def _check(path: Path, read_only: bool) -> list[str]:
    """Check that the file is crawld's and migrate its tables, before anything else opens it.

    Returns:
        The migrations applied to an older file, one line each.
    """
    if read_only:
        migrate.require_current(path)
        return []
    steps: list[str] = []
    before = migrate.migrate(path, steps.append)
    return steps if before.version else []


def _snapshot(
    connection: apsw.Connection,
    fn: Callable[..., T],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> T:
    """Run a function inside one read transaction."""
    connection.execute("BEGIN")
    try:
        return fn(connection, *args, **kwargs)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _shrink(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA shrink_memory").fetchall()


async def _exclusively(
    writer: Writer,
    fn: Callable[Concatenate[apsw.Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a function on the writer's thread between two batches."""
    async with writer.lock:
        return await writer.run(fn, *args, **kwargs)


def _checkpoint_last(connection: apsw.Connection) -> None:
    """Copy the log back as far as readers of other programs, or calls left on threads, allow."""
    connection.set_busy_timeout(CLOSE_BUSY_MS)
    _checkpoint(connection, TRUNCATE)


def _checkpoint(connection: apsw.Connection, mode: int) -> None:
    """Checkpoint; if a reader is busy or the disk full, the next checkpoint does it."""
    try:
        connection.wal_checkpoint(mode=mode)
    except apsw.Error:
        return
