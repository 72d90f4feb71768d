"""Manifest of a static export: an SQLite file inside the export that lists its pages.

One row per page that ever had a path there, with a stamp of the written content (0: not written
yet), so that the next export compares two columns and writes only the differences. `wanted` holds
links to pages of the mirror's hosts that the export does not have: when such a page appears, the
pages with the links are written again.

The key of a page is the hash of its URL; two URLs of one file share a hash with a probability of
2^-64 per pair. `Manifest` is the only writer, by a lock that ends with its process: two exports
into one directory would undo each other. `PathLookup` reads committed rows beside it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import apsw

from crawld.errors import DatabaseInUseError, OperatorError

APPLICATION_ID: Final = int.from_bytes(b"CRWX", "big")

_CHUNK: Final = 20_000
_BUSY_MS: Final = 5000

_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE entry (
    url_hash INTEGER PRIMARY KEY,
    -- what was written last; 0: nothing yet
    stamp INTEGER NOT NULL,
    path_hash INTEGER NOT NULL UNIQUE,
    path TEXT NOT NULL,
    -- where the page leads to, if it is a redirect
    redirect_url TEXT
) STRICT;
CREATE TABLE wanted (
    url_hash INTEGER NOT NULL,
    by_hash INTEGER NOT NULL,
    PRIMARY KEY (url_hash, by_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX wanted_by ON wanted (by_hash);
"""


_NAME: Final = """
INSERT INTO entry (url_hash, path, path_hash, redirect_url, stamp) VALUES (?, ?, ?, ?, 0)
ON CONFLICT (url_hash) DO UPDATE SET redirect_url = excluded.redirect_url
"""

_WANTED: Final = """
UPDATE entry SET stamp = 0 WHERE url_hash IN (SELECT by_hash FROM wanted WHERE url_hash = ?)
"""


class ManifestEntry(NamedTuple):
    """A page of the export.

    Attributes:
        path: its file.
        path_hash: `export.names.path_key` of that.
        redirect_url: target of its redirect, None if the page itself is shown.
    """

    url_hash: int
    path: str
    path_hash: int
    redirect_url: str | None


class WrittenPage(NamedTuple):
    """A page whose file was written.

    Attributes:
        stamp: stamp of the written content.
        wanted: url_hashes of pages that it links to and the export does not have.
    """

    url_hash: int
    stamp: int
    wanted: Sequence[int]


class Manifest:
    """The open manifest; a context manager.

    Args:
        path: the file; created if missing.
        source: identity of the exported mirror.

    Raises:
        DatabaseInUseError: another export has it open.
        OperatorError: the file is no manifest, or that of another mirror.
    """

    def __init__(self, path: Path, source: str) -> None:
        self._lock = _lock(path)
        try:
            self._connection = _connect(path, read_only=False)
        except BaseException:
            os.close(self._lock)
            raise
        try:
            self._open(path, source)
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
            self.close()
            raise _no_manifest(path) from error
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path, source: str) -> None:
        execute = self._connection.execute
        execute("PRAGMA synchronous = NORMAL")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA cache_size = -16384")
        execute("BEGIN IMMEDIATE")
        if not execute("SELECT count(*) FROM sqlite_schema").get:
            execute(f"PRAGMA application_id = {APPLICATION_ID}")
            execute(_SCHEMA)
            execute("INSERT INTO meta VALUES ('source', ?)", (source,))
        if execute("PRAGMA application_id").get != APPLICATION_ID:
            raise _no_manifest(path)
        if execute("SELECT value FROM meta WHERE key = 'source'").get != source:
            raise OperatorError(
                f"{path.parent} holds the export of another mirror",
                hint="name another directory with --out",
            )
        execute("COMMIT")

    def fact(self, key: str) -> str | None:
        """Return the value of a key."""
        value: str | None = self._connection.execute(
            "SELECT value FROM meta WHERE key = ?", (key,)
        ).get
        return value

    def invalidate(self, key: str, value: str) -> None:
        """Store a value that makes everything written out of date."""
        with self._connection:
            self._connection.execute("UPDATE entry SET stamp = 0")
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def stamps(self) -> Iterator[list[tuple[int, int]]]:
        """Yield `(url_hash, stamp)` of all pages by hash, some thousands at a time."""
        after = -(2**63)
        sql = "SELECT url_hash, stamp FROM entry WHERE url_hash >= ? ORDER BY url_hash LIMIT ?"
        rows: list[tuple[Any, ...]]
        while rows := self._connection.execute(sql, (after, _CHUNK)).fetchall():
            yield [(url_hash, stamp) for url_hash, stamp in rows]
            after = min(rows[-1][0], 2**63 - 2) + 1

    def put_entries(self, entries: Iterable[ManifestEntry]) -> None:
        """Add pages with their paths, and update redirects of known ones; all or none.

        Pages that link to one of them are written again.
        """
        with self._connection:
            for entry in entries:
                self._connection.execute(_NAME, entry)
                self._connection.execute(_WANTED, (entry.url_hash,))

    def is_taken(self, path_hash: int) -> bool:
        """Return whether a page has a path with this hash."""
        sql = "SELECT 1 FROM entry WHERE path_hash = ?"
        return self._connection.execute(sql, (path_hash,)).get is not None

    def record_written(self, written: Sequence[WrittenPage]) -> None:
        """Record written pages, all or none."""
        with self._connection:
            self._connection.executemany(
                "UPDATE entry SET stamp = ? WHERE url_hash = ?",
                [(each.stamp, each.url_hash) for each in written],
            )
            self._connection.executemany(
                "DELETE FROM wanted WHERE by_hash = ?", [(each.url_hash,) for each in written]
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO wanted (url_hash, by_hash) VALUES (?, ?)",
                [(want, each.url_hash) for each in written for want in each.wanted],
            )

    def close(self) -> None:
        """Close the file and release the lock."""
        self._connection.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PathLookup:
    """The paths of an export's pages, read beside the writer."""

    def __init__(self, path: Path) -> None:
        self._connection = _connect(path, read_only=True)
        self._connection.set_busy_timeout(_BUSY_MS)

    def of(self, url_hash: int) -> tuple[str, str | None] | None:
        """Return path and redirect target of a page, None if it has no path."""
        row: tuple[str, str | None] | None = self._connection.execute(
            "SELECT path, redirect_url FROM entry WHERE url_hash = ?", (url_hash,)
        ).get
        return row

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _lock(path: Path) -> int:
    """Take the lock of a manifest, which ends with the process."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path.with_name("lock"), flags, 0o644)
    except OSError as error:
        raise OperatorError(
            f"{path.parent} cannot be written: {error.strerror}",
            hint="name another directory with --out",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DatabaseInUseError(
            f"another export is writing to {path.parent.parent}", hint="wait until it has ended"
        ) from error
    return descriptor


def _connect(path: Path, *, read_only: bool) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    flags |= apsw.SQLITE_OPEN_NOFOLLOW | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    try:
        return apsw.Connection(str(path), flags)
    except apsw.Error as error:
        raise _no_manifest(path) from error


def _no_manifest(path: Path) -> OperatorError:
    return OperatorError(
        f"{path} is not the manifest of a static export", hint="name another directory with --out"
    )
