"""Leases of replicas: which hosts may stand in for the hosts they copy.

The replicas job grants a lease after a certain verdict and samples that agreed with the canonical
host, without lag. Every page fetched from a replica is checked: its next visit is made at the
canonical host. If that differs, the page has changed since or the replica lags, so the replica is
asked for the page again at once. A bad copy or an earlier text of the page revokes the lease. New
samples must then prove the replica again.

Leases are not stored: after a restart the job grants them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import structlog

from crawld.core.page import Outcome
from crawld.core.replica.owners import without_port
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.host import HostState
from crawld.store.engine.database import Database
from crawld.store.replica import replica
from crawld.store.replica.replica import ReplicaRow

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Lease:
    """The lease of one replica.

    Attributes:
        server_id: the replica, which is the only server of its host.
        canonical: the host whose pages it may serve.
        unchecked: pages fetched from it and not yet checked at the canonical host.
        doubted: pages that differed at the canonical host, to be requested from it again.
        idle_until: when (trio clock) it may look for a page again, after it found none.
    """

    server_id: int
    canonical: HostState
    unchecked: set[int] = field(default_factory=set)
    doubted: list[int] = field(default_factory=list)
    idle_until: float = -math.inf


class ReplicaLeases:
    """The leases of all replicas."""

    def __init__(self, state: CrawlState, database: Database) -> None:
        self._state = state
        self._database = database
        self._leases: dict[HostState, Lease] = {}
        self._copies: dict[HostState, list[HostState]] = {}

    def grant(self, proven: Iterable[ReplicaRow]) -> None:
        """Grant leases to these replicas only; a lease that continues keeps its pages."""
        before, self._leases = self._leases, {}
        self._copies = {}
        for row in proven:
            host = self._state.hosts.get(row.slot_name)
            canonical = self._state.hosts.get(without_port(row.canonical_host))
            if host is None or canonical is None:
                continue
            known = before.get(host)
            lease = Lease(row.server_id, canonical)
            if known is not None and known.canonical is canonical:
                lease = known
            self._leases[host] = lease
            self._copies.setdefault(canonical, []).append(host)
            for site_id in canonical.pages:
                # The replica must follow the politeness rules of that site too.
                self._state.pages_of(host, site_id)
            self._state.schedule.wake(host.slot)

    def of(self, host: HostState) -> Lease | None:
        """Return the lease of a host, None if it has none."""
        return self._leases.get(host)

    def is_leased(self, name: str) -> bool:
        """Whether a host has a lease."""
        return self._state.hosts.get(name) in self._leases

    def visited(self, canonical: HostState, page_id: int, outcome: Outcome) -> None:
        """Check the replicas' copies of a page against a visit at its own host."""
        for host in self._copies.get(canonical, ()):
            lease = self._leases.get(host)
            if lease is None or page_id not in lease.unchecked:
                continue
            lease.unchecked.discard(page_id)
            if outcome is Outcome.CHANGED:
                lease.doubted.append(page_id)
                self._state.schedule.wake(host.slot)

    def wake_partners(self, host: HostState) -> None:
        """Wake the canonical host and the replicas of a host."""
        lease = self._leases.get(host)
        canonical = host if lease is None else lease.canonical
        if canonical is not host:
            self._state.schedule.wake(canonical.slot)
        for copy in self._copies.get(canonical, ()):
            self._state.schedule.wake(copy.slot)

    async def revoke(self, host: HostState, why: str) -> None:
        """Revoke a replica's lease; samples must prove it again."""
        lease = self._leases.pop(host, None)
        if lease is not None:
            log.warning("replica_lease_revoked", host=host.slot.host, why=why)
            await self._database.write(replica.reset_samples, lease.server_id)
