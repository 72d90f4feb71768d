"""For measurements: what rests now, and a file that need not outlive them."""

from __future__ import annotations

import apsw


def resting_pages(connection: apsw.Connection) -> list[int]:
    """Return the page_id of every suspended page."""
    rows = connection.execute(
        "SELECT page_id FROM page WHERE state = 'suspended' AND requisite = 0"
    )
    return [page_id for (page_id,) in rows]


def spare_disk(connection: apsw.Connection) -> None:
    """Let the transactions of a file that is deleted soon wait for no disk."""
    connection.execute("PRAGMA synchronous = OFF")
