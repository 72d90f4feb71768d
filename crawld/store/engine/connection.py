"""How a connection to the crawld file is opened and set, and what SQLite's errors mean here.

Knows pragmas and result codes, no table. Every connection of the program is configured here, so
that no command works under weaker rules than the daemon.

Durability: WAL with `synchronous=FULL`, so a transaction reported as committed survives power
loss; group commit (`commit`) pays the fsync once for many. Checkpoints are never automatic: they
would run inside somebody's COMMIT.

mmap stays off: a read error or a truncated file under mmap is a SIGBUS that kills the process,
where `read` gives a `CorruptDatabaseError` that names the fix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

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
whole overflow pages), and a 304, which dirties scattered pages, commits 20 and 60 % cheaper."""

WRITER_CACHE_KIB: Final = 16 * 1024
"""Holds the inner pages of the trees at a few million pages; the leaves are in the system's cache,
and the peak memory of a crawl stays below Scrapy's."""

READER_CACHE_KIB: Final = 4 * 1024
"""A reader streams; the operating system's cache serves the rest."""

BUSY_MS: Final = 5000
"""How long to wait for a lock of a foreign program (`sqlite3`, a backup tool) on the file."""

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
"""Conditions of the machine that pass: the transaction is kept and tried again."""

CORRUPTION_ERRORS: Final = (apsw.CorruptError, apsw.NotADBError)


def open_connection(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Open a configured connection for this thread; the file exists unless it may be created.

    Args:
        path: the database file.
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
    """Return the file name and flags for `apsw.Connection` and `Connection.as_async`."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else READ_WRITE
    if read_only and _is_frozen(path):
        # WAL needs a -shm file that cannot be made here; without a -wal the file alone is whole.
        return f"{path.absolute().as_uri()}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    return str(path), flags


READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def _is_frozen(path: Path) -> bool:
    """Whether the directory takes no new file and no write-ahead log is there."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        return False
    return not _is_writable(path.parent)


def _is_writable(directory: Path) -> bool:
    """Whether a file can be made there; asked of the kernel, since root passes every mode bit."""
    probe = directory / f".crawld-probe-{id(directory):x}"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError:
        return False
    return True


def configure(connection: apsw.Connection, path: Path, *, read_only: bool = False) -> None:
    """Set the pragmas of one connection; a new file gets its format first.

    Raises:
        ForeignDatabaseError: the file is another program's; it is left as it was.
    """
    connection.set_busy_timeout(BUSY_MS)
    check_application(connection, path)
    if not read_only:
        _format_if_new(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.wal_autocheckpoint(0)
        # The log is cut back to this after a reset, so that one large job leaves no large file.
        connection.execute("PRAGMA journal_size_limit = 16777216")
    cache_kib = READER_CACHE_KIB if read_only else WRITER_CACHE_KIB
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")


def _format_if_new(connection: apsw.Connection) -> None:
    """Choose page size and vacuum mode; both are fixed by the first table and by WAL."""
    if connection.execute("PRAGMA page_count").get == 0:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def check_application(connection: apsw.Connection, path: Path) -> None:
    """Refuse the file of another program; an empty file belongs to nobody yet.

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
    """Return the error that tells the operator what an SQLite error means and what to do."""
    if isinstance(error, CORRUPTION_ERRORS):
        return CorruptDatabaseError(
            f"{path} is damaged ({error})",
            hint=f"look at it with: crawld doctor --db {path}; "
            f"then put a backup in its place: crawld restore BACKUP --db {path}",
        )
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return DatabaseInUseError(
            f"{path} is locked by another program", hint="close the program that writes to it"
        )
    return StoreError(f"{path} cannot be used: {error}", hint=_remedy(error))


def stall_text(error: apsw.Error, path: Path) -> str:
    """Return one line for the status: why nothing can be committed now."""
    return f"nothing can be written to {path} ({error}); {_remedy(error)}"


def _remedy(error: apsw.Error) -> str:
    """Return what the operator does about a condition of the machine."""
    if isinstance(error, apsw.FullError):
        return "make room on the disk"
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError)):
        return "make the file and its directory writable"
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return "close the other program that holds the file"
    return "look at the disk and at the kernel log"
