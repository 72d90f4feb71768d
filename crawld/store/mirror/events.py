"""Read events: real changes of pages, in the order of their commits.

Lists are exact for kinds and sites, and short reads whatever the number of events. Size and text
have no index: a list by them examines some thousands of events and says where to continue.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.content.search import parse_query
from crawld.core.display import SHOWN_TITLE_CHARACTERS
from crawld.core.event import EventKind
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.removal import IS_WITHHELD

ALL_KINDS: Final = frozenset(EventKind)

MAX_EXAMINED: Final = 20_000
"""Events examined for one list by size: some 20 ms."""

MAX_MATCHED: Final = 1_000
"""Pages with the words of a query whose events are looked up. If more have them, the newest events
are examined instead, since many of them match."""

MAX_SEARCHED: Final = 2_000
"""Events examined for one list by such a query: each is looked up in the search index."""

NEWEST_ID: Final = 2**62
"""Above all ids."""

_NO_SITE: Final = -1

CLOCK_SLACK_S: Final = 600.0
"""How far the order of commits may differ from that of times."""


class ChangeEvent(NamedTuple):
    """An event.

    Attributes:
        at: when the visit or the report was, Unix seconds.
        title: that of the page now.
        version_id: the copy that the visit stored; None: none, or it is no longer kept.
        before_id: the copy before it; None: there was none, or it is no longer kept.
        difference: size of the change, share of the text in [0, 1]; None: not measured.
        target_url: where the page moved to.
    """

    event_id: int
    kind: EventKind
    at: float
    site: str
    page_id: int
    url: str
    title: str | None
    version_id: int | None
    before_id: int | None
    difference: float | None
    target_url: str | None


class EventFilter(NamedTuple):
    """Which events are wanted.

    Attributes:
        site: only of the site with this name.
        url: only of the page with this canonical URL.
        at_least: smallest size of a change; above 0 an event needs a measured one.
        query: only of pages that the full-text search finds by it, in title or text.
    """

    site: str | None = None
    url: str | None = None
    kinds: frozenset[EventKind] = ALL_KINDS
    at_least: float = 0.0
    query: str = ""


ALL_EVENTS: Final = EventFilter()


class EventList(NamedTuple):
    """Events, in the order of their ids or in the reverse order.

    Attributes:
        last_id: id of the last event examined, from which the next list continues; if there was
            none, the id that was given.
        ended: whether there are no more events in this direction.
    """

    events: list[ChangeEvent]
    last_id: int
    ended: bool


# A deleted copy's number may be that of another copy now: the times tell.
_EVENT: Final = f"""
SELECT event_id, kind, at, name, event.page_id, url, substr(title, 1, {SHOWN_TITLE_CHARACTERS}),
       after.version_id, before.version_id, difference, target_url
FROM event CROSS JOIN page USING (page_id) CROSS JOIN site ON site.site_id = event.site_id
LEFT JOIN version AS after
    ON after.version_id = event.version_id AND after.visited_at = event.at
LEFT JOIN version AS before
    ON before.version_id = event.before_id AND before.visited_at < event.at
   AND before.page_id = coalesce(after.page_id, event.page_id)
WHERE event_id = ?
"""

_MATCHING: Final = "SELECT rowid FROM page_text WHERE page_text MATCH ? LIMIT ?"

_FOUND: Final = f"""
SELECT 1 FROM page_text CROSS JOIN page ON page.page_id = page_text.rowid
WHERE page_text MATCH ? AND page_text.rowid = ? AND NOT {IS_WITHHELD}
"""

_COLUMNS: Final = "event_id, page_id, site_id, kind, difference"


def get(connection: apsw.Connection, event_id: int) -> ChangeEvent | None:
    """Return an event, None if there is none with this id, or it is no longer kept."""
    row = connection.execute(_EVENT, (event_id,)).fetchone()
    return ChangeEvent(*row)._replace(kind=EventKind(row[1])) if row else None


def newest_id(connection: apsw.Connection) -> int:
    """Return the id of the newest event, 0 without one."""
    return int(connection.execute("SELECT ifnull(max(event_id), 0) FROM event").get)


def mirror_id(connection: apsw.Connection) -> str:
    """Return the identity of the mirror, 32 hexadecimal digits; with it event ids are unique."""
    return str(connection.execute("SELECT mirror_id FROM mirror").get)


def list_after(
    connection: apsw.Connection, after: int, limit: int = 100, wanted: EventFilter = ALL_EVENTS
) -> EventList:
    """Return events with ids above `after`, oldest first.

    A list by size or query may be short, or empty, although there are more events (`ended`).
    """
    return _list(connection, wanted, _Span(after, NEWEST_ID, newest_first=False), limit)


def list_newest(
    connection: apsw.Connection,
    wanted: EventFilter = ALL_EVENTS,
    before: int | None = None,
    limit: int = 100,
) -> EventList:
    """Return events, newest first, with ids below `before` if it is given; else as `list_after`."""
    span = _Span(0, NEWEST_ID if before is None else before, newest_first=True)
    return _list(connection, wanted, span, limit)


def first_since(connection: apsw.Connection, at: float) -> int:
    """Return an id after which all events since a time lie, and hardly any others.

    The order of ids is that of commits, which differs little from that of times.
    """
    low, high = connection.execute(
        "SELECT ifnull((SELECT min(event_id) FROM event), 1) - 1,"
        " ifnull((SELECT max(event_id) FROM event), 0)"
    ).get
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(
            "SELECT event_id, at FROM event WHERE event_id > ? ORDER BY event_id LIMIT 1",
            (middle,),
        ).fetchone()
        if row is not None and row[1] < at - CLOCK_SLACK_S:
            low = row[0]
        else:
            high = middle
    return int(low)


class _Span(NamedTuple):
    """Ids between two, without them, and in which order."""

    after: int
    before: int
    newest_first: bool


class _Row(NamedTuple):
    event_id: int
    page_id: int
    site_id: int
    kind: str
    difference: float | None


def _list(connection: apsw.Connection, wanted: EventFilter, span: _Span, limit: int) -> EventList:
    match = parse_query(wanted.query).match
    page_ids = _pages(connection, wanted, match)
    if page_ids is None:
        rows = _rows(connection, wanted, span)
    else:
        rows = _rows_of_pages(connection, wanted, span, page_ids)
    searched = match if page_ids is None else ""
    most = MAX_SEARCHED if searched else MAX_EXAMINED
    listed: list[int] = []
    last_id, ended = span.before if span.newest_first else span.after, True
    for examined, row in enumerate(rows):
        if len(listed) == limit or examined == most:
            ended = False
            break
        last_id = row.event_id
        if wanted.at_least <= (row.difference or 0.0) and (
            not searched or _is_found(connection, searched, row.page_id)
        ):
            listed.append(last_id)
    found = [each for event_id in listed if (each := get(connection, event_id)) is not None]
    return EventList(found, last_id, ended)


def _pages(connection: apsw.Connection, wanted: EventFilter, match: str) -> array[int] | None:
    """Return the few pages whose events are wanted; None: they may be those of any page."""
    found: array[int] | None = None
    if wanted.url is not None:
        page_id = page_rows.id_of(connection, wanted.url)
        found = array("q", () if page_id is None else (page_id,))
    if wanted.query and not match:
        return array("q")
    if found is not None:
        kept = (each for each in found if not match or _is_found(connection, match, each))
        return array("q", kept)
    if not match:
        return None
    rows: list[tuple[Any, ...]] = connection.execute(_MATCHING, (match, MAX_MATCHED + 1)).fetchall()
    return None if len(rows) > MAX_MATCHED else array("q", (each for (each,) in rows))


def _is_found(connection: apsw.Connection, match: str, page_id: int) -> bool:
    return connection.execute(_FOUND, (match, page_id)).get is not None


def _rows_of_pages(
    connection: apsw.Connection, wanted: EventFilter, span: _Span, page_ids: array[int]
) -> Iterator[_Row]:
    order = "DESC" if span.newest_first else "ASC"
    sql = (
        f"SELECT {_COLUMNS} FROM event INDEXED BY event_page"
        " WHERE page_id IN carray(?) AND event_id > ? AND event_id < ?"
        f" ORDER BY event_id {order} LIMIT ?"
    )
    if not page_ids:
        return
    bindings = (apsw.carray(page_ids), span.after, span.before, MAX_EXAMINED + 1)
    site_id = _site_id(connection, wanted.site)
    for row in map(_Row._make, connection.execute(sql, bindings)):
        if row.kind in wanted.kinds and site_id in (None, row.site_id):
            yield row


def _rows(connection: apsw.Connection, wanted: EventFilter, span: _Span) -> Iterator[_Row]:
    """Yield the events of a site and of kinds: one read by index for each kind, merged."""
    order = "DESC" if span.newest_first else "ASC"
    site_id = _site_id(connection, wanted.site)
    ids = (span.after, span.before)
    within = f"event_id > ? AND event_id < ? ORDER BY event_id {order}"
    if site_id is None and wanted.kinds == ALL_KINDS:
        sql = f"SELECT {_COLUMNS} FROM event WHERE {within}"
        return map(_Row._make, connection.execute(sql, ids))
    of_kind: list[Iterator[Any]]
    if site_id is None:
        sql = f"SELECT {_COLUMNS} FROM event INDEXED BY event_kind WHERE kind = ? AND {within}"
        of_kind = [connection.execute(sql, (kind, *ids)) for kind in wanted.kinds]
    else:
        sql = (
            f"SELECT {_COLUMNS} FROM event INDEXED BY event_site"
            f" WHERE site_id = ? AND kind = ? AND {within}"
        )
        of_kind = [connection.execute(sql, (site_id, kind, *ids)) for kind in wanted.kinds]
    merged = heapq.merge(*of_kind, key=itemgetter(0), reverse=span.newest_first)
    return map(_Row._make, merged)


def _site_id(connection: apsw.Connection, name: str | None) -> int | None:
    """Return the number of a site, one that no site has for an unknown name; None for None."""
    if name is None:
        return None
    found: int | None = connection.execute("SELECT site_id FROM site WHERE name = ?", (name,)).get
    return _NO_SITE if found is None else found
