"""Groups of hosts that pairs connect."""

from __future__ import annotations

from collections.abc import Iterable


def connected_groups(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups of hosts that are connected by pairs, each in ascending order."""
    root: dict[int, int] = {}

    def find(host: int) -> int:
        while root.setdefault(host, host) != host:
            root[host] = root[root[host]]
            host = root[host]
        return host

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    members: dict[int, list[int]] = {}
    for host in root:
        members.setdefault(find(host), []).append(host)
    return [tuple(sorted(members[at])) for at in sorted(members)]
