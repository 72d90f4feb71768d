"""Track requisites per page, to find orphans.

One row per page, with the page_ids of all it needs: 8 bytes each, where a table of pairs would take
five times as much and an index.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import numpy as np
import numpy.typing as npt


def put_used(connection: apsw.Connection, page_id: int, requisites: Iterable[int]) -> None:
    """Store which requisites the last copy of a page needs."""
    packed = np.unique(np.fromiter(requisites, dtype="<i8")).tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO requisite_use (page_id, requisites) VALUES (?, ?)",
        (page_id, packed),
    )


def used(connection: apsw.Connection, page_id: int) -> npt.NDArray[np.int64]:
    """Return the page_ids of the requisites of a page's last copy, ascending."""
    packed = connection.execute(
        "SELECT requisites FROM requisite_use WHERE page_id = ?", (page_id,)
    ).get
    return np.frombuffer(packed or b"", dtype="<i8")
