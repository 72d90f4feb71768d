"""HTTP/2: httpcore's connection with checked headers, and a limit on frames.

A frame of nine bytes costs h2 as much as one of 16 KiB. Frames that bring no body (PING, SETTINGS,
WINDOW_UPDATE, empty DATA) are therefore limited in number, and little is read at a time.
"""

from __future__ import annotations

from typing import Any, Final, cast

import h2.events
import httpcore
import trio

from crawld.core.page import Failure
from crawld.net.connection import ByteStream, ResponseHead
from crawld.net.errors import FetchError
from crawld.net.response_headers import check_http2_headers

READ_BYTES: Final = 16 * 1024
"""Largest read: one frame, and one TLS record."""

SMALL_READ_BYTES: Final = 1024
"""Largest read after one with many frames: 100 frames, some milliseconds."""

MANY_FRAMES: Final = 32

FREE_FRAMES: Final = 1_000
"""Frames without a body that a response may always have."""

FRAMES_PER_S: Final = 10
"""Further ones for each second: PING during a long stream."""

FRAME_BYTES: Final = 64
"""Further ones for so many bytes: a DATA frame beyond has at least this size."""

_DATA: Final = 0
_HEAD_BYTES: Final = 9
_MAX_FRAME_BYTES: Final = 16_384
"""The default, and the only size that crawld allows (SETTINGS_MAX_FRAME_SIZE)."""


class FrameMeter:
    """Counts the frames of a connection from its bytes.

    Attributes:
        read_bytes: how many bytes to read next.
    """

    __slots__ = ("_begun_at", "_bytes", "_frames", "_head", "_skip", "read_bytes")

    def __init__(self) -> None:
        self.read_bytes = READ_BYTES
        self._head = b""
        self._skip = 0
        self.begin()

    def begin(self) -> None:
        """Start the count of another response."""
        self._frames = self._bytes = 0
        self._begun_at = trio.current_time()

    def note(self, data: bytes) -> None:
        """Count the frames that begin in the next bytes.

        Raises:
            FetchError: `PROTOCOL`: too many of them, or one too long.
        """
        head, position, before = self._head, 0, self._frames
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
                continue
            part = data[position : position + _HEAD_BYTES - len(head)]
            position += len(part)
            head += part
            if len(head) == _HEAD_BYTES:
                self._skip = _length(head)
                self._frames += 1
                head = b""
        self._head = head
        self._bytes += len(data)
        many = self._frames - before > MANY_FRAMES
        self.read_bytes = SMALL_READ_BYTES if many else READ_BYTES
        if self._frames > FREE_FRAMES:
            self._check()

    def _check(self) -> None:
        allowed = FREE_FRAMES + self._bytes // FRAME_BYTES
        if self._frames > allowed + FRAMES_PER_S * (trio.current_time() - self._begun_at):
            text = f"{self._frames} HTTP/2 frames in {self._bytes} bytes"
            raise FetchError(Failure.PROTOCOL, text)


def _length(head: bytes) -> int:
    length = int.from_bytes(head[:3], "big")
    if length > _MAX_FRAME_BYTES:
        raise FetchError(Failure.PROTOCOL, f"an HTTP/2 frame of {length} bytes")
    return length


class Http2Connection(httpcore.AsyncHTTP2Connection):
    """httpcore's connection; an illegal response header raises `FetchError`."""

    async def send(
        self, target: bytes, headers: list[tuple[bytes, bytes]]
    ) -> tuple[ResponseHead, ByteStream]:
        """Send a GET request and return the response, without its body."""
        scheme, host, port = self._origin.scheme, self._origin.host, self._origin.port
        url = httpcore.URL(scheme=scheme, host=host, port=port, target=target)
        sent = httpcore.Request(b"GET", url, headers=headers)
        response = await self.handle_async_request(sent)
        version = response.extensions["http_version"]
        head = ResponseHead(response.status, b"", version, response.headers)
        return head, cast("ByteStream", response.stream)

    def is_whole(self) -> bool:
        """Whether the response has come to its end: not known without a read."""
        return False

    def end_nowait(self) -> bool:
        """End the exchange: httpcore may wait for its locks."""
        return False

    async def _receive_stream_event(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        # Private, but the only place that sees `:status` as sent: the caller parses it with int().
        event = await super()._receive_stream_event(*args, **kwargs)
        if isinstance(event, h2.events.ResponseReceived):
            check_http2_headers(event.headers or ())
        return event
