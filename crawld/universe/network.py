"""The simulated network: names, connections in memory, and a plug that a kill pulls."""

from __future__ import annotations

import errno
import random
from ipaddress import ip_address
from typing import Final, Protocol

import trio

from crawld.net.network import Connection
from crawld.net.resolver import ResolutionError
from crawld.simweb.message import SimRequest, SimResponse
from crawld.simweb.server import SimWeb
from crawld.universe.event_log import EventLog
from crawld.universe.memory_network import MemoryNetwork
from crawld.universe.memory_stream import MemoryStream, connection_pair
from crawld.universe.plan import FaultKind, HostPlan, NameFault

CLIENT_ADDRESS: Final = "192.0.2.1"
NAME_TTL_S: Final = 300.0
MEAN_LATENCY_S: Final = 0.03


class SimulatedWeb(SimWeb):
    """The simulated web, which knows the address that the request under way was sent to."""

    address = ""

    def handle(self, request: SimRequest, *, address: str) -> SimResponse:
        """Answer a request; see `SimWeb.handle`."""
        self.address = address
        return super().handle(request, address=address)


class FenceWitness(Protocol):
    """Is told of attempts to reach addresses that are not public; the auditor."""

    def fence_crossed(self, address: str) -> None:
        """Note a connection to an address that is not public."""


class SimulatedNetwork(MemoryNetwork):
    """The `Network` of one life of a daemon.

    Args:
        servers: runs the servers' side of the connections; its end is the end of the network.
        rng: draws latencies and faults.
    """

    def __init__(
        self,
        web: SimulatedWeb,
        hosts: tuple[HostPlan, ...],
        witness: FenceWitness,
        servers: trio.Nursery,
        rng: random.Random,
        log: EventLog,
    ) -> None:
        super().__init__(rng, MEAN_LATENCY_S)
        self._web = web
        self._hosts = {host.name: host for host in hosts}
        self._witness = witness
        self._servers = servers
        self._log = log

    def cut(self) -> None:
        """End every connection; no request arrives from now on."""
        self._servers.cancel_scope.cancel()

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Return the address of a simulated host after a drawn time."""
        await trio.sleep(self._latency_s())
        self._log.add("look_up", host)
        plan = self._hosts.get(host)
        if plan is None:
            raise ResolutionError("nxdomain", "no such name in this universe")
        told = plan.name_at(trio.current_time())
        if told.fault is NameFault.TIMEOUT:
            await trio.sleep(30.0)
        if told.fault is not None:
            raise ResolutionError(told.fault.value, "the name server fails")
        return (told.address,), NAME_TTL_S

    async def connect(self, address: str, port: int) -> Connection:
        """Open a connection in memory; only port 80 of the simulated hosts accepts it."""
        if not ip_address(address).is_global:
            self._witness.fence_crossed(address)
        latency_s = self._latency_s()
        await trio.sleep(2.0 * latency_s)
        if self._servers.cancel_scope.cancel_called:
            raise OSError(errno.ENETUNREACH, "network is unreachable")
        self._log.add("connect", address, port)
        at_address = [host for host in self._hosts.values() if _has(host, address)]
        if not at_address or port != 80:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        if self._meets(at_address, FaultKind.SILENT):
            await trio.sleep_forever()
        if self._meets(at_address, FaultKind.REFUSED):
            raise OSError(errno.ECONNREFUSED, "connection refused")
        ours, theirs = connection_pair(latency_s)
        self._opened = [each for each in self._opened if not each.is_closed]
        self._opened.append(ours)
        self._servers.start_soon(self._serve, theirs, address)
        return Connection(ours, ours.is_readable)

    def _meets(self, hosts: list[HostPlan], kind: FaultKind) -> bool:
        at_s = trio.current_time()
        periods = [each for host in hosts for each in host.faults_at(at_s) if each.kind is kind]
        return any(self._rng.random() < period.share for period in periods)

    async def _serve(self, theirs: MemoryStream, address: str) -> None:
        await self._web.serve_stream(theirs, theirs.reset, local=address, peer=CLIENT_ADDRESS)


def _has(host: HostPlan, address: str) -> bool:
    """Whether a host has an address at some time: its old servers answer on."""
    return any(each.address == address and each.fault is None for each in host.names)
