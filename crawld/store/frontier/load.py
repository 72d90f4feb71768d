"""Load the state that the daemon keeps in memory, at its start.

A million pages load in about a second: each query is one pass over a covering index, or one look-up
per host; none reads the rows of pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from crawld.store.frontier import packed

_BATCH: Final = 16_384
"""Rows fetched at a time."""


class StoredHost(NamedTuple):
    """A host, to rebuild its slot from.

    Attributes:
        address: last address connected to.
        paused: whether the operator paused it.
        backoff_level, backoff_at: number of back-off steps, and time of the last one.
        closed_until: end of a Retry-After.
        discovered: pages never visited.
        vanishing_since: time since which its pages disappear in masses, None: they do not.
        crawl_delay_s: the longest Crawl-delay in the robots.txt of its origins.
    """

    host_id: int
    host: str
    address: str | None
    paused: bool
    last_fetch_at: float | None
    backoff_level: int
    backoff_at: float | None
    closed_until: float | None
    page_count: int
    discovered: int
    vanishing_since: float | None
    crawl_delay_s: float | None


class Retry(NamedTuple):
    """A page whose next visit has a fixed time."""

    page_id: int
    host_id: int
    site_id: int
    retry_at: float
    requisite: bool


@dataclass(frozen=True, slots=True)
class Revisits:
    """Pages to revisit, ordered by host, site and last visit, oldest first.

    The pages of `load_retries` are not included. The items are numpy numbers, which SQLite would
    store as blobs: call `tolist()` before any of them becomes a binding.
    """

    page_ids: npt.NDArray[np.int64]
    host_ids: npt.NDArray[np.int64]
    site_ids: npt.NDArray[np.int64]
    last_visit_at: npt.NDArray[np.float64]


def load_hosts(connection: apsw.Connection) -> list[StoredHost]:
    """Return every host."""
    rows = connection.execute(
        "SELECT host_id, host, address, paused, last_fetch_at, backoff_level, backoff_at,"
        " closed_until, page_count, pages_discovered, vanishing_since,"
        " (SELECT max(crawl_delay_s) FROM origin WHERE origin.host_id = host.host_id) FROM host"
    )
    return [StoredHost(*row)._replace(paused=bool(row[3])) for row in rows]


class UnvisitedQueue(NamedTuple):
    """A site on a host with pages (or requisites) that were never visited."""

    requisites: bool
    host_id: int
    site_id: int


_NEXT_WAITING = """
SELECT requisite, host_id, site_id FROM page
WHERE state = 'discovered' AND (requisite, host_id, site_id) > (?, ?, ?)
ORDER BY requisite, host_id, site_id LIMIT 1
"""


def load_waiting(connection: apsw.Connection) -> list[UnvisitedQueue]:
    """Return the (host, site) pairs with pages that were never visited.

    Reads one index entry per pair and table, however many unvisited pages there are.
    """
    found: list[UnvisitedQueue] = []
    last: tuple[int, int, int] = (0, -1, -1)
    while (row := connection.execute(_NEXT_WAITING, last).fetchone()) is not None:
        last = row
        found.append(UnvisitedQueue(bool(row[0]), row[1], row[2]))
    of_packed = [UnvisitedQueue(False, *each) for each in packed.queues(connection)]
    return list(dict.fromkeys([*found, *of_packed]))


def load_revisits(connection: apsw.Connection) -> Revisits:
    """Return every page that a policy schedules, read from an index alone."""
    rows = connection.execute(
        "SELECT page_id, host_id, site_id, last_visit_at FROM page"
        " WHERE state IN ('visited', 'gone') AND retry_at IS NULL"
        " ORDER BY host_id, site_id, last_visit_at"
    )
    # In batches: the rows of ten million pages take gigabytes as Python objects, 300 MB as numbers.
    # Row numbers are exact in doubles up to 2^53.
    numbers, parts = chain.from_iterable(rows), [np.zeros((0, 4))]
    while len(batch := np.fromiter(islice(numbers, 4 * _BATCH), np.float64)):
        parts.append(batch.reshape(-1, 4))
    pages, hosts, sites, visited = (
        np.concatenate([part[:, column] for part in parts]) for column in range(4)
    )
    return Revisits(pages.astype(np.int64), hosts.astype(np.int64), sites.astype(np.int64), visited)


def load_retries(connection: apsw.Connection) -> list[Retry]:
    """Return the pages whose next visit has a fixed time, the earliest first."""
    rows = connection.execute(
        "SELECT page_id, host_id, site_id, retry_at, requisite FROM page"
        " WHERE retry_at IS NOT NULL AND state IN ('visited', 'gone') ORDER BY retry_at"
    )
    return [Retry(*row)._replace(requisite=bool(row[4])) for row in rows]
