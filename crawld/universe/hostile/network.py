"""The network of hostile cases, each with a public address of its own."""

from __future__ import annotations

import errno
import math
import random
import traceback
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import trio

from crawld.net.network import Connection
from crawld.net.resolver import LOOKUP_S, ResolutionError
from crawld.simweb.hostile import names
from crawld.simweb.hostile.case import Connection as CaseConnection
from crawld.simweb.hostile.case import HostileCase, NameAnswer, Place, Transport
from crawld.simweb.hostile.serving import BROKEN_CONNECTION, Authority, CaseSite, LeafSite
from crawld.simweb.server import SimWeb
from crawld.universe.memory_network import MemoryNetwork
from crawld.universe.memory_stream import MemoryStream, connection_pair

HEALTHY_HOST: Final = "healthy.test"
HEALTHY_ADDRESS: Final = "45.66.0.1"
NAMES_ADDRESS: Final = "45.66.0.2"
CLIENT_ADDRESS: Final = "45.66.0.3"
WINDOW_BYTES: Final = 1 << 20
MEAN_LATENCY_S: Final = 0.02
PORTS: Final = {Transport.HTTP: 80, Transport.RAW: 80, Transport.TLS: 443}

# What the auditor takes for private; the daemon has its own rules, in `crawld/net/address.py`.
_PRIVATE_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
    )
)
_PUBLIC_V6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_private(address: str) -> bool:
    """Return whether nobody outside may be led to an address (RFC 6890), embedded ones included."""
    found = ip_address(address)
    if isinstance(found, IPv4Address):
        return any(found in network for network in _PRIVATE_V4)
    embedded = _embedded(found)
    if embedded is not None:
        return is_private(str(embedded))
    return found not in _PUBLIC_V6 or found in IPv6Network("2001::/23")


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


class HostileNetwork(MemoryNetwork):
    """The `Network` of a daemon that meets hostile cases.

    Args:
        cases: those that are served.
        authority: makes their certificates.
        web: answers what is asked by HTTP; the cases are added to it.
        servers: runs the servers' side of the connections.
        rng: draws latencies.

    Attributes:
        begun_s: by host, the time of its first lookup.
        crossed: private addresses that were dialed, with their ports.
        server_faults: bugs of the cases themselves.
    """

    def __init__(
        self,
        cases: Sequence[HostileCase],
        authority: Authority,
        web: SimWeb,
        servers: trio.Nursery,
        rng: random.Random,
    ) -> None:
        super().__init__(rng, MEAN_LATENCY_S)
        self._web = web
        self._servers = servers
        self._asked: Counter[str] = Counter()
        self._cases = {case.host: case for case in cases}
        self._addresses = {
            case.host: f"45.66.{number // 200 + 1}.{number % 200 + 1}"
            for number, case in enumerate(cases)
        }
        self._connections: dict[str, CaseConnection] = {}
        self._by_address = {self._addresses[case.host]: case for case in cases}
        self._received_bytes = 0
        self.begun_s: dict[str, float] = {}
        self.crossed: list[tuple[str, int]] = []
        self.server_faults: list[str] = []
        vault = f"http://{names.VAULT_ADDRESS}:{PORTS[Transport.HTTP]}/"
        for case in cases:
            place = Place(case.host, PORTS[case.transport], vault, authority.context)
            address = self._addresses[case.host]
            if case.respond is not None:
                web.add(CaseSite((case.host, address), case, case.respond(place)))
            if case.connect is not None:
                self._connections[address] = case.connect(place)
        web.add(LeafSite((NAMES_ADDRESS,)))

    def received_bytes(self) -> int:
        """Return how many bytes the daemon has read from cases."""
        return self._received_bytes + sum(each.received_bytes for each in self._opened)

    # --- names -------------------------------------------------------------------------------

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Answer for a name as its case does."""
        self.begun_s.setdefault(host, trio.current_time())
        await trio.sleep(self._latency_s())
        answer = self._answer(host)
        if answer.delay_s < LOOKUP_S:
            await trio.sleep(answer.delay_s)
        else:
            await trio.sleep(LOOKUP_S)
            raise ResolutionError("timeout", "no name server answered")
        if answer.error is not None or not answer.addresses:
            raise ResolutionError(answer.error or "nxdomain", "no such name")
        return answer.addresses, answer.ttl_s

    def _answer(self, host: str) -> NameAnswer:
        if host == HEALTHY_HOST:
            return NameAnswer((HEALTHY_ADDRESS,))
        if host.endswith(f".{names.ZONE}"):
            return _zone_answer(host)
        case = self._case_of(host)
        if case is None:
            return NameAnswer()
        address = self._addresses[case.host]
        self._asked[host] += 1
        if case.resolve is not None:
            return case.resolve(host, self._asked[host] - 1, address)
        return NameAnswer((address,) if host == case.host else ())

    def _case_of(self, host: str) -> HostileCase | None:
        while host and host not in self._cases:
            host = host.partition(".")[2]
        return self._cases.get(host)

    # --- connections -------------------------------------------------------------------------

    async def connect(self, address: str, port: int) -> Connection:
        """Open a connection to a case; elsewhere it is refused."""
        if is_private(address):
            self.crossed.append((address, port))
        latency_s = self._latency_s()
        await trio.sleep(2.0 * latency_s)
        case = self._by_address.get(address)
        if case is not None and case.dial_s == math.inf:
            await trio.sleep_forever()
        if case is not None:
            await trio.sleep(case.dial_s)
        known = case is not None or address in (HEALTHY_ADDRESS, NAMES_ADDRESS)
        if not known or port != PORTS[Transport.HTTP if case is None else case.transport]:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        ours, theirs = connection_pair(latency_s, WINDOW_BYTES)
        self._received_bytes += sum(each.received_bytes for each in self._opened if each.is_closed)
        self._opened = [*(each for each in self._opened if not each.is_closed), ours]
        self._servers.start_soon(self._serve, theirs, address)
        return Connection(ours, ours.is_readable)

    async def _serve(self, theirs: MemoryStream, address: str) -> None:
        connection = self._connections.get(address)
        try:
            if connection is None:
                reset, peer = theirs.reset, CLIENT_ADDRESS
                await self._web.serve_stream(theirs, reset, local=address, peer=peer)
            else:
                await connection(theirs)
        except* BROKEN_CONNECTION:
            pass
        except* Exception as errors:
            # A bug of one case must not end the servers of the others; the result tells it.
            self.server_faults.append("".join(traceback.format_exception(errors))[-2_000:])
        await trio.aclose_forcefully(theirs)


_ZONE_SILENT: Final = frozenset({"drop", "junk", "other-id", "loop", "cut"})


def _zone_answer(host: str) -> NameAnswer:
    """Return what the server of `crawld/simweb/hostile/names.py` amounts to for a name."""
    kind = host.removesuffix(f".{names.ZONE}").rpartition(".")[2]
    if kind in _ZONE_SILENT:
        return NameAnswer(delay_s=math.inf)
    if kind in ("fail", "refuse"):
        return NameAnswer(error="temporary", delay_s=0.5)
    if kind == "vault":
        return NameAnswer((names.VAULT_ADDRESS,))
    if kind == "many":
        return NameAnswer(tuple(f"45.66.250.{k}" for k in range(1, 25)))
    if kind in ("fast", "slow"):
        return NameAnswer((NAMES_ADDRESS,), delay_s=names.SLOW_S if kind == "slow" else 0.0)
    return NameAnswer()
