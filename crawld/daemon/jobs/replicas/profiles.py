"""Profiles of the hosts in pairs, from which the host to keep is chosen.

Derived state: the pages of a host are summarized once after a start, and again after visits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.owners import crowded_domains, inlink_domains, without_port
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.replicas.search import ReplicaSearch
from crawld.daemon.pacing import PacedReader
from crawld.store.frontier import server
from crawld.store.replica import inputs
from crawld.store.replica.inputs import HostPageSummary, SourceHost
from crawld.store.replica.pair import Pair

HOSTS_AT_ONCE: Final = 50
"""Hosts of which the pages are summarized at once."""


class _Partners(NamedTuple):
    """Hosts in pairs: the others in the pairs of each, and hosts on which links to it were found.

    Attributes:
        unknown: hosts of which the pages are not summarized yet.
        named: all hosts in pairs, and those on which links to them were found.
    """

    of: dict[int, set[int]]
    linking: dict[int, frozenset[int]]
    unknown: list[int]
    named: set[int]


class HostProfiles(BackgroundWork):
    """Makes the profiles of the hosts in pairs; all but its reads runs in worker threads."""

    def __init__(self, context: CrawlContext, search: ReplicaSearch, paced: PacedReader) -> None:
        super().__init__(context)
        self._search = search
        self._paced = paced
        self._summaries: dict[int, HostPageSummary] = {}
        self._crowded: frozenset[str] = frozenset()
        self._crowded_among = 0

    def forget(self, server_ids: Iterable[int]) -> None:
        """Forget the pages of hosts that were visited."""
        for server_id in server_ids:
            self._summaries.pop(server_id, None)

    async def crowded(self, hosts: Sequence[SourceHost]) -> frozenset[str]:
        """Return the registrable domains that give names to anybody."""
        if len(hosts) != self._crowded_among:
            self._crowded = await self._workers.run(
                lambda: crowded_domains(host.host for host in hosts), abandon_on_cancel=True
            )
            self._crowded_among = len(hosts)
        return self._crowded

    async def of(
        self, hosts: Sequence[SourceHost], pairs: Collection[Pair]
    ) -> dict[int, HostProfile]:
        """Return the profile of each host in some pairs."""
        partners = await self._workers.run(self._partners, hosts, pairs, abandon_on_cancel=True)
        for begin in range(0, len(partners.unknown), HOSTS_AT_ONCE):
            part = partners.unknown[begin : begin + HOSTS_AT_ONCE]
            self._summaries |= await self._paced.read(inputs.summarize_hosts, part)
        names = await self._database.read(server.names, partners.named)
        return await self._workers.run(
            self._profiles, hosts, partners, names, abandon_on_cancel=True
        )

    def _partners(self, hosts: Sequence[SourceHost], pairs: Collection[Pair]) -> _Partners:
        of: dict[int, set[int]] = {}
        for one, other in pairs:
            of.setdefault(one, set()).add(other)
            of.setdefault(other, set()).add(one)
        linking = {server_id: self._search.linking_hosts(server_id) for server_id in of}
        unknown = [
            host.server_id
            for host in hosts
            if host.server_id in of and host.server_id not in self._summaries
        ]
        return _Partners(of, linking, unknown, set(of).union(*linking.values()))

    def _profiles(
        self, hosts: Sequence[SourceHost], partners: _Partners, names: Mapping[int, str]
    ) -> dict[int, HostProfile]:
        preferred = set(self._config().replicas.prefer)
        servers = Counter(without_port(host.host) for host in hosts)
        # The name of a host means its only server, whatever the port.
        preferred |= {
            host.host
            for host in hosts
            if (name := without_port(host.host)) in preferred and servers[name] == 1
        }
        profiles = {}
        for host in hosts:
            others = partners.of.get(host.server_id)
            if others is None:
                continue
            own = self._summaries[host.server_id]
            linking = partners.linking[host.server_id]
            profiles[host.server_id] = HostProfile(
                name=host.host,
                preferred=host.preferred or host.host in preferred,
                https=own.https,
                first_seen_at=host.added_at,
                inlinks=inlink_domains(
                    (names[at] for at in linking if at in names),
                    (names[at] for at in (host.server_id, *others)),
                ),
                pages=own.pages,
                changed_at=own.changed_at,
            )
        return profiles
