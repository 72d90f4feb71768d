"""Sitemap files: state of each when last read, and time of the next read.

A sitemap is a tree of files. robots.txt or the config names the first, sitemap indexes the others;
each file is fetched on its own schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw


class SitemapRow(NamedTuple):
    """A file of a sitemap; the columns are those of `sitemap`."""

    hint_source_id: int
    url: str
    parent: str | None
    listed_at: float
    depth: int
    read_at: float | None
    next_at: float
    every_s: float | None
    etag: str | None
    last_modified: str | None
    digest: bytes | None
    entry_count: int
    newest_at: float | None
    trouble: str | None
    trouble_count: int
    open_until: float | None


class ListedFile(NamedTuple):
    """A file that an index lists: its URL, and when it last changed, if the index says so."""

    url: str
    changed_at: float | None


_COLUMNS = ", ".join(SitemapRow._fields)


def ensure(connection: apsw.Connection, hint_source_id: int, url: str, at: float) -> None:
    """Add the first file of a sitemap if it is new."""
    connection.execute(
        "INSERT INTO sitemap (hint_source_id, url, listed_at, depth, next_at)"
        " VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
        (hint_source_id, url, at, at),
    )


def next_file(connection: apsw.Connection, hint_source_id: int) -> SitemapRow | None:
    """Return the file that is due first."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM sitemap WHERE hint_source_id = ? ORDER BY next_at LIMIT 1",
        (hint_source_id,),
    ).fetchone()
    return SitemapRow(*row) if row else None


def update(connection: apsw.Connection, row: SitemapRow) -> None:
    """Store the new state of a file."""
    connection.execute(
        "UPDATE sitemap SET read_at = ?, next_at = ?, every_s = ?, etag = ?, last_modified = ?,"
        " digest = ?, entry_count = ?, newest_at = ?, trouble = ?, trouble_count = ?,"
        " open_until = ? WHERE hint_source_id = ? AND url = ?",
        (*row[5:], row.hint_source_id, row.url),
    )


_LIST = """
INSERT INTO sitemap (hint_source_id, url, parent, listed_at, depth, next_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?4)
ON CONFLICT DO UPDATE SET parent = ?3, listed_at = ?4,
    next_at = iif(?6 > read_at, min(next_at, ?4), next_at)
WHERE parent IS NOT NULL
"""


def add_listed(
    connection: apsw.Connection,
    by: SitemapRow,
    files: Sequence[ListedFile],
    at: float,
    *,
    most: int,
) -> int:
    """Add the files that an index lists; one that has changed since it was read is due at once.

    Returns:
        How many files were left out, since a sitemap has at most `most`.
    """
    room = most - count(connection, by.hint_source_id)
    left_out = 0
    for url, changed_at in files:
        if room <= 0 and not _known(connection, by.hint_source_id, url):
            left_out += 1
            continue
        connection.execute(_LIST, (by.hint_source_id, url, by.url, at, by.depth + 1, changed_at))
        room -= 1
    return left_out


def _known(connection: apsw.Connection, hint_source_id: int, url: str) -> bool:
    sql = "SELECT 1 FROM sitemap WHERE hint_source_id = ? AND url = ?"
    return connection.execute(sql, (hint_source_id, url)).fetchone() is not None


def delete_unlisted(connection: apsw.Connection, by: SitemapRow, before: float) -> None:
    """Delete the files that an index listed before and no longer lists."""
    connection.execute(
        "DELETE FROM sitemap WHERE hint_source_id = ? AND parent = ? AND listed_at < ?",
        (by.hint_source_id, by.url, before),
    )


def count(connection: apsw.Connection, hint_source_id: int) -> int:
    """Return how many files a sitemap has."""
    sql = "SELECT count(*) FROM sitemap WHERE hint_source_id = ?"
    return int(connection.execute(sql, (hint_source_id,)).get)


def newest_dates(
    connection: apsw.Connection, hint_source_id: int, but: str, now: float
) -> list[float] | None:
    """Return the newest date of each file but one; None: one of these files is due."""
    rows = connection.execute(
        "SELECT newest_at, next_at <= ? FROM sitemap WHERE hint_source_id = ? AND url != ?",
        (now, hint_source_id, but),
    ).fetchall()
    if any(due for _, due in rows):
        return None
    return [float(at) for at, _ in rows if at is not None]
