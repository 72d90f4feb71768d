"""Track requisites per page, to find orphans.

One row per page holds the page_ids of all its requisites, 8 bytes each; a table of pairs would take
five times as much, and an index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import apsw


def put(connection: apsw.Connection, page_id: int, requisites: Iterable[int]) -> None:
    """Store which requisites the last copy of a page needs; the same as before write nothing."""
    numbers = sorted(set(requisites))
    packed = struct.pack(f"<{len(numbers)}q", *numbers)
    connection.execute(
        "INSERT INTO requisite_use (page_id, requisites) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET requisites = excluded.requisites"
        " WHERE requisites <> excluded.requisites",
        (page_id, packed),
    )
