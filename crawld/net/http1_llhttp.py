"""HTTP/1.1 on one connection by llhttp, the parser of Node.js (extra `fast`).

It offers what `http1.py` does by h11, with the same limits, and takes a third of its time. llhttp
gets whole headers, so that one that comes byte by byte costs no more than another; framing without
a body (extensions of chunks, trailers) is limited like a header line. It is as strict as h11: no
leniency but for lines that end without CR, which old servers send.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Final

import httpcore
import httptools

from crawld.net.connection import ResponseHead
from crawld.net.wire import Wire

READ_BYTES: Final = 64 * 1024
"""Largest read: 11,000 chunks of one byte take a millisecond."""

MAX_FRAMING_BYTES: Final = 100 * 1024
"""Longest framing without a byte of the body: a line of a chunk, or all trailers."""

_CACHED_LINES: Final = 256
"""Lines kept as written: most are the same in all requests, or in those of a host."""

_BODILESS: Final = frozenset({204, 304})

# One class without a choice: linear.
_TARGET = re.compile(rb"[\x21-\x7e]+").fullmatch
_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+").fullmatch
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*").fullmatch
_HEADER_END = re.compile(rb"\n\r?\n").search
_FOLD = re.compile(rb"\r?\n[ \t]+")
_LENGTH_LINE = re.compile(
    rb"\r?\n(content-length):[ \t]*([0-9]{1,20})[ \t]*(?=\r?\n)", re.IGNORECASE
)


_NO_PIECES: Final = deque[bytes](maxlen=0)


class LlhttpConnection:
    """One connection; its errors are those of httpcore, as with HTTP/2.

    It is also the protocol of its parser: the methods `on_…` are called while bytes are fed.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._parser: httptools.HttpResponseParser | None = parser
        self._unparsed = b""
        self._pieces: deque[bytes] = _NO_PIECES
        self._headers: list[tuple[bytes, bytes]] = []
        self._repeated: list[tuple[bytes, bytes]] = []
        self._reason = b""
        self._head: ResponseHead | None = None
        self._error: httpcore.RemoteProtocolError | None = None
        self._framing_bytes = 0
        self._has_moved = False
        self._ends_with_connection = False
        self._keeps_alive = False
        self._is_complete = True
        self._is_left_over = False
        self._is_idle = False

    async def send(
        self, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes | None = None
    ) -> tuple[ResponseHead, LlhttpBody]:
        """Send a GET request, or with a body a POST request; return the response, without its body.

        Raises:
            httpcore errors and `FetchError`.
        """
        self._is_idle = self._is_complete = False
        self._pieces = deque()
        self._ends_with_connection = self._keeps_alive = False
        self._head = None
        self._framing_bytes = 0
        data = written_request(b"GET" if body is None else b"POST", target, headers) + (body or b"")
        # A server may respond before it has read the request, and close.
        with contextlib.suppress(httpcore.WriteError):
            await self._wire.write(data)
        while self._head is None:
            await self._read_header()
        return self._head, LlhttpBody(self)

    async def _read_header(self) -> None:
        """Read one header and feed it; what follows a final header is its body."""
        received: bytes | bytearray = self._unparsed
        found = _HEADER_END(received)
        while found is None:
            data = await self._wire.read(READ_BYTES)
            if not data:
                text = "the header is not complete" if received else "without sending a response"
                raise httpcore.RemoteProtocolError(f"Server disconnected: {text}.")
            begin = max(len(received) - 2, 0)
            if isinstance(received, bytearray):
                received += data
            else:
                received = bytearray(received + data) if received else data
            found = _HEADER_END(received, begin)
        end = found.end()
        self._unparsed = bytes(received[end:])
        self._feed(self._with_one_length(_unfolded(bytes(received[:end]))))
        if self._error is not None:
            raise self._error
        if self._head is not None and self._unparsed:
            rest, self._unparsed = self._unparsed, b""
            self._feed(rest)

    def _with_one_length(self, header: bytes) -> bytes:
        """Return a header with one of several equal Content-Length lines.

        llhttp refuses them, RFC 9110 (section 8.6) and h11 permit them.
        """
        self._repeated = []
        if header.lower().count(b"\ncontent-length:") < 2:
            return header
        _, *others = found = _LENGTH_LINE.findall(header)
        if len({value for _, value in found}) != 1:
            return header
        self._repeated = others
        first = _LENGTH_LINE.search(header)
        assert first is not None
        end = first.end()
        return header[:end] + _LENGTH_LINE.sub(b"", header[end:])

    async def next_piece(self) -> bytes | None:
        """Return the next piece of the body; None at its end.

        Raises:
            httpcore errors and `FetchError`.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._is_complete:
                return None
            data = await self._wire.read(READ_BYTES)
            if data:
                self._feed(data)
            elif self._ends_with_connection:
                self._is_complete = True
            else:
                raise httpcore.RemoteProtocolError("peer closed connection inside the body")
        return self._pieces.popleft()

    def _feed(self, data: bytes) -> None:
        """Parse bytes; an error is kept, since what came before it is part of the body."""
        assert self._parser is not None
        self._has_moved = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_left_over = True
        except httptools.HttpParserError as error:
            self._is_left_over = True
            if not self._is_complete:
                self._error = httpcore.RemoteProtocolError(str(error) or type(error).__name__)
        self._framing_bytes = 0 if self._has_moved else self._framing_bytes + len(data)
        if self._framing_bytes > MAX_FRAMING_BYTES and not self._is_complete:
            self._error = httpcore.RemoteProtocolError("the framing of the body is too long")

    async def end(self) -> None:
        """End the exchange; close the connection if it cannot have another."""
        if not self.end_nowait():
            await self.aclose()

    def is_whole(self) -> bool:
        """Whether the response has come to its end."""
        return self._is_complete

    def end_nowait(self) -> bool:
        """End the exchange if the connection can have another; see `HttpConnection`."""
        if not self._is_complete or not self._keeps_alive or self._is_left_over:
            return False
        self._is_idle = True
        # Thousands of connections may be idle: they hold nothing of their last response.
        self._pieces, self._headers, self._repeated = _NO_PIECES, [], []
        self._head, self._reason = None, b""
        return True

    async def aclose(self) -> None:
        """Close the connection."""
        self._is_idle = False
        self._parser = None  # it holds this object
        await self._wire.aclose()

    def is_idle(self) -> bool:
        """Whether the last exchange ended properly and left the connection open."""
        return self._is_idle

    def is_available(self) -> bool:
        """Whether an idle connection has no bytes beyond its last response.

        They would be read as the next response.
        """
        return not self._is_left_over

    # --- the protocol of the parser --------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a response, of which several may be informational."""
        self._is_left_over = self._is_left_over or self._is_complete
        self._reason, self._headers = b"", []

    def on_status(self, text: bytes) -> None:
        """Take a part of the reason phrase."""
        self._reason += text

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header line; trailers are dropped."""
        if self._head is None:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take the header of a response, unless it is informational."""
        parser = self._parser
        assert parser is not None
        status, version = parser.get_status_code(), parser.get_http_version()
        if self._is_left_over or self._head is not None:
            return
        if status < 100 or _VALUE(self._reason) is None:
            self._error = httpcore.RemoteProtocolError("illegal status line")
        elif status == 101:
            self._error = httpcore.RemoteProtocolError("the server switched protocols")
        elif status >= 200:
            self._begin_body(status)
            lines = self._headers + self._repeated
            self._head = ResponseHead(
                status, self._reason, b"HTTP/" + version.encode("ascii"), lines
            )

    def _begin_body(self, status: int) -> None:
        codings = [value for name, value in self._headers if name.lower() == b"transfer-encoding"]
        if codings and [each.strip().lower() for each in codings] != [b"chunked"]:
            text = f"Transfer-Encoding {b', '.join(codings)[:40]!r}"
            self._error = httpcore.RemoteProtocolError(text)
        has_length = any(name.lower() == b"content-length" for name, _ in self._headers)
        self._ends_with_connection = not (codings or has_length or status in _BODILESS)

    def on_chunk_header(self) -> None:
        """Note that a chunk begins."""
        self._has_moved = True

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._has_moved = True
        if not self._is_left_over:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Note the end of a response."""
        if self._head is not None and not self._is_complete:
            self._is_complete = True
            assert self._parser is not None
            self._keeps_alive = self._parser.should_keep_alive()  # forgotten after this call


class LlhttpBody(AsyncIterator[bytes]):
    """The body of a response, in pieces as sent."""

    __slots__ = ("_connection",)

    def __init__(self, connection: LlhttpConnection) -> None:
        self._connection = connection

    async def __anext__(self) -> bytes:
        """Return the next piece."""
        piece = await self._connection.next_piece()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the exchange."""
        await self._connection.end()


def _unfolded(header: bytes) -> bytes:
    """Return a header with its folded lines joined (RFC 9112, section 5.2), as h11 does.

    llhttp refuses them. A first line that continues none stays as it is, and is refused.
    """
    if b"\n " not in header and b"\n\t" not in header:
        return header
    begin = header.find(b"\n") + 1
    if header[begin : begin + 1] in (b" ", b"\t"):
        return header
    return header[:begin] + _FOLD.sub(b" ", header[begin:])


def written_request(method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a request header.

    Raises:
        httpcore.LocalProtocolError: target or headers are not as HTTP/1.1 allows.
    """
    if _TARGET(target) is None:
        raise httpcore.LocalProtocolError("illegal request target")
    lines = [_written_line(*line) for line in headers]
    return b"".join((method, b" ", target, b" HTTP/1.1\r\n", *lines, b"\r\n"))


@lru_cache(maxsize=_CACHED_LINES)
def _written_line(name: bytes, value: bytes) -> bytes:
    if _NAME(name) is None:
        raise httpcore.LocalProtocolError(f"illegal header name {name[:40]!r}")
    if _VALUE(value) is None or value != value.strip(b" \t"):
        raise httpcore.LocalProtocolError(f"illegal value of header {name.decode()}")
    return b"".join((name, b": ", value, b"\r\n"))
