"""What rests now, for measurements."""

from __future__ import annotations

import apsw


def resting_pages(connection: apsw.Connection) -> list[int]:
    """Return the page_id of every suspended page."""
    rows = connection.execute(
        "SELECT page_id FROM page WHERE state = 'suspended' AND requisite = 0"
    )
    return [page_id for (page_id,) in rows]
