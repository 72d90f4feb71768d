"""Pages of replicas to compare with their twins, to resume, or to defer; each read is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url import target_of, url_hash
from crawld.store.frontier import server
from crawld.store.replica import alternates
from crawld.store.replica.pages import counterpart, origins_of, urls_at
from crawld.store.replica.replica import RESTING_LIST

FindPages = Callable[[apsw.Connection, int, int, int, int], list[int]]
"""Returns page_ids by server_id, canonical_id, the last page_id before and a limit."""


class HostPage(NamedTuple):
    """A page and its host."""

    server_id: int
    page_id: int


_VISITED: Final = f"""
SELECT DISTINCT replica.server_id, page_id FROM visit JOIN page USING (page_id)
JOIN replica ON replica.server_id = {server.of_page()}
WHERE visit_id > ? AND visit_id <= ? AND replica.status IN {RESTING_LIST}
  AND state = 'visited'
"""


def visited_between(connection: apsw.Connection, after: int, up_to: int) -> list[HostPage]:
    """Return the pages of replicas that were visited between two visit_ids."""
    return [HostPage(*row) for row in connection.execute(_VISITED, (after, up_to))]


_CANONICALS_CHANGED: Final = f"""
SELECT DISTINCT page.url, replica.server_id FROM visit JOIN page USING (page_id)
JOIN replica ON replica.canonical_id = {server.of_page()}
WHERE visit_id > ? AND visit_id <= ? AND outcome = 'changed' AND replica.status IN {RESTING_LIST}
"""

_WITHOUT_TWIN: Final = f"""
SELECT page_id FROM page
WHERE host_id = {server.host_of("?1")} AND url_hash = ?2 AND url = ?3 AND state = 'visited'
AND NOT EXISTS (SELECT 1 FROM page_twin WHERE page_twin.page_id = page.page_id)
"""


def first_twins_between(connection: apsw.Connection, after: int, up_to: int) -> list[HostPage]:
    """Return visited pages of replicas that had no twin until visits between two visit_ids."""
    rows: list[Any] = connection.execute(_CANONICALS_CHANGED, (after, up_to)).fetchall()
    origins = {
        server_id: origins_of(connection, server_id) for server_id in {row[1] for row in rows}
    }
    return [
        HostPage(server_id, page_id)
        for url, server_id in rows
        for there in urls_at(origins[server_id], url)
        for (page_id,) in connection.execute(_WITHOUT_TWIN, (server_id, url_hash(there), there))
    ]


_UNDECIDED: Final = f"""
SELECT own.server_id, own.page_id FROM page_twin AS own INDEXED BY page_twin_unknown
JOIN page ON page.page_id = own.page_id JOIN page AS twin ON twin.page_id = own.twin_id
JOIN replica ON replica.server_id = own.server_id
WHERE own.verdict = 'unknown' AND twin.last_visit_at > own.compared_at AND page.state = 'visited'
  AND replica.status IN {RESTING_LIST}
ORDER BY own.compared_at LIMIT ?
"""


def undecided(connection: apsw.Connection, limit: int) -> list[HostPage]:
    """Return the pages whose comparison waited for a visit of their twin, which was made."""
    return [HostPage(*row) for row in connection.execute(_UNDECIDED, (limit,))]


def deferred_until(connection: apsw.Connection, now: float, limit: int) -> list[HostPage]:
    """Return the deferred pages that are visited by now."""
    rows = connection.execute(
        "SELECT server_id, page_id FROM page_twin JOIN replica USING (server_id)"
        f" WHERE visit_at <= ? AND status IN {RESTING_LIST} ORDER BY visit_at LIMIT ?",
        (now, limit),
    )
    return [HostPage(*row) for row in rows]


_UNCOMPARED: Final = f"""
SELECT page.page_id FROM page INDEXED BY page_revisit
LEFT JOIN page_twin AS own USING (page_id) LEFT JOIN page AS twin ON twin.page_id = own.twin_id
WHERE {server.has_page("?1")} AND page.state IN ('visited', 'gone') AND page.retry_at IS NULL
  AND page.state = 'visited' AND page.page_id > ?3
  AND NOT ifnull({server.of_page("twin")} = ?2 AND own.visited_at >= page.last_visit_at, 0)
ORDER BY page.page_id LIMIT ?4
"""


def uncompared(
    connection: apsw.Connection, server_id: int, canonical_id: int, after: int, limit: int
) -> list[int]:
    """Return visited pages of a replica whose last visit was not compared, by page_id."""
    rows = connection.execute(_UNCOMPARED, (server_id, canonical_id, after, limit))
    return [page_id for (page_id,) in rows]


_MAY_SHOW: Final = alternates.may_show("?1", "?2", server.of_page("twin"))

_RESTLESS: Final = f"""
SELECT page.page_id FROM page INDEXED BY page_suspended
LEFT JOIN page_twin AS own USING (page_id) LEFT JOIN page AS twin ON twin.page_id = own.twin_id
WHERE {server.has_page("?1")} AND page.state = 'suspended' AND page.page_id > ?3 AND NOT ifnull(
    {_MAY_SHOW} AND twin.state = 'visited' AND twin.version_id IS NOT NULL
    AND own.verdict IN ('agrees', 'deferred'), 0)
ORDER BY page.page_id LIMIT ?4
"""


def restless(
    connection: apsw.Connection, server_id: int, canonical_id: int, after: int, limit: int
) -> list[int]:
    """Return suspended pages that may not rest, by page_id.

    They were not compared with this canonical host or an alternate, or their twin has no copy any
    more, or rests itself, or they do not agree.
    """
    rows = connection.execute(_RESTLESS, (server_id, canonical_id, after, limit))
    return [page_id for (page_id,) in rows]


def find_each(
    connection: apsw.Connection, find: FindPages, pairs: Sequence[tuple[int, int, int]], limit: int
) -> list[list[int]]:
    """Return pages of each of some replicas, given with the arguments of `find`.

    Returns:
        By pair, up to the one with which there are `limit` pages; the others were not read.
    """
    found = []
    for server_id, canonical_id, after in pairs:
        found.append(find(connection, server_id, canonical_id, after, limit))
        limit -= len(found[-1])
        if not limit:
            break
    return found


class UnvisitedTwin(NamedTuple):
    """A page of a replica that was never visited, whose twin has a copy."""

    page_id: int
    site_id: int
    target: str
    twin_id: int


_DISCOVERED: Final = f"""
SELECT page_id, site_id, url FROM page INDEXED BY page_discovered
WHERE requisite = 0 AND {server.has_page("?1")} AND state = 'discovered' AND page_id > ?2
  AND last_visit_at IS NULL AND retry_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM page_twin WHERE page_twin.page_id = page.page_id)
ORDER BY page_id LIMIT ?3
"""


def unvisited(
    connection: apsw.Connection, server_id: int, canonical_id: int, after: int, limit: int
) -> tuple[list[UnvisitedTwin], int | None]:
    """Return pages of a replica that were never visited nor deferred, whose twin has a copy.

    Returns:
        Those of the next `limit` pages, and `after` for the next call; None: these were the last.
    """
    rows: list[Any] = connection.execute(_DISCOVERED, (server_id, after, limit)).fetchall()
    found = []
    for page_id, site_id, url in rows:
        twin = counterpart(connection, canonical_id, url)
        if twin is not None:
            found.append(UnvisitedTwin(page_id, site_id, target_of(url), twin[1].page_id))
    return found, rows[-1][0] if len(rows) == limit else None


def unvisited_sites(connection: apsw.Connection, page_ids: Iterable[int]) -> dict[int, int]:
    """Return the site of each of some pages that are still to be visited for the first time."""
    sql = "SELECT page_id, site_id FROM page WHERE page_id = ? AND state = 'discovered'"
    return {
        number: site_id
        for page_id in page_ids
        for number, site_id in connection.execute(sql, (page_id,))
    }
