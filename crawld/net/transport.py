"""An httpx transport over one connection, and the pool of idle connections.

`OriginTransport` is an `httpx.AsyncBaseTransport` that holds exactly one connection to one
endpoint: that of `http1_llhttp.py`, without the extra `fast` of `http1.py`; for HTTP/2 that of
httpcore. httpx's client and httpcore's pool are not used: the cost of that pool grows with the
square of its connections.

`IdleConnections` orders connections by the time they became idle: the first is the next to be
evicted and the next to expire, so that no background task or scan is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

import httpcore
import httpx
import structlog
import trio

from crawld.net.connection import ByteStream, HttpConnection
from crawld.net.errors import REMOTE_ERRORS, FetchError
from crawld.net.http1 import Http1Connection
from crawld.net.http2 import Http2Connection
from crawld.net.progress import Progress
from crawld.net.wire import Endpoint, Wire

try:
    from crawld.net.http1_llhttp import LlhttpConnection
except ImportError:  # without the extra `fast`
    http1_connection: Callable[[Wire], HttpConnection] = Http1Connection
else:
    http1_connection = LlhttpConnection

log = structlog.get_logger(__name__)

_PAUSE_CHUNKS = 64
"""Unread chunks dropped in one turn of the event loop."""


class _ResponseStream(httpx.AsyncByteStream):
    """The body of a response as an httpx stream; what fails in a library is the peer's fault."""

    __slots__ = ("_chunks", "_stream", "_wire")

    def __init__(self, stream: ByteStream, wire: Wire) -> None:
        self._stream = stream
        self._chunks = stream.__aiter__()
        self._wire = wire

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._chunks.__anext__()
        except (StopAsyncIteration, FetchError, *REMOTE_ERRORS):
            raise
        except Exception as error:
            raise _unforeseen(error) from error

    async def aclose(self) -> None:
        """End the exchange; if bytes are unread, drop them and the connection."""
        # An asynchronous generator must be exhausted, or the garbage collector ends it. It yields
        # the buffered bytes; then the wire, which has no fetch, refuses to read.
        self._wire.progress = None
        chunks = 0
        try:
            async for _ in self:
                chunks += 1
                if not chunks % _PAUSE_CHUNKS:
                    await trio.lowlevel.checkpoint()
        except (FetchError, *REMOTE_ERRORS):
            pass
        await self._stream.aclose()


def _unforeseen(error: Exception) -> httpcore.RemoteProtocolError:
    """Return the error of an exchange in which the HTTP library failed in a way of its own.

    The cause is what the peer sent: the library parses it, and got a correct request.
    """
    log.warning("http_library_failed", error=type(error).__name__, detail=str(error)[:200])
    return httpcore.RemoteProtocolError(f"{type(error).__name__}: {error}")


class OriginTransport(httpx.AsyncBaseTransport):
    """One connection to one endpoint.

    Attributes:
        http2: whether it speaks HTTP/2.
        requests: how many were sent on it.
        idle_since: when the last exchange ended (trio clock).
    """

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self.endpoint = endpoint
        self.wire = wire
        self.requests = 0
        self.idle_since = 0.0
        self.url = httpx.URL(f"{endpoint.scheme}://{endpoint.host}:{endpoint.port}/")
        self.http2 = wire.frames is not None
        self._connection: HttpConnection
        if self.http2:
            scheme, host = endpoint.scheme.encode("ascii"), endpoint.host.encode("ascii")
            self._connection = Http2Connection(httpcore.Origin(scheme, host, endpoint.port), wire)
        else:
            self._connection = http1_connection(wire)

    def begin(self, progress: Progress) -> None:
        """Apply the limits of a fetch to the next exchange."""
        progress.reused = self.requests > 0
        self.wire.begin(progress)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a GET request and return when the response header is complete.

        The request's `target` extension is sent instead of its URL, because httpx would change the
        spelling of some canonical URLs.

        Raises:
            httpcore errors (`errors.REMOTE_ERRORS`) and `FetchError`.
        """
        self.requests += 1
        target: bytes = request.extensions["target"]
        try:
            head, stream = await self._connection.send(target, request.headers.raw)
        except (FetchError, *REMOTE_ERRORS):
            raise
        except Exception as error:
            raise _unforeseen(error) from error
        return httpx.Response(
            head.status,
            headers=head.headers,
            stream=_ResponseStream(stream, self.wire),
            extensions={"http_version": head.version, "reason_phrase": head.reason},
        )

    async def aclose(self) -> None:
        """Close the connection."""
        try:
            await self._connection.aclose()
        except Exception as error:
            # HTTP/2 says goodbye first, in whatever state the peer left the connection.
            _unforeseen(error)
            await self.wire.aclose()

    def is_whole(self) -> bool:
        """Whether the response has come to its end, so that its body needs no further read."""
        return self._connection.is_whole()

    def end_nowait(self) -> bool:
        """End an exchange whose body was read to its end; False: closing its stream must."""
        return self._connection.end_nowait()

    def is_idle(self) -> bool:
        """Whether the last exchange ended properly and left the connection open."""
        return self._connection.is_idle()

    def is_reusable(self) -> bool:
        """Whether another request may be sent: idle, no unread bytes, not closed by the peer."""
        return self.is_idle() and not self.wire.readable() and self._connection.is_available()


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

    def put(self, transport: OriginTransport) -> bool:
        """Keep a connection for later; False: there is one to the same endpoint already."""
        if self._idle.setdefault(transport.endpoint, transport) is not transport:
            return False
        transport.wire.progress = None
        transport.idle_since = trio.current_time()
        return True

    async def evict(self, count: int) -> None:
        """Close the connections that have been idle for longest."""
        for _ in range(min(count, len(self._idle))):
            _, transport = self._idle.popitem(last=False)
            await transport.aclose()

    def are_overdue(self, now: float) -> bool:
        """Whether any connection has been idle for too long at a time (trio clock)."""
        return bool(self._idle) and next(iter(self._idle.values())).idle_since < now - self._idle_s

    async def sweep(self) -> int:
        """Close connections that have been idle for too long and return how many."""
        now = trio.current_time()
        closed = 0
        while self.are_overdue(now):
            await self.evict(1)
            closed += 1
        return closed
