"""The limits of requests and bytes per second that hosts share: the config's, as gates of hosts.

A host has the gates of its group, of all sites with pages there, and that of the whole crawl, in
this order, which is the same for all hosts, so that none waits for another in a circle.

What is left of a long wait survives a restart. A gate that is closed for more than `KEPT_S` is in
the file before its request is sent; at a shorter one the first request after a start waits a whole
slot, since the killed process may just have sent one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import trio

from crawld.config.model import Config
from crawld.core.request_rate import RequestRate
from crawld.core.revisit.host_allocation import HostLimit
from crawld.core.turn_order import LEAST_SHARE
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.schedule import Schedule
from crawld.daemon.schedule.slots import HostSlot, RateGate
from crawld.store.engine import meta
from crawld.store.engine.database import Database

KEPT_S: Final = 60.0
"""Longest wait that is not stored: a start costs no more than this."""

COUNT_S: Final = 10.0
"""How often the hosts that share a rate are counted."""

LEAST_TURN_S: Final = 1e-3
"""Shortest time between two turns of a host in plans: a delay may be 0."""

META_KEY: Final = "rate_waits"

WHOLE: Final = "[schedule]"
"""Name of the limit of the whole crawl."""


class Rates(NamedTuple):
    """Most requests and bytes per second; None: no limit."""

    requests_per_s: float | None
    bytes_per_s: float | None


class SharedRates:
    """The gates of all hosts.

    Attributes:
        gates: by name: `[schedule]`, `group ...`, `site ...`; empty without limits.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        schedule: Schedule,
        hosts: Mapping[str, HostState],
        *,
        new_share: float,
    ) -> None:
        """Start without limits.

        Args:
            hosts: all hosts, by name.
            new_share: share of the turns for new pages while revisits are due.
        """
        self.gates: dict[str, RateGate] = {}
        self._database = database
        self._clock = clock
        self._schedule = schedule
        self._hosts = hosts
        self._new_share = new_share
        self._sharers: Counter[str] = Counter()
        self._counted_at = -math.inf

    # --- the config ------------------------------------------------------------------------------

    def set_general(self, config: Config) -> None:
        """Apply the limits of the whole crawl and of groups of hosts."""
        whole = Rates(config.schedule.max_requests_per_s, config.schedule.max_bytes_per_s)
        groups = {
            group_gate(each.hosts): Rates(each.max_requests_per_s, None)
            for each in config.politeness.groups
        }
        self._configure(("[", "group "), {WHOLE: whole, **groups})

    def set_sites(self, sites: Iterable[ActiveSite]) -> None:
        """Apply the limits of sites; the gates of hosts follow by `apply`."""
        wanted = {
            site_gate(site.name): Rates(site.config.max_requests_per_s, site.config.max_bytes_per_s)
            for site in sites
        }
        self._configure(("site ",), wanted)

    def _configure(self, kinds: tuple[str, ...], wanted: Mapping[str, Rates]) -> None:
        limited = {name: rates for name, rates in wanted.items() if rates != (None, None)}
        for name in [name for name in self.gates if name.startswith(kinds)]:
            if name not in limited:
                del self.gates[name]
        for name, rates in limited.items():
            if (gate := self.gates.get(name)) is not None:
                gate.rate.change(*rates, trio.current_time())
            else:
                self.gates[name] = RateGate(name, RequestRate(*rates), new_share=self._new_share)

    def apply(self, host: HostState, sites: Iterable[ActiveSite]) -> None:
        """Give a host the gates of its group, of sites with pages there, and of the whole crawl."""
        if not self.gates and not host.slot.gates:
            return
        names = [] if host.group is None else [group_gate(host.group.patterns)]
        own = [site_gate(site.name) for site in sorted(sites, key=lambda site: site.site_id)]
        # A host without pages, such as that of an API, keeps those of the site that asked it.
        names += own or [gate.name for gate in host.slot.gates if gate.name.startswith("site ")]
        found = [self.gates.get(name) for name in dict.fromkeys([*names, WHOLE])]
        self._schedule.set_gates(host.slot, tuple(gate for gate in found if gate is not None))

    # --- bytes -----------------------------------------------------------------------------------

    def counts_bytes(self, site: ActiveSite) -> bool:
        """Whether received bytes of a site are limited: those of a stream count while it runs."""
        gates = (self.gates.get(name) for name in (WHOLE, site_gate(site.name)))
        return any(gate is not None and gate.rate.bytes_per_s for gate in gates)

    async def received(self, site: ActiveSite, received_bytes: int, *, whole: bool = True) -> None:
        """Count received bytes of a site; `whole`: all of a request."""
        if not self.gates:
            return
        for name in (WHOLE, site_gate(site.name)):
            if (gate := self.gates.get(name)) is not None:
                gate.rate.receive(received_bytes, whole=whole)
                await self._keep((gate,))

    # --- restarts --------------------------------------------------------------------------------

    async def slots_taken(self, slot: HostSlot) -> None:
        """Store how long the gates of a host are closed now, if that is long."""
        await self._keep(slot.gates)

    async def _keep(self, gates: Iterable[RateGate]) -> None:
        now = trio.current_time()
        if all(gate.rate.next_at <= now + KEPT_S for gate in gates):
            return
        waits_s = {
            name: round(gate.rate.next_at - now)
            for name, gate in self.gates.items()
            if gate.rate.next_at > now + KEPT_S
        }
        kept = {"at": round(self._clock.now()), "waits_s": waits_s}
        await self._database.write(meta.put, META_KEY, json.dumps(kept))

    async def restore(self, began: float) -> None:
        """Let the gates wait as the last process left them.

        Args:
            began: when (trio clock) no other process could send requests any more.
        """
        if not self.gates:
            return
        text = await self._database.read(meta.get, META_KEY)
        kept: dict[str, Any] = json.loads(text) if text else {"at": 0.0, "waits_s": {}}
        # A clock that was set back since makes no wait longer than it was.
        kept_at = trio.current_time() - max(self._clock.now() - kept["at"], 0.0)
        for name, gate in self.gates.items():
            gate.rate.hold(began + min(gate.rate.interval_s, KEPT_S))
            gate.rate.hold(kept_at + kept["waits_s"].get(name, 0.0))

    # --- what hosts get ------------------------------------------------------------------------

    def limits(self) -> list[HostLimit]:
        """Return the limits with the hosts with pages that share them, the narrower ones first."""
        members: dict[str, set[int]] = {}
        for host in self._hosts.values():
            for gate in host.slot.gates if host.pages else ():
                members.setdefault(gate.name, set()).add(host.host_id)
        by_size = sorted(members, key=lambda name: (len(members[name]), name))
        return [HostLimit(frozenset(members[name]), self.gates[name].rate.rate) for name in by_size]

    def turn_every_s(self, host: HostState) -> float:
        """Return the time between two turns of a host: its delay, or what its gates leave it."""
        return max(host.delay_s(), self.spacing_s(host.slot))

    def usual_turn_every_s(self, host: HostState) -> float:
        """Return the same without a back-off; never 0, so that it can be divided by."""
        return max(host.base_delay_s(), LEAST_TURN_S, self.spacing_s(host.slot))

    def spacing_s(self, slot: HostSlot) -> float:
        """Return the time between two turns of a host if all that share its gates want theirs."""
        if not slot.gates:
            return 0.0
        self._count_sharers()
        share = max(slot.share, LEAST_SHARE)
        return max(
            gate.rate.interval_s * max(self._sharers[gate.name], 1) / share for gate in slot.gates
        )

    def hosts_sharing(self, name: str) -> int:
        """Return how many hosts with pages share a gate."""
        self._count_sharers()
        return self._sharers[name]

    def waiting_for(self, gate: RateGate) -> int:
        """Return how many hosts a gate holds up, also those behind one that waits there."""
        if gate.holder is not None:
            return 0  # the others wait for the gate where the holder waits
        behind = (
            len(other.order)
            for other in self.gates.values()
            if other.holder is not None and other.holder.gate is gate
        )
        return len(gate.order) + sum(behind)

    def _count_sharers(self) -> None:
        """Count the hosts with pages that share each gate."""
        now = trio.current_time()
        if now < self._counted_at + COUNT_S:
            return
        self._counted_at = now
        self._sharers = Counter(
            gate.name for host in self._hosts.values() if host.pages for gate in host.slot.gates
        )


def group_gate(patterns: Iterable[str]) -> str:
    """Return the name of the gate of a group."""
    return f"group {', '.join(patterns)}"


def site_gate(name: str) -> str:
    """Return the name of the gate of a site."""
    return f"site {name}"
