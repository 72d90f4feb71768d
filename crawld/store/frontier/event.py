"""Write events: in the transaction of the visit or of the report that they come from.

Event ids rise in the order of commits and are never used again, not even after a backup was
restored: each start of a daemon lifts them above all ids that may have been given before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw

from crawld.core.event import ABSENT, EventKind
from crawld.store import changed
from crawld.store.frontier import redirect

EPOCH_AT: Final = 1_767_225_600
"""2026-01-01, Unix seconds: ids count from here."""

IDS_PER_S: Final = 1000
"""More than events in a second: a page takes a millisecond at least."""

MAX_CLOCK_S: Final = 10**12
"""Ids stay below 2^53, which JSON readers can hold, whatever the clock says."""

_INSERT: Final = """
INSERT INTO event (site_id, page_id, kind, at, version_id, before_id, difference, target_url)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

VANISH_SHARE: Final = 0.2
MAX_VANISHED: Final = 1000
"""Pages counted at most, so that the check stays cheap on a host that loses all of a million."""


class NewEvent(NamedTuple):
    """An event to store.

    Attributes:
        at: Unix seconds.
        version_id: the copy after it; None: none was stored.
        before_id: the copy before it; None: there was none.
        difference: size of the change, share of the text in [0, 1]; None: not measured.
        target_url: where the page moved to.
    """

    site_id: int
    page_id: int
    kind: EventKind
    at: float
    version_id: int | None = None
    before_id: int | None = None
    difference: float | None = None
    target_url: str | None = None


def insert(connection: apsw.Connection, event: NewEvent) -> None:
    """Store an event, and whether its page is away after it."""
    connection.execute(_INSERT, event)
    changed.note(connection, "event")
    if event.kind in ABSENT or event.kind is EventKind.BACK:
        absent = event.kind if event.kind in ABSENT else None
        connection.execute("UPDATE page SET absent = ? WHERE page_id = ?", (absent, event.page_id))


def loses_many(connection: apsw.Connection, host_id: int, now: float) -> bool:
    """Return whether so many pages of a host disappeared that a fault of its server is likely."""
    share = int(VANISH_SHARE * redirect.count_known(connection, host_id))
    many = min(max(redirect.VANISH_MIN_PAGES, share), MAX_VANISHED)
    return redirect.count_vanished(connection, host_id, now, many) == many


def lift_ids(connection: apsw.Connection, now: float) -> None:
    """Let the ids of new events begin above those that were given before a time, Unix seconds.

    A file restored from a backup knows no id that was given since; the clock does.
    """
    lowest = int(min(max(now - EPOCH_AT, 0.0), MAX_CLOCK_S)) * IDS_PER_S
    connection.execute(
        "INSERT INTO sqlite_sequence (name, seq) SELECT 'event', 0"
        " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'event')"
    )
    connection.execute(
        "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'event'", (lowest,)
    )


def count(connection: apsw.Connection) -> int:
    """Return the number of events."""
    return int(connection.execute("SELECT count(*) FROM event").get)


def delete_oldest(connection: apsw.Connection, number: int) -> None:
    """Delete some of the oldest events."""
    connection.execute(
        "DELETE FROM event WHERE event_id IN"
        " (SELECT event_id FROM event ORDER BY event_id LIMIT ?)",
        (number,),
    )
