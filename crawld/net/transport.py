"""An httpx transport over one connection, and the pool of idle connections.

`OriginTransport` is an `httpx.AsyncBaseTransport` that holds exactly one httpcore connection to one
endpoint. httpx's client and httpcore's pool are not used: the cost of that pool grows with the
square of its connections.

`IdleConnections` orders connections by the time they became idle: the first is the next to be
evicted and the next to expire, so that no background task or scan is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Protocol, cast

import httpcore
import httpx
import trio

from crawld.net.errors import REMOTE_ERRORS
from crawld.net.progress import Progress
from crawld.net.wire import Endpoint, Wire


class _ByteStream(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class _ResponseStream(httpx.AsyncByteStream):
    """httpcore's response body as an httpx stream: bytes as sent."""

    __slots__ = ("_chunks", "_stream", "_wire")

    def __init__(self, stream: _ByteStream, wire: Wire) -> None:
        self._stream = stream
        self._chunks = stream.__aiter__()
        self._wire = wire

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """End the exchange; if bytes are unread, drop them and the connection."""
        # An asynchronous generator must be exhausted, or the garbage collector ends it. It yields
        # the buffered bytes; then the wire, which has no fetch, refuses to read.
        self._wire.progress = None
        try:
            async for _ in self._chunks:
                pass
        except REMOTE_ERRORS:
            pass
        await self._stream.aclose()


class OriginTransport(httpx.AsyncBaseTransport):
    """One connection to one endpoint.

    Attributes:
        requests: how many were sent on it.
        idle_since: when the last exchange ended (trio clock).
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self.endpoint = endpoint
        self.wire = wire
        self.requests = 0
        self.idle_since = 0.0
        self.url = httpx.URL(f"{endpoint.scheme}://{endpoint.host}:{endpoint.port}/")
        self._scheme = endpoint.scheme.encode("ascii")
        self._host = endpoint.host.encode("ascii")
        origin = httpcore.Origin(self._scheme, self._host, endpoint.port)
        kind = (
            httpcore.AsyncHTTP2Connection if wire.speaks_http2() else httpcore.AsyncHTTP11Connection
        )
        self._connection = kind(origin, wire)

    def begin(self, progress: Progress) -> None:
        """Apply the limits of a fetch to the next exchange."""
        progress.reused = self.requests > 0
        progress.address = self.wire.address
        self.wire.progress = progress

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return when the response header is complete.

        The request's `target` extension is sent instead of its URL, because httpx would change the
        spelling of some canonical URLs.

        Raises:
            httpcore errors (`errors.REMOTE_ERRORS`) and `FetchError`.
        """
        self.requests += 1
        target: bytes = request.extensions["target"]
        url = httpcore.URL(
            scheme=self._scheme, host=self._host, port=self.endpoint.port, target=target
        )
        response = await self._connection.handle_async_request(
            httpcore.Request(request.method, url, headers=request.headers.raw)
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_ResponseStream(cast("_ByteStream", response.stream), self.wire),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()

    def is_idle(self) -> bool:
        """Whether the last exchange ended properly and left the connection open."""
        return self._connection.is_idle()

    def is_reusable(self) -> bool:
        """Whether another request may be sent: idle, no unread bytes, not closed by the peer."""
        connection = self._connection
        if not connection.is_idle() or self.wire.readable():
            return False
        if isinstance(connection, httpcore.AsyncHTTP2Connection):
            return connection.is_available()
        # Bytes beyond the declared length would be read as the next response. Only private state of
        # the library reveals them.
        leftover, _ = connection._h11_state.trailing_data
        return not leftover


class IdleConnections:
    """Idle connections, at most one per endpoint, each kept for `idle_s` seconds."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._idle: OrderedDict[Endpoint, OriginTransport] = OrderedDict()

    def __len__(self) -> int:
        return len(self._idle)

    async def take(self, endpoint: Endpoint) -> OriginTransport | None:
        """Return the idle connection of an endpoint; None if there is none or it was closed."""
        transport = self._idle.pop(endpoint, None)
        if transport is None:
            return None
        if transport.is_reusable():
            return transport
        await transport.aclose()
        return None

    async def put(self, transport: OriginTransport) -> None:
        """Keep a connection for later; a second one to the same endpoint is closed."""
        if transport.endpoint in self._idle:
            await transport.aclose()
            return
        transport.wire.progress = None
        transport.idle_since = trio.current_time()
        self._idle[transport.endpoint] = transport

    async def evict(self, count: int) -> None:
        """Close the connections that have been idle for longest."""
        for _ in range(min(count, len(self._idle))):
            _, transport = self._idle.popitem(last=False)
            await transport.aclose()

    async def sweep(self) -> int:
        """Close connections that have been idle for too long and return how many."""
        before = trio.current_time() - self._idle_s
        closed = 0
        while self._idle and next(iter(self._idle.values())).idle_since < before:
            await self.evict(1)
            closed += 1
        return closed
