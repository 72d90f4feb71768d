"""How many pages of a replica rest, and how many do not for what reason."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from crawld.core.replica.agreement import PageVerdict
from crawld.store.frontier import server
from crawld.store.replica.replica import ReplicaRow


class Outlook(NamedTuple):
    """Pages of a replica by what becomes of them; see `ReplicaPages` of `core/why/facts.py`."""

    resting: int
    deferred: int
    differing: int
    repeated: int
    only_here: int
    undecided: int
    elsewhere: int = 0


class OwnVerdict(NamedTuple):
    """The verdict on a page, when it was compared, and when it is visited if it is deferred."""

    verdict: PageVerdict
    compared_at: float
    visit_at: float | None


_COUNTS: Final = """
SELECT verdict, page.state = 'suspended', count(*) FROM page_twin JOIN page USING (page_id)
WHERE page_twin.server_id = ? AND page.state IN ('discovered', 'visited', 'suspended')
GROUP BY 1, 2
"""

_OPEN: Final = f"""
SELECT count(*) FROM page WHERE {server.has_page("?1")} AND requisite = 0
AND state IN ('discovered', 'visited', 'suspended')
"""


_ELSEWHERE: Final = f"""
SELECT count(*) FROM page_twin AS own INDEXED BY page_twin_server JOIN page USING (page_id)
JOIN page AS twin ON twin.page_id = own.twin_id
WHERE own.server_id = ?1 AND page.state = 'suspended' AND {server.of_page("twin")} <> ?2
"""


def outlook(connection: apsw.Connection, row: ReplicaRow) -> Outlook:
    """Return how many pages of a replica rest, and why others do not."""
    rows: list[Any] = connection.execute(_COUNTS, (row.server_id,)).fetchall()
    compared = {(PageVerdict(verdict), bool(rests)): count for verdict, rests, count in rows}
    in_all: int = connection.execute(_OPEN, (row.server_id,)).get
    differing = compared.get((PageVerdict.DIFFERS, False), 0)
    repeated = compared.get((PageVerdict.REPEATED, False), 0)
    only_here = max(in_all - max(row.twins, row.suspended), 0)
    elsewhere = 0
    if row.alternates:
        elsewhere = connection.execute(_ELSEWHERE, (row.server_id, row.canonical_id)).get
    return Outlook(
        resting=row.suspended,
        deferred=compared.get((PageVerdict.DEFERRED, True), 0),
        differing=differing,
        repeated=repeated,
        only_here=only_here,
        undecided=max(in_all - row.suspended - differing - repeated - only_here, 0),
        elsewhere=elsewhere,
    )


def own_verdict(connection: apsw.Connection, page_id: int) -> OwnVerdict | None:
    """Return the verdict on a page, None if it was neither compared nor deferred."""
    sql = "SELECT verdict, compared_at, visit_at FROM page_twin WHERE page_id = ?"
    found: Any = connection.execute(sql, (page_id,)).fetchone()
    if found is None:
        return None
    return OwnVerdict(PageVerdict(found[0]), found[1], found[2])
