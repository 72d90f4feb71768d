"""Input of the search for replicas: hosts, their fetched pages, redirects and copies.

Everything is read in slices by a key, so that no reader holds a snapshot for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import apsw

from crawld.store.engine import meta
from crawld.store.frontier import server
from crawld.store.replica import counts
from crawld.store.versions.unanalysed import CURSOR as ANALYSED


class FetchedPage(NamedTuple):
    """A page that was fetched.

    Attributes:
        cleaned_digest: of its last good copy; None: no copy, or not analysed yet.
        referrer_host_id: the host of the page that linked to it first; None: a seed.
        version_id: its newest copy; None: it has none.
        sketch: of the visible text of that copy; None: no copy, or not analysed yet.
    """

    page_id: int
    server_id: int
    url: str
    cleaned_digest: bytes | None
    last_visit_at: float
    referrer_host_id: int | None
    version_id: int | None = None
    sketch: bytes | None = None


class SourceHost(NamedTuple):
    """A host with fetched pages.

    Attributes:
        address: last address connected to.
        preferred: whether the operator prefers it among its replicas.
        certificate: names on its last certificate, separated by spaces; None: none.
        unvisited: pages that were never visited.
    """

    server_id: int
    host: str
    address: str | None
    added_at: float
    preferred: bool
    certificate: str | None
    unvisited: int = 0


class Redirect(NamedTuple):
    """A page that was a redirect when last fetched."""

    server_id: int
    url: str
    redirect_url: str


class Cursors(NamedTuple):
    """How far pages were read: the last visit, and the last version that was analysed."""

    visit_id: int
    version_id: int


_PAGE: Final = f"""
SELECT page.page_id, {server.of_page()}, page.url, page.cleaned_digest, page.last_visit_at,
       referrer.host_id, page.version_id, page.sketch
FROM {{source}} LEFT JOIN page AS referrer ON referrer.page_id = page.referrer_id
WHERE {{where}} AND page.requisite = 0 AND page.last_visit_at IS NOT NULL
"""
_BY_NUMBER: Final = _PAGE.format(source="page", where="page.page_id > ?") + (
    " ORDER BY page.page_id LIMIT ?"
)
_BY_VISIT: Final = _PAGE.format(
    source="visit JOIN page USING (page_id)", where="visit.visit_id > ? AND visit.visit_id <= ?"
)
_BY_VERSION: Final = _PAGE.format(
    source="version JOIN page USING (page_id)",
    where="version.version_id > ? AND version.version_id <= ?",
)


def cursors(connection: apsw.Connection) -> Cursors:
    """Return the cursors after everything stored now."""
    newest = connection.execute("SELECT ifnull(max(visit_id), 0) FROM visit").get
    return Cursors(newest, int(meta.get(connection, ANALYSED) or 0))


def pages_after(connection: apsw.Connection, page_id: int, limit: int) -> list[FetchedPage]:
    """Return the next pages by page_id."""
    return [FetchedPage(*row) for row in connection.execute(_BY_NUMBER, (page_id, limit))]


def pages_between(connection: apsw.Connection, after: Cursors, up_to: Cursors) -> list[FetchedPage]:
    """Return the pages visited or analysed between two cursors; a page may come twice."""
    visited = connection.execute(_BY_VISIT, (after.visit_id, up_to.visit_id))
    pages = [FetchedPage(*row) for row in visited]
    analysed = connection.execute(_BY_VERSION, (after.version_id, up_to.version_id))
    return pages + [FetchedPage(*row) for row in analysed]


_HOSTS: Final = f"""
SELECT host_id, host, address, added_at, preferred, certificate,
       {counts.unvisited("host.host_id", "host")}
FROM host WHERE visit_count > 0
  AND {server.has_default("host.host_id")}
UNION ALL
SELECT server_id, name, address, added_at, port_server.preferred, NULL,
       {counts.unvisited("port_server.server_id", "host")}
FROM port_server JOIN host USING (host_id) WHERE visit_count > 0
ORDER BY 1
"""


def hosts(connection: apsw.Connection) -> list[SourceHost]:
    """Return every server of a host with a fetched page."""
    rows = connection.execute(_HOSTS)
    return [
        SourceHost(server_id, host, address, added_at, bool(preferred), certificate, unvisited)
        for server_id, host, address, added_at, preferred, certificate, unvisited in rows
    ]


def redirects(connection: apsw.Connection) -> list[Redirect]:
    """Return every page that was a redirect when last fetched."""
    rows = connection.execute(
        f"SELECT {server.of_page()}, url, redirect_url FROM page WHERE redirect_url IS NOT NULL"
    )
    return [Redirect(*row) for row in rows]


def copies(connection: apsw.Connection, server_id: int, limit: int) -> list[tuple[str, int]]:
    """Return (URL, newest version_id) of pages of a host, those nearest to the seeds first."""
    rows = connection.execute(
        f"SELECT url, version_id {_FROM_COPIES} ORDER BY depth, page_id LIMIT ?2",
        (server_id, limit),
    )
    return [(url, version_id) for url, version_id in rows]


_FROM_COPIES: Final = (
    f"FROM page WHERE {server.has_page('?1')} AND version_id IS NOT NULL AND requisite = 0"
)


def count_copies(connection: apsw.Connection, server_id: int) -> int:
    """Return how many pages of a host have a copy."""
    count: int = connection.execute(f"SELECT count(*) {_FROM_COPIES}", (server_id,)).get
    return count


class HostPageSummary(NamedTuple):
    """A summary of a host's pages, to choose the canonical host.

    Attributes:
        changed_at: latest change of any page; 0: none.
        https: whether most pages are fetched by https.
        pages: how many have a copy.
    """

    changed_at: float
    https: bool
    pages: int


def summarize_pages(connection: apsw.Connection, server_id: int) -> HostPageSummary:
    """Return a summary of a host's pages."""
    row: Any = connection.execute(
        "SELECT ifnull(max(last_change_at), 0), sum(origin LIKE 'https:%'), count(*)"
        f" FROM page JOIN origin USING (origin_id) WHERE {server.has_page('?1')}"
        " AND requisite = 0 AND version_id IS NOT NULL",
        (server_id,),
    ).fetchone()
    changed_at, secure, pages = row
    return HostPageSummary(float(changed_at), 2 * (secure or 0) > pages, pages)


def summarize_hosts(
    connection: apsw.Connection, server_ids: Iterable[int]
) -> dict[int, HostPageSummary]:
    """Return a summary of the pages of each of some hosts."""
    return {server_id: summarize_pages(connection, server_id) for server_id in server_ids}
