"""A TCP connection in memory: latency, half-closed ends, resets, and a pulled plug.

What is sent arrives `latency_s` later, in order. With a window a sender waits while so many bytes
are under way or unread, as behind a kernel's buffers; without one it never waits.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

import trio

PIECE_BYTES: Final = 65_536
"""Largest part of what is sent in one piece through a window."""


class _End(Enum):
    SENT = "sent"
    CLOSED = "closed"
    RESET = "reset"


class _Pipe:
    """One direction of a connection."""

    def __init__(self, latency_s: float, window_bytes: int | None) -> None:
        self._latency_s = latency_s
        self._window_bytes = window_bytes
        self._under_way_bytes = 0
        self._sent: deque[tuple[float, bytes | _End]] = deque()
        self._changed = trio.Event()
        self.is_abandoned = False

    async def send(self, data: bytes) -> None:
        if self._window_bytes is None:
            self.put(data)
            return
        for start in range(0, len(data), PIECE_BYTES):
            while self._under_way_bytes >= self._window_bytes and not self.is_abandoned:
                await self._changed.wait()
            if self.is_abandoned:
                raise trio.BrokenResourceError("broken pipe")
            self.put(data[start : start + PIECE_BYTES])

    def put(self, item: bytes | _End) -> None:
        if isinstance(item, bytes):
            self._under_way_bytes += len(item)
        self._sent.append((trio.current_time() + self._latency_s, item))
        self.wake()

    def wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def is_readable(self) -> bool:
        return bool(self._sent) and self._sent[0][0] <= trio.current_time()

    async def get(self, max_bytes: int) -> bytes:
        while not self.is_abandoned:
            if not self._sent:
                await self._changed.wait()
            elif not self.is_readable():
                with trio.move_on_at(self._sent[0][0]):
                    await self._changed.wait()
            else:
                return self._take(max_bytes)
        raise trio.ClosedResourceError

    def _take(self, max_bytes: int) -> bytes:
        at, item = self._sent[0]
        if item is _End.RESET:
            raise trio.BrokenResourceError("connection reset by peer")
        if isinstance(item, _End):
            return b""
        self._sent.popleft()
        if len(item) > max_bytes:
            self._sent.appendleft((at, item[max_bytes:]))
            item = item[:max_bytes]
        self._under_way_bytes -= len(item)
        if self._window_bytes is not None:
            self.wake()
        return item

    def has_ended(self) -> bool:
        """Whether the peer has closed or reset the connection, and not only its direction."""
        now = trio.current_time()
        return any(at <= now and item in (_End.CLOSED, _End.RESET) for at, item in self._sent)


class MemoryStream(trio.abc.HalfCloseableStream):
    """One end of a connection; see `connection_pair`.

    Attributes:
        is_closed: whether it was closed, or reset, at this end.
        received_bytes: bytes that were read here.
    """

    def __init__(self, sends: _Pipe, receives: _Pipe) -> None:
        self._sends = sends
        self._receives = receives
        self._has_sent = False
        self.is_closed = False
        self.received_bytes = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; they arrive later, or never if the peer ends meanwhile."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        if self._has_sent:
            raise trio.ClosedResourceError
        if self._receives.has_ended():
            raise trio.BrokenResourceError("broken pipe")
        await self._sends.send(bytes(data))

    async def send_eof(self) -> None:
        """Close the direction to the peer; what it sends still arrives."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        if not self._has_sent:
            self._has_sent = True
            self._sends.put(_End.SENT)

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()
        self._check_open()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what has arrived; empty at the end."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        data = await self._receives.get(max_bytes or 65_536)
        self.received_bytes += len(data)
        return data

    async def aclose(self) -> None:
        """Close both directions."""
        if not self.is_closed:
            self._end(_End.CLOSED)
        await trio.lowlevel.checkpoint()

    def reset(self) -> None:
        """Break the connection: the peer sees a reset."""
        if not self.is_closed:
            self._end(_End.RESET)

    def is_readable(self) -> bool:
        """Whether bytes or the end of the stream can be read."""
        return self._receives.is_readable()

    def _end(self, end: _End) -> None:
        self.is_closed = True
        self._sends.put(end)
        self._receives.is_abandoned = True
        self._receives.wake()

    def _check_open(self) -> None:
        if self.is_closed:
            raise trio.ClosedResourceError


def connection_pair(
    latency_s: float, window_bytes: int | None = None
) -> tuple[MemoryStream, MemoryStream]:
    """Return the two ends of a connection whose bytes take `latency_s` in either direction.

    Args:
        window_bytes: most bytes of a direction that are under way or unread; None: no limit.
    """
    one, other = _Pipe(latency_s, window_bytes), _Pipe(latency_s, window_bytes)
    return MemoryStream(one, other), MemoryStream(other, one)
