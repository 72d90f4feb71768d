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


_USERS: Final = """
SELECT hint_source_id, at, max(pages) FROM (
    SELECT hint_source_id, listed_at AS at, pages FROM fan_out
    UNION ALL
    SELECT hint_source_id, heard_at, count(*) FROM hint JOIN hint_source USING (hint_source_id)
    WHERE kind = 'fan_out' GROUP BY hint_source_id, heard_at
) GROUP BY hint_source_id, at
"""


def users_by_time(connection: apsw.Connection) -> dict[tuple[int, float], int]:
    """Return how many pages listed templates affect, by source and time of the listing.

    The hints of a listing were heard at its time. Of a template that was listed again since, the
    pages count that wait since the first time.
    """
    return {(number, at): pages for number, at, pages in connection.execute(_USERS)}


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
