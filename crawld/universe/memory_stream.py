"""A TCP connection in memory: latency, half-closed ends, resets, and a pulled plug.

What is sent arrives `latency_s` later, in order; the buffers are unbounded, as those of a kernel
are for the small pages here.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

import trio


class _End(Enum):
    CLOSED = "closed"
    RESET = "reset"


class _Pipe:
    """One direction of a connection."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._sent: deque[tuple[float, bytes | _End]] = deque()
        self._changed = trio.Event()
        self.is_abandoned = False

    def put(self, item: bytes | _End) -> None:
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
        return item[:max_bytes]

    def has_ended(self) -> bool:
        now = trio.current_time()
        return any(at <= now and isinstance(item, _End) for at, item in self._sent)


class MemoryStream(trio.abc.Stream):
    """One end of a connection; see `connection_pair`.

    Attributes:
        is_closed: whether it was closed, or reset, at this end.
    """

    def __init__(self, sends: _Pipe, receives: _Pipe) -> None:
        self._sends = sends
        self._receives = receives
        self.is_closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; they arrive later, or never if the peer ends meanwhile."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        if self._receives.has_ended():
            raise trio.BrokenResourceError("broken pipe")
        self._sends.put(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()
        self._check_open()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what has arrived; empty at the end."""
        await trio.lowlevel.checkpoint()
        self._check_open()
        return await self._receives.get(max_bytes or 65_536)

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


def connection_pair(latency_s: float) -> tuple[MemoryStream, MemoryStream]:
    """Return the two ends of a connection whose bytes take `latency_s` in either direction."""
    one, other = _Pipe(latency_s), _Pipe(latency_s)
    return MemoryStream(one, other), MemoryStream(other, one)
