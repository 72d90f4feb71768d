"""Pages that several sites name.

A page has one site, for which it is visited. Sites whose part of a wiki names it while it belongs
to another site share it: it is listed among their pages.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import apsw


def replace_all(connection: apsw.Connection, shared: Mapping[int, Collection[int]]) -> None:
    """Replace the pages that sites share: page_ids of other sites, by site_id."""
    wanted = _pairs(shared)
    connection.execute(
        "DELETE FROM page_share WHERE (site_id, page_id)"
        " NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        (wanted,),
    )
    _add(connection, wanted)


def replace_checked(
    connection: apsw.Connection,
    shared: Mapping[int, Collection[int]],
    checked: Mapping[int, Collection[int]],
) -> None:
    """Replace the pages that sites share, as far as they were checked; both by site_id."""
    wanted = _pairs(shared)
    connection.execute(
        "DELETE FROM page_share WHERE (site_id, page_id)"
        " IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1)"
        " EXCEPT SELECT value ->> 0, value ->> 1 FROM json_each(?2))",
        (_pairs(checked), wanted),
    )
    _add(connection, wanted)


def _pairs(pages: Mapping[int, Collection[int]]) -> str:
    return json.dumps([[site_id, page_id] for site_id in pages for page_id in pages[site_id]])


def _add(connection: apsw.Connection, wanted: str) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO page_share (site_id, page_id)"
        " SELECT value ->> 0, page_id FROM json_each(?) CROSS JOIN page ON page_id = value ->> 1"
        " WHERE page.site_id <> value ->> 0",
        (wanted,),
    )


def counts(connection: apsw.Connection) -> dict[int, int]:
    """Return how many pages of other sites each site shares, by site_id."""
    return dict(connection.execute("SELECT site_id, count(*) FROM page_share GROUP BY site_id"))


def sites_of(connection: apsw.Connection, page_id: int) -> list[int]:
    """Return the sites, other than its own, that name a page."""
    rows = connection.execute(
        "SELECT site_id FROM page_share WHERE page_id = ? ORDER BY site_id", (page_id,)
    )
    return [int(site_id) for (site_id,) in rows]
