"""Pages that go from one site to another: those of a part of a wiki, and of sites that end."""

from __future__ import annotations

import array
from typing import Final

import apsw

from crawld.core.page import PageState
from crawld.store.frontier import page_counts

_TAKE_OVER: Final = """
UPDATE page SET site_id = ?2, importance = ?3 WHERE page_id = ?1 AND requisite = 0
RETURNING host_id, state
"""

_OF_OTHERS: Final = """
SELECT page_id FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = (SELECT host_id FROM host WHERE host = ?2) AND page.url_hash = wanted.value
WHERE site_id <> ?3 AND requisite = 0 AND state IN ('discovered', 'visited', 'gone')
"""


def list_of_others(
    connection: apsw.Connection, host: str, site_id: int, url_hashes: array.array[int]
) -> list[int]:
    """Return the page_ids of those URLs on a host that are pages of other sites."""
    rows = connection.execute(_OF_OTHERS, (apsw.carray(url_hashes), host, site_id))
    return [int(page_id) for (page_id,) in rows]


def take_over(
    connection: apsw.Connection, page_id: int, site_id: int, importance: float
) -> PageState | None:
    """Give a page to another site; return its state, None if it is gone or now a requisite.

    Args:
        importance: weight of its freshness for that site, > 0.
    """
    row = connection.execute(
        "SELECT site_id FROM page WHERE page_id = ? AND requisite = 0", (page_id,)
    ).fetchone()
    if row is None:
        return None
    [(host_id, name)] = connection.execute(_TAKE_OVER, (page_id, site_id, importance))
    connection.execute(
        "DELETE FROM page_share WHERE site_id = ? AND page_id = ?", (site_id, page_id)
    )
    state = PageState(name)
    moves: list[page_counts.Move] = [
        (row[0], host_id, state, None),
        (site_id, host_id, None, state),
    ]
    page_counts.count_moves(connection, moves)
    return state
