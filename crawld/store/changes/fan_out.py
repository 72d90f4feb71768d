"""How many pages of the mirror an edited template affects, as last listed.

The next edit of the template probably affects as many, before its pages are listed again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw

MAX_CAUSES: Final = 500
"""Templates remembered of a source, the last ones listed."""


def record(
    connection: apsw.Connection,
    hint_source_id: int,
    cause: str,
    pages: int,
    at: float,
    *,
    continued: bool = False,
) -> None:
    """Store how many pages a template affects.

    Args:
        continued: whether `pages` are more pages of the listing stored last.
    """
    connection.execute(
        "INSERT INTO fan_out (hint_source_id, cause, pages, listed_at) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET pages = ?5 * pages + excluded.pages,"
        " listed_at = excluded.listed_at",
        (hint_source_id, cause, pages, at, int(continued)),
    )
    connection.execute(
        "DELETE FROM fan_out WHERE hint_source_id = ?1 AND cause IN ("
        "SELECT cause FROM fan_out WHERE hint_source_id = ?1"
        " ORDER BY listed_at DESC LIMIT -1 OFFSET ?2)",
        (hint_source_id, MAX_CAUSES),
    )


def users_by_time(connection: apsw.Connection) -> dict[tuple[int, float], int]:
    """Return how many pages listed templates affect, by source and time of the listing.

    The hints of a listing were heard at its time.
    """
    rows = connection.execute("SELECT hint_source_id, listed_at, pages FROM fan_out")
    return {(number, at): pages for number, at, pages in rows}


class ListedTemplate(NamedTuple):
    """How many pages of the mirror a template affects, and when they were listed."""

    pages: int
    at: float


def listed(connection: apsw.Connection, hint_source_id: int) -> dict[str, ListedTemplate]:
    """Return the listed templates of a source by title."""
    rows = connection.execute(
        "SELECT cause, pages, listed_at FROM fan_out WHERE hint_source_id = ?", (hint_source_id,)
    )
    return {str(cause): ListedTemplate(int(pages), float(at)) for cause, pages, at in rows}
