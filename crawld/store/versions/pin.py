"""Pins: copies that the operator chose, shown instead of newer ones and never removed."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from crawld.store.versions import version


class PinRow(NamedTuple):
    """A page that is pinned to a copy."""

    page_id: int
    url: str
    version_id: int
    visited_at: float
    pinned_at: float


_ROW = """
SELECT pin.page_id, url, pin.version_id, visited_at, pinned_at
FROM pin JOIN page USING (page_id) JOIN version ON version.version_id = pin.version_id
"""


def put(
    connection: apsw.Connection, page_id: int, now: float, at: float | None = None
) -> PinRow | None:
    """Pin a page to the copy that was its last at a time.

    Args:
        at: that time; None: now.

    Returns:
        The pin; None if the page had no copy then.
    """
    copy = version.current_at(connection, page_id, now if at is None else at)
    if copy is None:
        return None
    connection.execute(
        "INSERT OR REPLACE INTO pin (page_id, version_id, pinned_at) VALUES (?, ?, ?)",
        (page_id, copy.version_id, now),
    )
    return get(connection, page_id)


def release(connection: apsw.Connection, page_id: int) -> bool:
    """Unpin a page; return False if it was not pinned."""
    connection.execute("DELETE FROM pin WHERE page_id = ?", (page_id,))
    return connection.changes() > 0


def get(connection: apsw.Connection, page_id: int) -> PinRow | None:
    """Return the pin of a page, None if it is not pinned."""
    row = connection.execute(f"{_ROW} WHERE pin.page_id = ?", (page_id,)).fetchone()
    return PinRow(*row) if row else None


def list_pins(connection: apsw.Connection, *, after: int = 0, limit: int = 100) -> list[PinRow]:
    """Return the pins in the order of their pages, from the one after `after`."""
    rows = connection.execute(
        f"{_ROW} WHERE pin.page_id > ? ORDER BY pin.page_id LIMIT ?", (after, limit)
    )
    return [PinRow(*row) for row in rows]
