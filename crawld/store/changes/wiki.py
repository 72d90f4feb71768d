"""Wikis: origins with an API for exact change histories, and the state of that API.

An API that is closed or overloaded is not called for some time, also across restarts.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw


class WikiRow(NamedTuple):
    """A wiki as one site uses it; an origin without a wiki has no `api_url`."""

    wiki_id: int
    site_id: int
    origin_id: int
    origin: str
    host_id: int
    looked_at: float
    api_url: str | None
    facts: str | None
    facts_at: float | None
    registered_until: float
    request_count: int
    change_count: int
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None


class SamplePage(NamedTuple):
    """A visited page, to detect whether its origin is a wiki."""

    origin_id: int
    origin: str
    page_id: int
    url: str
    version_id: int


_WIKI = f"SELECT {', '.join(WikiRow._fields)} FROM wiki JOIN origin USING (origin_id)"


def list_wikis(connection: apsw.Connection) -> list[WikiRow]:
    """Return every origin that was examined."""
    return [WikiRow(*row) for row in connection.execute(f"{_WIKI} ORDER BY wiki_id")]


def get(connection: apsw.Connection, wiki_id: int) -> WikiRow:
    """Return a wiki by its number."""
    return WikiRow(*connection.execute(f"{_WIKI} WHERE wiki_id = ?", (wiki_id,)).get)


def facts_of(connection: apsw.Connection, origin: str) -> str | None:
    """Return the stored properties of the wiki of an origin, None if it is no known wiki."""
    facts: str | None = connection.execute(
        "SELECT facts FROM wiki JOIN origin USING (origin_id)"
        " WHERE origin = ? AND facts IS NOT NULL ORDER BY facts_at DESC LIMIT 1",
        (origin,),
    ).get
    return facts


def sample_pages(
    connection: apsw.Connection, host_id: int, site_id: int, *, limit: int
) -> list[SamplePage]:
    """Return pages of a site on a host that have a copy, the last visited first."""
    rows = connection.execute(
        "SELECT origin_id, origin, page_id, url, version_id"
        " FROM page CROSS JOIN origin USING (origin_id)"
        " WHERE page.host_id = ? AND site_id = ? AND state IN ('visited', 'gone')"
        " AND retry_at IS NULL AND version_id IS NOT NULL ORDER BY last_visit_at DESC LIMIT ?",
        (host_id, site_id, limit),
    )
    return [SamplePage(*row) for row in rows]


def record_detection(
    connection: apsw.Connection, site_id: int, origin_id: int, at: float, api_url: str | None
) -> None:
    """Store whether the pages of an origin show a wiki; None keeps a known API."""
    connection.execute(
        "INSERT INTO wiki (site_id, origin_id, looked_at, api_url) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET looked_at = excluded.looked_at,"
        " api_url = ifnull(excluded.api_url, api_url)",
        (site_id, origin_id, at, api_url),
    )


def set_api_url(connection: apsw.Connection, wiki_id: int, api_url: str | None) -> None:
    """Store the new URL of an API; None: the wiki has to be detected again."""
    connection.execute("UPDATE wiki SET api_url = ? WHERE wiki_id = ?", (api_url, wiki_id))


def set_facts(connection: apsw.Connection, wiki_id: int, facts: str, at: float) -> None:
    """Store the properties of a wiki that its API reported."""
    connection.execute(
        "UPDATE wiki SET facts = ?, facts_at = ? WHERE wiki_id = ?", (facts, at, wiki_id)
    )


def record_response(connection: apsw.Connection, wiki_id: int) -> None:
    """Count an answered request, and clear the API's trouble."""
    connection.execute(
        "UPDATE wiki SET request_count = request_count + 1, trouble = NULL, trouble_detail = NULL,"
        " trouble_count = 0, closed_until = NULL WHERE wiki_id = ?",
        (wiki_id,),
    )


def record_failure(
    connection: apsw.Connection, wiki_id: int, trouble: str, detail: str, closed_until: float
) -> None:
    """Count a request without a usable response, and close the API until a time."""
    connection.execute(
        "UPDATE wiki SET request_count = request_count + 1, trouble = ?, trouble_detail = ?,"
        " trouble_count = trouble_count + 1, closed_until = ? WHERE wiki_id = ?",
        (trouble, detail, closed_until, wiki_id),
    )


def progress(connection: apsw.Connection, wiki_id: int) -> dict[str, int]:
    """Return how many pages of a wiki are in each state; one pass over an index."""
    rows = connection.execute(
        "SELECT state, count(*) FROM wiki_page WHERE wiki_id = ? GROUP BY state", (wiki_id,)
    )
    return {state: int(pages) for state, pages in rows}
