"""The simulated network: names, connections in memory, and a plug that a kill pulls."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import trio

from crawld.net.http_server import Application
from crawld.net.listener import DEFAULT_LIMITS
from crawld.net.network import Connection
from crawld.net.resolver import ResolutionError
from crawld.net.server_limits import ServerLimits
from crawld.simweb.server import SimWeb
from crawld.universe.event_log import EventLog
from crawld.universe.memory_stream import MemoryStream, connection_pair

CLIENT_ADDRESS = "192.0.2.1"
NAME_TTL_S = 3_600.0
MEAN_LATENCY_S = 0.03


class SilentListener:
    """A listener without clients: nobody connects to a daemon from inside a universe."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def serve(
        self,
        app: Application,
        limits: ServerLimits = DEFAULT_LIMITS,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Wait until cancelled."""
        del app, limits
        task_status.started()
        await trio.sleep_forever()


class SimulatedNetwork:
    """The `Network` of one life of a daemon.

    Args:
        names: addresses by host.
        servers: runs the servers' side of the connections; its end is the end of the network.
        rng: draws latencies.
    """

    def __init__(
        self,
        web: SimWeb,
        names: dict[str, str],
        servers: trio.Nursery,
        rng: random.Random,
        log: EventLog,
    ) -> None:
        self._web = web
        self._names = names
        self._servers = servers
        self._rng = rng
        self._log = log

    def cut(self) -> None:
        """End every connection; no request arrives from now on."""
        self._servers.cancel_scope.cancel()

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Return the address of a simulated host after a drawn time."""
        await trio.sleep(self._latency_s())
        self._log.add("look_up", host)
        if host not in self._names:
            raise ResolutionError("nxdomain", "no such name in this universe")
        return (self._names[host],), NAME_TTL_S

    async def connect(self, address: str, port: int) -> Connection:
        """Open a connection in memory; only port 80 of the simulated hosts accepts it."""
        latency_s = self._latency_s()
        await trio.sleep(2.0 * latency_s)
        if self._servers.cancel_scope.cancel_called:
            raise OSError(errno.ENETUNREACH, "network is unreachable")
        self._log.add("connect", address, port)
        if address not in self._names.values() or port != 80:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        ours, theirs = connection_pair(latency_s)
        self._servers.start_soon(self._serve, theirs, address)
        return Connection(ours, ours.is_readable)

    async def _serve(self, theirs: MemoryStream, address: str) -> None:
        await self._web.serve_stream(theirs, theirs.reset, local=address, peer=CLIENT_ADDRESS)

    def listen_tcp(self, host: str, port: int) -> SilentListener:
        """Return a listener without clients."""
        return SilentListener(f"http://{host}:{port}/")

    def listen_unix(self, path: Path, group: str | None) -> SilentListener:
        """Return a listener without clients."""
        del group
        return SilentListener(f"unix:{path}")

    def _latency_s(self) -> float:
        return self._rng.expovariate(1.0 / MEAN_LATENCY_S)
