"""HTTP/1.1 on one connection: h11 reads and writes the messages, the wire carries them.

A connection has one request at a time and one user, so that it needs no lock; its limits are those
of the wire. httpcore's connection traces, locks and shields each step, which took a quarter of the
time of a fetch.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Final

import h11
import httpcore

from crawld.net.connection import ResponseHead
from crawld.net.wire import Wire

READ_BYTES: Final = 64 * 1024

MAX_LINES_BYTES: Final = 100 * 1024
"""Longest header, and longest line of a chunked body."""


class Http1Connection:
    """One connection; its errors are those of httpcore, as with HTTP/2."""

    def __init__(self, wire: Wire) -> None:
        self._is_idle = False
        self._wire = wire
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_LINES_BYTES)

    async def send(
        self, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes | None = None
    ) -> tuple[ResponseHead, Http1Body]:
        """Send a GET request, or with a body a POST request; return the response, without its body.

        Raises:
            httpcore errors and `FetchError`.
        """
        self._is_idle = False
        method = b"GET" if body is None else b"POST"
        try:
            request = h11.Request(method=method, target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpcore.LocalProtocolError(str(error)) from error
        data = self._state.send(request)
        assert data is not None
        if body is not None:
            data += self._state.send(h11.Data(data=body)) or b""
        self._state.send(h11.EndOfMessage())
        # A server may respond before it has read the request, and close.
        with contextlib.suppress(httpcore.WriteError):
            await self._wire.write(data)
        event = await self.next_event()
        while type(event) is not h11.Response and not _switches(event):
            event = await self.next_event()
        assert isinstance(event, h11.Response | h11.InformationalResponse)
        version = b"HTTP/" + event.http_version
        head = ResponseHead(event.status_code, event.reason, version, event.headers.raw_items())
        return head, Http1Body(self)

    async def next_event(self) -> object:
        """Return the next part of the response as an event of h11."""
        while True:
            try:
                event = self._state.next_event()
            except h11.RemoteProtocolError as error:
                raise httpcore.RemoteProtocolError(str(error)) from error
            if event is not h11.NEED_DATA:
                return event
            data = await self._wire.read(READ_BYTES)
            if not data and self._state.their_state is h11.SEND_RESPONSE:
                # h11 would name its states instead.
                raise httpcore.RemoteProtocolError(
                    "Server disconnected without sending a response."
                )
            self._state.receive_data(data)

    async def end(self) -> None:
        """End the exchange; close the connection if it cannot have another."""
        if not self.end_nowait():
            await self.aclose()

    def is_whole(self) -> bool:
        """Whether the response has come to its end, and h11 has told so."""
        return self._state.their_state is h11.DONE

    def end_nowait(self) -> bool:
        """End the exchange if the connection can have another; see `HttpConnection`."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        self._is_idle = True
        return True

    async def aclose(self) -> None:
        """Close the connection."""
        self._is_idle = False
        await self._wire.aclose()

    def is_idle(self) -> bool:
        """Whether the last exchange ended properly and left the connection open."""
        return self._is_idle

    def is_available(self) -> bool:
        """Whether an idle connection has no bytes beyond its last response.

        They would be read as the next response.
        """
        leftover, _ = self._state.trailing_data
        return not leftover


class Http1Body(AsyncIterator[bytes]):
    """The body of a response, in pieces as sent."""

    __slots__ = ("_connection", "_is_open")

    def __init__(self, connection: Http1Connection) -> None:
        self._connection = connection
        self._is_open = True

    async def __anext__(self) -> bytes:
        """Return the next piece."""
        event = await self._connection.next_event() if self._is_open else None
        if type(event) is h11.Data:
            return bytes(event.data)
        self._is_open = False
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the exchange."""
        await self._connection.end()


def _switches(event: object) -> bool:
    return isinstance(event, h11.InformationalResponse) and event.status_code == 101
