"""How the file grew: how many pages, visits and copies there were at a time, without counting them.

Their numbers rise with their times, so a time is found by halving. Rows that were deleted since
count too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import apsw

_TABLES: Final = {
    "pages": ("page", "page_id", "discovered_at"),
    "visits": ("visit", "visit_id", "visited_at"),
    "copies": ("version", "version_id", "visited_at"),
}


class GrowthPoint(NamedTuple):
    """How many pages, visits and copies there had been at a time (Unix seconds)."""

    at: float
    pages: int
    visits: int
    copies: int


class FileSize(NamedTuple):
    """Bytes of the database file, and those of them that are free for new rows."""

    size_bytes: int
    free_bytes: int


def file_size(connection: apsw.Connection) -> FileSize:
    """Return the size of the file."""
    size, count, free = (
        int(connection.execute(f"PRAGMA {name}").get)
        for name in ("page_size", "page_count", "freelist_count")
    )
    return FileSize(size * count, size * free)


def first_time(connection: apsw.Connection) -> float | None:
    """Return when the first page was found; None: there is none."""
    found: float | None = connection.execute(
        "SELECT discovered_at FROM page ORDER BY page_id LIMIT 1"
    ).get
    return found


def growth(connection: apsw.Connection, times: Sequence[float]) -> list[GrowthPoint]:
    """Return how many rows there had been at each time."""
    return [
        GrowthPoint(at, *(_count_until(connection, *table, at) for table in _TABLES.values()))
        for at in times
    ]


def _count_until(connection: apsw.Connection, table: str, key: str, column: str, at: float) -> int:
    """Return the highest number of a row that is not younger than a time; 0: there is none."""
    above = int(connection.execute(f"SELECT ifnull(max({key}), 0) FROM {table}").get) + 1
    below = 0
    sql = f"SELECT {key}, {column} FROM {table} WHERE {key} >= ? ORDER BY {key} LIMIT 1"
    while above - below > 1:
        middle = (below + above) // 2
        row = connection.execute(sql, (middle,)).fetchone()
        if row is None or row[1] > at:
            above = middle
        else:
            below = row[0]
    return below
