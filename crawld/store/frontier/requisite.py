"""Track requisites per page, to find orphans.

One row per page, with the page_ids of all it needs: 8 bytes each, where a table of pairs would take
five times as much and an index.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import numpy as np


def put(connection: apsw.Connection, page_id: int, requisites: Iterable[int]) -> None:
    """Store which requisites the last copy of a page needs."""
    packed = np.unique(np.fromiter(requisites, dtype="<i8")).tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO requisite_use (page_id, requisites) VALUES (?, ?)",
        (page_id, packed),
    )
