"""Page lookups for the web mirror."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import apsw

from crawld.core.display import SHOWN_TITLE_CHARACTERS
from crawld.core.page import PageState
from crawld.core.url import split_url, url_keys
from crawld.store.frontier import page_name


class PageLookup(NamedTuple):
    """A page, for the web mirror; `title` is that of its newest copy."""

    page_id: int
    url: str
    title: str | None
    state: PageState
    last_visit_at: float | None
    last_outcome: str | None


class SiteSummary(NamedTuple):
    """A site for the list of sites.

    Attributes:
        configured: whether it is still visited.
        visited_count: pages visited at least once and not gone.
        requisite_count: images, styles, scripts and fonts.
        median_age_s: median time since the last visits of its pages; None if none was visited.
    """

    site_id: int
    name: str
    configured: bool
    page_count: int
    visited_count: int
    gone_count: int
    requisite_count: int
    last_visit_at: float | None
    median_age_s: float | None


_COLUMNS: Final = (
    f"page_id, url, substr(title, 1, {SHOWN_TITLE_CHARACTERS}), state, last_visit_at, last_outcome"
)

_FIND: Final = f"""
SELECT {_COLUMNS} FROM page
WHERE host_id = (SELECT host_id FROM host WHERE host = ?) AND url_hash IN (?, ?) AND url = ?
"""

AGE_SAMPLE: Final = 2_000
"""Pages in the samples of ages of one list; the median of a site is right to a few per cent."""

MIN_AGE_SAMPLE: Final = 100
"""The same for each of many sites."""


_ORIGINS: Final = 4_096
"""Origins kept in memory."""


def find(connection: apsw.Connection, url: str) -> PageLookup | None:
    """Return the page of a canonical URL, or of its former one; None if it is not known."""
    host = split_url(url).host
    row = connection.execute(_FIND, (host, *url_keys(url), url)).fetchone()
    if row is None and (current := page_name.current_url(connection, url)) is not None:
        row = connection.execute(_FIND, (host, *url_keys(current), current)).fetchone()
    return _page(row) if row else None


def is_origin(connection: apsw.Connection, origin: str) -> bool:
    """Return whether pages of an origin belong to the mirror."""
    return connection.execute("SELECT 1 FROM origin WHERE origin = ?", (origin,)).get is not None


class OriginLookup:
    """Which origins belong to the mirror, cached until the file changes.

    A page links to some dozens of foreign origins, the same as its neighbors.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[apsw.Connection, tuple[tuple[int, int], dict[str, bool]]] = (
            WeakKeyDictionary()
        )

    def of(self, connection: apsw.Connection) -> Callable[[str], bool]:
        """Return a predicate: whether the mirror has an origin, on this snapshot."""
        state = int(connection.execute("PRAGMA data_version").get), connection.total_changes()
        remembered = self._known.get(connection)
        if remembered is None or remembered[0] != state:
            remembered = self._known[connection] = state, {}
        known = remembered[1]

        def is_known(origin: str) -> bool:
            if origin not in known:
                if len(known) >= _ORIGINS:
                    known.clear()
                known[origin] = is_origin(connection, origin)
            return known[origin]

        return is_known


def revision_at(connection: apsw.Connection, page_id: int, at: float) -> int | None:
    """Return the revision_id a page showed at a time, None if not known."""
    revision: int | None = connection.execute(
        "SELECT revision_id FROM change WHERE page_id = ? AND changed_at <= ?"
        " AND source = 'revision' ORDER BY changed_at DESC, revision_id DESC LIMIT 1",
        (page_id, at),
    ).get
    return revision


def first_copy_at(connection: apsw.Connection, page_id: int) -> float | None:
    """Return the time of the oldest copy of a page, None if there is none."""
    at: float | None = connection.execute(
        "SELECT min(visited_at) FROM version WHERE page_id = ?", (page_id,)
    ).get
    return at


def _page(row: tuple[Any, ...]) -> PageLookup:
    made = PageLookup(*row)
    return made._replace(state=PageState(made.state))


class MirrorSize(NamedTuple):
    """The mirror in numbers; `size_bytes` is that of its file."""

    sites: int
    pages: int
    visited: int
    size_bytes: int


def mirror_size(connection: apsw.Connection) -> MirrorSize:
    """Return how large the mirror is, from counters."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT count(*), ifnull(sum(page_count), 0), ifnull(sum(pages_visited), 0)"
        f" FROM site WHERE {_LISTED}"
    ).fetchall()
    pages: int = connection.execute("PRAGMA page_count").get
    page_bytes: int = connection.execute("PRAGMA page_size").get
    [(sites, known, visited)] = rows
    return MirrorSize(sites, known, visited, pages * page_bytes)


_LISTED: Final = "(page_count > 0 OR definition IS NOT NULL)"


def site_names(connection: apsw.Connection, *, limit: int) -> list[str]:
    """Return the names of the first sites of the mirror."""
    rows = connection.execute(
        f"SELECT name FROM site WHERE {_LISTED} ORDER BY site_id LIMIT ?", (limit,)
    )
    return [name for (name,) in rows]


def summaries(
    connection: apsw.Connection, now: float, *, after: int = 0, limit: int = 100
) -> list[SiteSummary]:
    """Return sites that have pages, in the order they were added.

    Args:
        after: the site_id after which the list continues.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        f"{_SUMMARY} WHERE {_LISTED} AND site_id > ? ORDER BY site_id LIMIT ?", (after, limit)
    ).fetchall()
    sample = max(AGE_SAMPLE // max(len(rows), 1), MIN_AGE_SAMPLE)
    return [_summary(connection, row, now, sample) for row in rows]


def summary(connection: apsw.Connection, name: str, now: float) -> SiteSummary | None:
    """Return one site, None if there is none of that name."""
    row = connection.execute(f"{_SUMMARY} WHERE name = ?", (name,)).fetchone()
    return None if row is None else _summary(connection, row, now, AGE_SAMPLE)


_SUMMARY: Final = (
    "SELECT site_id, name, definition IS NOT NULL, page_count, pages_visited, pages_gone,"
    " requisite_count FROM site"
)


def _summary(
    connection: apsw.Connection, row: tuple[Any, ...], now: float, sample: int
) -> SiteSummary:
    site_id, name, configured, pages, visited, gone, requisites = row
    last_visit_at, median_age_s = _ages(connection, site_id, now, sample)
    return SiteSummary(
        site_id,
        name,
        bool(configured),
        pages,
        visited,
        gone,
        requisites,
        last_visit_at,
        median_age_s,
    )


def _ages(
    connection: apsw.Connection, site_id: int, now: float, sample: int
) -> tuple[float | None, float | None]:
    """Return the last visit of a site and the median age of its pages, from a sample.

    Reads only the index of revisits, no page row.
    """
    rows = connection.execute(
        "SELECT last_visit_at FROM page WHERE site_id = ?"
        " AND state IN ('visited', 'gone') AND retry_at IS NULL"
        " AND host_id IN (SELECT host_id FROM host ORDER BY visit_count DESC LIMIT 16) LIMIT ?",
        (site_id, sample),
    )
    visits = sorted(at for (at,) in rows)
    if not visits:
        return None, None
    return visits[-1], max(now - visits[len(visits) // 2], 0.0)
