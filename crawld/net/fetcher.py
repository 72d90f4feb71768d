"""The fetcher: one GET request from connection to decoded body.

It takes or opens a connection, sends the request, reads and decodes the response within its limits,
and keeps or closes the connection. It never follows a redirect, repeats a request, keeps a cookie
or reads proxy settings from the environment: the caller decides on each request, because each must
wait for its politeness slot.

Invariants: a connection is closed unless its response was read to the end; a connection that may
have a private address is never used for a request without that permission; a kept-alive connection
that the peer closed is detected before a request is sent on it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from itertools import count
from typing import cast

import httpx
import trio

from crawld.core.page import Failure
from crawld.marks import NO_MARKS, Marks
from crawld.memory import MIB, MemoryBudget
from crawld.net.arrival import ArrivalWatch
from crawld.net.body import BodyReader
from crawld.net.body_buffer import BodyBuffer
from crawld.net.errors import REMOTE_ERRORS, FetchError, NoFilesError, http_error
from crawld.net.exchange import (
    FetchFailure,
    FetchRequest,
    FetchResponse,
    Headers,
    HeaderValue,
    header_value,
)
from crawld.net.network import Network, SystemNetwork
from crawld.net.outgoing import (
    Target,
    default_headers,
    encode_headers,
    header_lines,
    request_target,
)
from crawld.net.partial import start_headers, whole_headers
from crawld.net.progress import Progress
from crawld.net.resolver import ResolutionError, Resolver
from crawld.net.response_headers import check_headers, check_length
from crawld.net.secret_echo import remove_secrets
from crawld.net.tls import client_context
from crawld.net.transport import IdleConnections, OriginTransport
from crawld.net.wire import Endpoint, Wire, open_wire

IDLE_S = 60.0
MAX_CONNECTIONS = 20_000

FILE_TRIES = 20
FILE_WAIT_S = 0.25
FILES_FREED = 4
"""Idle connections closed when there is no file for another."""

_CLOSE = (b"Connection", b"close")

_CUT_OFF = "TLS ended without close_notify and the body has no length: it may be cut"


@dataclass(frozen=True, slots=True)
class FetcherStatistics:
    """Counts of a fetcher: `active` and `idle` are current, the others since start."""

    active: int
    idle: int
    requests: int
    connections: int
    reused: int


_NO_BODY = httpx.ByteStream(b"")


class Fetcher:
    """Fetches URLs; keeps at most one idle connection per origin.

    Args:
        user_agent: names crawld and the operator's contact address.
        resolver: resolves host names.
        network: connects to addresses; None: the network of the operating system.
        ssl_context: for https; None trusts the system's certificate authorities.
        http2: whether to offer HTTP/2 to https hosts.
        max_connections: limit of open connections, idle ones included.
        idle_s: how long an idle connection is kept.
        budget: memory of bodies; None: no limit but those of each request.
        marks: notes which body is being decoded.

    Attributes:
        arrivals: its `run` notices when requests arrive at slow servers.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        resolver: Resolver,
        network: Network | None = None,
        ssl_context: ssl.SSLContext | None = None,
        http2: bool = False,
        max_connections: int = MAX_CONNECTIONS,
        idle_s: float = IDLE_S,
        budget: MemoryBudget | None = None,
        marks: Marks = NO_MARKS,
    ) -> None:
        self.arrivals = ArrivalWatch()
        self._budget = budget
        self._resolver = resolver
        self._network = network or SystemNetwork()
        self._ssl_context = ssl_context or client_context()
        self._http2 = http2
        self._defaults = default_headers(user_agent)
        self._max_connections = max_connections
        self._slots = trio.Semaphore(max_connections)
        self._idle = IdleConnections(idle_s)
        self._marks = marks
        self._active = 0
        self._requests = 0
        self._connections = 0
        self._reused = 0

    async def fetch(self, request: FetchRequest) -> FetchResponse | FetchFailure:
        """Fetch one URL.

        Returns:
            The complete response, with any status, or a `FetchFailure`. A remote fault never
            raises. Cancellation does, and closes the connection.
        """
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            await self._slots.acquire()
        self._active += 1
        try:
            return remove_secrets(await self._within_limits(request), request)
        finally:
            self._active -= 1
            self._slots.release()

    async def sweep(self) -> int:
        """Close connections that have been idle for too long and return how many.

        Each fetch does this too; call it when fetches are rare.
        """
        return await self._idle.sweep()

    async def aclose(self) -> None:
        """Close every idle connection, also in a cancelled scope; this waits for no peer."""
        with trio.CancelScope(shield=True):
            await self._idle.evict(len(self._idle))

    def statistics(self) -> FetcherStatistics:
        """Return the counts of this fetcher."""
        return FetcherStatistics(
            self._active, len(self._idle), self._requests, self._connections, self._reused
        )

    async def _within_limits(self, request: FetchRequest) -> FetchResponse | FetchFailure:
        request = self._within_budget(request)
        progress = Progress(request.limits)
        try:
            with progress.scope:
                target = request_target(request, http2=self._http2)
                transport = await self._connection(target.endpoint, progress)
                return await self._exchange(transport, target, request, progress)
            fault = self._timeout(progress)
        except FetchError as raised:
            # Its traceback would hold this frame, and this frame all pieces of the body.
            fault = raised.with_traceback(None)
        except REMOTE_ERRORS as error:
            fault = http_error(error, progress)
        return FetchFailure(
            failure=fault.failure,
            detail=fault.detail,
            address=progress.address,
            sent_at=progress.sent_at,
            at=trio.current_time(),
            status=progress.status,
            headers=progress.headers,
            local_fault=fault.local,
            reused=progress.reused,
            received_bytes=progress.received_bytes,
            partial=progress.partial,
        )

    def _timeout(self, progress: Progress) -> FetchError:
        if progress.evicted:
            text = "it came slowly, and others waited for the memory that it took"
            return FetchError(Failure.MEMORY, text, local=True)
        if self._budget is None or not progress.lacked_memory():
            return FetchError(Failure.TIMEOUT, progress.timeout_detail())
        total_s, limit_mb = progress.limits.total_s, self._budget.shares.limit_bytes // MIB
        text = f"not complete after {total_s:g} s, because others used the {limit_mb} MiB of memory"
        return FetchError(Failure.MEMORY, text, local=True)

    def _buffer(self, host: str, headers: Headers, progress: Progress) -> BodyBuffer:
        coding = header_value(headers, "content-encoding") or ""
        return BodyBuffer(self._budget, progress, host, has_window="zstd" in coding.lower())

    def _within_budget(self, request: FetchRequest) -> FetchRequest:
        """Lower the limit of the body to what the memory budget can hold."""
        budget, limits = self._budget, request.limits
        if budget is None or limits.max_body_bytes <= budget.max_body_bytes:
            return request
        lowered = replace(limits, max_body_bytes=budget.max_body_bytes)
        return request if request.receive else replace(request, limits=lowered)

    async def _connection(self, endpoint: Endpoint, progress: Progress) -> OriginTransport:
        """Return the idle connection to an endpoint, or a new one."""
        kept = await self._idle.take(endpoint)
        if kept is not None:
            if await self._leads_to(endpoint, kept.wire.address):
                self._reused += 1
                return kept
            await kept.aclose()
        await self._idle.evict(self._active + len(self._idle) - self._max_connections)
        wire = await self._open_wire(endpoint, progress)
        self._connections += 1
        return OriginTransport(endpoint, wire)

    async def _leads_to(self, endpoint: Endpoint, address: str) -> bool:
        """Whether an endpoint is still at an address, whose delay the schedule keeps.

        A lookup has its own limit of time.
        """
        if endpoint.proxy is not None:
            return True
        host = endpoint.host.removeprefix("[").removesuffix("]")
        try:
            return address in await self._resolver.resolve(host)
        except ResolutionError:
            return False

    async def _open_wire(self, endpoint: Endpoint, progress: Progress) -> Wire:
        """Open a connection; without a free file, close an idle one or wait for one."""
        for tries in count(1):
            try:
                return await open_wire(
                    endpoint,
                    progress,
                    network=self._network,
                    resolver=self._resolver,
                    ssl_context=self._ssl_context,
                    arrivals=self.arrivals,
                )
            except NoFilesError:
                if tries == FILE_TRIES:
                    raise
            if len(self._idle):
                await self._idle.evict(FILES_FREED)
            else:
                await trio.sleep(FILE_WAIT_S)
        raise AssertionError

    async def _exchange(
        self, transport: OriginTransport, target: Target, request: FetchRequest, progress: Progress
    ) -> FetchResponse:
        """Send the request and read the response; keep the connection if it was read to the end."""
        self._requests += 1
        transport.begin(progress)
        stream: httpx.AsyncByteStream | None = None
        buffer: BodyBuffer | None = None
        body: BodyReader | None = None
        whole = False
        try:
            response = await transport.handle_async_request(
                self._httpx_request(transport, target, request)
            )
            stream = cast("httpx.AsyncByteStream", response.stream)
            headers = tuple(response.headers.raw)
            # What paces or takes pieces of a body may wait after its last read.
            at_once = request.max_bytes_per_s is None and request.receive is None
            is_whole = at_once and transport.is_whole()
            arrived_at = progress.note_header(response.status_code, headers, is_whole=is_whole)
            check_headers(response.status_code, headers)
            buffer = self._buffer(target.endpoint.host, headers, progress)
            body = BodyReader(request, response.status_code, headers, buffer, self._marks)
            content = await body.read(stream)
            if progress.cut_off and not (body.cut or body.proves_end):
                raise FetchError(Failure.TRUNCATED, _CUT_OFF)
            if transport.http2 and not body.cut:
                check_length(response.status_code, headers, body.wire_bytes)
            whole = not body.cut
        except BaseException:
            if body is not None and not progress.evicted:
                progress.partial = body.take_partial()
            if buffer is not None and progress.partial is None:
                buffer.discard()
            raise
        finally:
            await self._release(transport, stream, keep=whole and request.keep_alive)
        extensions = response.extensions
        status, ended_at = response.status_code, trio.current_time()
        if body.is_rest or body.is_start:
            status, headers = 200, whole_headers(headers, len(content))
        return FetchResponse(
            status=status,
            reason=extensions.get("reason_phrase", b"").decode("latin-1"),
            http_version=extensions["http_version"].decode("ascii"),
            headers=headers,
            body=content,
            wire_bytes=body.wire_bytes,
            address=transport.wire.address,
            sent_at=progress.started_at if progress.sent_at is None else progress.sent_at,
            arrived_at=arrived_at,
            ended_at=ended_at,
            duration_s=ended_at - progress.started_at,
            certificate=transport.wire.certificate,
            cut=body.is_part,
            received_bytes=progress.received_bytes,
            lease=buffer.lease,
        )

    def _httpx_request(
        self, transport: OriginTransport, target: Target, request: FetchRequest
    ) -> httpx.Request:
        given = encode_headers(_headers_of(request))
        lines = header_lines(target, self._defaults, given)
        # HTTP/2 has no such header; the connection is just closed.
        if not request.keep_alive and not transport.http2:
            lines.append(_CLOSE)
        return httpx.Request(
            "GET",
            transport.url,
            headers=httpx.Headers(lines),
            stream=_NO_BODY,
            extensions={"target": target.path},
        )

    async def _release(
        self, transport: OriginTransport, stream: httpx.AsyncByteStream | None, *, keep: bool
    ) -> None:
        kept = keep and transport.end_nowait() and self._idle.put(transport)
        if kept and not self._idle.are_overdue(transport.idle_since):
            return
        # Shielded, so that a cancelled fetch leaves nothing half closed. Nothing here waits for a
        # peer.
        with trio.CancelScope(shield=True):
            if not kept:
                if stream is not None:
                    await stream.aclose()
                if not (keep and transport.is_idle() and self._idle.put(transport)):
                    await transport.aclose()
            await self._idle.sweep()


def _headers_of(request: FetchRequest) -> tuple[tuple[str, HeaderValue], ...]:
    """Return the headers of a request, with those of its range."""
    if request.first_bytes is None:
        return request.headers
    lines = start_headers(request.first_bytes)
    own = {name.lower() for name, _ in lines}
    return (*(each for each in request.headers if each[0].lower() not in own), *lines)
