"""Export of whole tables: flat rows of plain values, in short reads by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.store.frontier import packed_list

CHUNK: Final = 2000
PAGES: Final = 100
"""Pages of one read of what visits found: some milliseconds."""

_Rows = list[tuple[Any, ...]]


class ExportTable(NamedTuple):
    """A table to export.

    Attributes:
        columns: their names; times end in `_at` (Unix seconds), digests are hexadecimal.
        sql: selects rows since a time (binding 1) after a key (bindings 2 and following).
        key: how many of the first columns are the key.
        by_pages: selects more rows since a time (binding 1), of pages after one number (2) up to
            another (3); empty: there are no more.
        packed: whether packed pages come last.
    """

    columns: tuple[str, ...]
    sql: str
    key: int
    by_pages: str = ""
    packed: bool = False


_PAGES: Final = """
SELECT page.page_id, url, site.name, state, seed, depth, importance, title, status, content_type,
       size_bytes, lower(hex(page.digest)), page.version_id, discovered_at, last_visit_at,
       last_change_at, last_outcome, last_failure, page.visit_count, page.change_count,
       page.failure_count, redirect_url, etag, last_modified
FROM page CROSS JOIN site USING (site_id) LEFT JOIN version ON version.version_id = page.version_id
     LEFT JOIN body USING (body_id)
WHERE page.page_id > ?2 AND (?1 IS NULL OR last_visit_at >= ?1) ORDER BY page.page_id LIMIT ?3
"""

_VISITS: Final = """
SELECT visit_id, page_id, url, visited_at, outcome, failure, detail, status, address, duration_s,
       wire_bytes, body_bytes, lower(hex(visit.digest)), visit.version_id, difference
FROM visit CROSS JOIN page USING (page_id)
WHERE visit_id > ?2 AND (?1 IS NULL OR visited_at >= ?1) ORDER BY visit_id LIMIT ?3
"""

_CHANGES: Final = """
SELECT page_id, changed_at, revision_id, source, url, kind, change.size_bytes, changed_at,
       NULL, NULL, NULL
FROM change CROSS JOIN page USING (page_id)
WHERE (page_id, changed_at, revision_id, source) > (?2, ?3, ?4, ?5)
  AND (?1 IS NULL OR changed_at >= ?1)
ORDER BY page_id, changed_at, revision_id, source LIMIT ?6
"""

_SEEN: Final = """
WITH look AS (
    SELECT page_id, visited_at, visit_id, version_id, difference,
           CASE WHEN outcome IN ('gone', 'soft_gone') THEN 'gone' ELSE outcome END AS outcome
    FROM visit WHERE page_id > ?2 AND page_id <= ?3
    AND outcome IN ('changed', 'unchanged', 'not_modified', 'moved', 'gone', 'soft_gone')
    UNION ALL  -- copies without a visit: imported ones
    SELECT page_id, visited_at, NULL, version_id, NULL, 'changed' FROM version
    WHERE page_id > ?2 AND page_id <= ?3 AND NOT EXISTS (
        SELECT 1 FROM visit WHERE visit.page_id = version.page_id
        AND visit.visited_at = version.visited_at AND visit.version_id = version.version_id)
), pair AS (
    SELECT *, lag(outcome) OVER looks AS before, lag(visited_at) OVER looks AS seen_at
    FROM look WINDOW looks AS (PARTITION BY page_id ORDER BY visited_at, visit_id)
)
SELECT pair.page_id, pair.visited_at, NULL, 'visit', url,
       CASE WHEN pair.outcome = 'gone' THEN 'deletion' WHEN pair.outcome = 'moved' THEN 'move'
       WHEN before IN ('gone', 'moved') THEN 'restoration' END,
       size_bytes, seen_at, visit_id, pair.version_id, difference
FROM pair CROSS JOIN page USING (page_id)
LEFT JOIN version ON version.version_id = pair.version_id LEFT JOIN body USING (body_id)
WHERE before IS NOT NULL AND (?1 IS NULL OR pair.visited_at >= ?1)
AND CASE pair.outcome WHEN 'changed' THEN 1 WHEN 'gone' THEN before <> 'gone'
    WHEN 'moved' THEN before <> 'moved' ELSE before IN ('gone', 'moved') END
ORDER BY pair.page_id, pair.visited_at, visit_id
"""
"""Changes between two looks at a page: a first look finds a new page, which is no change."""

_FOUND: Final = """
SELECT version.version_id, page_id, visited_at, url, size_bytes
FROM version CROSS JOIN page USING (page_id) CROSS JOIN body USING (body_id)
WHERE version.version_id > ?2 AND (?1 IS NULL OR visited_at >= ?1)
ORDER BY version.version_id LIMIT ?3
"""


def _table(
    sql: str, columns: str, *, key: int = 1, by_pages: str = "", packed: bool = False
) -> ExportTable:
    return ExportTable(tuple(columns.split()), sql, key, by_pages, packed)


TABLES: Final = {
    "pages": _table(
        _PAGES,
        "page_id url site state seed depth importance title status content_type size_bytes digest"
        " version_id discovered_at last_visit_at last_change_at last_outcome last_failure"
        " visit_count change_count failure_count redirect_url etag last_modified",
        packed=True,
    ),
    "visits": _table(
        _VISITS,
        "visit_id page_id url visited_at outcome failure detail status address duration_s"
        " wire_bytes body_bytes digest version_id difference",
    ),
    "changes": _table(
        _CHANGES,
        "page_id changed_at revision_id source url kind size_bytes earliest_at visit_id version_id"
        " difference",
        key=4,
        by_pages=_SEEN,
    ),
    "versions": _table(_FOUND, "version_id page_id visited_at url size_bytes"),
}
"""`versions` are the copies that visits stored. `changes` come first with exact times from a source
(`earliest_at` equals `changed_at`), then as visits found them (source `visit`: the page changed
after the visit at `earliest_at`, and not later than that at `changed_at`).
"""


def rows(connection: apsw.Connection, table: ExportTable, since: float | None) -> Iterator[_Rows]:
    """Yield the rows of a table since a time, a chunk at a time, by key and then by pages.

    Packed pages have no visit, so none is newer than a time.

    The connection must not be in a transaction.
    """
    after: tuple[Any, ...] = (0,) if table.key == 1 else (0, 0.0, 0, "")
    chunk: _Rows
    while chunk := connection.execute(table.sql, (since, *after, CHUNK)).fetchall():
        yield chunk
        after = chunk[-1][: table.key]
    if table.by_pages:
        last = int(connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get)
        for start in range(0, last, PAGES):
            asked = (since, start, start + PAGES)
            if chunk := connection.execute(table.by_pages, asked).fetchall():
                yield chunk
    if table.packed and since is None:
        yield from _packed_pages(connection)


def _packed_pages(connection: apsw.Connection) -> Iterator[_Rows]:
    """Yield the packed pages as rows of the table of pages, without a page_id."""
    names = dict(connection.execute("SELECT site_id, name FROM site"))
    after = 0
    while pages := packed_list.list_packed(connection, after=after, limit=CHUNK):
        after = pages[-1].number
        heads = [
            (None, page.url, names[page.site_id], PageState.DISCOVERED, 0, page.depth, 1.0)
            for page in pages
        ]
        found_at = [page.found_at for page in pages]
        yield [
            (*head, *[None] * 6, at, *[None] * 4, 0, 0, 0, *[None] * 3)
            for head, at in zip(heads, found_at, strict=True)
        ]


class PageHistory(NamedTuple):
    """A page of a wiki with a stored history.

    Attributes:
        number: the wiki's page id, None if not known.
        facts: properties of the wiki from its API (JSON).
    """

    page_id: int
    title: str
    number: int | None
    api_url: str
    facts: str | None


class Revision(NamedTuple):
    """A revision of a page; `size_bytes` is None if the wiki hides it."""

    changed_at: float
    revision_id: int
    size_bytes: int | None


_HISTORIES: Final = """
SELECT page_id, ifnull(shown_title, title), wiki_page_number, api_url, facts
FROM wiki_page CROSS JOIN wiki USING (wiki_id)
WHERE page_id > ? AND api_url IS NOT NULL AND EXISTS (
    SELECT 1 FROM change WHERE change.page_id = wiki_page.page_id AND source = 'revision')
AND NOT EXISTS (  -- a redirect shows the page and its history
    SELECT 1 FROM wiki_page AS twin WHERE twin.wiki_id = wiki_page.wiki_id
    AND twin.wiki_page_number = wiki_page.wiki_page_number
    AND (twin.complete_until IS NOT NULL, twin.title IS twin.shown_title, -twin.page_id)
      > (wiki_page.complete_until IS NOT NULL, wiki_page.title IS wiki_page.shown_title,
         -wiki_page.page_id)
    AND EXISTS (SELECT 1 FROM change WHERE change.page_id = twin.page_id AND source = 'revision'))
ORDER BY page_id LIMIT ?
"""


def histories(connection: apsw.Connection) -> Iterator[list[PageHistory]]:
    """Yield the pages of wikis that have revisions, a chunk at a time.

    A page that redirects show too is yielded once, with its whole history if some title has it,
    under its own title if the mirror has that.
    """
    after = 0
    chunk: _Rows
    while chunk := connection.execute(_HISTORIES, (after, CHUNK)).fetchall():
        yield [PageHistory(*row) for row in chunk]
        after = chunk[-1][0]


def revisions(connection: apsw.Connection, page_id: int, since: float | None) -> Iterator[Revision]:
    """Yield the revisions of a page after a time, oldest first."""
    sql = (
        "SELECT changed_at, revision_id, size_bytes FROM change WHERE page_id = ?"
        " AND source = 'revision' AND (changed_at, revision_id) > (?, ?)"
        " ORDER BY changed_at, revision_id LIMIT ?"
    )
    after: tuple[float, int] = (-1.0 if since is None else since, -1)
    chunk: _Rows
    while chunk := connection.execute(sql, (page_id, *after, CHUNK)).fetchall():
        yield from (Revision(*row) for row in chunk)
        after = (chunk[-1][0], chunk[-1][1])
