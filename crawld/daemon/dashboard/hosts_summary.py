"""What the dashboard says of all hosts together: looked through now and then, not for each page."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final

import trio

from crawld.daemon.daemon import Daemon
from crawld.daemon.frontier.host import HostState
from crawld.daemon.pacing import LoopSlices, parts_of

SHOWN: Final = 20
"""Most hosts in back-off that are named."""


@dataclass(frozen=True, slots=True)
class BackingOff:
    """A host that is asked less often than its delay says, after trouble."""

    host: str
    level: int
    delay_s: float
    closed_until: float | None


@dataclass(frozen=True, slots=True)
class HostsSummary:
    """All hosts together.

    Attributes:
        hosts: hosts with pages.
        permitted_per_s: requests per second that their delays and the rates they share permit.
        paused: hosts that the operator paused.
        backing_off: hosts in back-off; `worst` are the most delayed of them.
    """

    hosts: int = 0
    permitted_per_s: float = 0.0
    paused: int = 0
    backing_off: int = 0
    worst: list[BackingOff] = field(default_factory=list)


async def summarize_hosts(daemon: Daemon) -> HostsSummary:
    """Look through all hosts, in slices."""
    slices, paused, permitted, count = LoopSlices(), 0, 0.0, 0
    troubled: list[HostState] = []
    for part in parts_of(list(daemon.state.hosts.values())):
        for host in part:
            if not host.pages:
                continue
            count += 1
            paused += host.paused
            if host.backoff.level or host.backoff.closed_until is not None:
                troubled.append(host)
            if not host.paused:
                permitted += 1.0 / daemon.state.rates.usual_turn_every_s(host)
        await slices.pause()
    worst = heapq.nlargest(SHOWN, troubled, key=lambda host: host.delay_s())
    await trio.lowlevel.checkpoint()
    return HostsSummary(
        count,
        permitted,
        paused,
        len(troubled),
        [
            BackingOff(
                each.slot.host, each.backoff.level, each.delay_s(), each.backoff.closed_until
            )
            for each in worst
        ],
    )
