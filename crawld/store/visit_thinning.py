"""Thin old visits: delete those that only repeat what the visits before and after them say.

Most visits of a mirror find nothing new, a row each. Of several in a row that say the same of a
page, the first and the last are enough: they still tell when each state was first and last seen,
and between which two visits a change came. Visits that stored a copy or found a change, a move or
something else to say always stay.

`plan` reads a slice, on a reader; `apply` is one short transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from crawld.core.page import Outcome
from crawld.store.engine import meta

CURSOR: Final = "thinned_visits_up_to"
"""Key in meta: the last visit_id that was examined."""

SLICE_VISITS: Final = 500
"""Visits examined in a slice, so that its transaction takes some 20 ms."""

REPEATED: Final = (
    Outcome.UNCHANGED,
    Outcome.NOT_MODIFIED,
    Outcome.GONE,
    Outcome.SOFT_GONE,
    Outcome.FAILED,
    Outcome.BLOCKED,
)
"""Outcomes of which several in a row say the same."""

_WORDS: Final = "outcome, failure, detail, status, cleaned_digest, version_id"
_OUTCOMES: Final = ", ".join(f"'{each.value}'" for each in REPEATED)


def _neighbor(side: str, order: str) -> str:
    """Return a query for what the visit before or after one of the same page says."""
    return (
        f"SELECT {_WORDS} FROM visit AS near WHERE near.page_id = visit.page_id"
        f" AND (near.visited_at, near.visit_id) {side} (visit.visited_at, visit.visit_id)"
        f" ORDER BY near.visited_at {order}, near.visit_id {order} LIMIT 1"
    )


_UP_TO: Final = """
SELECT max(visit_id) FROM (
    SELECT visit_id, visited_at FROM visit WHERE visit_id > ? ORDER BY visit_id LIMIT ?
) WHERE visited_at < ?
"""

_REPETITIONS: Final = f"""
SELECT visit_id FROM visit
WHERE visit_id > ? AND visit_id <= ? AND visited_at < ? AND outcome IN ({_OUTCOMES})
AND ({_WORDS}) IS ({_neighbor("<", "DESC")}) AND ({_WORDS}) IS ({_neighbor(">", "ASC")})
"""


@dataclass(frozen=True, slots=True)
class ThinningPlan:
    """A planned slice of work.

    Attributes:
        up_to: visit_id of the last visit examined.
        visit_ids: the visits to delete.
    """

    up_to: int
    visit_ids: tuple[int, ...]


def plan(connection: apsw.Connection, before: float) -> ThinningPlan | None:
    """Return the next slice of work, None if no visit is old enough; changes nothing.

    Args:
        before: visits are old that were made before this time, Unix seconds.
    """
    after = int(meta.get(connection, CURSOR) or 0)
    up_to: int | None = connection.execute(_UP_TO, (after, SLICE_VISITS, before)).get
    if up_to is None:
        return None
    rows = connection.execute(_REPETITIONS, (after, up_to, before))
    return ThinningPlan(up_to, tuple(visit_id for (visit_id,) in rows))


def apply(connection: apsw.Connection, slice_: ThinningPlan) -> None:
    """Carry out a slice of work."""
    connection.executemany(
        "DELETE FROM visit WHERE visit_id = ?", [(each,) for each in slice_.visit_ids]
    )
    meta.put(connection, CURSOR, str(slice_.up_to))
