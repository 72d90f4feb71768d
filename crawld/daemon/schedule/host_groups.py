"""Hosts that count as one: so many connections and bytes a second over all of them.

Wikimedia asks for this of its media hosts: at most 2 connections and 25 Mbit/s together. The
connections are turns of the schedule, each host having at most one; the bytes are paced while a
body is read, each connection within its part, so that the sum never exceeds the whole.
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
        hosts: who belongs to it.
        max_connections: turns at a time.
        bytes_per_s: of one connection; None: no limit.
        host_delay_s: rest between two requests to one of its hosts; None: as the sites have it.
        members: the slots of those that are known.
    """

    hosts: HostPatterns
    max_connections: int
    bytes_per_s: float | None
    host_delay_s: float | None
    members: set[HostSlot] = field(default_factory=set)

    def full(self, slot: HostSlot) -> bool:
        """Whether a host must wait for another one to end its turn."""
        busy = sum(each.turn is not None for each in self.members if each is not slot)
        return busy >= self.max_connections

    def waiting(self) -> list[HostSlot]:
        """Return the slots that have no turn now."""
        return [each for each in self.members if each.turn is None]


def groups_of(configured: Sequence[HostGroupConfig]) -> tuple[GroupState, ...]:
    """Return the groups of the config, without members."""
    return tuple(
        GroupState(
            host_patterns(each.hosts),
            each.max_connections,
            None if each.max_bytes_per_s is None else each.max_bytes_per_s / each.max_connections,
            each.host_delay_s,
        )
        for each in configured
    )


def group_of(groups: Iterable[GroupState], slot: HostSlot) -> GroupState | None:
    """Return the first group that a host belongs to, and enter it there; None: none."""
    for group in groups:
        if slot.host in group.hosts:
            group.members.add(slot)
            return group
    return None
