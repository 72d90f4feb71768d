"""Pages of wikis: how far the history of each is read.

The whole state of reading (the next page, the API's cursor) is stored here, so that a killed
process continues where its last transaction ended.

    unresolved --title shows a page--> open --read to its end--> read --model made--> complete
        |  ^--------------------- visited again, and it has changed --------------------'
        |--no page--> lost --the log is read--> missing --visited again--> unresolved
        '--no page of this wiki--> refused
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import apsw

from crawld.store.changes import change
from crawld.store.changes.change import Change
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_feed import KNOWN_UNTIL, REOPENED_TRIES

MAX_PARTS = 5_000
"""The most parts of one history that are read, in case the API's cursors form a cycle."""

FEED_SLACK_S = 10.0
"""Revisions that are younger than this when a history is read may be newer than the response."""

State = Literal["unresolved", "open", "read", "complete", "lost", "missing", "refused"]


class WikiPageRow(NamedTuple):
    """How far the history of one page is read."""

    page_id: int
    wiki_id: int
    title: str
    state: State
    wiki_page_number: int | None
    shown_title: str | None
    latest_revision_id: int | None
    cursor: str | None
    began_at: float | None
    complete_until: float | None
    capped: bool
    tries: int
    failure_count: int
    detail: str | None
    read_down_to_at: float | None = None
    read_down_to_id: int | None = None


class ResolvedTitle(NamedTuple):
    """The page whose text a title shows.

    Attributes:
        number: the wiki's page id.
        title: its title.
        latest: its newest revision, None if the wiki did not name it.
    """

    number: int
    title: str
    latest: Change | None


class VisitedPage(NamedTuple):
    """A page visited recently with a good response."""

    page_id: int
    url: str
    last_visit_at: float
    last_change_at: float | None


OF_ITS_SITES: Final = """EXISTS (
    SELECT 1 FROM page JOIN wiki_site USING (site_id)
    WHERE page.page_id = wiki_page.page_id AND wiki_site.wiki_id = wiki_page.wiki_id
)"""
"""The condition that the site of a page uses the wiki."""

_PAGE = f"SELECT {', '.join(WikiPageRow._fields)} FROM wiki_page"


def visited_since(
    connection: apsw.Connection,
    wiki: WikiRow,
    site_id: int,
    after: tuple[float, int],
    *,
    limit: int,
) -> list[VisitedPage]:
    """Return a site's pages of a wiki by last visit, after `after` (last_visit_at, page_id)."""
    rows = connection.execute(
        "SELECT page_id, url, last_visit_at, last_change_at FROM page"
        " WHERE host_id = ? AND site_id = ? AND state IN ('visited', 'gone') AND retry_at IS NULL"
        " AND (last_visit_at, page_id) > (?, ?) AND last_visit_at >= ? AND origin_id = ?"
        " ORDER BY last_visit_at, page_id LIMIT ?",
        (wiki.host_id, site_id, *after, after[0], wiki.origin_id, limit),
    )
    return [VisitedPage(*row) for row in rows]


def register(
    connection: apsw.Connection,
    wiki_id: int,
    site_id: int,
    pages: Iterable[tuple[VisitedPage, str]],
    until: float,
) -> int:
    """Add visited pages of a site by their titles; return how many are to be resolved now.

    A page that was complete and has changed since, or was missing and answers again, is resolved
    again. `until` is the time of the visits registered so far.
    """
    before = connection.total_changes()
    for page, title in pages:
        # A visit in the future (the clock was set back) must not reopen the page every time.
        visit = (min(page.last_change_at or 0.0, until), min(page.last_visit_at, until))
        connection.execute(
            "INSERT INTO wiki_page (page_id, wiki_id, title, state)"
            " VALUES (?1, ?2, ?3, 'unresolved') ON CONFLICT DO UPDATE SET"
            " wiki_id = excluded.wiki_id, title = excluded.title, state = 'unresolved',"
            f" tries = {REOPENED_TRIES}, failure_count = 0 WHERE wiki_id <> excluded.wiki_id"
            " OR title <> excluded.title"
            f" OR (state = 'complete' AND {KNOWN_UNTIL} < ?4)"
            " OR (state = 'refused' AND complete_until < ?4)"
            " OR (state = 'missing' AND complete_until < ?5)",
            (page.page_id, wiki_id, title, *visit),
        )
    unresolved = connection.total_changes() - before
    connection.execute(
        "UPDATE wiki_site SET registered_until = ? WHERE wiki_id = ? AND site_id = ?",
        (until, wiki_id, site_id),
    )
    return unresolved


_REOPEN_GONE = f"""
UPDATE wiki_page SET state = 'unresolved', tries = {REOPENED_TRIES}, failure_count = 0
WHERE page_id IN (
    SELECT page_id FROM wiki JOIN origin USING (origin_id)
    JOIN page ON page.host_id = origin.host_id AND gone_count > 0
    JOIN wiki_page USING (page_id) WHERE wiki.wiki_id = ?1 AND wiki_page.wiki_id = ?1
    AND wiki_page.state IN ('complete', 'refused') AND complete_until < min(gone_since, ?2)
)"""


def reopen_gone(connection: apsw.Connection, wiki_id: int, now: float) -> int:
    """Reopen pages that a visit found gone; return how many.

    The wiki's log distinguishes a deletion from a fault. `now` bounds the times of visits that are
    in the future because the clock was set back.
    """
    connection.execute(_REOPEN_GONE, (wiki_id, now))
    return connection.changes()


def list_in_state(
    connection: apsw.Connection, wiki_id: int, state: State, *, limit: int = 1
) -> list[WikiPageRow]:
    """Return pages in a state: those to be read again, then those with the fewest requests.

    Pages of sites that no longer use the wiki are left out.
    """
    rows = connection.execute(
        f"{_PAGE} WHERE wiki_id = ?1 AND state = ?2 AND {OF_ITS_SITES}"
        " ORDER BY tries, page_id LIMIT ?3",
        (wiki_id, state, limit),
    )
    return [_page(row) for row in rows]


def get(connection: apsw.Connection, page_id: int) -> WikiPageRow | None:
    """Return how far the history of a page is read, None if it is no page of a wiki."""
    row = connection.execute(f"{_PAGE} WHERE page_id = ?", (page_id,)).fetchone()
    return _page(row) if row else None


def complete_until(connection: apsw.Connection, page_id: int) -> float | None:
    """Return the time up to which all changes of a page are stored; None: they are not."""
    sql = "SELECT complete_until FROM wiki_page WHERE page_id = ?"
    until: float | None = connection.execute(sql, (page_id,)).get
    return until


def _page(row: tuple[object, ...]) -> WikiPageRow:
    made = WikiPageRow(*row)  # type: ignore[arg-type]
    return made._replace(capped=bool(made.capped))


def resolve(
    connection: apsw.Connection, page: WikiPageRow, shown: ResolvedTitle, at: float
) -> None:
    """Store which page a title shows, and its newest revision.

    Nothing is left to read if there is no newer revision, or if the history of the same page is
    stored already under another title, or if the page changed during the request.

    Args:
        page: the page as it was before the request.
        shown: the response, of the time `at`.
    """
    if not _is_unchanged(connection, page):
        return
    newest = shown.latest.revision_id if shown.latest else None
    same = page.wiki_page_number == shown.number
    if page.wiki_page_number is not None and not same:
        # The revisions stored so far are those of another page.
        _count(connection, page.wiki_id, -change.delete_revisions(connection, page.page_id))
    add_changes(connection, page, [shown.latest] if shown.latest else [])
    known = same and page.complete_until is not None and page.latest_revision_id == newest
    complete_until, capped = (
        (at, page.capped) if known else _copy_history(connection, page, shown, newest)
    )
    connection.execute(
        "UPDATE wiki_page SET state = ?, wiki_page_number = ?, shown_title = ?,"
        " latest_revision_id = ?, cursor = NULL, complete_until = ?, capped = ?,"
        " tries = min(tries, ?), failure_count = 0, detail = NULL, read_down_to_at = NULL,"
        " read_down_to_id = NULL WHERE page_id = ?",
        (
            "open" if complete_until is None else "read",
            shown.number,
            shown.title,
            newest,
            # The history of another page is not known to be complete.
            complete_until or (page.complete_until if same else None),
            capped,
            REOPENED_TRIES if _is_followed(connection, page.wiki_id, shown.latest) else 0,
            page.page_id,
        ),
    )


def _is_followed(connection: apsw.Connection, wiki_id: int, latest: Change | None) -> bool:
    """Whether a page changed since polls bring the wiki's changes: created, imported, edited.

    Its history is read before those of pages that have been as they are for years.
    """
    since = connection.execute("SELECT fed_since FROM wiki WHERE wiki_id = ?", (wiki_id,)).get
    return since is not None and latest is not None and latest.changed_at >= since


def _is_unchanged(connection: apsw.Connection, page: WikiPageRow) -> bool:
    """Whether a row is that of the same page as before a request: a rename may exchange rows."""
    row = connection.execute(
        "SELECT state, wiki_page_number, title FROM wiki_page WHERE page_id = ?", (page.page_id,)
    ).fetchone()
    return row == (page.state, page.wiki_page_number, page.title)


def _copy_history(
    connection: apsw.Connection, page: WikiPageRow, shown: ResolvedTitle, newest: int | None
) -> tuple[float | None, bool]:
    """Copy the history of another title that shows the same page, if there is one."""
    twin = connection.execute(
        "SELECT page_id, complete_until, capped FROM wiki_page"
        " WHERE wiki_id = ? AND wiki_page_number = ? AND page_id <> ? AND state = 'complete'"
        " AND latest_revision_id = ? LIMIT 1",
        (page.wiki_id, shown.number, page.page_id, newest),
    ).fetchone()
    if twin is None:
        return None, False
    _count(connection, page.wiki_id, -change.delete_revisions(connection, page.page_id))
    _count(connection, page.wiki_id, change.copy(connection, page.page_id, twin[0]))
    return float(twin[1]), bool(twin[2])


def record_part(
    connection: apsw.Connection,
    page: WikiPageRow,
    changes: Sequence[Change],
    *,
    cursor: str | None,
    at: float,
    cap: int,
) -> None:
    """Store a part of a history and the cursor after it, in one transaction.

    A history is read to its end, to the first stored change, or to the cap. One that is read
    completely loses the stored revisions that the wiki no longer shows: those of a page that was
    at this title before, of a deletion that was only partly restored, or merged into another page.
    Nothing is stored if the page changed during the request.

    Args:
        page: the page as it was before the request.
        changes: the revisions, the newest first.
        cursor: where the API continues, None at the end.
        at: time of the response.
        cap: the most changes of a page that are read.
    """
    if not _is_unchanged(connection, page):
        return
    new = add_changes(connection, page, changes)
    down_to = _remove_unlisted(connection, page, changes, at, is_last=cursor is None)
    began_at = at if page.cursor is None or page.began_at is None else page.began_at
    # A second reading ends where the first began: the part is stored already.
    known = page.complete_until is not None and not new
    capped = cursor is not None and (
        page.tries + 1 >= MAX_PARTS or change.count(connection, page.page_id) >= cap
    )
    complete = cursor is None or known or capped
    connection.execute(
        "UPDATE wiki_page SET state = ?, cursor = ?, began_at = ?,"
        " complete_until = ifnull(?, complete_until), capped = ?, tries = tries + 1,"
        " failure_count = CASE WHEN ? THEN 0 ELSE failure_count END, detail = NULL,"
        " read_down_to_at = ?, read_down_to_id = ? WHERE page_id = ?",
        (
            "read" if complete else "open",
            None if complete else cursor,
            began_at,
            began_at if complete else None,
            capped or (known and page.capped),
            # Only new changes reset the count of failures: an API may refuse its own cursors.
            complete or bool(new),
            *((None, None) if complete else down_to),
            page.page_id,
        ),
    )


def _remove_unlisted(
    connection: apsw.Connection,
    page: WikiPageRow,
    changes: Sequence[Change],
    at: float,
    *,
    is_last: bool,
) -> tuple[float | None, int | None]:
    """Remove the stored revisions of the time that a part covers which the part does not list.

    A poll may have stored newer ones while the part was requested; they stay.

    Return the time and number of the revision at which the next part begins.
    """
    before = (page.read_down_to_at, page.read_down_to_id)
    if page.complete_until is not None or not (changes or is_last):
        return before
    until = min(((each.changed_at, each.revision_id) for each in changes), default=(0.0, 0))
    removed = change.delete_unlisted(
        connection,
        page.page_id,
        [each.revision_id for each in changes],
        before=before if before[0] is not None else (at - FEED_SLACK_S, 0),
        since=None if is_last else until,
    )
    _count(connection, page.wiki_id, -removed)
    return until


def mark_complete(connection: apsw.Connection, page: WikiPageRow) -> None:
    """Mark a page whose model was computed from its history."""
    connection.execute(
        "UPDATE wiki_page SET state = 'complete', tries = 0 WHERE page_id = ? AND state = 'read'",
        (page.page_id,),
    )


def close(
    connection: apsw.Connection,
    page: WikiPageRow,
    state: Literal["lost", "missing", "refused"],
    *,
    at: float,
    detail: str,
) -> None:
    """Record that a title shows no page of the wiki, as of a time."""
    if not _is_unchanged(connection, page):
        return
    # The number is cleared, so that a page that comes back is read completely again.
    connection.execute(
        "UPDATE wiki_page SET state = ?, wiki_page_number = NULL, cursor = NULL,"
        " complete_until = ?, tries = 0, failure_count = 0, detail = ? WHERE page_id = ?",
        (state, at, detail, page.page_id),
    )


def reopen(connection: apsw.Connection, page: WikiPageRow, detail: str) -> None:
    """Resolve a title again: its page was moved or deleted while it was being read."""
    connection.execute(
        "UPDATE wiki_page SET state = 'unresolved', cursor = NULL,"
        f" tries = {REOPENED_TRIES}, detail = ?"
        " WHERE page_id = ?",
        (detail, page.page_id),
    )


_READ_AGAIN = f"""
UPDATE wiki_page SET state = 'unresolved', complete_until = NULL, cursor = NULL,
    tries = {REOPENED_TRIES}, failure_count = 0, read_down_to_at = NULL, read_down_to_id = NULL
WHERE wiki_id = ?1 AND state <> 'refused' AND (page_id = ?2 OR wiki_page_number = (
    SELECT wiki_page_number FROM wiki_page WHERE page_id = ?2
))"""


def read_again(connection: apsw.Connection, wiki_id: int, page_id: int) -> None:
    """Have the history of a page, and of redirects to it, read again completely.

    It was restored, imported or merged: revisions of a time that was read already may have come or
    gone.
    """
    connection.execute(_READ_AGAIN, (wiki_id, page_id))


def record_failure(
    connection: apsw.Connection,
    pages: Iterable[WikiPageRow],
    detail: str,
    *,
    restart: bool = False,
) -> None:
    """Record a failed request for pages; they come after the others now.

    Args:
        restart: whether to drop the cursor, because the API rejected it.
    """
    connection.executemany(
        "UPDATE wiki_page SET tries = tries + 1, failure_count = failure_count + 1, detail = ?,"
        " cursor = CASE WHEN ? THEN NULL ELSE cursor END WHERE page_id = ?",
        ((detail, restart, page.page_id) for page in pages),
    )


def add_changes(connection: apsw.Connection, page: WikiPageRow, changes: Sequence[Change]) -> int:
    """Add changes to a page of a wiki; return how many were new."""
    new = change.insert(connection, page.page_id, changes)
    _count(connection, page.wiki_id, new)
    return new


def add_log(
    connection: apsw.Connection, wiki_row: WikiRow, changes: Sequence[tuple[int, Change | None]]
) -> None:
    """Add entries of a wiki's log to its pages by URL key, also to pages not registered yet.

    Args:
        changes: URL keys with entries; None: revisions were imported or merged, for which a page
            has no change of its own.
    """
    sql = (
        "SELECT page_id FROM page JOIN wiki_site USING (site_id)"
        " WHERE host_id = ? AND url_hash = ? AND wiki_id = ?"
    )
    for key, entry in changes:
        page_id = connection.execute(sql, (wiki_row.host_id, key, wiki_row.wiki_id)).get
        if page_id is None:
            continue
        if entry is not None:
            _count(connection, wiki_row.wiki_id, change.insert(connection, page_id, [entry]))
        if entry is None or entry.kind == "restoration":
            read_again(connection, wiki_row.wiki_id, page_id)


def _count(connection: apsw.Connection, wiki_id: int, new: int) -> None:
    if new:  # negative if revisions were removed
        connection.execute(
            "UPDATE wiki SET change_count = change_count + ? WHERE wiki_id = ?", (new, wiki_id)
        )
