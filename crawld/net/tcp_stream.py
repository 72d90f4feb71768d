"""The bytes of a TCP connection that was opened: trio's stream with fewer steps.

trio's own tries each call before it waits, behind two context managers and two coroutines. A
response is never there when it is first asked for, and a request nearly always fits into the
socket: here reading waits first, and sending does not yield.
"""

from __future__ import annotations

import errno
import socket
from typing import Final

import trio

_UNSENT_BYTES: Final = 2**14
"""Bytes that wait in the kernel at most (TCP_NOTSENT_LOWAT), as with trio's stream."""

_OF_CLOSED: Final = frozenset({errno.EBADF, errno.ENOTSOCK})


class TcpStream(trio.abc.Stream):
    """A connected socket; one task sends and one receives at a time.

    Args:
        connected: the socket, which the stream closes.
    """

    __slots__ = ("_closer", "_socket")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._closer = trio.socket.from_stdlib_socket(connected)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; this waits only while the socket takes no more.

        Raises:
            trio.BrokenResourceError: the connection was lost.
            trio.ClosedResourceError: the stream was closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        sent = self._send(data)
        while sent < len(data):
            await self.wait_send_all_might_not_block()
            sent += self._send(memoryview(data)[sent:])

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _stream_error(error) from error

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the socket takes bytes."""
        self._check_open()
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes, none at the end; see `send_all` for errors."""
        while True:
            self._check_open()
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(2**16 if max_bytes is None else max_bytes)
            except BlockingIOError:
                pass
            except OSError as error:
                raise _stream_error(error) from error

    def is_readable(self) -> bool:
        """Whether received bytes or the end can be read."""
        return self._closer.is_readable()

    async def aclose(self) -> None:
        """Close the socket."""
        self._closer.close()
        await trio.lowlevel.checkpoint()

    def _check_open(self) -> None:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError("the stream was closed")


def _stream_error(error: OSError) -> trio.BrokenResourceError | trio.ClosedResourceError:
    if error.errno in _OF_CLOSED:
        return trio.ClosedResourceError("the stream was closed")
    return trio.BrokenResourceError(f"the connection was lost: {error}")
