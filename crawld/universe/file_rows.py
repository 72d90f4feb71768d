"""Rows of the tables of a file, and the URL that a page had first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from crawld.store.mirror.rows import TABLES, rows
from crawld.universe.simulated_host import MOVED_PREFIX


def rows_of(connection: apsw.Connection, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that crawld exports, by their columns."""
    table = TABLES[name]
    for chunk in rows(connection, table, None):
        for row in chunk:
            yield dict(zip(table.columns, row, strict=True))


def own_url(url: str) -> str:
    """Return the first URL of a page that may have moved: the daemon renames such a page."""
    return url.replace(f".test{MOVED_PREFIX}/", ".test/")
