"""How many pages a server has, in SQL: the counters of its host, which has no other server mostly.

Pages of a host with several servers are counted each time. Such hosts are few.
"""

from __future__ import annotations

from crawld.store.frontier import server


def suspended(number: str, host: str) -> str:
    """Return SQL of the number of suspended pages of a server, with the row of its host."""
    pages = f"page INDEXED BY page_suspended WHERE {server.has_page(number)}"
    count = f"(SELECT count(*) FROM {pages} AND state = 'suspended')"
    return _if_alone(host, f"{host}.pages_suspended", count)


def visited(number: str, host: str) -> str:
    """Return SQL of the number of its pages that were visited, or are suspended."""
    pages = f"page WHERE {server.has_page(number)} AND requisite = 0"
    count = f"(SELECT count(*) FROM {pages} AND state IN ('visited', 'suspended'))"
    return _if_alone(host, f"{host}.pages_visited + {host}.pages_suspended", count)


def unvisited(number: str, host: str) -> str:
    """Return SQL of the number of its pages that were never visited.

    Packed pages count for every server of their host: some may be on each.
    """
    pages = (
        f"page INDEXED BY page_discovered WHERE requisite = 0 AND page.host_id = {host}.host_id"
        f" AND state = 'discovered' AND {server.of_page()} <> {number}"
    )
    others = f"(SELECT count(*) FROM {pages})"
    return _if_alone(
        host, f"{host}.pages_discovered", f"max({host}.pages_discovered - {others}, 0)"
    )


def _if_alone(host: str, alone: str, several: str) -> str:
    return f"iif({server.is_alone(f'{host}.host_id')}, {alone}, {several})"
