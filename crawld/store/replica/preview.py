"""What resting a replica means for each of its pages, before it rests or while it does."""

from __future__ import annotations

import array
from enum import StrEnum
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.replica.agreement import PageVerdict
from crawld.core.url import target_of, url_hash
from crawld.store.frontier import server
from crawld.store.replica.pages import origins_of, urls_at

SLICE: Final = 500
"""Pages examined in one read."""


class Prospect(StrEnum):
    """What becomes of a page of a replica.

    `RESTS`: its text is that of the canonical host. `DIFFERS`: it is not, so the page is visited.
    `REPEATED`: it is, but stands on many paths, so the page is visited. `ONLY_HERE`: the canonical
    host has no copy at its path. `UNVISITED`: it has no copy yet.
    """

    RESTS = "rests"
    DIFFERS = "differs"
    REPEATED = "repeated"
    ONLY_HERE = "only_here"
    UNVISITED = "unvisited"


class PagePreview(NamedTuple):
    """A page of a replica.

    Attributes:
        suspended: whether it rests now.
        digest: of its text as stored; None: it has none.
        judged: whether its text was compared with that of the canonical host.
    """

    page_id: int
    url: str
    prospect: Prospect
    suspended: bool
    digest: bytes | None
    judged: bool

    @property
    def is_open(self) -> bool:
        """Whether only a comparison tells what becomes of it."""
        return not self.judged and self.prospect in (Prospect.RESTS, Prospect.DIFFERS)


_PAGES: Final = f"""
SELECT page_id, url, state, url_hash, cleaned_digest, last_visit_at,
       (SELECT verdict FROM page_twin WHERE page_twin.page_id = page.page_id)
FROM page
WHERE {server.has_page("?1")} AND url_hash > ?2 AND state IN ('discovered', 'visited', 'suspended')
  AND requisite = 0
ORDER BY url_hash LIMIT ?3
"""

_TWINS: Final = f"""
SELECT url, cleaned_digest FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = {server.host_of("?2")} AND page.url_hash = wanted.value
WHERE version_id IS NOT NULL AND state = 'visited'
"""


_JUDGED: Final = {
    PageVerdict.AGREES: Prospect.RESTS,
    PageVerdict.DIFFERS: Prospect.DIFFERS,
    PageVerdict.REPEATED: Prospect.REPEATED,
}


def preview(
    connection: apsw.Connection, server_id: int, canonical_id: int, after: int
) -> tuple[list[PagePreview], int | None]:
    """Return the next pages of a replica, and `after` for the next call (None: no more pages).

    Args:
        server_id: the replica, or the host that may be one.
        canonical_id: the canonical host.
        after: URL hash of the last page examined, or `BEFORE_FIRST`.
    """
    rows: list[Any] = connection.execute(_PAGES, (server_id, after, SLICE)).fetchall()
    origins = origins_of(connection, canonical_id)
    there = {url for row in rows for url in urls_at(origins, row[1])}
    hashes = apsw.carray(array.array("q", [url_hash(url) for url in there]))
    twins: dict[str, list[bytes | None]] = {}
    for url, digest in connection.execute(_TWINS, (hashes, canonical_id)) if there else ():
        if url in there:
            twins.setdefault(target_of(url), []).append(digest)
    found = []
    for page_id, url, state, _, digest, visited_at, verdict in rows:
        known = _JUDGED.get(verdict)
        if (prospect := known) is None:
            # Not compared yet, as a host that waits: by the stored texts.
            prospect = _prospect(twins.get(target_of(url)), digest, visited=visited_at is not None)
        rests = state == PageState.SUSPENDED
        found.append(PagePreview(page_id, url, prospect, rests, digest, known is not None))
    return found, rows[-1][3] if len(rows) == SLICE else None


def _prospect(twins: list[bytes | None] | None, digest: bytes | None, *, visited: bool) -> Prospect:
    if twins is None:
        return Prospect.ONLY_HERE
    if not visited:
        return Prospect.UNVISITED
    return Prospect.RESTS if digest is not None and digest in twins else Prospect.DIFFERS
