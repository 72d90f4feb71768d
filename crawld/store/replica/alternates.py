"""Hosts besides the canonical one under which pages of a replica may rest (`replica_alternate`).

A page whose text is not that of the canonical host, or which that host does not have, rests under
the page at its path of an alternate, if that one is crawled itself and agrees. Its row in
`page_twin` names that page as its twin.
"""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from crawld.store.frontier import server

LISTED: Final = """
(SELECT group_concat(alternate_id, ' ') FROM replica_alternate AS other
 WHERE other.server_id = replica.server_id)
"""
"""SQL of the alternates of a row of `replica`, ascending, as words; NULL: none."""


def put(connection: apsw.Connection, server_id: int, alternates: Iterable[int]) -> None:
    """Store the alternates of a replica instead of those so far."""
    connection.execute("DELETE FROM replica_alternate WHERE server_id = ?", (server_id,))
    connection.executemany(
        "INSERT INTO replica_alternate VALUES (?, ?)",
        [(server_id, alternate) for alternate in alternates],
    )


def may_show(server_id: str, canonical_id: str, shown_by: str) -> str:
    """Return the SQL condition that a server is the canonical host of a replica, or an alternate.

    Args:
        server_id: SQL of the replica; `canonical_id`: of its canonical host.
        shown_by: SQL of the server.
    """
    some = f"SELECT alternate_id FROM replica_alternate WHERE server_id = {server_id}"
    return f"({shown_by} = {canonical_id} OR {shown_by} IN ({some}))"


_ELSEWHERE: Final = f"""
SELECT own.page_id FROM carray(?1) AS wanted CROSS JOIN page_twin AS own
  ON own.page_id = wanted.value JOIN page AS twin ON twin.page_id = own.twin_id
WHERE {server.of_page("twin")} <> ?2
"""


def elsewhere(
    connection: apsw.Connection, page_ids: Sequence[int], canonical_id: int
) -> frozenset[int]:
    """Return which of some pages have their twin on another than the canonical host."""
    if not page_ids:
        return frozenset()
    wanted = apsw.carray(array.array("q", page_ids))
    rows = connection.execute(_ELSEWHERE, (wanted, canonical_id))
    return frozenset(page_id for (page_id,) in rows)
