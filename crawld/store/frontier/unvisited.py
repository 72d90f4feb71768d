"""Never-visited pages in the order of their visits: depth, then discovery."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from crawld.store.frontier import packed, packed_list


class DiscoveredPage(NamedTuple):
    """A page never visited; `(depth, page_id)` is its place in the order of visits."""

    page_id: int
    depth: int
    origin_id: int
    importance: float
    url: str


def list_discovered(
    connection: apsw.Connection,
    host_id: int,
    site_id: int,
    limit: int,
    *,
    after: tuple[int, int] = (-1, 0),
    requisites: bool = False,
) -> list[DiscoveredPage]:
    """Return the next unvisited pages of a site on a host, breadth-first.

    Args:
        after: `(depth, page_id)` of the last one already read.
        requisites: the requisites instead of the pages proper.
    """
    rows = connection.execute(
        "SELECT page_id, depth, origin_id, importance, url FROM page WHERE requisite = ?"
        " AND host_id = ? AND site_id = ? AND state = 'discovered' AND (depth, page_id) > (?, ?)"
        " ORDER BY depth, page_id LIMIT ?",
        (requisites, host_id, site_id, *after, limit),
    )
    return [DiscoveredPage(*row) for row in rows]


class NextPages(NamedTuple):
    """The next unvisited pages.

    Attributes:
        page_ids: of those that are rows.
        unpack: whether packed pages come before the last of these, or are all that is left.
    """

    page_ids: list[int]
    unpack: bool


def next_pages(
    connection: apsw.Connection, host_id: int, site_id: int, limit: int, *, requisites: bool
) -> NextPages:
    """Return the next unvisited pages of a site on a host, as `list_discovered`."""
    rows = list_discovered(connection, host_id, site_id, limit, requisites=requisites)
    depth = None if requisites else packed.first_depth(connection, host_id, site_id)
    unpack = depth is not None and (len(rows) < limit or depth < rows[-1].depth)
    return NextPages([row.page_id for row in rows], unpack)


def count_before(connection: apsw.Connection, page_id: int, most: int) -> int:
    """Return how many never-visited pages of its site and host come before one; at most `most`.

    Packed pages are counted about.

    Args:
        page_id: also the number of a packed page.
    """
    if page_id >= packed_list.FIRST_NUMBER:
        return _count_before_packed(connection, page_id, most)
    count: int = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM page AS wanted CROSS JOIN page"
        " ON page.requisite = wanted.requisite AND page.host_id = wanted.host_id"
        " AND page.site_id = wanted.site_id AND page.state = 'discovered'"
        " AND (page.depth, page.page_id) < (wanted.depth, wanted.page_id)"
        " WHERE wanted.page_id = ? LIMIT ?)",
        (page_id, most),
    ).get
    row = connection.execute(
        "SELECT host_id, site_id, depth FROM page WHERE page_id = ? AND requisite = 0", (page_id,)
    ).fetchone()
    return count if row is None else min(count + packed.count_before(connection, *row), most)


def _count_before_packed(connection: apsw.Connection, number: int, most: int) -> int:
    queue = packed_list.queue_of(connection, number)
    if queue is None:
        return 0
    rows: int = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM page WHERE requisite = 0 AND host_id = ?"
        " AND site_id = ? AND state = 'discovered' AND depth <= ? LIMIT ?)",
        (*queue, most),
    ).get
    return min(rows + packed.count_before(connection, *queue), most)
