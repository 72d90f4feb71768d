"""Limits of a server, and which client gives way when one is reached.

A server is full because its clients keep it waiting: they are idle, send their request slowly, or
do not read. So the one that has kept it waiting longest is closed in favour of a new one; if all
are prompt, the new one is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from itertools import chain, takewhile
from typing import Final, Protocol

import trio

MIB: Final = 1 << 20

SMALL_BODY_BYTES: Final = 64 * 1024
"""Bodies up to this size are not counted: the limit of connections bounds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one listener.

    Attributes:
        max_connections: open connections.
        max_client_connections: open connections of one client (an IPv4 address, a /64 of IPv6).
        max_requests: requests that the application answers at once; more are refused.
        max_streams: responses that are sent in parts for as long as their client reads; more are
            refused, and they are the first to give way to other connections.
        max_waiting_bytes: response bodies that are being sent, counted once if shared.
        max_header_bytes: the request header.
        max_header_lines: lines of the request header.
        max_body_bytes: the request body.
        idle_s: time until the first byte of a request.
        header_s: time for the header of a request, from its first byte.
        body_s: time for the body of a request.
        stall_s: time in which a client must read a piece of the response.
        patience_s: a connection that keeps the server waiting longer may be closed for another.
    """

    max_connections: int = 1_024
    max_client_connections: int = 512
    max_requests: int = 256
    max_streams: int = 128
    max_waiting_bytes: int = 64 * MIB
    max_header_bytes: int = 32 * 1024
    max_header_lines: int = 200
    max_body_bytes: int = 64 * 1024
    idle_s: float = 15.0
    header_s: float = 10.0
    body_s: float = 60.0
    stall_s: float = 20.0
    patience_s: float = 2.0


class ServedConnection(Protocol):
    """A connection that can be closed.

    Attributes:
        client: key of its client.
    """

    client: str

    def close(self) -> None:
        """Close it soon; called once."""


def client_key(address: str) -> str:
    """Return the key of the client at an IP address: a network of IPv6 is one client.

    >>> client_key("2001:db8::1:2:3:4"), client_key("192.0.2.1"), client_key("")
    ('2001:db8::', '192.0.2.1', '')
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)


class Clients:
    """The open connections of a server, and the bodies they are being sent."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._open: dict[ServedConnection, None] = {}
        self._per_client: Counter[str] = Counter()
        self._waiting: dict[ServedConnection, float] = {}  # since when; the longest first
        self._bodies: dict[int, tuple[bytes, int]] = {}  # by id: equal objects are counted once
        self._held: dict[ServedConnection, bytes] = {}
        self._streams: dict[ServedConnection, None] = {}  # the oldest first
        self.waiting_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: ServedConnection) -> bool:
        """Add a new connection, in place of one that keeps the server waiting if there are many."""
        client, limits = connection.client, self._limits
        own_full = self._per_client[client] >= limits.max_client_connections
        if own_full and not self._evict(client):
            return False
        if len(self._open) >= limits.max_connections and not self._evict():
            return False
        self._open[connection] = None
        self._per_client[client] += 1
        return True

    def remove(self, connection: ServedConnection) -> None:
        """Forget a connection and its body; does nothing if it was evicted."""
        if connection in self._open:
            del self._open[connection]
            self._per_client[connection.client] -= 1
            if not self._per_client[connection.client]:
                del self._per_client[connection.client]
        self.stop_waiting(connection)
        self.release(connection)
        self.end_stream(connection)

    def start_stream(self, connection: ServedConnection) -> bool:
        """Note that a response is sent in parts; return False if there are too many of them."""
        if len(self._streams) >= self._limits.max_streams:
            return False
        if connection in self._open:
            self._streams[connection] = None
        return True

    def end_stream(self, connection: ServedConnection) -> None:
        """Note that the last part was sent."""
        self._streams.pop(connection, None)

    def start_waiting(self, connection: ServedConnection) -> None:
        """Note that the server waits for a client from now on."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            self._waiting[connection] = trio.current_time()

    def stop_waiting(self, connection: ServedConnection) -> None:
        """Note that a client did its part."""
        self._waiting.pop(connection, None)

    def hold(self, connection: ServedConnection, body: bytes) -> bool:
        """Count a body that will be sent; return False if there is no room for it.

        One body alone always has room.
        """
        if len(body) <= SMALL_BODY_BYTES:
            return True
        limit = self._limits.max_waiting_bytes
        new_bytes = 0 if id(body) in self._bodies else len(body)
        while new_bytes and self.waiting_bytes and self.waiting_bytes + new_bytes > limit:
            if not self._evict(holds=True):
                return False
            new_bytes = 0 if id(body) in self._bodies else len(body)
        kept, count = self._bodies.get(id(body), (body, 0))
        self._bodies[id(body)] = kept, count + 1
        self._held[connection] = body
        self.waiting_bytes += new_bytes
        return True

    def release(self, connection: ServedConnection) -> None:
        """Stop counting the body of a connection."""
        body = self._held.pop(connection, None)
        if body is None:
            return
        _, count = self._bodies.pop(id(body))
        if count > 1:
            self._bodies[id(body)] = body, count - 1
        else:
            self.waiting_bytes -= len(body)

    def _evict(self, client: str | None = None, *, holds: bool = False) -> bool:
        """Close the connection (of a client, with a body) that has kept the server waiting longest.

        If none has for longer than `patience_s`, the oldest stream goes: its client connects again.
        Returns False if there is none of either.
        """
        limit_at = trio.current_time() - self._limits.patience_s
        late = takewhile(lambda each: each[1] <= limit_at, self._waiting.items())
        for connection in chain((connection for connection, _ in late), self._streams):
            if client in (None, connection.client) and (not holds or connection in self._held):
                self.remove(connection)
                connection.close()
                return True
        return False
