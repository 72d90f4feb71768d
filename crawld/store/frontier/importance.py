"""The importance of a site's pages, and by which rules it was computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw


class WeightedPage(NamedTuple):
    """A page and the weight of its freshness."""

    page_id: int
    host: str
    url: str
    importance: float


def rules_of(connection: apsw.Connection, site_id: int) -> bytes | None:
    """Return the digest of the rules of the stored weights; None: every page has weight 1."""
    sql = "SELECT importance_rules FROM site WHERE site_id = ?"
    digest: bytes | None = connection.execute(sql, (site_id,)).get
    return digest


def set_rules(connection: apsw.Connection, site_id: int, digest: bytes | None) -> None:
    """Store the digest of the rules after the last page was weighed."""
    connection.execute("UPDATE site SET importance_rules = ? WHERE site_id = ?", (digest, site_id))


def list_weights(
    connection: apsw.Connection, site_id: int, *, after: int, limit: int
) -> list[WeightedPage]:
    """Return the pages of a site after a page number; requisites have no weight of their own."""
    rows = connection.execute(
        "SELECT page_id, host, url, importance FROM page JOIN host USING (host_id)"
        " WHERE page_id > ? AND site_id = ? AND requisite = 0 ORDER BY page_id LIMIT ?",
        (after, site_id, limit),
    )
    return [WeightedPage(*row) for row in rows]


def set_weights(connection: apsw.Connection, weights: Sequence[tuple[int, float]]) -> None:
    """Set the importance of pages, (page_id, importance) each."""
    connection.executemany(
        "UPDATE page SET importance = ?2 WHERE page_id = ?1 AND importance <> ?2", weights
    )
