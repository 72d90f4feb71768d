"""Pages that left the part of a wiki that their site covers: a copy that nobody updates any more.

Readers see when the page left. The mark ends with the first visit after its return, not before: the
copy may be as old as the departure.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection
from typing import Final, NamedTuple

import apsw

from crawld.core.page import Outcome


class PartPage(NamedTuple):
    """A page with a copy.

    Attributes:
        left_at: when it left its part, Unix seconds; None: it did not, or was visited since.
    """

    page_id: int
    url: str
    seed: bool
    left_at: float | None


_HELD: Final = """
SELECT json_group_array(json_array(page_id, url, seed, left_at)) FROM (
    SELECT page_id, url, seed, left_at FROM page INDEXED BY page_held
    WHERE site_id = ? AND host_id = (SELECT host_id FROM host WHERE host = ?) AND page_id > ?
      AND state = 'visited' AND version_id IS NOT NULL AND requisite = 0
    ORDER BY page_id LIMIT ?
)
"""

_BY_HASH: Final = """
SELECT json_group_array(json_array(page_id, url, seed, left_at))
FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = (SELECT host_id FROM host WHERE host = ?2) AND page.url_hash = wanted.value
WHERE site_id = ?3 AND version_id IS NOT NULL AND requisite = 0
"""

_UNCLEAR: Final = (Outcome.BLOCKED, Outcome.FAILED)


def list_held(
    connection: apsw.Connection, site_id: int, host: str, after: int, limit: int
) -> list[PartPage]:
    """Return pages of a site on a host that have a copy, by page_id, after the one in `after`."""
    found = connection.execute(_HELD, (site_id, host, after, limit)).get
    return [PartPage(*row) for row in json.loads(found)]


def by_hash(
    connection: apsw.Connection, site_id: int, host: str, url_hashes: array[int]
) -> list[PartPage]:
    """Return those of some URLs on a host, by their keys, that are pages of a site with a copy."""
    found = connection.execute(_BY_HASH, (apsw.carray(url_hashes), host, site_id)).get
    return [PartPage(*row) for row in json.loads(found)]


def put(connection: apsw.Connection, page_ids: Collection[int], at: float) -> None:
    """Store that pages left their part at a time (Unix seconds); an earlier time stays.

    No visit answers their hints any more.
    """
    connection.execute(
        "UPDATE page SET left_at = ? WHERE left_at IS NULL"
        " AND page_id IN (SELECT value FROM json_each(?))",
        (at, json.dumps(list(page_ids))),
    )
    connection.execute(
        "DELETE FROM hint WHERE page_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(page_ids)),),
    )


def forget(connection: apsw.Connection, site_ids: Collection[int]) -> None:
    """Remove the marks of the pages of sites that cover no part of a wiki any more."""
    connection.execute(
        "UPDATE page SET left_at = NULL WHERE left_at IS NOT NULL"
        " AND site_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(site_ids)),),
    )


def record_visit(
    connection: apsw.Connection, page_id: int, outcome: Outcome, left_at: float
) -> None:
    """Remove the mark of a page that a visit found: only pages in their part are visited.

    Args:
        left_at: the mark as the visit began. One set since stays: the page left meanwhile.
    """
    if outcome not in _UNCLEAR:
        connection.execute(
            "UPDATE page SET left_at = NULL WHERE page_id = ? AND left_at = ?", (page_id, left_at)
        )
