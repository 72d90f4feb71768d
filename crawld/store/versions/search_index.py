"""The full-text index of the newest copies: filled in slices, searched, rebuilt on demand.

The newest copy of each page that people read is indexed (HTML, text, JSON, feeds, text of PDFs);
requisites are not. version_ids are in the order of
storage, so that one cursor (`search_version` in meta) marks which copies are indexed. A slice is
planned on a reader and stored in one short write; a page that changed in between is skipped and
comes with its new copy.

The index is contentless: it holds words and their positions, not the text. A deleted page leaves
words in it until segments are merged; `rebuild` starts over.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.documents import PDF, is_readable
from crawld.core.content.page_memory import analysable_size
from crawld.core.content.search import parse_query, searchable_text, separate_characters, snippet
from crawld.core.display import SHOWN_TITLE_CHARACTERS
from crawld.core.page import PageState
from crawld.errors import CorruptDatabaseError
from crawld.store.engine import meta
from crawld.store.frontier.quarantine import COPY_TYPE
from crawld.store.frontier.removal import IS_WITHHELD
from crawld.store.versions import body, document_text
from crawld.store.versions.version import StoredCopy

SLICE_COPIES: Final = 64
"""Copies of one slice: some 100 ms of reading, 30 ms of writing."""

SLICE_BYTES: Final = 4 * 2**20

SNIPPET_COPY_BYTES: Final = 4 * 2**20
"""A larger copy is listed without a snippet."""

SNIPPET_ANALYSIS_BYTES: Final = 12 * 2**20
"""A snippet is looked for in so much of a copy as can be analysed in this memory: in all of an
article of 500 KB."""

SNIPPETS_BYTES: Final = SNIPPET_ANALYSIS_BYTES + 2 * SNIPPET_COPY_BYTES
"""Memory of the snippets of a list of hits, which are made one after the other."""

MERGE_PAGES: Final = 500
"""Pages of the index rewritten in one slice: some 2 MB, 50 ms."""

MAX_COUNTED: Final = 10_000
"""Matches of a query that are counted."""

_CURRENT: Final = """
SELECT page_id, version_id FROM carray(?1) AS wanted CROSS JOIN page ON page_id = wanted.value
"""

# FTS5 writes what it holds in memory to a segment at each savepoint, which SQLite opens for an
# INSERT that reads rows, and at each page_id below the last.
_PUT_WORDS: Final = "INSERT OR REPLACE INTO page_text (rowid, title, text) VALUES (?, ?, ?)"

CURSOR: Final = "search_version"
"""Key in meta: the last version_id examined."""


class IndexedPage(NamedTuple):
    """A page to be indexed."""

    page_id: int
    version_id: int
    title: str
    text: str


class CopyToIndex(NamedTuple):
    """A copy whose text is to be indexed.

    Attributes:
        digest: of the decoded body.
        size_bytes: its length.
    """

    page_id: int
    version_id: int
    url: str
    title: str | None
    body_id: int
    digest: bytes
    size_bytes: int
    content_type: str | None


class CopySlice(NamedTuple):
    """Copies to be indexed.

    Attributes:
        passed: digests of copies that are not: newer ones replaced them, or they are no text.
        up_to: the last version_id examined.
    """

    copies: tuple[CopyToIndex, ...]
    passed: tuple[bytes, ...]
    up_to: int


class IndexSlice(NamedTuple):
    """A planned slice of work: pages, and the last version_id examined."""

    entries: tuple[IndexedPage, ...]
    up_to: int


class Hit(NamedTuple):
    """A page that matches a query.

    Attributes:
        title: of the newest copy.
        gone: whether it is gone from the web.
        last_visit_at: Unix seconds.
        pieces: a snippet of its text; each piece with whether it is a word of the query.
    """

    url: str
    title: str | None
    gone: bool
    pieces: list[tuple[str, bool]]
    host_id: int
    last_visit_at: float | None


class HitCounts(NamedTuple):
    """How many pages match a query.

    Attributes:
        sites: name and matches of each site, most first.
        complete: whether all matches were counted, not only the first `MAX_COUNTED`.
    """

    sites: list[tuple[str, int]]
    complete: bool

    def of(self, site: str) -> int:
        """Return the counted matches of a site; empty name: of all sites."""
        return sum(n for name, n in self.sites if not site or name == site)


_NEW: Final = f"""
SELECT version.page_id, version.version_id, url, title, body_id, body.digest, size_bytes,
       {COPY_TYPE}, page.version_id = version.version_id AND requisite = 0
FROM version CROSS JOIN page USING (page_id) CROSS JOIN body USING (body_id)
WHERE version.version_id > ?
ORDER BY version.version_id LIMIT ?
"""

_NEWEST: Final = "SELECT ifnull(max(version_id), 0) FROM version"
_ANY: Final = "SELECT 1 FROM version WHERE version_id > ? AND version_id <= ? LIMIT 1"


def newest_copy(connection: apsw.Connection) -> int:
    """Return the number of the newest copy, 0 if there is none; reads a row by key."""
    newest: int = connection.execute(_NEWEST).get
    return newest


def any_new(connection: apsw.Connection, up_to: int) -> bool:
    """Whether there are copies up to a number that were not looked at; reads two rows by key."""
    return connection.execute(_ANY, (_cursor(connection), up_to)).fetchone() is not None


def next_copies(connection: apsw.Connection, *, limit: int = SLICE_COPIES) -> CopySlice | None:
    """Return the next copies to index, None if there is no new copy; changes nothing."""
    after = _cursor(connection)
    copies: list[CopyToIndex] = []
    passed: list[bytes] = []
    up_to, left_bytes = after, SLICE_BYTES
    for *found, wanted in connection.execute(_NEW, (after, limit)):
        copy = CopyToIndex(*found)
        up_to = copy.version_id
        if wanted and is_readable(copy.content_type):
            left_bytes -= copy.size_bytes
            copies.append(copy)
        else:
            passed.append(copy.digest)
        if left_bytes < 0:
            break
    return CopySlice(tuple(copies), tuple(passed), up_to) if up_to > after else None


def read_content(connection: apsw.Connection, copy: CopyToIndex) -> StoredCopy:
    """Return a copy as it is analysed, empty if it is damaged or gone."""
    return _content(connection, copy.body_id, copy.content_type)


def _content(connection: apsw.Connection, body_id: int, content_type: str | None) -> StoredCopy:
    try:
        found = document_text.readable_form(connection, body_id, content_type)
        if found is not None:
            return StoredCopy(*found)
        return StoredCopy(body.read(connection, body_id) or b"", content_type)
    except CorruptDatabaseError:
        # doctor reports the damage; the page is indexed without words
        return StoredCopy(b"", content_type)


def words_of(copy: CopyToIndex, content_type: str | None, content: bytes) -> IndexedPage:
    """Return the words of a copy; pure, for any thread.

    Args:
        content_type: of the content, which may be a part of it.
    """
    return words_in(copy, content_type, read_blocks(content, content_type))


def words_in(copy: CopyToIndex, content_type: str | None, blocks: Blocks) -> IndexedPage:
    """Return the words of a copy whose blocks are read."""
    # The bytes of a PDF without text are no words.
    return words_of_text(copy, "" if content_type == PDF else searchable_text(blocks))


def words_of_text(copy: CopyToIndex, text: str) -> IndexedPage:
    """Return the words of a copy whose text is known."""
    words = separate_characters(copy.title or ""), separate_characters(text)
    return IndexedPage(copy.page_id, copy.version_id, *words)


def plan(connection: apsw.Connection, *, limit: int = SLICE_COPIES) -> IndexSlice | None:
    """Return the next slice of work, None if there is no new copy; changes nothing."""
    found = next_copies(connection, limit=limit)
    if found is None:
        return None
    pages = []
    for copy in found.copies:
        content = read_content(connection, copy)
        pages.append(words_of(copy, content.content_type, content.body))
    return IndexSlice(tuple(pages), found.up_to)


def apply(connection: apsw.Connection, work: IndexSlice) -> None:
    """Store a slice of work and its cursor; a page that was purged meanwhile is skipped."""
    # carray takes no array without elements.
    page_ids = array("q", [0, *(entry.page_id for entry in work.entries)])
    current = dict(connection.execute(_CURRENT, (apsw.carray(page_ids),)))
    for page_id, version_id, title, text in sorted(work.entries):
        if current.get(page_id) == version_id:
            connection.execute(_PUT_WORDS, (page_id, title, text))
    meta.put(connection, CURSOR, str(work.up_to))


def count_pending(connection: apsw.Connection) -> int:
    """Return about how many copies are still to be examined."""
    return max(newest_copy(connection) - _cursor(connection), 0)


def _cursor(connection: apsw.Connection) -> int:
    return int(meta.get(connection, CURSOR) or 0)


def delete_page(connection: apsw.Connection, page_id: int) -> None:
    """Remove a page from the index."""
    connection.execute("DELETE FROM page_text WHERE rowid = ?", (page_id,))


def merge(connection: apsw.Connection, *, begin: bool) -> bool:
    """Rewrite a slice of the index; after the last slice the words of deleted pages are gone.

    Args:
        begin: whether this is the first slice; from it on all segments are merged into one.

    Returns:
        Whether there is more to do.

    Source: SQLite FTS5 documentation, 6.8: the sign of `merge`, and how to detect its end.
    """
    before = connection.total_changes()
    pages = -MERGE_PAGES if begin else MERGE_PAGES
    connection.execute("INSERT INTO page_text (page_text, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2


def rebuild(connection: apsw.Connection) -> None:
    """Empty the index, so that the next slices fill it again."""
    connection.execute("INSERT INTO page_text (page_text) VALUES ('delete-all')")
    meta.put(connection, CURSOR, "0")


def count_hits(connection: apsw.Connection, query: str) -> HitCounts:
    """Return how many pages match a query, by site."""
    asked = parse_query(query)
    if not asked.match:
        return HitCounts([], complete=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT name, sum(shown), count(*) FROM"
        f" (SELECT site_id, NOT {IS_WITHHELD} AS shown FROM page_text"
        " CROSS JOIN page ON page.page_id = page_text.rowid WHERE page_text MATCH ? LIMIT ?)"
        " JOIN site USING (site_id) GROUP BY site_id ORDER BY 2 DESC, name",
        (asked.match, MAX_COUNTED),
    ).fetchall()
    counts = [(name, shown) for name, shown, _ in rows if shown]
    return HitCounts(counts, complete=sum(n for *_, n in rows) < MAX_COUNTED)


def find(
    connection: apsw.Connection,
    query: str,
    *,
    site: str = "",
    start: int = 0,
    limit: int = 10,
) -> list[Hit]:
    """Return pages that match a query, the best first.

    Args:
        query: as a person types it, see `core/content/search`.
        site: only pages of the site with this name; empty: of all.
        start: hits to skip.
    """
    asked = parse_query(query)
    if not asked.match:
        return []
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT url, substr(page.title, 1, {SHOWN_TITLE_CHARACTERS}), state, version.body_id,"
        f" {COPY_TYPE}, host_id, last_visit_at FROM page_text"
        " CROSS JOIN page ON page.page_id = page_text.rowid LEFT JOIN version USING (version_id)"
        f" WHERE page_text MATCH ?1 AND NOT {IS_WITHHELD}"
        " AND (?2 = '' OR site_id = (SELECT site_id FROM site WHERE name = ?2))"
        " ORDER BY page_text.rank LIMIT ?3 OFFSET ?4",
        (asked.match, site, limit, start),
    ).fetchall()
    return [
        Hit(
            url,
            title,
            state == PageState.GONE,
            _pieces(connection, body_id, kind, asked.words),
            host_id,
            last_visit_at,
        )
        for url, title, state, body_id, kind, host_id, last_visit_at in rows
    ]


def _pieces(
    connection: apsw.Connection,
    body_id: int | None,
    content_type: str | None,
    words: tuple[str, ...],
) -> list[tuple[str, bool]]:
    if body_id is None or body.size_of(connection, body_id) > SNIPPET_COPY_BYTES:
        return []
    content, read_as = _content(connection, body_id, content_type)
    content = content[: analysable_size(content, SNIPPET_ANALYSIS_BYTES)]
    return snippet(searchable_text(read_blocks(content, read_as)), words)
