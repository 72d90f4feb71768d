"""Removals: pages that their wiki reports as deleted or moved away.

A removal and its event are stored in the transaction of the poll that reports it, so that readers
see it at once.
It ends when the wiki restores the page or a later visit finds it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable
from typing import Final, Literal, NamedTuple

import apsw

from crawld.core.event import EventKind
from crawld.core.outcome import RETIRED_RETRY_S
from crawld.core.page import Outcome, PageState
from crawld.store.frontier import event, page_counts
from crawld.store.frontier.event import NewEvent

Kind = Literal["deletion", "move"]


class RemovalReport(NamedTuple):
    """A report about the page of a URL.

    Attributes:
        url_hash: key of the URL.
        kind: what happened; None: the page is there, since it was restored, created or edited.
        first_at: the earliest time of it, Unix seconds; `last_at` the latest.
        target_url: where the page was moved to, None if that is no page of the wiki.
    """

    url_hash: int
    kind: Kind | None
    first_at: float
    last_at: float
    target_url: str | None = None


class RemovedPage(NamedTuple):
    """A page that a visit has to confirm as removed."""

    page_id: int
    site_id: int


WITHHOLD: Final = "withhold"
"""Value of the site key `deleted_pages` that withholds copies whose originals are gone."""

IS_REMOVED: Final = "EXISTS (SELECT 1 FROM removal WHERE removal.page_id = page.page_id)"
"""Condition on a row of `page`: its wiki reports it as deleted or moved away."""

IS_WITHHELD: Final = f"""(
    (page.state = 'gone' OR page.left_at IS NOT NULL OR {IS_REMOVED})
    AND (SELECT json_extract(definition, '$.deleted_pages') FROM site
         WHERE site.site_id = page.site_id) IS '{WITHHOLD}'
)"""
"""Condition on a row of `page`: its site shows no copy because the original is gone, or
left the mirrored part of its wiki."""

_PAGE: Final = """
SELECT page_id, site_id, state, last_visit_at, last_outcome FROM page
WHERE host_id = ? AND url_hash = ?
"""

_PUT: Final = """
INSERT INTO removal (page_id, kind, first_at, last_at, target_url) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET kind = excluded.kind, first_at = excluded.first_at,
    last_at = excluded.last_at, target_url = excluded.target_url
WHERE excluded.first_at >= first_at
"""

_NEWS: Final = """
SELECT site_id, kind, last_at, target_url, version_id FROM removal CROSS JOIN page USING (page_id)
WHERE page_id = ? AND absent IS NULL AND requisite = 0
  AND (change_count > 0 OR version_id IS NOT NULL)
"""

_GONE: Final = (Outcome.GONE, Outcome.SOFT_GONE)
_UNCLEAR: Final = (Outcome.BLOCKED, Outcome.FAILED)


def report(
    connection: apsw.Connection,
    host_id: int,
    reports: Iterable[RemovalReport],
    under_way: Collection[int] = (),
) -> list[RemovedPage]:
    """Store what a wiki reports, in the order of the reports; return the pages to visit next.

    A page that a visit has already found gone is retired: the report confirms the visit.

    Args:
        under_way: pages whose first visits were under way, or not committed, at the response. Of
            other pages never visited nothing is stored: their first visits come later.
    """
    wanted: dict[int, RemovedPage] = {}
    removed: set[int] = set()
    for each in reports:
        row = connection.execute(_PAGE, (host_id, each.url_hash)).fetchone()
        if row is None:
            continue
        page_id, site_id, state, visited_at, outcome = row
        if visited_at is None:
            if page_id not in under_way:
                continue
            visited_at = -math.inf
        if each.kind is None:
            connection.execute(
                "DELETE FROM removal WHERE page_id = ? AND first_at <= ?", (page_id, each.last_at)
            )
            wanted.pop(page_id, None)
            continue
        if visited_at > each.last_at and outcome not in (*_GONE, *_UNCLEAR):
            continue  # it was found since
        values = (each.kind, each.first_at, each.last_at, each.target_url)
        connection.execute(_PUT, (page_id, *values))
        removed.add(page_id)
        if outcome in _GONE and visited_at >= each.first_at:
            _retire(connection, page_id, (site_id, host_id), state, each.last_at)
        else:
            wanted[page_id] = RemovedPage(page_id, site_id)
    for page_id in sorted(removed):
        _store_event(connection, page_id)
    return list(wanted.values())


def _store_event(connection: apsw.Connection, page_id: int) -> None:
    """Store the event of a removal, unless its page had no copy or is known to be away."""
    row = connection.execute(_NEWS, (page_id,)).fetchone()
    if row is None:
        return
    site_id, removed_by, at, target_url, version_id = row
    kind = EventKind.MOVED if removed_by == "move" else EventKind.GONE
    found = NewEvent(site_id, page_id, kind, at, before_id=version_id, target_url=target_url)
    event.insert(connection, found)


def forget_validators(connection: apsw.Connection, page_ids: Collection[int]) -> None:
    """Let pages be requested without conditions: another page is at their URLs now.

    A wiki may say that a page it restored was not modified since before its templates were edited.
    """
    connection.execute(
        "UPDATE page SET etag = NULL, last_modified = NULL"
        " WHERE page_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(page_ids)),),
    )


def is_withheld(connection: apsw.Connection, page_id: int) -> bool:
    """Return whether the site of a page shows no copy of it because the original is gone."""
    sql = f"SELECT {IS_WITHHELD} FROM page WHERE page_id = ?"
    return bool(connection.execute(sql, (page_id,)).get)


def _retire(
    connection: apsw.Connection, page_id: int, place: tuple[int, int], state: str, at: float
) -> None:
    if state != PageState.VISITED:
        return
    connection.execute(
        "UPDATE page SET state = ?, retry_at = ? WHERE page_id = ?",
        (PageState.GONE, at + RETIRED_RETRY_S, page_id),
    )
    page_counts.count_moves(connection, [(*place, PageState.VISITED, PageState.GONE)])


def record_visit(
    connection: apsw.Connection, page_id: int, outcome: Outcome, visited_at: float
) -> None:
    """End the removal of a page that a visit found; a redirect is what a move leaves behind.

    Nearly every page has none, so a caller that knows this (`IS_REMOVED`) saves the call.
    """
    if outcome in _GONE or outcome in _UNCLEAR:
        return
    since = visited_at if outcome is Outcome.MOVED else None
    connection.execute(
        "DELETE FROM removal WHERE page_id = ? AND (last_at < ? OR first_at <= ?)",
        (page_id, visited_at, since),
    )


class Removal(NamedTuple):
    """A stored removal: what happened, when (Unix seconds), and where the page was moved to."""

    kind: Kind
    at: float
    target_url: str | None
