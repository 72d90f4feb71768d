"""Changes that wikis reported, and that the parts of their sites do not reflect yet.

They are stored with the cursor of the poll that reported them, so that none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import apsw


class WikiEvent(NamedTuple):
    """A reported change.

    Attributes:
        kind: `move`: a page was renamed; `category`: a page entered a category or left it;
            `page`: a title was created, deleted, restored, imported, or made a redirect.
        title: the page, or the category.
        at: Unix seconds.
        target: the new title of a renamed page.
        leaves_redirect: whether the former title of a renamed page redirects to the new one.
        page_number: the wiki's number of the page that entered a category or left it; None: another
            event.
    """

    kind: Literal["move", "category", "page"]
    title: str
    at: float
    target: str | None = None
    leaves_redirect: bool = False
    page_number: int | None = None


class StoredEvent(NamedTuple):
    """A stored event with its number; numbers ascend in the order of the reports."""

    wiki_event_id: int
    event: WikiEvent


_COLUMNS: Final = "kind, title, at, target, leaves_redirect, page_number"


def add(connection: apsw.Connection, wiki_id: int, events: Iterable[WikiEvent]) -> None:
    """Store events in their order."""
    connection.executemany(
        f"INSERT INTO wiki_event (wiki_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((wiki_id, *event) for event in events),
    )


def list_events(connection: apsw.Connection, wiki_id: int, limit: int) -> list[StoredEvent]:
    """Return the oldest events of a wiki."""
    rows = connection.execute(
        f"SELECT wiki_event_id, {_COLUMNS} FROM wiki_event WHERE wiki_id = ?"
        " ORDER BY wiki_event_id LIMIT ?",
        (wiki_id, limit),
    )
    return [
        StoredEvent(number, WikiEvent(kind, title, at, target, bool(leaves), page))
        for number, kind, title, at, target, leaves, page in rows
    ]


def remove(connection: apsw.Connection, numbers: Sequence[int]) -> None:
    """Remove events that were applied."""
    connection.execute(
        "DELETE FROM wiki_event WHERE wiki_event_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )


def count(connection: apsw.Connection, wiki_id: int) -> int:
    """Return how many events of a wiki wait."""
    sql = "SELECT count(*) FROM wiki_event WHERE wiki_id = ?"
    return int(connection.execute(sql, (wiki_id,)).get)
