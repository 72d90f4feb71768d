"""Load the state that the daemon keeps in memory, at its start.

A million pages load in about a second: each query is one pass over a covering index, or one look-up
per host; none reads the rows of pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple

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


class Revisits(NamedTuple):
    """Pages of one site on one host to revisit, the oldest visit first.

    The pages of `load_retries` are not included. The items are numpy numbers, which SQLite would
    store as blobs: call `tolist()` before any of them becomes a binding.
    """

    host_id: int
    site_id: int
    page_ids: npt.NDArray[np.int64]
    last_visit_at: npt.NDArray[np.float64]


class FirstHosts(NamedTuple):
    """Hosts to restore, in the order of their numbers.

    Attributes:
        left_after: new hosts of greater numbers are left out; None: these are all hosts.
    """

    hosts: list[StoredHost]
    left_after: int | None


_HOSTS: Final = """
SELECT host_id, host, address, paused, last_fetch_at, backoff_level, backoff_at,
  closed_until, page_count, pages_discovered, vanishing_since,
  (SELECT max(crawl_delay_s) FROM origin WHERE origin.host_id = host.host_id)
FROM host
"""

_IS_NEW: Final = """
last_fetch_at IS NULL AND NOT paused AND backoff_level = 0 AND backoff_at IS NULL
  AND closed_until IS NULL AND vanishing_since IS NULL AND page_count = pages_discovered
"""


def load_hosts(connection: apsw.Connection, most_new: int) -> FirstHosts:
    """Return the hosts, of those that were never asked the first `most_new`."""
    sql = f"{_HOSTS} WHERE {_IS_NEW} ORDER BY host_id LIMIT ?"
    new: list[Any] = connection.execute(sql, (most_new + 1,)).fetchall()
    left_after = new[most_new - 1][0] if len(new) > most_new else None
    rows = new[:most_new] + connection.execute(f"{_HOSTS} WHERE NOT ({_IS_NEW})").fetchall()
    rows.sort()
    hosts = [StoredHost(*row)._replace(paused=bool(row[3])) for row in rows]
    return FirstHosts(hosts, left_after)


class UnvisitedQueue(NamedTuple):
    """A site on a host with pages (or requisites) that were never visited."""

    requisites: bool
    host_id: int
    site_id: int


_NEXT_WAITING: Final = """
SELECT host_id, site_id FROM page
WHERE state = 'discovered' AND requisite = ?3 AND (host_id, site_id) > (?1, ?2)
ORDER BY host_id, site_id LIMIT 1
"""


def load_waiting(
    connection: apsw.Connection, host_ids: Sequence[int] | None = None
) -> list[UnvisitedQueue]:
    """Return the (host, site) pairs with pages that were never visited.

    Reads one index entry per pair and table, however many unvisited pages there are.

    Args:
        host_ids: the hosts, ascending; None: all.
    """
    found: list[UnvisitedQueue] = []
    for requisites in (False, True):
        values = (requisites,)
        pairs = packed.pairs_in_order(connection, _NEXT_WAITING, host_ids, values)
        found += [UnvisitedQueue(requisites, *pair) for pair in pairs]
    of_packed = [UnvisitedQueue(False, *each) for each in packed.queues(connection, host_ids)]
    return list(dict.fromkeys([*found, *of_packed]))


class WaitingHost(NamedTuple):
    """A host, and its queues of pages that were never visited."""

    host_id: int
    host: str
    waiting: list[UnvisitedQueue]


def next_hosts(connection: apsw.Connection, after: int, limit: int) -> list[WaitingHost]:
    """Return the next hosts beyond a host_id, asked or not."""
    rows: list[Any] = connection.execute(
        "SELECT host_id, host FROM host WHERE host_id > ? ORDER BY host_id LIMIT ?", (after, limit)
    ).fetchall()
    waiting: dict[int, list[UnvisitedQueue]] = defaultdict(list)
    for each in load_waiting(connection, [host_id for host_id, _ in rows]):
        waiting[each.host_id].append(each)
    return [WaitingHost(host_id, host, waiting.get(host_id, [])) for host_id, host in rows]


_IS_REVISITED: Final = "state IN ('visited', 'gone') AND retry_at IS NULL"

_NEXT_REVISITED: Final = f"""
SELECT host_id, site_id FROM page
WHERE {_IS_REVISITED} AND (host_id, site_id) > (?1, ?2)
ORDER BY host_id, site_id LIMIT 1
"""

_REVISITS: Final = f"""
SELECT page_id, last_visit_at FROM page
WHERE host_id = ? AND site_id = ? AND {_IS_REVISITED} ORDER BY last_visit_at
"""

FIRST_REVISITED: Final = (-1, -1)
"""Comes before every (host_id, site_id)."""


def load_revisits(
    connection: apsw.Connection, after: tuple[int, int] = FIRST_REVISITED, *, least: int
) -> list[Revisits]:
    """Return the next pages that policies schedule, by host and site, from an index alone.

    Args:
        after: the last (host_id, site_id) before them.
        least: no further pair is read after so many pages, so that the pages of millions are never
            in memory twice.

    Returns:
        Nothing if there are no more.
    """
    found: list[Revisits] = []
    left = least
    while left > 0:
        row: Any = connection.execute(_NEXT_REVISITED, after).fetchone()
        if row is None:
            break
        after = row[0], row[1]
        pages, visited = _revisits(connection, *after)
        found.append(Revisits(*after, pages, visited))
        left -= len(pages)
    return found


def _revisits(
    connection: apsw.Connection, host_id: int, site_id: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    rows = connection.execute(_REVISITS, (host_id, site_id))
    # In batches: a row takes 150 bytes as Python objects, and 16 as numbers. Row numbers are exact
    # in doubles up to 2^53.
    numbers, parts = chain.from_iterable(rows), [np.zeros((0, 2))]
    while len(batch := np.fromiter(islice(numbers, 2 * _BATCH), np.float64)):
        parts.append(batch.reshape(-1, 2))
    pages = np.concatenate([part[:, 0] for part in parts], dtype=np.int64, casting="unsafe")
    return pages, np.concatenate([part[:, 1] for part in parts])


def load_retries(connection: apsw.Connection) -> list[Retry]:
    """Return the pages whose next visit has a fixed time, the earliest first."""
    rows = connection.execute(
        "SELECT page_id, host_id, site_id, retry_at, requisite FROM page"
        " WHERE retry_at IS NOT NULL AND state IN ('visited', 'gone') ORDER BY retry_at"
    )
    return [Retry(*row)._replace(requisite=bool(row[4])) for row in rows]
