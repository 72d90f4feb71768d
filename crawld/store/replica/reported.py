"""Pages at rest of which a sitemap or another source of their host reports a change.

Also what they save: a sitemap is asked the more often.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.replica.sampling import ReportedPage
from crawld.core.units import DAY_S
from crawld.store.replica.replica import RESTING_LIST

_SLICE: Final = """
SELECT max(page_id) FROM (SELECT DISTINCT page_id FROM hint WHERE page_id > ? ORDER BY page_id
                          LIMIT ?)
"""

_REPORTED: Final = f"""
SELECT own.server_id, hint.hint_source_id, page.page_id, hint.last_at, hint.heard_at,
       ifnull(twin.last_change_at, 0) > own.compared_at, ifnull(twin.last_visit_at, 0)
FROM hint CROSS JOIN page USING (page_id) JOIN page_twin AS own USING (page_id)
JOIN page AS twin ON twin.page_id = own.twin_id JOIN replica ON replica.server_id = own.server_id
WHERE hint.page_id > ? AND hint.page_id <= ? AND page.state = 'suspended'
  AND own.verdict = 'agrees' AND hint.last_at > own.visited_at AND status IN {RESTING_LIST}
ORDER BY hint.page_id
"""


class ReportedSlice(NamedTuple):
    """Reported pages by server_id, and the last page_id that was looked at; None: all were."""

    pages: list[tuple[int, ReportedPage]]
    last: int | None


def reported(
    connection: apsw.Connection, sources: Collection[int], after: int, limit: int
) -> ReportedSlice:
    """Return the pages at rest among the next pages with a hint of some sources, by server."""
    last = connection.execute(_SLICE, (after, limit)).get
    if last is None:
        return ReportedSlice([], None)
    rows: list[Any] = connection.execute(_REPORTED, (after, last)).fetchall()
    return ReportedSlice(
        [
            (server_id, ReportedPage(page_id, changed_at, heard_at, bool(twin_changed), visited_at))
            for server_id, source, page_id, changed_at, heard_at, twin_changed, visited_at in rows
            if source in sources
        ],
        last,
    )


COUNTED_S: Final = 30 * DAY_S
"""Visits of so long tell how often a page at rest would be visited."""

COUNTED_PAGES: Final = 200
"""Pages whose visits are counted; of more the average counts."""

_SAVED: Final = """
SELECT count(*), total(visits / max(1.0, min(?3, ?2 - discovered_at) / 86400.0)) FROM (
    SELECT twin.discovered_at, (
        SELECT count(*) FROM visit WHERE page_id = twin.page_id AND visited_at >= ?2 - ?3) AS visits
    FROM page INDEXED BY page_suspended JOIN page_twin AS own ON own.page_id = page.page_id
    JOIN page AS twin ON twin.page_id = own.twin_id
    WHERE page.host_id = ?1 AND page.state = 'suspended' LIMIT ?4)
"""


def saved_per_day(connection: apsw.Connection, host_id: int, now: float) -> float:
    """Return about how many visits the pages of a host at rest would get in a day."""
    counted: Any = connection.execute(_SAVED, (host_id, now, COUNTED_S, COUNTED_PAGES)).fetchone()
    pages, visits = counted
    if pages < COUNTED_PAGES:
        return float(visits)
    resting: int = connection.execute(
        "SELECT count(*) FROM page WHERE host_id = ? AND state = 'suspended'", (host_id,)
    ).get
    return float(visits * resting / pages)
