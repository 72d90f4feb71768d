"""Limits how many hosts are pruned at a time: very many new verdicts indicate a bug or an attack.

A budget holds for all hosts and for the hosts of each registrable domain: a share of them, and
never less than `STORM_LEAST`. It counts the hosts pruned within the period of one search, so that
additional searches release no more. The others wait for their turn; the longest waiting go first.
So a storm ends by itself, slowly enough for an operator to intervene, and a domain with very many
names delays only its own hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

STORM_SHARE = 0.05
"""Share of the hosts that one search may prune ..."""

STORM_LEAST = 10
"""... or this many hosts, regardless of the share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReplica:
    """A host that would be pruned now.

    Attributes:
        domain: its registrable domain.
        waiting_since: since when it is held, Unix seconds; None: it was found just now.
    """

    host_id: int
    domain: str
    waiting_since: float | None = None


def storm_limit(hosts: int, share: float = STORM_SHARE) -> int:
    """Return how many of some hosts one search may prune.

    >>> storm_limit(20), storm_limit(20_000), storm_limit(300, 1.0)
    (10, 1000, 300)
    """
    return max(STORM_LEAST, int(share * hosts))


def released(
    new: Iterable[NewReplica],
    *,
    hosts: int,
    domain_hosts: Mapping[str, int],
    pruned_lately: Collection[str] = (),
    share: float = STORM_SHARE,
) -> set[int]:
    """Return which hosts may be pruned now, the longest waiting first.

    Args:
        new: the hosts that would be pruned.
        hosts: number of all hosts.
        domain_hosts: number of hosts of each registrable domain.
        pruned_lately: registrable domain of each host pruned within the period of one search.
        share: largest share of all hosts, and of the hosts of a domain, that one search may prune.
    """
    left = storm_limit(hosts, share) - len(pruned_lately)
    of_domain = Counter(pruned_lately)
    chosen: set[int] = set()
    for each in sorted(new, key=_place):
        if left <= 0:
            break
        if of_domain[each.domain] < storm_limit(domain_hosts.get(each.domain, 0), share):
            of_domain[each.domain] += 1
            left -= 1
            chosen.add(each.host_id)
    return chosen


def _place(new: NewReplica) -> tuple[bool, float, int]:
    """Return the sort key of a host in the order of release."""
    return new.waiting_since is None, new.waiting_since or 0.0, new.host_id
