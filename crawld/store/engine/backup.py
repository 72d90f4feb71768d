"""Back up the whole file while it is in use, and restore a backup.

Both ways use SQLite's backup interface, which copies pages, not rows. Beside a running daemon it
steps on the writer's connection: SQLite copies a page again if this connection changes it after it
was copied, so the copy is as of its last step and never starts over. From another process it steps
inside one read transaction: the copy is as of its first step.

A copy is written under another name, flushed, then renamed: a file with the given name is complete.

`restore` changes nothing before the new copy has passed `integrity_check`, and keeps the file that
it replaces.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw
import trio

from crawld.errors import CorruptDatabaseError, StoreError
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection, store_error
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock
from crawld.store.engine.new_file import discard, flush, partial_of, publish

STEP_PAGES: Final = 512
"""2 MiB per step: 2 ms on the writer's thread, less than a commit."""

Progress = Callable[[int, int], None]
"""Called with the pages copied and the pages in all."""


def _silent(copied: int, pages: int) -> None:
    """Show nothing."""


async def backup(database: Database, target: Path, progress: Progress = _silent) -> None:
    """Copy the database that this process has open, a few pages at a time between batches.

    Args:
        database: open for writing.
        target: the copy; must not exist.
        progress: called after each step.

    Raises:
        StoreError: the copy exists or cannot be written.
    """
    partial = _partial(target)
    try:
        copy = await database.on_writer(_start, partial)
        try:
            while not await database.on_writer(_step, copy):
                progress(copy.backup.page_count - copy.backup.remaining, copy.backup.page_count)
                await trio.lowlevel.checkpoint()
        finally:
            with trio.CancelScope(shield=True):
                await database.on_writer(_finish, copy)
        await database.workers.run(publish, partial, target)
    except apsw.Error as error:
        raise store_error(error, target) from error
    finally:
        discard(partial)


def backup_file(path: Path, target: Path, progress: Progress = _silent) -> None:
    """Copy a database that this process does not have open; another process may write to it.

    Args:
        target: the copy; must not exist.
        progress: called after each step.

    Raises:
        StoreError: the database cannot be read, or the copy exists or cannot be written.
    """
    partial = _partial(target)
    with closing(open_connection(path, read_only=True)) as source:
        try:
            # one transaction over all steps, or each commit of another process restarts the copy
            source.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
            copy = _start(source, partial)
            try:
                while not _step(source, copy):
                    pages = copy.backup.page_count
                    progress(pages - copy.backup.remaining, pages)
            finally:
                _finish(source, copy)
            publish(partial, target)
        except apsw.Error as error:
            raise store_error(error, target) from error
        finally:
            discard(partial)


def restore(path: Path, copy: Path) -> Path | None:
    """Replace a database by a copy of it.

    Args:
        path: the database; may be damaged or missing.
        copy: a file made by `backup`.

    Returns:
        Path of the replaced file, None if there was none.

    Raises:
        DatabaseInUseError: a process has the database open.
        CorruptDatabaseError: the copy is damaged; nothing was changed.
        StoreError: the copy is missing, foreign or newer; nothing was changed.
    """
    if not copy.exists():
        raise StoreError(f"there is no file {copy}", hint="name a copy made by: crawld backup")
    if path.exists() and copy.samefile(path):
        raise StoreError(f"{copy} is the database itself", hint="name a copy of it")
    with DatabaseLock.acquire(path):
        migrate.status(copy)
        fresh = path.with_name(f"{path.name}.restoring")
        discard(fresh)
        backup_file(copy, fresh)
        _check(fresh, copy)
        return _replace(path, fresh)


class _Copy:
    """A backup in progress: the target's connection and SQLite's handle on both."""

    def __init__(self, target: apsw.Connection, backup: apsw.Backup) -> None:
        self.target = target
        self.backup = backup


def _start(source: apsw.Connection, partial: Path) -> _Copy:
    target = apsw.Connection(str(partial))
    # no journal: an unfinished copy is thrown away, and publish flushes a finished one
    target.execute("PRAGMA journal_mode = OFF")
    target.execute("PRAGMA synchronous = OFF")
    return _Copy(target, target.backup("main", source, "main"))


def _step(_: apsw.Connection, copy: _Copy) -> bool:
    copy.backup.step(STEP_PAGES)
    return copy.backup.done


def _finish(_: apsw.Connection, copy: _Copy) -> None:
    copy.backup.close(force=True)
    copy.target.close(force=True)


def _partial(target: Path) -> Path:
    if target.exists():
        raise StoreError(f"{target} exists", hint="name a file that does not exist yet")
    return partial_of(target)


def _check(fresh: Path, copy: Path) -> None:
    """Refuse a damaged copy."""
    with closing(open_connection(fresh, read_only=True)) as connection:
        verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != ("ok",):
        discard(fresh)
        raise CorruptDatabaseError(f"the copy {copy} is damaged", hint="restore an older copy")


def _replace(path: Path, fresh: Path) -> Path | None:
    """Put the checked copy in place; at any time one of the two files exists."""
    aside = None
    if path.exists():
        with suppress(StoreError, apsw.Error), closing(open_connection(path)) as old:
            old.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        aside = path.with_name(f"{path.name}.replaced.{stamp}")
        os.link(path, aside)
    for suffix in ("-wal", "-shm"):
        # the write-ahead log belongs to the old file and would corrupt the new one
        log = path.with_name(path.name + suffix)
        if log.exists() and aside is not None:
            log.rename(aside.with_name(aside.name + suffix))
        else:
            log.unlink(missing_ok=True)
    fresh.replace(path)
    for suffix in ("-wal", "-shm"):
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    flush(path.parent)
    return aside
