"""Bodies of which a failed fetch received the start; the next visit asks for the rest."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from crawld.core.units import DAY_S

MOST_ROWS: Final = 32
"""Bodies kept; the oldest go first. Each is at most as large as a fetch may be."""

MAX_AGE_S: Final = 7 * DAY_S
"""Time after which the server has probably another body."""


class PartialBodyRow(NamedTuple):
    """The start of a body.

    Attributes:
        validator: strong ETag or Last-Modified, as sent.
        total_bytes: length of the whole.
        form: of the request, 8 bytes; None: the usual one.
    """

    validator: str
    total_bytes: int
    body: bytes
    form: bytes | None = None


def put(connection: apsw.Connection, page_id: int, at: float, row: PartialBodyRow) -> None:
    """Store the start of a page's body in place of an earlier one, and remove the oldest."""
    connection.execute(
        "INSERT OR REPLACE INTO partial_body"
        " (page_id, received_at, validator, total_bytes, body, form)"
        " SELECT page_id, ?, ?, ?, ?, ? FROM page WHERE page_id = ?",
        (at, *row, page_id),
    )
    connection.execute(
        "DELETE FROM partial_body WHERE received_at < ? OR page_id NOT IN"
        " (SELECT page_id FROM partial_body ORDER BY received_at DESC LIMIT ?)",
        (at - MAX_AGE_S, MOST_ROWS),
    )


def get(connection: apsw.Connection, page_id: int, at: float) -> PartialBodyRow | None:
    """Return the start of a page's body; None without one, or if it is too old at a time."""
    row: Any = connection.execute(
        "SELECT validator, total_bytes, body, form FROM partial_body"
        " WHERE page_id = ? AND received_at >= ?",
        (page_id, at - MAX_AGE_S),
    ).fetchone()
    return None if row is None else PartialBodyRow(*row)


def remove(connection: apsw.Connection, page_id: int) -> None:
    """Remove the start of a page's body."""
    connection.execute("DELETE FROM partial_body WHERE page_id = ?", (page_id,))
