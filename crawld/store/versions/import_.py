"""Import pages from archives, other mirrors and lists of URLs.

An imported page is `discovered`: this crawl never visited it, so its first visit comes before every
revisit, and its copy is shown until then. The digest and validators of the copy are not stored with
the page, so that the first visit reads the whole page and its links and compares it with the copy.
A page that was visited before keeps its schedule.

An import stores no copy twice: a copy's key is its page and time. A purged page is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import body, document_text, version
from crawld.store.versions.body import EncodedBody
from crawld.store.versions.response import StoredResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPage:
    """A page with a copy.

    Attributes:
        page: its URL, and its site if the page is new.
        at: time of the copy, Unix seconds.
    """

    page: Discovery
    at: float
    body: EncodedBody
    response: StoredResponse
    title: str | None


class BatchCounts(NamedTuple):
    """Counts of an imported batch.

    Attributes:
        versions: copies stored.
        known: copies that were stored already.
        kept_out: pages with a tombstone.
    """

    new_pages: int
    versions: int
    known: int
    kept_out: int


def site_for(connection: apsw.Connection, host: str, name: str, now: float) -> int:
    """Return the site for a page of a host.

    That is a site with pages of the host, else the one of that name, else a new one that is not
    configured: if a site of its name is configured later, it owns the pages.
    """
    sql = (
        "SELECT site_id FROM page WHERE host_id = (SELECT host_id FROM host WHERE host = ?) LIMIT 1"
    )
    known: int | None = connection.execute(sql, (host,)).get
    return known if known is not None else site_named(connection, name, now)


def site_named(connection: apsw.Connection, name: str, now: float) -> int:
    """Return the site of a name, added without a configuration if there is none."""
    row = site.by_name(connection, name)
    if row is not None:
        return row.site_id
    site_id = site.upsert(connection, name, "{}", source="command_line", at=now)
    site.retire(connection, name)
    return site_id


def put_batch(connection: apsw.Connection, batch: Sequence[ImportedPage]) -> BatchCounts:
    """Store copies, and the pages that are not known."""
    new_pages = frontier.discover(connection, [each.page for each in batch])
    versions = known = kept_out = 0
    for each in batch:
        row = connection.execute(
            "SELECT page_id FROM page WHERE host_id = (SELECT host_id FROM host WHERE host = ?)"
            " AND url_hash = ? AND url = ?",
            (each.page.host, each.page.url_hash, each.page.url),
        ).fetchone()
        if row is None:
            kept_out += 1
        elif _store(connection, row[0], each):
            versions += 1
        else:
            known += 1
    return BatchCounts(len(new_pages), versions, known, kept_out)


def _store(connection: apsw.Connection, page_id: int, imported: ImportedPage) -> bool:
    sql = "SELECT 1 FROM version WHERE page_id = ? AND visited_at = ?"
    if connection.execute(sql, (page_id, imported.at)).get is not None:
        return False
    body_id = body.ensure(connection, imported.body)
    document_text.put(connection, body_id, imported.body)
    version_id = version.insert(connection, page_id, imported.at, body_id, imported.response)
    newest = version.list_versions(connection, page_id, limit=1)[0]
    if newest.version_id == version_id:
        connection.execute(
            "UPDATE page SET version_id = ?, title = ?, last_change_at = ?, digest = NULL,"
            " etag = NULL, last_modified = NULL, form = NULL, cleaned_digest = NULL,"
            " sketch = NULL"
            " WHERE page_id = ?",
            (version_id, imported.title, imported.at, page_id),
        )
    return True


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit the block's writes, or none if it raises; for the only connection to a file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
