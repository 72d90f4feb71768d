"""Which revision of a page a stored copy shows: it names the number.

The times of an edit and of a visit cannot tell whether the copy shows the edit if both lie within a
second or two. The number can.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import apsw

from crawld.sources.mediawiki_changes import TitleChange
from crawld.sources.mediawiki_site import shown_revision
from crawld.store.changes import wiki_probe
from crawld.store.changes.hint import PageHint
from crawld.store.engine.database import Database
from crawld.store.versions import version

MAX_COPY_BYTES: Final = 4 * 2**20
"""Larger copies are not searched for the revision that they name."""

MAX_SEARCHED: Final = 50
"""Copies that are searched after one poll. More than a few were made in the second of an edit only
if a wiki lies; their pages are visited again."""


def copied_revisions(
    connection: apsw.Connection, versions: Mapping[int, int | None]
) -> dict[int, int]:
    """Return the revisions that copies name, by page; on a reader's thread.

    Args:
        versions: numbers of the copies by page.
    """
    found = {}
    for page_id, number in versions.items():
        if not 0 < version.body_bytes(connection, number or 0) <= MAX_COPY_BYTES:
            continue
        copy = version.readable_copy(connection, number or 0)
        if copy is not None and (revision_id := shown_revision(copy.body)) is not None:
            found[page_id] = revision_id
    return found


def newest_revisions(changed: Collection[TitleChange]) -> set[int]:
    """Return the newest reported revision of each page of which nothing but edits is reported."""
    logged = {each.title for each in changed if each.kind == "log"}
    newest: dict[str, int] = {}
    for each in changed:
        if each.revision_id is not None and each.title not in logged:
            newest[each.title] = max(each.revision_id, newest.get(each.title, 0))
    return set(newest.values())


async def with_shown_edits(
    database: Database, pages: Sequence[PageHint], changed: Collection[TitleChange]
) -> list[PageHint]:
    """Return hints, with the edits that copies show already dated before the visits of these."""
    close = await database.read(wiki_probe.visited_within, pages, limit=MAX_SEARCHED)
    newest = newest_revisions(changed) if close else set[int]()
    shown = await database.read(copied_revisions, close) if newest else {}
    return [
        each._replace(last_at=each.first_at) if shown.get(each.page_id) in newest else each
        for each in pages
    ]
