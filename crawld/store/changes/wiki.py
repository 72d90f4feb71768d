"""Wikis: origins with an API for exact change histories, and the state of that API.

A wiki is one source for all sites that use it: its API is detected and asked once. An API that is
closed or overloaded is not called for some time, also across restarts.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

import apsw

from crawld.store import changed


class WikiSite(NamedTuple):
    """A site that uses a wiki.

    Attributes:
        registered_until: pages visited before this time (Unix seconds) are registered.
    """

    site_id: int
    registered_until: float


class WikiRow(NamedTuple):
    """A wiki with the sites that use it; an origin without a wiki has no `api_url`."""

    wiki_id: int
    origin_id: int
    origin: str
    host_id: int
    looked_at: float
    api_url: str | None
    facts: str | None
    facts_at: float | None
    request_count: int
    change_count: int
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None
    sites: tuple[WikiSite, ...] = ()

    @property
    def site_ids(self) -> tuple[int, ...]:
        """The numbers of its sites, the first added first."""
        return tuple(site.site_id for site in self.sites)


class SamplePage(NamedTuple):
    """A visited page, to detect whether its origin is a wiki."""

    origin_id: int
    origin: str
    page_id: int
    url: str
    version_id: int


_SITES = """(
    SELECT json_group_array(json_array(site_id, registered_until))
    FROM wiki_site WHERE wiki_site.wiki_id = wiki.wiki_id
)"""
_WIKI = (
    f"SELECT {', '.join(WikiRow._fields[:-1])}, {_SITES} FROM wiki JOIN origin USING (origin_id)"
)


def list_wikis(connection: apsw.Connection) -> list[WikiRow]:
    """Return every origin that was examined."""
    return [_row(row) for row in connection.execute(f"{_WIKI} ORDER BY wiki_id")]


def get(connection: apsw.Connection, wiki_id: int) -> WikiRow:
    """Return a wiki by its number."""
    return _row(connection.execute(f"{_WIKI} WHERE wiki_id = ?", (wiki_id,)).get)


def _row(row: tuple[Any, ...]) -> WikiRow:
    sites = sorted(WikiSite(*each) for each in json.loads(row[-1]))
    return WikiRow._make((*row[:-1], tuple(sites)))


def of_origin(connection: apsw.Connection, origin_id: int) -> WikiRow | None:
    """Return the wiki of an origin, None if the origin was never examined."""
    row = connection.execute(f"{_WIKI} WHERE wiki.origin_id = ?", (origin_id,)).fetchone()
    return _row(row) if row else None


def by_origin(connection: apsw.Connection, origin: str) -> WikiRow | None:
    """Return the wiki of an origin by its name, None if the origin was never examined."""
    row = connection.execute(f"{_WIKI} WHERE origin = ?", (origin,)).fetchone()
    return _row(row) if row else None


def update_sites(
    connection: apsw.Connection,
    wiki_id: int,
    *,
    permitted: Collection[int],
    joining: Collection[int] = (),
) -> None:
    """Update which sites use a wiki; a site that stays keeps its progress.

    The pages of a site that leaves keep their histories, and are no longer asked for.

    Args:
        permitted: the sites that may use the wiki; all others leave.
        joining: those that join if they do not use it yet.
    """
    connection.execute(
        "DELETE FROM wiki_site WHERE wiki_id = ?"
        " AND site_id NOT IN (SELECT value FROM json_each(?))",
        (wiki_id, json.dumps(list(permitted))),
    )
    connection.executemany(_JOIN, [(wiki_id, site_id) for site_id in joining])
    changed.note(connection, "hint_source")  # the sources of the wiki report on its sites


_JOIN = "INSERT OR IGNORE INTO wiki_site (wiki_id, site_id) VALUES (?, ?)"


def facts_of(connection: apsw.Connection, origin: str) -> str | None:
    """Return the stored properties of the wiki of an origin, None if it is no known wiki."""
    facts: str | None = connection.execute(
        "SELECT facts FROM wiki JOIN origin USING (origin_id)"
        " WHERE origin = ? AND facts IS NOT NULL",
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


def sample_origin(connection: apsw.Connection, origin: str, *, limit: int) -> list[SamplePage]:
    """Return pages of an origin that have a copy, of whichever site."""
    rows = connection.execute(
        "SELECT page.origin_id, origin, page_id, url, version_id"
        " FROM origin CROSS JOIN page ON page.host_id = origin.host_id"
        " AND page.origin_id = origin.origin_id"
        " WHERE origin = ? AND state IN ('visited', 'gone') AND retry_at IS NULL"
        " AND version_id IS NOT NULL LIMIT ?",
        (origin, limit),
    )
    return [SamplePage(*row) for row in rows]


def record_detection(
    connection: apsw.Connection,
    origin_id: int,
    site_id: int,
    at: float,
    api_url: str | None,
) -> None:
    """Store whether the pages of an origin show a wiki, and that a site has some of them.

    None keeps a known API.
    """
    wiki_id = connection.execute(
        "INSERT INTO wiki (origin_id, looked_at, api_url) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET looked_at = excluded.looked_at,"
        " api_url = ifnull(excluded.api_url, api_url) RETURNING wiki_id",
        (origin_id, at, api_url),
    ).get
    connection.execute(_JOIN, (wiki_id, site_id))
    changed.note(connection, "hint_source")


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
