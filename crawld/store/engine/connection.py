"""Open and configure connections to the crawld file, and explain SQLite's errors.

Every connection of the program is configured here, so that no command works under weaker rules than
the daemon.

Durability: WAL with `synchronous=FULL`, so that a committed transaction survives a power loss;
`group_commit` spreads the cost of the fsync over many writes. Checkpoints are never automatic: they
would run inside some caller's COMMIT.

mmap stays off: with mmap a read error or a truncated file is a SIGBUS that kills the process,
without it a `CorruptDatabaseError` that names the fix.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Final

import apsw
import tenacity

from crawld.errors import (
    CorruptDatabaseError,
    DatabaseInUseError,
    ForeignDatabaseError,
    StoreError,
)

APPLICATION_ID: Final = int.from_bytes(b"CRWL", "big")
"""`PRAGMA application_id` of every crawld file: 0x4352574C, the letters CRWL."""

PAGE_BYTES: Final = 4096
"""Measured against 8 and 16 KiB with bodies of 8.6 KB: the file is 4 and 9 % smaller (a body fills
whole overflow pages), and a 304, which changes scattered pages, commits 20 and 60 % cheaper."""

WRITER_CACHE_KIB: Final = (4 * 1024, 16 * 1024)
"""Least and most of the writer's cache. With 4 instead of 16 MiB a mirror of 2,000 pages reads four
pages of the file more for each that it stores, all from the system's cache."""

CACHED_SHARE: Final = 64
"""The writer caches this part of its file: more than the inner pages of the trees. The system's
cache has the leaves."""

READER_CACHE_KIB: Final = 2 * 1024
"""A reader streams; the operating system's cache serves the rest."""

BUSY_MS: Final = 5000
"""How long to wait for another program (`sqlite3`, a backup tool) that locks the file."""

OPEN_ATTEMPTS: Final = 6
"""With SQLite's own wait at each, another program may lock the file for half a minute."""

OPEN_PAUSE_S: Final = 1.0
"""Pause between attempts to open the file; here a caller on the event loop can be cancelled."""

retry_while_locked = functools.partial(
    tenacity.retry,
    retry=tenacity.retry_if_exception_type(DatabaseInUseError),
    wait=tenacity.wait_fixed(OPEN_PAUSE_S),
    stop=tenacity.stop_after_attempt(OPEN_ATTEMPTS),
    reraise=True,
)
"""A decorator of what opens the file, which is tried again while another program locks it."""

STALL_ERRORS: Final = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.PermissionsError,
    apsw.AuthError,
    apsw.NoMemError,
    apsw.NoLFSError,
    apsw.ProtocolError,
)
"""Errors from temporary conditions of the machine: the transaction is tried again."""

CORRUPTION_ERRORS: Final = (apsw.CorruptError, apsw.NotADBError)


def open_connection(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Open a configured connection for this thread; a missing file is created unless read-only.

    Args:
        read_only: refuse every write through this connection.

    Raises:
        StoreError: the file cannot be opened, is foreign or damaged.
    """
    try:
        connection = apsw.Connection(*open_arguments(path, read_only=read_only))
        configure(connection, path, read_only=read_only)
    except apsw.Error as error:
        raise store_error(error, path) from error
    return connection


def open_arguments(path: Path, *, read_only: bool) -> tuple[str, int]:
    """Return the file name and flags to open a connection with."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else READ_WRITE
    if read_only and _is_frozen(path):
        # WAL needs a -shm file that cannot be made here; without a -wal the file alone is whole.
        return f"{path.absolute().as_uri()}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    return str(path), flags


READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def _is_frozen(path: Path) -> bool:
    """Return whether the directory is read-only and has no write-ahead log of the file."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        return False
    return not _is_writable(path.parent)


def _is_writable(directory: Path) -> bool:
    """Return whether a file can be created there; tried, since root passes every mode bit."""
    probe = directory / f".crawld-probe-{id(directory):x}"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError:
        return False
    return True


def configure(connection: apsw.Connection, path: Path, *, read_only: bool = False) -> None:
    """Set the pragmas of one connection, and the format of a new file.

    Raises:
        ForeignDatabaseError: the file belongs to another program; it is not changed.
    """
    connection.set_busy_timeout(BUSY_MS)
    check_application(connection, path)
    if not read_only:
        _format_if_new(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.wal_autocheckpoint(0)
        # The log is truncated to this size after a reset, so that a large job leaves no large file.
        connection.execute("PRAGMA journal_size_limit = 16777216")
    if read_only:
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
    else:
        fit_writer_cache(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    # Else SQLite with STAT4 prepares a cached statement of several tables or indexed terms again
    # each time that it is given other values: a page with its host took 33 µs instead of 3.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def fit_writer_cache(connection: apsw.Connection) -> None:
    """Fit the cache of a connection that writes to its file; errors are left to the next call."""
    least_kib, most_kib = WRITER_CACHE_KIB
    with contextlib.suppress(apsw.Error):
        file_kib = connection.execute("PRAGMA page_count").get * PAGE_BYTES // 1024
        cache_kib = min(max(file_kib // CACHED_SHARE, least_kib), most_kib)
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")


def _format_if_new(connection: apsw.Connection) -> None:
    """Set page size and vacuum mode, which the first table and WAL fix for good."""
    if connection.execute("PRAGMA page_count").get == 0:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def check_application(connection: apsw.Connection, path: Path) -> None:
    """Refuse the file of another program; an empty file is accepted.

    Raises:
        ForeignDatabaseError: the application_id or the tables are not crawld's.
    """
    found = connection.execute("PRAGMA application_id").get
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if found == APPLICATION_ID or (found == 0 and tables == 0):
        return
    raise ForeignDatabaseError(
        f"{path} is an SQLite file of another program (application_id {found})",
        hint="name a crawld database, or a file that does not exist yet, with --db",
    )


def store_error(error: apsw.Error, path: Path) -> StoreError:
    """Return an SQLite error as one for the operator, with its meaning and a remedy."""
    if isinstance(error, CORRUPTION_ERRORS):
        return CorruptDatabaseError(
            f"{path} is damaged ({error})",
            hint=f"check it with: crawld doctor --db {path}; "
            f"then restore a backup: crawld restore BACKUP --db {path}",
        )
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return DatabaseInUseError(
            f"{path} is locked by another program", hint="close the program that writes to it"
        )
    return StoreError(f"{path} cannot be used: {error}", hint=_remedy(error))


def stall_text(error: apsw.Error, path: Path) -> str:
    """Return why nothing can be committed now, as one line for the status."""
    return f"nothing can be written to {path} ({error}); {_remedy(error)}"


def _remedy(error: apsw.Error) -> str:
    """Return what the operator can do about a condition of the machine."""
    if isinstance(error, apsw.FullError):
        return "free some disk space"
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError)):
        return "make the file and its directory writable"
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return "close the other program that holds the file"
    return "check the disk and the kernel log"
