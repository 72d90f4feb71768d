"""How each page of a replica compares with its twin, the same path of the canonical host.

A row is written when a page is compared, and when a page never visited is deferred. Related:
`twin_facts` (what is compared), `pages` (suspends and resumes), `due_pages` (what to compare).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.sections import SectionState
from crawld.store.frontier import server
from crawld.store.replica import alternates


class TwinRow(NamedTuple):
    """The result of a comparison.

    Attributes:
        digest: of the page's text as compared; None: it has none, such as a redirect.
        visited_at: the visit of the page that was compared; 0: none.
        lag_s: how far the page was behind its twin; None: not measured.
        visit_at: when a deferred page is visited; None: it is not deferred.
        instead_of: the canonical host whose page is not this one, or which has none, if the twin
            is that of an alternate.
    """

    page_id: int
    server_id: int
    twin_id: int
    verdict: PageVerdict
    digest: bytes | None
    visited_at: float
    compared_at: float
    lag_s: float | None = None
    visit_at: float | None = None
    instead_of: int | None = None


_LEFT: Final = f"""
?10 IS NOT NULL AND twin_id <> ?3 AND agreed > 0 AND ?10 = (
    SELECT {server.of_page("before")} FROM page AS before WHERE before.page_id = page_twin.twin_id)
"""
"""Whether a page is not as that of the canonical host any more, but as that of an alternate."""

_TURNS: Final = f"""
(?4 IN ('differs', 'repeated') AND twin_id = ?3 AND agreed > 0 OR {_LEFT})
"""

_PUT: Final = f"""
INSERT INTO page_twin (page_id, server_id, twin_id, verdict, digest, visited_at, compared_at, lag_s,
                       visit_at, agreed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?4 = 'agrees')
ON CONFLICT DO UPDATE SET
    turns = iif(twin_id = ?3, turns, 0) + {_TURNS},
    turned_at = CASE WHEN {_TURNS} THEN ?7 WHEN twin_id = ?3 THEN turned_at ELSE 0 END,
    agreed = CASE WHEN ?4 = 'agrees' THEN iif(twin_id = ?3, agreed, 0) + 1
                  WHEN ?4 = 'unknown' AND twin_id = ?3 THEN agreed ELSE 0 END,
    released_at = iif(?4 = 'unknown' OR ?6 < released_at, released_at, NULL),
    twin_id = ?3, verdict = ?4, digest = ?5, visited_at = ?6, compared_at = ?7, lag_s = ?8,
    visit_at = ?9
"""


def put(connection: apsw.Connection, rows: Iterable[TwinRow]) -> None:
    """Store comparisons; a page compared again with the same twin keeps its history."""
    connection.executemany(_PUT, rows)


class ComparedPage(NamedTuple):
    """A page of a replica that was compared or deferred.

    Attributes:
        agreed: comparisons in a row, up to the last, that agreed.
        turns: how often the page began to differ.
        turned_at: when it last did; 0: never.
        is_released: whether it waits for a visit, or for its comparison.
        is_current: whether the comparison is of its last visit.
        twin_changed: whether the twin has changed since.
        twin_shown: whether the twin is on the canonical host, or an alternate, and has a copy.
        elsewhere: whether it is on an alternate.
        twin_visits: visits of the twin since a time.
        twin_known_since: its first visit that is kept, or when it was found.
    """

    page_id: int
    url: str
    state: PageState
    verdict: PageVerdict
    compared_at: float
    agreed: int
    turns: int
    turned_at: float
    is_released: bool
    is_current: bool
    twin_changed: bool
    twin_shown: bool
    elsewhere: bool
    twin_visits: int
    twin_known_since: float


_COMPARED: Final = f"""
SELECT own.page_id, page.url, page.state, verdict, compared_at, agreed, turns, turned_at,
       released_at IS NOT NULL,
       page.retry_at IS NULL AND own.visited_at >= ifnull(page.last_visit_at, 0),
       ifnull(twin.last_change_at, 0) > compared_at,
       {alternates.may_show("?1", "?2", server.of_page("twin"))}
         AND twin.state = 'visited' AND twin.version_id IS NOT NULL,
       {server.of_page("twin")} <> ?2,
       (SELECT count(*) FROM visit WHERE visit.page_id = twin.page_id AND visited_at >= ?5),
       ifnull((SELECT min(visited_at) FROM visit WHERE visit.page_id = twin.page_id),
              twin.discovered_at)
FROM page_twin AS own INDEXED BY page_twin_server
JOIN page ON page.page_id = own.page_id JOIN page AS twin ON twin.page_id = own.twin_id
WHERE own.server_id = ?1 AND own.page_id > ?3 AND page.state <> 'gone' AND page.state <> 'excluded'
ORDER BY own.page_id LIMIT ?4
"""


def compared_pages(
    connection: apsw.Connection,
    server_id: int,
    canonical_id: int,
    after: int,
    limit: int,
    *,
    since: float = 0.0,
) -> list[ComparedPage]:
    """Return the next pages of a replica that were compared or deferred, by page_id.

    Args:
        connection: the file.
        server_id: the replica.
        canonical_id: the canonical host.
        after: page_id of the last page before.
        limit: most pages.
        since: from when on visits of the twins are counted.
    """
    rows = connection.execute(_COMPARED, (server_id, canonical_id, after, limit, since))
    return [
        ComparedPage(
            *(page_id, url, PageState(state), PageVerdict(verdict)),
            *(compared_at, agreed, turns, turned_at),
            *(bool(flag) for flag in flags),
            *twin,
        )
        for page_id, url, state, verdict, compared_at, agreed, turns, turned_at, *rest in rows
        for flags, twin in ((rest[:5], rest[5:]),)
    ]


def repeated_pages(connection: apsw.Connection, server_id: int, paths: int) -> list[int]:
    """Return the pages that agree, and whose text stands on so many paths of their host."""
    rows = connection.execute(
        "SELECT page_id FROM page_twin WHERE server_id = ?1 AND verdict = 'agrees' AND digest IN"
        " (SELECT digest FROM page_twin INDEXED BY page_twin_digest"
        "  WHERE server_id = ?1 AND digest IS NOT NULL GROUP BY digest HAVING count(*) >= ?2)",
        (server_id, paths),
    )
    return [page_id for (page_id,) in rows]


def mark_repeated(connection: apsw.Connection, page_ids: Iterable[int]) -> None:
    """Store that the texts of pages stand on many paths of their host."""
    connection.executemany(
        "UPDATE page_twin SET verdict = 'repeated', agreed = 0 WHERE page_id = ?",
        [(page_id,) for page_id in page_ids],
    )


class ReleasedPage(NamedTuple):
    """A page that waits for its comparison, and where its twin is queued."""

    page_id: int
    twin_id: int
    twin_site_id: int


_RELEASED: Final = """
SELECT own.page_id, twin_id, twin.site_id FROM page_twin AS own JOIN page AS twin
ON twin.page_id = own.twin_id WHERE own.page_id = ? AND released_at IS NOT NULL
"""


def released_pages(connection: apsw.Connection, page_ids: Iterable[int]) -> dict[int, ReleasedPage]:
    """Return which of some pages were resumed to be compared, by page_id."""
    found = {}
    for page_id in page_ids:
        for row in connection.execute(_RELEASED, (page_id,)):
            found[page_id] = ReleasedPage(*row)
    return found


def release(connection: apsw.Connection, page_ids: Sequence[int], now: float) -> None:
    """Note that pages are resumed to be compared."""
    connection.executemany(
        "UPDATE page_twin SET released_at = ?, visit_at = NULL WHERE page_id = ?",
        [(now, page_id) for page_id in page_ids],
    )


def forget(connection: apsw.Connection, server_id: int, limit: int) -> int:
    """Delete comparisons of a host that is no replica any more; return how many."""
    connection.execute(
        "DELETE FROM page_twin WHERE page_id IN"
        " (SELECT page_id FROM page_twin WHERE server_id = ? LIMIT ?)",
        (server_id, limit),
    )
    return connection.changes()


# --- sections ------------------------------------------------------------------------------------


def section_states(connection: apsw.Connection, server_id: int) -> dict[str, SectionState]:
    """Return what is remembered of the sections of a replica, by prefix."""
    rows = connection.execute(
        "SELECT prefix, deferring, returned, returned_at, returns FROM replica_section"
        " WHERE server_id = ?",
        (server_id,),
    )
    return {
        prefix: SectionState(bool(deferring), bool(returned), returned_at, returns)
        for prefix, deferring, returned, returned_at, returns in rows
    }


def put_sections(
    connection: apsw.Connection, server_id: int, states: Mapping[str, SectionState]
) -> None:
    """Store the states of sections of a replica."""
    connection.executemany(
        "INSERT OR REPLACE INTO replica_section VALUES (?, ?, ?, ?, ?, ?)",
        [
            (server_id, prefix, one.deferring, one.returned, one.returned_at, one.returns)
            for prefix, one in states.items()
        ],
    )


def returned_since(connection: apsw.Connection, since: float) -> set[int]:
    """Return the replicas of which a section has returned since a time."""
    rows = connection.execute(
        "SELECT DISTINCT server_id FROM replica_section WHERE returned_at > ?", (since,)
    )
    return {server_id for (server_id,) in rows}
