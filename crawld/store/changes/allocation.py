"""Input and result of an allocation: weighted models of pages, and prices of hosts.

The price of a page's host and its own model determine its frequency; no page row is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from crawld.store.changes.model import BEFORE_FIRST, PageKey, end_of_batch


class WeightedModel(NamedTuple):
    """The model of one page to revisit; rows are in the order of hosts, then of URL hashes."""

    page_id: int
    host_id: int
    url_hash: int
    site_id: int
    importance: float
    record: bytes


class WeightedBatch(NamedTuple):
    """The models of some pages to revisit.

    Attributes:
        rows: of pages that have a model.
        up_to: key of the last page that was looked at; None: no page is left.
    """

    rows: list[WeightedModel]
    up_to: PageKey | None


_SELECT: Final = (
    "SELECT page_id, host_id, url_hash, site_id, importance, record"
    " FROM page CROSS JOIN model USING (page_id)"
)


def batch(
    connection: apsw.Connection,
    *,
    after: PageKey = BEFORE_FIRST,
    last_host: int = 2**63 - 1,
    limit: int,
) -> WeightedBatch:
    """Return the models of the next pages that were visited, up to the host `last_host`.

    Args:
        after: key of the last page before them.
        limit: pages to look at, with a model or without.
    """
    end = end_of_batch(connection, after, last_host, limit)
    rows = connection.execute(
        f"{_SELECT} WHERE (host_id, url_hash) > (?, ?) AND (host_id, url_hash) <= (?, ?)"
        " AND state IN ('visited', 'gone') ORDER BY host_id, url_hash",
        (*after, *(end or (last_host, 2**63 - 1))),
    )
    return WeightedBatch([WeightedModel(*row) for row in rows], end)


def updated_since(
    connection: apsw.Connection, host_id: int, site_id: int, since: float, *, limit: int
) -> list[WeightedModel]:
    """Return the models of pages visited since a time."""
    rows = connection.execute(
        f"{_SELECT} WHERE host_id = ? AND site_id = ? AND last_visit_at >= ?"
        " AND state IN ('visited', 'gone') LIMIT ?",
        (host_id, site_id, since, limit),
    )
    return [WeightedModel(*row) for row in rows]


def unvisited_since(
    connection: apsw.Connection, host_id: int, site_id: int, since: float, *, limit: int
) -> list[int]:
    """Return pages to revisit that were not visited since a time, the oldest visit first."""
    rows = connection.execute(
        "SELECT page_id FROM page WHERE host_id = ? AND site_id = ? AND last_visit_at <= ?"
        " AND state IN ('visited', 'gone') AND retry_at IS NULL ORDER BY last_visit_at LIMIT ?",
        (host_id, site_id, since, limit),
    )
    return [page_id for (page_id,) in rows]


def put_prices(connection: apsw.Connection, prices: Iterable[tuple[int, float]]) -> None:
    """Store prices of hosts (host_id, weighted fresh seconds per visit)."""
    connection.executemany(
        "UPDATE host SET price = ? WHERE host_id = ?",
        [(price, host_id) for host_id, price in prices],
    )


def revisit_pages(
    connection: apsw.Connection, host_id: int, site_id: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return pages to revisit (page_ids, last visits, weights), the oldest visit first."""
    rows = connection.execute(
        "SELECT page_id, last_visit_at, importance FROM page"
        " WHERE host_id = ? AND site_id = ? AND state IN ('visited', 'gone') AND retry_at IS NULL"
        " ORDER BY last_visit_at",
        (host_id, site_id),
    ).fetchall()
    pages, visits, weights = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(pages, np.int64), np.array(visits, np.float64), np.array(weights, np.float64)
