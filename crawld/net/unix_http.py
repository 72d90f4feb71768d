"""One HTTP request over a Unix socket, with the standard library alone: it loads in 20 ms.

The command line waits for each response, so that it needs no event loop.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

CONNECT_S: Final = 60.0
"""Longest wait for the connection, and for the request to be taken."""


class UnixHttpError(Exception):
    """The other side of a socket does not speak HTTP, or closed the connection."""


class UnixResponse(NamedTuple):
    """The status and the whole body of a response."""

    status: int
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("crawld", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def send_request(
    socket_path: Path,
    method: str,
    target: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    timeout_s: float | None,
) -> UnixResponse:
    """Send a request on a connection of its own and return the response.

    Args:
        target: path and query, percent-encoded.
        timeout_s: longest time without data of the response; None: no limit.

    Raises:
        OSError: nothing listens on the socket, or it may not be used.
        TimeoutError: the other side does not take the request, or does not respond.
        UnixHttpError: the other side does not speak HTTP, or closed the connection.
    """
    connection = _UnixConnection(socket_path, CONNECT_S)
    try:
        connection.connect()
        try:
            connection.request(method, target, body, dict(headers or {}))
            connection.sock.settimeout(timeout_s)
            response = connection.getresponse()
            return UnixResponse(response.status, response.read())
        except (ConnectionError, http.client.HTTPException) as error:
            raise UnixHttpError(str(error)) from error
    finally:
        connection.close()
