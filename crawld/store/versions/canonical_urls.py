"""Rename stored pages after a change of the rules for canonical URLs.

The pages are read in the order of their numbers, in slices; `meta` holds the rules that all pages
follow, and how far the walk to newer ones has come. A page whose new URL is free takes it. If
another page has it, the two become one: the one with the better history stays, and all copies,
visits and events of the other go to it. The former URL stays another name of the page
(`crawld.store.frontier.page_name`).

A page keeps its URL if the new one was purged, has the hash of a different URL, or belongs to a
requisite while the page is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.url import RULES_VERSION, canonicalize, url_hash
from crawld.core.url_parameters import with_sorted_query
from crawld.errors import InvalidUrlError
from crawld.store.engine import meta
from crawld.store.frontier import packed, page_counts, page_name, tombstone
from crawld.store.versions import search_index

RULES: Final = "canonical_rules_version"
"""Key in meta: the rules that all stored URLs follow; missing: those of version 1."""

CURSOR: Final = "canonical_rules_cursor"
"""Key in meta: the rules of the walk under way, and the last page_id it has passed."""

SLICE_PAGES: Final = 1_000
"""Pages examined in one read: some milliseconds on a reader's thread."""

PART_PAGES: Final = 20
"""Pages renamed in one transaction: two that become one take up to a millisecond."""


class NewUrl(NamedTuple):
    """A page and the canonical URL that it should have."""

    page_id: int
    url: str


class UrlSlice(NamedTuple):
    """A slice of the walk.

    Attributes:
        new_urls: the pages of the slice whose URL does not follow the rules.
        up_to: the last page_id of the slice; None: there are no more pages.
    """

    new_urls: tuple[NewUrl, ...]
    up_to: int | None


class Renamed(NamedTuple):
    """How many pages got another URL, and how many became one with another page."""

    renamed: int = 0
    joined: int = 0


def wanted_rules(sorting_sites: Collection[int]) -> str:
    """Return the rules in force as text: their version, and the sites that sort parameters."""
    return " ".join(map(str, (RULES_VERSION, *sorted(sorting_sites))))


def begin(connection: apsw.Connection, rules: str) -> int | None:
    """Return the page_id after which the walk to some rules goes on; None: all pages follow them.

    A number above `packed_list.FIRST_NUMBER` is that of a block of packed pages, which come last.

    A walk to other rules begins again.
    """
    if meta.get(connection, RULES) == rules:
        return None
    under_way, _, after = (meta.get(connection, CURSOR) or "").rpartition(":")
    return int(after) if under_way == rules else 0


def next_slice(connection: apsw.Connection, after: int, sorting_sites: Collection[int]) -> UrlSlice:
    """Return the pages of the next slice that need another URL."""
    rows: list[Any] = connection.execute(
        "SELECT page_id, site_id, url FROM page WHERE page_id > ? ORDER BY page_id LIMIT ?",
        (after, SLICE_PAGES),
    ).fetchall()
    found = []
    for page_id, site_id, url in rows:
        new = in_force(url, in_order=site_id in sorting_sites)
        if new != url:
            found.append(NewUrl(page_id, new))
    return UrlSlice(tuple(found), rows[-1][0] if rows else None)


def in_force(url: str, *, in_order: bool) -> str:
    """Return a canonical URL by the rules in force; itself if they change its origin.

    Args:
        in_order: whether its site sorts parameters.
    """
    try:
        new = canonicalize(url)
    except InvalidUrlError:
        return url
    new = with_sorted_query(new) if in_order else new
    return new if new[: new.index("/", 8)] == url[: url.index("/", 8)] else url


def rename(connection: apsw.Connection, new_urls: Sequence[NewUrl]) -> Renamed:
    """Give some pages their new URLs; at most `PART_PAGES` in a transaction."""
    done = [_rename(connection, each) for each in new_urls]
    return Renamed(done.count("renamed"), done.count("joined"))


def put_cursor(connection: apsw.Connection, rules: str, up_to: int) -> None:
    """Store that the walk to some rules has passed a page."""
    meta.put(connection, CURSOR, f"{rules}:{up_to}")


def finish(connection: apsw.Connection, rules: str) -> None:
    """Store that all pages follow some rules."""
    meta.put(connection, RULES, rules)
    connection.execute("DELETE FROM meta WHERE key = ?", (CURSOR,))


_PAGE: Final = """
SELECT page_id, site_id, host_id, state, requisite, url, visit_count, last_visit_at FROM page
"""


class _Page(NamedTuple):
    page_id: int
    site_id: int
    host_id: int
    state: str
    requisite: int
    url: str
    visit_count: int
    last_visit_at: float | None

    @property
    def history(self) -> tuple[bool, int, float, int]:
        """What its history is worth; of two equal ones the older page's is better."""
        is_held = self.state not in (PageState.GONE, PageState.EXCLUDED) and self.visit_count > 0
        return is_held, self.visit_count, self.last_visit_at or 0.0, -self.page_id


def _rename(connection: apsw.Connection, new: NewUrl) -> str | None:
    row = connection.execute(f"{_PAGE} WHERE page_id = ?", (new.page_id,)).fetchone()
    if row is None or tombstone.exists(connection, new.url):
        return None
    page = _Page(*row)
    row = connection.execute(
        f"{_PAGE} WHERE host_id = ? AND url_hash = ?", (page.host_id, url_hash(new.url))
    ).fetchone()
    if row is None:
        key = packed.free_key(connection, page.host_id, new.url)
        if key is None:
            return None
        _set_url(connection, page, new.url, key)
        return "renamed"
    other = _Page(*row)
    if other.url != new.url or other.requisite != page.requisite or other.page_id == page.page_id:
        return None
    kept, dropped = (page, other) if page.history > other.history else (other, page)
    _join(connection, kept, dropped)
    if kept is page:
        _set_url(connection, page, new.url, url_hash(new.url))
    else:
        page_name.put(connection, page.host_id, page.url, kept.page_id)
    return "joined"


def _set_url(connection: apsw.Connection, page: _Page, url: str, key: int) -> None:
    connection.execute(
        "UPDATE page SET url = ?, url_hash = ? WHERE page_id = ?",
        (url, key, page.page_id),
    )
    if page.state == PageState.EXCLUDED:  # by rules for the former URL
        after = PageState.DISCOVERED if page.last_visit_at is None else PageState.VISITED
        connection.execute(
            "UPDATE page SET state = ?, last_failure = NULL WHERE page_id = ?",
            (after.value, page.page_id),
        )
        if not page.requisite:
            place = page.site_id, page.host_id
            page_counts.count_moves(connection, [(*place, PageState.EXCLUDED, after)])
    page_name.remove(connection, page.host_id, url)
    page_name.put(connection, page.host_id, page.url, page.page_id)


_REFERRING: Final = """
SELECT child.name, key."from" FROM sqlite_schema AS child
JOIN pragma_foreign_key_list(child.name) AS key
WHERE child.type = 'table' AND key."table" = 'page'
"""

# The newest copy of both is the copy of the page; its validators are valid for one URL only.
_TAKE_COPY: Final = """
UPDATE page SET (digest, version_id, last_change_at, title, cleaned_digest, sketch, form) =
    (SELECT digest, version_id, last_change_at, title, cleaned_digest, sketch, form
     FROM page WHERE page_id = ?1), etag = NULL, last_modified = NULL
WHERE page_id = ?2 AND ifnull((SELECT newest.visited_at FROM version AS newest
    WHERE newest.version_id = (SELECT version_id FROM page WHERE page_id = ?1)), 0)
  > ifnull((SELECT own.visited_at FROM version AS own WHERE own.version_id = page.version_id), 0)
"""

_TAKE_FACTS: Final = """
UPDATE page SET depth = min(page.depth, other.depth), seed = max(page.seed, other.seed),
    importance = max(page.importance, other.importance),
    discovered_at = min(page.discovered_at, other.discovered_at),
    visit_count = page.visit_count + other.visit_count,
    change_count = page.change_count + other.change_count
FROM (SELECT * FROM page WHERE page_id = ?1) AS other WHERE page.page_id = ?2
"""


def _join(connection: apsw.Connection, kept: _Page, dropped: _Page) -> None:
    """Give all that belongs to a page to another, and delete it.

    Of what a page has once, the page that stays keeps its own.
    """
    both = (dropped.page_id, kept.page_id)
    connection.execute(_TAKE_COPY, both)
    connection.execute(_TAKE_FACTS, both)
    for table, column in connection.execute(_REFERRING).fetchall():
        connection.execute(
            f'UPDATE OR IGNORE "{table}" SET "{column}" = ?2 WHERE "{column}" = ?1', both
        )
        connection.execute(f'DELETE FROM "{table}" WHERE "{column}" = ?', (dropped.page_id,))
    search_index.delete_page(connection, dropped.page_id)
    connection.execute("DELETE FROM page WHERE page_id = ?", (dropped.page_id,))
    if dropped.requisite:
        connection.execute(
            "UPDATE site SET requisite_count = requisite_count - 1 WHERE site_id = ?",
            (dropped.site_id,),
        )
    else:
        place = dropped.site_id, dropped.host_id
        page_counts.count_moves(connection, [(*place, PageState(dropped.state), None)])
