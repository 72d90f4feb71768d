"""Revisions that the recent changes of a wiki bring, for the histories of its pages.

A history that was complete stays complete: a revision whose predecessor is the newest one stored
continues it. A revision with another predecessor, and a log entry that changes a history, let the
history be read again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.store.changes import change
from crawld.store.changes.change import Change

REOPENED_TRIES: Final = -1
"""Requests of a page that was moved, restored, imported or edited since the wiki is followed: it is
read before pages that were never read, since readers see its history with a hole."""


class NewRevision(NamedTuple):
    """A new revision of a page of a wiki.

    Attributes:
        number: the wiki's page id.
        before_id: the revision before it.
    """

    number: int
    before_id: int
    change: Change


class Fed(NamedTuple):
    """What a poll brings.

    Attributes:
        revisions: oldest first.
        url_hashes: keys of the URLs of titles whose histories changed in another way.
        until: everything until then (Unix seconds) was brought; None: there is more.
        since: from when on nothing is missing, after a gap or at the first poll; None: as before.
    """

    revisions: Sequence[NewRevision]
    url_hashes: Collection[int]
    until: float | None
    since: float | None = None


_PAGES: Final = """
SELECT page_id, state, latest_revision_id FROM wiki_page
WHERE wiki_id = ? AND wiki_page_number = ?
"""

_CONTINUE: Final = """
UPDATE wiki_page SET state = 'read', latest_revision_id = ?,
    complete_until = max(complete_until, ?) WHERE page_id = ?
"""

_REOPEN: Final = f"""
UPDATE wiki_page SET state = 'unresolved', tries = {REOPENED_TRIES}, failure_count = 0
WHERE page_id = ? AND state IN ('read', 'complete')
"""

_REOPEN_TITLES: Final = f"""
UPDATE wiki_page SET state = 'unresolved', tries = {REOPENED_TRIES}, failure_count = 0
WHERE wiki_id = ?1 AND page_id IN (
    SELECT page_id FROM json_each(?3) CROSS JOIN page
      ON page.host_id = ?2 AND page.url_hash = value)
AND (state IN ('read', 'complete', 'refused') OR (state = 'open' AND cursor IS NULL))
"""

_FED: Final = """
UPDATE wiki SET fed_since = coalesce(?2, fed_since), fed_until = coalesce(?3, fed_until),
    change_count = change_count + ?4 WHERE wiki_id = ?1
"""


def store(connection: apsw.Connection, wiki_id: int, host_id: int, fed: Fed) -> None:
    """Store what a poll brings, in its transaction.

    Args:
        host_id: of the wiki's pages.
    """
    new = 0
    for each in fed.revisions:
        rows: list[tuple[Any, ...]] = connection.execute(_PAGES, (wiki_id, each.number)).fetchall()
        for page_id, state, latest_id in rows:
            if not change.insert(connection, page_id, [each.change]):
                continue
            new += 1
            if state in ("read", "complete") and latest_id == each.before_id:
                continued = (each.change.revision_id, each.change.changed_at, page_id)
                connection.execute(_CONTINUE, continued)
            else:
                connection.execute(_REOPEN, (page_id,))
    if fed.url_hashes:
        keys = json.dumps(sorted(fed.url_hashes))
        connection.execute(_REOPEN_TITLES, (wiki_id, host_id, keys))
    connection.execute(_FED, (wiki_id, fed.since, fed.until, new))


def fed_until(connection: apsw.Connection, wiki_id: int) -> float | None:
    """Return the time until which polls have brought all revisions; None: they bring none."""
    until: float | None = connection.execute(
        "SELECT fed_until FROM wiki WHERE wiki_id = ? AND fed_since IS NOT NULL", (wiki_id,)
    ).get
    return until


def is_fed(connection: apsw.Connection, wiki_id: int) -> bool:
    """Return whether some poll has brought revisions."""
    sql = "SELECT fed_since IS NOT NULL FROM wiki WHERE wiki_id = ?"
    return bool(connection.execute(sql, (wiki_id,)).get)


KNOWN_UNTIL: Final = """max(complete_until, ifnull((
    SELECT fed_until FROM wiki WHERE wiki.wiki_id = wiki_page.wiki_id
    AND fed_since <= wiki_page.complete_until), 0.0))"""
"""The time until which the history of a row of `wiki_page` is stored completely."""
