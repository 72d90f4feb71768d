"""Groups of hosts that share limits: connections, bytes and requests per second.

Wikimedia asks for this for its media hosts: at most 2 connections and 25 Mbit/s together. Each host
has at most one connection, its turn. The bytes are paced while a body is read, each connection
within its share, so that the sum never exceeds the limit. Requests are spaced by gates
(`crawl/shared_rates.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crawld.config.model import HostGroupConfig
from crawld.core.hosts import HostPatterns, host_patterns
from crawld.daemon.schedule.slots import HostSlot


@dataclass(slots=True, eq=False)
class GroupState:
    """Hosts that share a limit.

    Attributes:
        patterns: of the hosts, as the config has them.
        max_connections: the most turns at a time.
        bytes_per_s: limit of one connection; None: no limit.
        host_delay_s: delay between two requests to one of its hosts; None: that of the sites.
    """

    hosts: HostPatterns
    patterns: tuple[str, ...]
    max_connections: int
    bytes_per_s: float | None
    host_delay_s: float | None
    members: set[HostSlot] = field(default_factory=set)

    def full(self, slot: HostSlot) -> bool:
        """Whether a host must wait until another one ends its turn."""
        busy = sum(each.turn is not None for each in self.members if each is not slot)
        return busy >= self.max_connections

    def waiting(self) -> list[HostSlot]:
        """Return the slots without a turn."""
        return [each for each in self.members if each.turn is None]


def groups_of(configured: Sequence[HostGroupConfig]) -> tuple[GroupState, ...]:
    """Return the groups of a config, without members."""
    return tuple(
        GroupState(
            host_patterns(each.hosts),
            each.hosts,
            each.max_connections,
            None if each.max_bytes_per_s is None else each.max_bytes_per_s / each.max_connections,
            each.host_delay_s,
        )
        for each in configured
    )


def group_of(groups: Iterable[GroupState], slot: HostSlot) -> GroupState | None:
    """Return the first group that a host belongs to, and add it there; None: it has no group."""
    for group in groups:
        if slot.host in group.hosts:
            group.members.add(slot)
            return group
    return None
