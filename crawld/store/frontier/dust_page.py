"""Pages for which another URL of their origin stands, and pages that were compared with it.

A hidden page is suspended and never deleted: it returns if its rule is withdrawn. A page that was
seen to differ keeps its row, and is never hidden again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import Outcome, PageState
from crawld.core.url import split_url, url_hash
from crawld.store.frontier import page_counts


class KnownUrl(NamedTuple):
    """A page of an origin.

    Attributes:
        visited: whether it has a copy or was a redirect.
        verdict: its row here; None: it has none.
    """

    page_id: int
    site_id: int
    url: str
    state: PageState
    visited: bool
    verdict: str | None


_URLS: Final = """
SELECT page_id, site_id, url, state, last_visit_at IS NOT NULL
       AND (version_id IS NOT NULL OR redirect_url IS NOT NULL), verdict
FROM page LEFT JOIN dust_page USING (page_id)
WHERE page_id > ? AND page_id <= ? AND page.origin_id = ? AND requisite = 0
ORDER BY page_id
"""

_RANGE: Final = "SELECT min(page_id), max(page_id) FROM page WHERE host_id = ?"


def page_range(connection: apsw.Connection, host_id: int) -> tuple[int, int]:
    """Return the first and the last page_id of a host."""
    [(first, last)] = connection.execute(_RANGE, (host_id,))
    return first or 0, last or 0


def urls(connection: apsw.Connection, origin_id: int, after: int, up_to: int) -> list[KnownUrl]:
    """Return the pages of an origin in a range of page_ids."""
    rows = connection.execute(_URLS, (after, up_to, origin_id))
    return [
        KnownUrl(page_id, site_id, url, PageState(state), bool(visited), verdict)
        for page_id, site_id, url, state, visited, verdict in rows
    ]


class SeenPage(NamedTuple):
    """What the last visit of a page found."""

    page_id: int
    site_id: int
    url: str
    state: PageState
    last_visit_at: float | None
    last_outcome: Outcome | None
    version_id: int | None
    digest: bytes | None
    redirect_url: str | None


_SEEN: Final = """
SELECT page_id, site_id, url, state, last_visit_at, last_outcome, version_id, digest, redirect_url
FROM page WHERE host_id = (SELECT host_id FROM host WHERE host = ?) AND url_hash = ? AND url = ?
"""


def seen_page(connection: apsw.Connection, url: str) -> SeenPage | None:
    """Return what is known of the page of a URL, None if it is no page."""
    for row in connection.execute(_SEEN, (split_url(url).host, url_hash(url), url)):
        number, site_id, _, state, at, outcome, *rest = row
        known = Outcome(outcome) if outcome else None
        return SeenPage(number, site_id, url, PageState(state), at, known, *rest)
    return None


class DustPageRow(NamedTuple):
    """A page that was compared, is asked for, or is hidden."""

    page_id: int
    url: str
    canonical: str
    verdict: str
    at: float
    dust_rule_id: int | None
    value: str
    digest: bytes | None
    tries: int


_ROWS: Final = """
SELECT page_id, url, canonical, verdict, at, dust_rule_id, value, dust_page.digest, tries
FROM dust_page JOIN page USING (page_id) WHERE dust_page.origin_id = ? AND verdict = ?
ORDER BY page_id LIMIT ?
"""

_COMPARED: Final = """
SELECT page_id, url, canonical, verdict, at, dust_rule_id, value, dust_page.digest, tries
FROM dust_page JOIN page USING (page_id)
WHERE dust_page.origin_id = ? AND dust_rule_id IS NOT NULL ORDER BY at, page_id LIMIT ?
"""


def of_verdict(
    connection: apsw.Connection, origin_id: int, verdict: str, limit: int
) -> list[DustPageRow]:
    """Return pages of an origin with a verdict."""
    return [DustPageRow(*row) for row in connection.execute(_ROWS, (origin_id, verdict, limit))]


def of_trials(connection: apsw.Connection, origin_id: int, limit: int) -> list[DustPageRow]:
    """Return the pages that were compared, or are asked for, in trials."""
    return [DustPageRow(*row) for row in connection.execute(_COMPARED, (origin_id, limit))]


_OF_CANONICALS: Final = """
SELECT page_id, url, canonical, verdict, at, dust_rule_id, value, dust_page.digest, tries
FROM dust_page JOIN page USING (page_id)
WHERE dust_page.origin_id = ? AND canonical IN (SELECT value FROM json_each(?)) ORDER BY page_id
"""


def of_canonicals(
    connection: apsw.Connection, origin_id: int, canonicals: Sequence[str]
) -> list[DustPageRow]:
    """Return all pages of an origin for which one of some targets stands."""
    rows = connection.execute(_OF_CANONICALS, (origin_id, json.dumps(canonicals)))
    return [DustPageRow(*row) for row in rows]


def of_url(connection: apsw.Connection, url: str) -> DustPageRow | None:
    """Return the row of a URL, None if it has none."""
    page = seen_page(connection, url)
    if page is None:
        return None
    rows = connection.execute(
        "SELECT page_id, url, canonical, verdict, at, dust_rule_id, value, dust_page.digest, tries"
        " FROM dust_page JOIN page USING (page_id) WHERE page_id = ?",
        (page.page_id,),
    )
    return next((DustPageRow(*row) for row in rows), None)


def put(connection: apsw.Connection, origin_id: int, rows: Iterable[DustPageRow]) -> None:
    """Store pages with their verdicts."""
    connection.executemany(
        "INSERT OR REPLACE INTO dust_page (page_id, origin_id, canonical, verdict, at,"
        " dust_rule_id, value, digest, tries) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(row.page_id, origin_id, row.canonical, row.verdict, row.at),
                *(row.dust_rule_id, row.value, row.digest, row.tries),
            )
            for row in rows
        ],
    )


def drop(connection: apsw.Connection, page_ids: Iterable[int]) -> None:
    """Forget the rows of pages."""
    connection.executemany(
        "DELETE FROM dust_page WHERE page_id = ?", [(page_id,) for page_id in page_ids]
    )


_HIDE: Final = """
UPDATE page SET state = 'suspended' WHERE page_id = ?1 AND requisite = 0 AND seed = 0 AND (
    state = 'discovered' AND last_visit_at IS NULL
    OR state = 'visited' AND (SELECT verdict FROM dust_page WHERE page_id = ?1) = 'equal')
RETURNING site_id, host_id, iif(last_visit_at IS NULL, 'discovered', 'visited')
"""


def hide(connection: apsw.Connection, page_ids: Sequence[int]) -> int:
    """Suspend pages: those never visited, and visited ones that were compared and are equal.

    Seeds stay. Returns how many were suspended.
    """
    moves: list[page_counts.Move] = [
        (site_id, host_id, PageState(state), PageState.SUSPENDED)
        for page_id in page_ids
        for site_id, host_id, state in connection.execute(_HIDE, (page_id,))
    ]
    page_counts.count_moves(connection, moves)
    return len(moves)


_HIDDEN: Final = """
SELECT page_id, url, canonical, verdict, at, dust_rule_id, value, dust_page.digest, tries
FROM dust_page JOIN page USING (page_id)
WHERE dust_page.origin_id = ? AND state = 'suspended' AND page_id > ? ORDER BY page_id LIMIT ?
"""


def hidden(
    connection: apsw.Connection, origin_id: int, after: int, limit: int
) -> list[DustPageRow]:
    """Return the next pages that rules hide, by page_id."""
    rows: Any = connection.execute(_HIDDEN, (origin_id, after, limit))
    return [DustPageRow(*row) for row in rows]


def count_hidden(connection: apsw.Connection) -> dict[int, int]:
    """Return how many pages are hidden, by origin_id."""
    rows: Any = connection.execute(
        "SELECT dust_page.origin_id, count(*) FROM dust_page JOIN page USING (page_id)"
        " WHERE state = 'suspended' GROUP BY dust_page.origin_id"
    )
    return dict(rows)
