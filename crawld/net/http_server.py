"""An HTTP/1.1 server for ASGI applications, with limits on everything a client decides.

A client can send slowly, send for ever, never read, or open many connections: time, size and number
of each are limited (`crawld/net/server_limits.py`), and nothing is read ahead of what is answered.
There is no HTTP/2 without TLS, no upgrade and no WebSocket. h11 reads and writes the messages.

hypercorn has no limit of connections, of header time or of HTTP/2 streams without TLS, and sends in
a shielded scope: a client that does not read holds its response, and the end of the process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import h11
import structlog
import trio

from crawld.net.server_limits import Clients, ServerLimits, client_key

log = structlog.get_logger(__name__)

Application: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application."""

RECEIVE_BYTES: Final = 16 * 1024
SEND_BYTES: Final = 64 * 1024
"""A body is sent in pieces of this size: each must be read within `stall_s`."""

DRAINED_BYTES: Final = 256 * 1024
DRAIN_S: Final = 1.0
"""What is read of a refused client, so that it gets the response before the connection closes."""

MAX_REFUSALS: Final = 64
"""Refused clients that are answered at once; more are closed without an answer."""

_BUSY: Final = HTTPStatus.SERVICE_UNAVAILABLE
_CLOSE: Final = (b"connection", b"close")
_RETRY: Final = (b"retry-after", b"2")
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class HttpServer:
    """Serves one application on one listening socket."""

    def __init__(self, app: Application, limits: ServerLimits) -> None:
        self.app = app
        self.limits = limits
        self.clients = Clients(limits)
        self.requests = 0  # answered by the application now
        self._refusals = 0

    async def serve(
        self,
        listener: trio.SocketListener,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled, then close the socket and every connection."""
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(trio.serve_listeners, self._accepted, [listener]))
            task_status.started()

    async def _accepted(self, stream: trio.SocketStream) -> None:
        connection = _Connection(self, stream)
        try:
            if self.clients.admit(connection):
                await connection.run()
            elif self._refusals < MAX_REFUSALS:
                await self._refuse(connection)
        except _GONE:
            pass  # the client's fault
        except Exception:
            # A bug must fail only this connection, not the listener or the daemon.
            log.exception("connection_failed")
        finally:
            self.clients.remove(connection)
            await trio.aclose_forcefully(stream)

    async def _refuse(self, connection: _Connection) -> None:
        self._refusals += 1
        try:
            with trio.move_on_after(DRAIN_S):
                await connection.refuse(_BUSY, _RETRY)
        finally:
            self._refusals -= 1


class _Connection:
    """One connection; its requests are answered one after the other."""

    def __init__(self, server: HttpServer, stream: trio.SocketStream) -> None:
        self._server = server
        self.limits = server.limits
        self._stream = stream
        self._peer, self.client = _peer(stream)
        self._scope = trio.CancelScope()
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=server.limits.max_header_bytes
        )

    def close(self) -> None:
        """Close the connection soon, in favour of another."""
        self._scope.cancel()

    async def run(self) -> None:
        """Answer requests until either side ends the connection."""
        with self._scope:
            while await self._answer_next():
                pass

    async def refuse(self, status: int, *lines: tuple[bytes, bytes]) -> None:
        """Send an empty response, and read on for a moment so that the client gets it.

        Status 0 only does the latter.
        """
        if status and self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = h11.Response(
                status_code=status, headers=[*lines, (b"content-length", b"0"), _CLOSE]
            )
            data = self._http.send(head) or b""
            with trio.move_on_after(self.limits.stall_s):
                await self._stream.send_all(data)
        with trio.move_on_after(DRAIN_S):
            # Closing with unread bytes would reset the connection, and the response be lost.
            await self._stream.send_eof()
            drained = 0
            while drained < DRAINED_BYTES and (data := await self._stream.receive_some()):
                drained += len(data)

    # --- reading -----------------------------------------------------------------------------

    async def _answer_next(self) -> bool:
        """Answer the next request; return whether the connection goes on."""
        try:
            request = await self._next_request()
        except h11.RemoteProtocolError as error:
            await self.refuse(error.error_status_hint)
            return False
        if request is None:
            return False
        refusal = self._refusal(request)
        if refusal is None:
            exchange = _Exchange(self, request)
            refusal = await self._respond(exchange)
            if exchange.is_broken:
                return False
        if refusal is not None:
            await self.refuse(refusal, *((_RETRY,) if refusal == _BUSY else ()))
            return False
        return await self._recycle()

    async def _next_request(self) -> h11.Request | None:
        """Return the next request; None at the end of the connection, or if it stays idle."""
        limits, clients = self.limits, self._server.clients
        clients.start_waiting(self)
        with trio.CancelScope(deadline=trio.current_time() + limits.idle_s) as scope:
            # A pipelined request has begun already.
            begun = bool(self._http.trailing_data[0])
            if begun:
                scope.deadline = trio.current_time() + limits.header_s
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._stream.receive_some(RECEIVE_BYTES))
                if not begun:
                    begun = True
                    scope.deadline = trio.current_time() + limits.header_s
            clients.stop_waiting(self)
            return event if isinstance(event, h11.Request) else None
        return None

    def _refusal(self, request: h11.Request) -> int | None:
        """Return the status with which a request is refused unread; None: it is answered."""
        if request.http_version not in _VERSIONS:
            return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        if len(request.headers) > self.limits.max_header_lines:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        length = next((value for name, value in request.headers if name == b"content-length"), b"0")
        if len(length) > 15 or int(length) > self.limits.max_body_bytes:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        if self._server.requests >= self.limits.max_requests:
            return _BUSY
        return None

    async def read_body(self) -> bytes | None:
        """Return the next piece of the request body, None at its end.

        Raises:
            h11.RemoteProtocolError: it is malformed or cut.
            trio.TooSlowError: it comes too slowly.
        """
        if self._http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        if self._http.their_state is not h11.SEND_BODY:
            return None
        self._server.clients.start_waiting(self)
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._stream.receive_some(RECEIVE_BYTES))
        finally:
            self._server.clients.stop_waiting(self)
        return bytes(event.data) if isinstance(event, h11.Data) else None

    # --- answering ---------------------------------------------------------------------------

    async def _respond(self, exchange: _Exchange) -> int | None:
        """Let the application answer; return the status to refuse the request with, if any."""
        self._server.requests += 1
        try:
            scope = _scope_of(exchange.request, self._peer)
            await self._server.app(scope, exchange.receive, exchange.send)
        except Exception:
            # An application may answer a bug, log it and pass it on.
            if not (exchange.is_complete or exchange.is_broken or exchange.refusal):
                log.exception("request_failed")
        finally:
            exchange.leave_application()
        if exchange.refusal is not None or exchange.is_complete:
            return exchange.refusal
        return HTTPStatus.INTERNAL_SERVER_ERROR

    def leave_application(self) -> None:
        """Note that the application has answered; the rest is up to the client."""
        self._server.requests -= 1

    async def send(self, event: h11.Event) -> None:
        """Send an event other than the body."""
        await self._send_bytes(self._http.send(event) or b"")

    async def send_whole(self, head: h11.Response, body: bytes) -> bool:
        """Send a response; return False if too many bytes wait for slow clients."""
        clients = self._server.clients
        if not clients.hold(self, body):
            return False
        try:
            data = self._http.send(head) or b""
            if len(body) <= SEND_BYTES:
                data += self._http.send(h11.Data(data=body)) or b""
                data += self._http.send(h11.EndOfMessage()) or b""
                await self._send_bytes(data)
            else:
                await self._send_bytes(data)
                await self.send_piece(body)
                await self.send(h11.EndOfMessage())
        finally:
            clients.release(self)
        return True

    def start_stream(self) -> bool:
        """Note that the response is sent in parts; return False if there are too many of them."""
        return self._server.clients.start_stream(self)

    def end_stream(self) -> None:
        """Note that the last part was sent."""
        self._server.clients.end_stream(self)

    async def send_piece(self, body: bytes) -> None:
        """Send a part of a body."""
        view = memoryview(body)
        for start in range(0, len(view), SEND_BYTES):
            piece = view[start : start + SEND_BYTES]
            # h11 takes what has a length and can be joined; the length is all it looks at here.
            for data in self._http.send_with_data_passthrough(h11.Data(data=piece)) or ():  # type: ignore[arg-type]
                await self._send_bytes(data)

    async def _send_bytes(self, data: bytes) -> None:
        clients = self._server.clients
        clients.start_waiting(self)
        try:
            with trio.fail_after(self.limits.stall_s):
                await self._stream.send_all(data)
        finally:
            clients.stop_waiting(self)

    async def _recycle(self) -> bool:
        """Prepare for the next request; return False if the connection must close."""
        if self._http.our_state is not h11.DONE:
            return False
        if self._http.their_state is h11.SEND_BODY and not await self._skip_body():
            await self.refuse(0)
            return False
        if self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def _skip_body(self) -> bool:
        """Read what the application left of a body; return False if it is too much."""
        skipped = 0
        with trio.move_on_after(DRAIN_S):
            try:
                while skipped < DRAINED_BYTES and (data := await self.read_body()) is not None:
                    skipped += len(data)
            except h11.RemoteProtocolError:
                return False
        return self._http.their_state is not h11.SEND_BODY


class _Exchange:
    """One request and its response, as an application sees them.

    Attributes:
        request: the request.
        is_complete: whether the whole response was sent.
        is_broken: whether the client is gone or too slow.
        refusal: status to answer with, because of the client or the limits of the server.
    """

    def __init__(self, connection: _Connection, request: h11.Request) -> None:
        self.request = request
        self.is_complete = False
        self.is_broken = False
        self.refusal: int | None = None
        self._connection = connection
        self._head: h11.Response | None = None
        self._begun = False
        self._is_stream = False
        self._in_application = True
        self._read = False
        self._body_bytes = 0
        limits = connection.limits
        self._max_body_bytes = limits.max_body_bytes
        self._body_until = trio.current_time() + limits.body_s

    def leave_application(self) -> None:
        """Count the request as answered, once."""
        if self._in_application:
            self._in_application = False
            self._connection.leave_application()

    async def receive(self) -> dict[str, Any]:
        """Return the next part of the request (ASGI)."""
        if self.is_broken or self.refusal is not None:
            return {"type": "http.disconnect"}
        if self._read:
            # The end of the connection is noticed when the response is sent.
            await trio.sleep_forever()
        try:
            with trio.fail_at(self._body_until):
                data = await self._connection.read_body()
        except h11.RemoteProtocolError as error:
            self.refusal = error.error_status_hint
            return {"type": "http.disconnect"}
        except (trio.TooSlowError, *_GONE):
            self.is_broken = True
            return {"type": "http.disconnect"}
        self._body_bytes += len(data or b"")
        if self._body_bytes > self._max_body_bytes:
            self.refusal = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return {"type": "http.disconnect"}
        self._read = data is None
        return {"type": "http.request", "body": data or b"", "more_body": data is not None}

    async def send(self, message: dict[str, Any]) -> None:
        """Send the next part of the response (ASGI); the body is taken out of the message.

        Once the client is gone, nothing more is sent and nothing raised: it is not the
        application's fault. Only an application that sends in parts has to stop.

        Raises:
            BrokenPipeError: the client of a response in parts is gone, or it was refused.
        """
        if message["type"] == "http.response.start":
            status, lines = message["status"], list(message.get("headers", ()))
            self._head = h11.Response(status_code=status, headers=lines)
        elif not (self._head is None or self.is_complete or self.is_broken or self.refusal):
            try:
                await self._send_body(
                    self._head, message.pop("body", b""), more=message.get("more_body", False)
                )
            except (trio.TooSlowError, *_GONE):
                self.is_broken = True
        if self._is_stream and (self.is_broken or self.refusal):
            raise BrokenPipeError("the client is gone")

    async def _send_body(self, head: h11.Response, body: bytes, *, more: bool) -> None:
        if not (more or self._begun):
            # What follows is up to the client; the application may answer others.
            self.leave_application()
            if await self._connection.send_whole(head, body):
                self.is_complete = True
            else:
                self.refusal = _BUSY
            return
        if not self._begun:
            # It may last for hours, and is no longer one of the requests that are answered at once.
            self._is_stream = True
            self.leave_application()
            if not self._connection.start_stream():
                self.refusal = _BUSY
                return
            self._begun = True
            await self._connection.send(head)
        if body:
            await self._connection.send_piece(body)
        if not more:
            await self._connection.send(h11.EndOfMessage())
            self._connection.end_stream()
            self.is_complete = True


def _peer(stream: trio.SocketStream) -> tuple[tuple[str, int] | None, str]:
    """Return the address of the client as ASGI has it, and its key; a Unix socket has neither."""
    try:
        name = stream.socket.getpeername()
    except OSError:
        return None, ""
    if not isinstance(name, tuple):
        return None, ""
    return (name[0], name[1]), client_key(name[0])


def _scope_of(request: h11.Request, peer: tuple[str, int] | None) -> dict[str, Any]:
    path, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.1"},
        "http_version": request.http_version.decode("ascii"),
        "method": request.method.decode("ascii").upper(),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": peer,
        "server": None,
    }
