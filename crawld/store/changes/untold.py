"""Changes that a visit found before a source reported them: late, explained by a cause, or missed.

A change waits here until the source has reported everything up to the visit. If it then reports the
change, the hint was late. If the page includes a template that was edited before the visit, that
explains the change: a list of edits does not name it, and has missed nothing. Else it was missed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, cast

import apsw

from crawld.store import changed

_ADD: Final = """
INSERT INTO untold (hint_source_id, page_id, visited_at, counted) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET visited_at = excluded.visited_at, counted = excluded.counted
"""

_LATE: Final = """
SELECT json_group_array(json_array(untold.page_id, ?3 - (value ->> 1)))
FROM json_each(?1) CROSS JOIN untold
  ON untold.hint_source_id = ?2 AND untold.page_id = value ->> 0
WHERE value ->> 1 <= untold.visited_at
"""

_EXPLAINED: Final = """
DELETE FROM untold WHERE (page_id, hint_source_id) IN (
    SELECT untold.page_id, untold.hint_source_id FROM json_each(?1) CROSS JOIN untold
      ON untold.page_id = value ->> 0
    WHERE value ->> 1 <= untold.visited_at
) RETURNING hint_source_id
"""

_UNNOTICED: Final = """
INSERT INTO quiet_visit (site_id, stale)
SELECT site_id, count(*) FROM page WHERE page_id IN (SELECT value FROM json_each(?))
GROUP BY site_id
ON CONFLICT DO UPDATE SET stale = stale + excluded.stale
"""


def add(
    connection: apsw.Connection,
    hint_source_id: int,
    page_id: int,
    visited_at: float,
    *,
    noticed: bool = False,
) -> None:
    """Add a change that a visit found and a source has not reported; `noticed`: another has."""
    connection.execute(_ADD, (hint_source_id, page_id, visited_at, int(noticed)))


def remove_reported(
    connection: apsw.Connection,
    hint_source_id: int,
    reported: Sequence[tuple[int, float]],
    at: float,
) -> list[float]:
    """Remove changes that a source reports now; return how late each hint was, seconds.

    Args:
        reported: pages, and the time of the change of each.
    """
    if not reported:
        return []
    found = json.loads(connection.execute(_LATE, (json.dumps(reported), hint_source_id, at)).get)
    if found:
        pages = json.dumps([page_id for page_id, _ in found])
        connection.execute(
            "DELETE FROM untold WHERE hint_source_id = ?"
            " AND page_id IN (SELECT value FROM json_each(?))",
            (hint_source_id, pages),
        )
        _mark_counted(connection, pages)
    return [max(lag_s, 0.0) for _, lag_s in found]


def remove_explained(connection: apsw.Connection, affected: Sequence[tuple[int, float]]) -> None:
    """Remove the changes of pages that a cause explains, from all sources, and count them.

    Args:
        affected: pages, and the time of the cause: changes found before it have another one.
    """
    if affected:
        rows = connection.execute(_EXPLAINED, (json.dumps(affected),)).fetchall()
        count_explained(connection, [cast("int", number) for (number,) in rows])


def count_explained(connection: apsw.Connection, hint_source_ids: Iterable[int]) -> None:
    """Count a change that a cause explains for each source that did not report it."""
    connection.executemany(
        "UPDATE hint_source SET explained_count = explained_count + 1 WHERE hint_source_id = ?",
        [(number,) for number in hint_source_ids],
    )
    changed.note(connection, "hint_source")


def settle(connection: apsw.Connection, hint_source_id: int, until: float) -> int:
    """Remove the changes found until a time, which a source has missed; return how many.

    The first source that settles a change counts it as unnoticed for the site of its page.
    """
    missed = connection.execute(
        "DELETE FROM untold WHERE hint_source_id = ? AND visited_at <= ?"
        " RETURNING page_id, counted",
        (hint_source_id, until),
    ).fetchall()
    if unnoticed := [page_id for page_id, counted in missed if not counted]:
        pages = json.dumps(unnoticed)
        connection.execute(_UNNOTICED, (pages,))
        _mark_counted(connection, pages)
    return len(missed)


def _mark_counted(connection: apsw.Connection, pages: str) -> None:
    """Mark the changes of pages (JSON) as known, for the other sources that have not settled."""
    connection.execute(
        "UPDATE untold SET counted = 1 WHERE page_id IN (SELECT value FROM json_each(?))", (pages,)
    )
