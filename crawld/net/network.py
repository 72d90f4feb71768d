"""The `Network` interface: the only object through which the process uses the network.

The process gets it at start and passes it to the fetcher, the resolver and the listeners. A
simulation passes its own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import trio

from crawld.net.arrival import AllArrived, all_arrived
from crawld.net.listener import Listener, listen_tcp, listen_unix
from crawld.net.resolver import Lookup, SystemLookup
from crawld.net.tcp_stream import TcpStream


@dataclass(frozen=True, slots=True)
class Connection:
    """An open TCP connection.

    Attributes:
        stream: its bytes.
        is_readable: returns whether received bytes or the end of the stream can be read.
        all_arrived: returns whether the peer has acknowledged every byte sent; None: the system
            cannot tell.
    """

    stream: trio.abc.Stream
    is_readable: Callable[[], bool]
    all_arrived: AllArrived | None = None


class Network(Lookup, Protocol):
    """All network operations of the process, including those of `Lookup`."""

    async def connect(self, address: str, port: int) -> Connection:
        """Open a TCP connection to an IP address.

        Raises:
            OSError: the connection was refused, or the address cannot be reached.
        """

    def listen_tcp(self, host: str, port: int) -> Listener:
        """Listen on a TCP address; see `listener.listen_tcp`."""

    def listen_unix(self, path: Path, group: str | None) -> Listener:
        """Listen on a Unix socket; see `listener.listen_unix`."""


class SystemNetwork:
    """The network of the operating system; by default the C library resolves names."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self._lookup = lookup or SystemLookup()

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Look a name up; see `Lookup`."""
        return await self._lookup.look_up(host)

    async def connect(self, address: str, port: int) -> Connection:
        """Connect a socket; see `Network.connect`."""
        plain = socket.socket(
            socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM
        )
        connecting = trio.socket.from_stdlib_socket(plain)
        try:
            await connecting.connect((address, port))
            stream = TcpStream(plain)
        except BaseException:
            connecting.close()
            raise
        return Connection(stream, stream.is_readable, all_arrived(plain.fileno))

    listen_tcp = staticmethod(listen_tcp)
    listen_unix = staticmethod(listen_unix)
