"""HTTP server of the simulated web.

One HTTP/1.1 listener serves every site, chosen by the Host header or, if hosts are addresses, by
the address the client connected to. The request loop is hand-written because it must be much
cheaper than the crawlers measured against it: read a header, ask the site, record the request in
the ledger, send the response. It accepts what crawlers send (GET and HEAD, keep-alive, pipelining,
a body of known length, which it discards) and answers 400 to everything else.

Rule 1: the time of a request is that at which the system had its header: on a busy machine this
process may read it much later, and gaps would seem shorter or longer than they were.
Rule 2: a request is in the ledger before its response is sent.
Rule 3: only loopback clients on loopback addresses are served, whatever the listener is bound to.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Final, Protocol

import trio

from crawld.errors import OperatorError
from crawld.simweb.ledger import Ledger, LedgerRow
from crawld.simweb.message import AbnormalEnd, SimRequest, SimResponse, build_error_response

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 1024 * 1024
PRECISION_S = 0.001
"""How precise the time of a request is."""

_RECEIVE_BYTES = 64 * 1024
_HEAD_END = b"\r\n\r\n"
_NO_LINGER = b"\x01\x00\x00\x00\x00\x00\x00\x00"


class HostedSite(Protocol):
    """A site that answers for some hosts."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names it answers to."""

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request."""


_STAMP: Final = struct.Struct("@qq")
_STAMP_BYTES: Final = socket.CMSG_SPACE(_STAMP.size)
_SO_TIMESTAMPNS: Final = 35
"""Socket option of Linux: say when the system received what is read, seconds and nanoseconds."""

Stream = trio.abc.Stream
Reset = Callable[[], None]
"""Breaks a connection so that its client sees a reset."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Scheme, address and port of the simulated web."""

    scheme: str
    address: str
    port: int

    def url(self, host: str = "", path: str = "/") -> str:
        """Return the URL of a path at a host (by default at the address itself)."""
        return f"{self.scheme}://{host or self.address}:{self.port}{path}"


class SimWeb:
    """All sites behind one port.

    Args:
        sites: the sites; a host may belong to one site only.
        clock: wall clock of the simulated web, Unix seconds.
        port: TCP port; 0 for a free one.
        any_loopback: listen on all of 127.0.0.0/8 instead of 127.0.0.1 only.
        tls: serve HTTPS with this context.

    Raises:
        OperatorError: two sites claim one host.
    """

    def __init__(
        self,
        sites: Iterable[HostedSite],
        *,
        clock: Callable[[], float] = time.time,
        ledger: Ledger | None = None,
        port: int = 0,
        any_loopback: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.ledger = Ledger() if ledger is None else ledger
        self.clock = clock
        self._port = port
        self._any_loopback = any_loopback
        self._tls = tls
        self.scheme = "http" if tls is None else "https"
        self._serial = 0
        self._sites: dict[str, HostedSite] = {}
        for site in sites:
            self.add(site)

    def add(self, site: HostedSite) -> None:
        """Add a site; works while serving."""
        for host in site.hosts:
            if self._sites.setdefault(host.lower(), site) is not site:
                raise OperatorError(f"two simulated sites claim the host {host}")

    async def serve(
        self, *, task_status: trio.TaskStatus[ServerAddress] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled; report a `ServerAddress` when connections are accepted."""
        bound = "0.0.0.0" if self._any_loopback else "127.0.0.1"
        listeners = await trio.open_tcp_listeners(self._port, host=bound)
        for listener in listeners:
            if sys.platform == "linux":  # the connections inherit it
                listener.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        port = listeners[0].socket.getsockname()[1]
        listening = ServerAddress(self.scheme, "127.0.0.1", port)
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, self._accept, listeners)
            task_status.started(listening)

    async def _accept(self, plain: trio.SocketStream) -> None:
        stream: Stream = plain
        if self._tls is not None:
            stream = trio.SSLStream(plain, self._tls, server_side=True, https_compatible=True)
        try:
            local, peer = plain.socket.getsockname()[0], plain.socket.getpeername()[0]
            if ip_address(local).is_loopback and ip_address(peer).is_loopback:
                reset = partial(_reset, plain)
                connection = _Connection(self, stream, plain, reset, local=local, peer=peer)
                await connection.run()
            await stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            await trio.aclose_forcefully(plain)

    async def serve_stream(
        self, stream: trio.abc.Stream, reset: Reset, *, local: str, peer: str
    ) -> None:
        """Serve one connection that is no socket, until either side ends it.

        Args:
            reset: breaks the connection as a reset of TCP does.
            local, peer: addresses of the server and the client, for the ledger.
        """
        try:
            await _Connection(self, stream, None, reset, local=local, peer=peer).run()
            await stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.aclose_forcefully(stream)

    def handle(self, request: SimRequest, *, address: str) -> SimResponse:
        """Return the response to a request sent to `address`; 421 if no site has its host."""
        site = self._sites.get(request.host) or self._sites.get(address)
        return build_error_response(request, 421) if site is None else site.handle(request)

    def next_serial(self) -> int:
        """Return the number of the next request."""
        self._serial += 1
        return self._serial - 1


def _monotonic(at: float) -> float:
    """Return the monotonic time of a wall-clock time (Unix seconds) not in the future."""
    while True:
        now_s, wall_s = trio.current_time(), time.time()
        if trio.current_time() < now_s + PRECISION_S:  # else this process lost its core between
            return now_s - max(wall_s - at, 0.0)


def _reset(plain: trio.SocketStream) -> None:
    plain.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, _NO_LINGER)
    plain.socket.close()


class _Connection:
    """One connection: requests and responses in turn until either side closes it.

    Only a plain socket, if there is one, tells when the system had its bytes.
    """

    __slots__ = (
        "_arrived_s",
        "_buffer",
        "_first_byte_s",
        "_local",
        "_peer",
        "_plain",
        "_reset",
        "_stream",
        "_web",
    )

    def __init__(
        self,
        web: SimWeb,
        stream: Stream,
        plain: trio.SocketStream | None,
        reset: Reset,
        *,
        local: str,
        peer: str,
    ) -> None:
        self._web = web
        self._stream = stream
        self._plain = plain
        self._reset = reset
        self._local = local
        self._peer = peer
        self._buffer = bytearray()
        self._first_byte_s = self._arrived_s = 0.0

    async def run(self) -> None:
        while (head := await self._head()) is not None:
            request = self._request(head)
            response = self._respond(request)
            self._record(request, response.status)
            keep = await self._send(response)
            if not keep or not _keeps_alive(head, request):
                return
            if not await self._discard_body(request):
                return

    async def _head(self) -> str | None:
        """Return the next header, without its end; None if the client sends no more."""
        buffer = self._buffer
        self._first_byte_s = self._arrived_s
        while (end := buffer.find(_HEAD_END)) < 0:
            if len(buffer) > MAX_HEAD_BYTES:
                return None
            data = await self._receive()
            if not data:
                return None
            if not buffer:
                self._first_byte_s = self._arrived_s
            buffer += data
        head = buffer[:end].decode("latin-1")
        del buffer[: end + 4]
        return head

    async def _receive(self) -> bytes:
        """Return the next bytes, and note when the system had the last of them."""
        plain = self._plain
        if plain is None or self._stream is not plain:
            data = bytes(await self._stream.receive_some(_RECEIVE_BYTES))
            self._arrived_s = trio.current_time()
            return data
        data, stamps, *_ = await plain.socket.recvmsg(_RECEIVE_BYTES, _STAMP_BYTES)
        self._arrived_s = trio.current_time()
        for _, _, stamp in stamps:
            seconds, nanoseconds = _STAMP.unpack(stamp)
            self._arrived_s = _monotonic(seconds + nanoseconds * 1e-9)
        return data

    def _request(self, head: str) -> SimRequest:
        line, *fields = head.split("\r\n")
        headers = {}
        for field in fields:
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        method, _, rest = line.partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            target = ""
        host = headers.get("host") or self._local
        origin = f"{self._web.scheme}://{host}"
        at, serial = self._web.clock(), self._web.next_serial()
        return SimRequest(method, target, headers, _host_name(host), origin, at, serial)

    def _respond(self, request: SimRequest) -> SimResponse:
        if not request.target.startswith("/") or "transfer-encoding" in request.headers:
            return SimResponse(400, build_error_response(request, 400).wire, close=True)
        return self._web.handle(request, address=self._local)

    def _record(self, request: SimRequest, status: int) -> None:
        headers = request.headers
        row = LedgerRow(
            self._first_byte_s,
            self._arrived_s,
            request.at,
            request.host,
            self._peer,
            self._local,
            request.target,
            status,
            headers.get("user-agent", ""),
            headers.get("if-none-match", ""),
            headers.get("if-modified-since", ""),
        )
        self._web.ledger.record(row)

    async def _send(self, response: SimResponse) -> bool:
        """Send a response; return whether the connection stays open."""
        if isinstance(response.wire, bytes):
            await self._stream.send_all(response.wire)
            return not response.close
        for step in response.wire:
            if isinstance(step, bytes):
                await self._stream.send_all(step)
            elif isinstance(step, AbnormalEnd):
                await self._end(step)
                return False
            else:
                await trio.sleep(step)
        return not response.close

    async def _end(self, end: AbnormalEnd) -> None:
        if end is AbnormalEnd.HALF_CLOSE and isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()
        if end in (AbnormalEnd.HANG, AbnormalEnd.HALF_CLOSE):
            # A silent server notices only by reading that its client has closed the connection.
            while await self._stream.receive_some(_RECEIVE_BYTES):
                pass
        elif end is AbnormalEnd.RESET:
            self._reset()

    async def _discard_body(self, request: SimRequest) -> bool:
        declared = request.headers.get("content-length", "0")
        left = int(declared) if declared.isascii() and declared.isdigit() else MAX_BODY_BYTES + 1
        if left > MAX_BODY_BYTES:
            return False
        while left > len(self._buffer):
            data = await self._stream.receive_some(_RECEIVE_BYTES)
            if not data:
                return False
            self._buffer += data
        del self._buffer[:left]
        return True


def _keeps_alive(head: str, request: SimRequest) -> bool:
    connection = request.headers.get("connection", "").lower()
    if head.partition("\r\n")[0].endswith("HTTP/1.0"):
        return connection == "keep-alive"
    return connection != "close"


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
