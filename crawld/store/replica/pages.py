"""Pages of replicas: suspend and resume them, and find the canonical page of a URL.

A page of a replica is suspended if its twin, the page at the same path of the canonical host or of
an alternate, has a good copy with the same text, which is shown instead (`twin` has the
comparisons). Nothing is deleted: pages return to their former states if they differ, if their twin
rests itself, or if the verdict is withdrawn.
"""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.url import target_of, url_hash
from crawld.store.frontier import page_counts, server

SLICE: Final = 500
"""Pages suspended or resumed in one transaction."""


BEFORE_FIRST: Final = -(2**63)
"""Before the key of any page."""


class ResumedPage(NamedTuple):
    """A page that may be visited again."""

    page_id: int
    site_id: int
    visited: bool


_ORIGINS: Final = f"""
SELECT origin FROM origin
WHERE host_id = {server.host_of("?1")} AND ifnull(server_id, host_id) = ?1 ORDER BY origin DESC
"""
"""https before http; a server has one or two."""

_HELD_THERE: Final = f"""
SELECT url FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = {server.host_of("?2")} AND page.url_hash = wanted.value
WHERE version_id IS NOT NULL AND state = 'visited'
"""


_UNVISITED: Final = f"""
SELECT page_id, site_id, url FROM page
WHERE {server.has_page("?1")} AND state = 'discovered' AND requisite = 0
  AND retry_at IS NULL ORDER BY depth, page_id LIMIT ?2
"""

MAX_UNVISITED: Final = 500
"""Pages of each host that are searched for paths on both."""


class UnvisitedPage(NamedTuple):
    """A page that was discovered and never visited."""

    server_id: int
    site_id: int
    page_id: int


def shared_unvisited(
    connection: apsw.Connection, one_id: int, other_id: int, paths: int
) -> list[UnvisitedPage]:
    """Return unvisited pages at paths that exist on both of two hosts.

    First the pages whose path has a copy on the other host, then those that are unvisited on both.
    At most `paths` of each kind are used, and at most twice as many pages are returned.
    """
    unvisited: list[dict[str, tuple[str, UnvisitedPage]]] = []
    for server_id in (one_id, other_id):
        rows: list[Any] = connection.execute(_UNVISITED, (server_id, MAX_UNVISITED)).fetchall()
        unvisited.append(
            {
                target_of(url): (url, UnvisitedPage(server_id, site, page))
                for page, site, url in rows
            }
        )
    shown: list[UnvisitedPage] = []
    for here, there_id in ((unvisited[0], other_id), (unvisited[1], one_id)):
        origins = origins_of(connection, there_id)
        there = {at: urls_at(origins, url) for at, (url, _) in here.items()}
        held = _held(connection, there_id, [url for urls in there.values() for url in urls])
        shown += [page for at, (_, page) in here.items() if held.intersection(there[at])][:paths]
    both = [at for at in unvisited[0] if at in unvisited[1]][:paths]
    found = [*shown, *(side[at][1] for at in both for side in unvisited)]
    return list(dict.fromkeys(found))[: 2 * paths]


def origins_of(connection: apsw.Connection, server_id: int) -> list[str]:
    """Return the origins of a host, https first."""
    return [origin for (origin,) in connection.execute(_ORIGINS, (server_id,))]


def origins_of_pair(connection: apsw.Connection, server_ids: Iterable[int]) -> tuple[str, ...]:
    """Return the origins of a replica and of its canonical host."""
    return tuple(origin for server_id in server_ids for origin in origins_of(connection, server_id))


def _held(connection: apsw.Connection, server_id: int, urls: Sequence[str]) -> set[str]:
    """Return which of some URLs of a host have a good copy."""
    if not urls:
        return set()
    hashes = apsw.carray(array.array("q", [url_hash(url) for url in urls]))
    return {url for (url,) in connection.execute(_HELD_THERE, (hashes, server_id))}


_SUSPEND: Final = """
UPDATE page SET state = 'suspended' WHERE page_id = ?1 AND requisite = 0 AND (
    state = 'visited' AND last_visit_at <= (
        SELECT own.visited_at FROM page_twin AS own JOIN page AS twin ON twin.page_id = own.twin_id
        WHERE own.page_id = ?1 AND released_at IS NULL AND twin.state = 'visited')
    OR state = 'discovered' AND last_visit_at IS NULL)
RETURNING site_id, host_id, iif(last_visit_at IS NULL, 'discovered', 'visited')
"""


def suspend(connection: apsw.Connection, page_ids: Sequence[int]) -> int:
    """Suspend pages: visited ones whose last visit was compared, and some never visited.

    Returns:
        How many; a page visited since it was compared is left out, and one whose twin rests.
    """
    moves = [
        (site_id, host_id, PageState(state), PageState.SUSPENDED)
        for page_id in page_ids
        for site_id, host_id, state in connection.execute(_SUSPEND, (page_id,))
    ]
    page_counts.count_moves(connection, moves)
    return len(moves)


class Orphan(NamedTuple):
    """A page at rest whose twin rests itself, and the name of its host."""

    page_id: int
    host: str


_ORPHANS: Final = """
SELECT own.page_id, host FROM page_twin AS own INDEXED BY page_twin_twin
JOIN page USING (page_id) JOIN host USING (host_id) JOIN page AS twin ON twin.page_id = own.twin_id
WHERE own.twin_id = ? AND page.state = 'suspended' AND twin.state = 'suspended'
"""


def orphans(connection: apsw.Connection, page_ids: Iterable[int]) -> list[Orphan]:
    """Return the pages at rest whose twin is one of some pages that rest now."""
    return [
        Orphan(*row) for page_id in page_ids for row in connection.execute(_ORPHANS, (page_id,))
    ]


_RESUME: Final = """
UPDATE page SET state = iif(last_visit_at IS NULL, 'discovered', 'visited')
WHERE page_id IN ({}) AND state = 'suspended' RETURNING page_id, site_id, host_id, state
"""

_SOME_SUSPENDED: Final = f"""
SELECT page_id FROM page WHERE {server.has_page("?1")} AND state = 'suspended' LIMIT {SLICE}
"""


def resume(connection: apsw.Connection, page_ids: Sequence[int]) -> list[ResumedPage]:
    """Resume suspended pages."""
    sql = _RESUME.format(",".join("?" * len(page_ids)))
    return _resumed(connection, connection.execute(sql, tuple(page_ids)).fetchall())


def resume_some(connection: apsw.Connection, server_id: int) -> list[ResumedPage]:
    """Resume a slice of the suspended pages of a server."""
    rows = connection.execute(_RESUME.format(_SOME_SUSPENDED), (server_id,)).fetchall()
    return _resumed(connection, rows)


def _resumed(connection: apsw.Connection, rows: list[Any]) -> list[ResumedPage]:
    page_counts.count_moves(
        connection,
        [
            (site_id, host_id, PageState.SUSPENDED, PageState(state))
            for _, site_id, host_id, state in rows
        ],
    )
    return [
        ResumedPage(number, site_id, state == PageState.VISITED)
        for number, site_id, _, state in rows
    ]


_RESTS_UNDER: Final = """
SELECT twin.url FROM page JOIN page_twin AS own USING (page_id)
JOIN page AS twin ON twin.page_id = own.twin_id
WHERE page.host_id = ? AND page.url_hash = ? AND page.url = ? AND page.state = 'suspended'
  AND twin.version_id IS NOT NULL
"""


def twin_url(connection: apsw.Connection, page_id: int) -> str | None:
    """Return the URL of the page with which a page of a replica was compared; None: with none."""
    url: str | None = connection.execute(
        "SELECT url FROM page_twin JOIN page ON page.page_id = twin_id WHERE page_twin.page_id = ?",
        (page_id,),
    ).get
    return url


def canonical_url(connection: apsw.Connection, url: str) -> str | None:
    """Return the URL of the canonical page for a URL of a replica.

    Returns:
        The URL of the page under which it rests, else of the same path on the canonical host, if
        that has a copy; None: it has none, or the URL's host is no pruned replica.
    """
    own = server.of_url(connection, url)
    if own is None:
        return None
    canonical_id = connection.execute(
        "SELECT canonical_id FROM replica WHERE server_id = ? AND status = 'pruned'",
        (own.server_id,),
    ).get
    if canonical_id is None:
        return None
    kept: str | None = connection.execute(_RESTS_UNDER, (own.host_id, url_hash(url), url)).get
    if kept is not None:
        return kept
    found = counterpart(connection, canonical_id, url)
    return None if found is None else found[0]


_STANDS_FOR: Final = """
SELECT max(url) FROM page_twin AS own INDEXED BY page_twin_twin JOIN page USING (page_id)
WHERE own.twin_id = ? AND own.server_id = ? AND page.state = 'suspended'
"""


def suspended_url(connection: apsw.Connection, server_id: int, twin_id: int) -> str | None:
    """Return the URL of a suspended page of a replica, https first, by its twin; None: none."""
    url: str | None = connection.execute(_STANDS_FOR, (twin_id, server_id)).get
    return url


_COUNTERPART: Final = f"""
SELECT page_id, cleaned_digest, last_visit_at FROM page
WHERE host_id = {server.host_of("?1")} AND url_hash = ?2 AND url = ?3 AND version_id IS NOT NULL
"""


class Counterpart(NamedTuple):
    """The page of the canonical host at the same path as one of a replica."""

    page_id: int
    cleaned_digest: bytes | None
    last_visit_at: float


def counterpart(
    connection: apsw.Connection, canonical_id: int, url: str
) -> tuple[str, Counterpart] | None:
    """Return URL and page of the same path and query on a canonical host, None without a copy."""
    for there in urls_at(origins_of(connection, canonical_id), url):
        found = connection.execute(_COUNTERPART, (canonical_id, url_hash(there), there)).fetchone()
        if found is not None:
            return there, Counterpart(*found)
    return None


def urls_at(origins: Iterable[str], url: str) -> list[str]:
    """Return the URLs of the same path and query as a page at the origins of another server."""
    return [f"{origin}{target_of(url)}" for origin in origins]
