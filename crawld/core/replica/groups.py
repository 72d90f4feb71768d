"""Groups of hosts that pairs connect."""

from __future__ import annotations

from collections.abc import Iterable


def connected_groups(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups of hosts that are connected by pairs, each in ascending order."""
    groups: dict[int, list[int]] = {}
    for one, other in pairs:
        mine = groups.setdefault(one, [one])
        theirs = groups.setdefault(other, [other])
        if mine is not theirs:
            large, small = (mine, theirs) if len(mine) >= len(theirs) else (theirs, mine)
            large += small
            for host in small:
                groups[host] = large
    distinct = {id(group): group for group in groups.values()}
    return sorted(tuple(sorted(group)) for group in distinct.values())
