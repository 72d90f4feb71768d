"""Requests and responses of the simulated web, without sockets.

A site decides, the server acts: a response is either bytes, or a sequence of steps (bytes to send,
seconds to wait, an abnormal end) that the server executes. So a fault is a value that a test can
inspect, and an endless body is a generator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum
from functools import lru_cache
from http import HTTPStatus

HTML = "text/html; charset=utf-8"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class AbnormalEnd(Enum):
    """How a connection ends before or after its response; HALF_CLOSE ends the server's direction.

    The server of one that hangs or is half-closed reads on until its client closes it.
    """

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"
    HALF_CLOSE = "half-close"


Step = bytes | float | AbnormalEnd


@dataclass(slots=True)
class SimRequest:
    """One request as the server read it; not frozen, because frozen dataclasses are slow to build.

    Attributes:
        method: as sent.
        target: path and query as sent.
        headers: lower-case name to value; the last value of repeated names.
        host: host name of the Host header in lower case, or the address the client connected to.
        origin: scheme, host and port as the client named them.
        at: time at which the header was complete, Unix seconds.
        serial: number of the request at its server, from 0.
    """

    method: str
    target: str
    headers: dict[str, str]
    host: str
    origin: str
    at: float
    serial: int

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class SimResponse:
    """One response.

    Attributes:
        status: status code; 0 if none is sent.
        wire: the bytes, or the steps that send them.
        close: whether the connection ends after it.
    """

    status: int
    wire: bytes | Iterable[Step]
    close: bool = False

    def to_bytes(self) -> bytes:
        """Return the bytes of a response that is not made of steps."""
        if not isinstance(self.wire, bytes):
            raise TypeError("a response made of steps has no bytes")
        return self.wire


@lru_cache(maxsize=4096)
def _date_of_second(second: int) -> str:
    return formatdate(second, usegmt=True)


def http_date(at: float) -> str:
    """Return a time as an HTTP date, rounded down to the second."""
    return _date_of_second(int(at))


def build_response(
    request: SimRequest,
    status: int = 200,
    body: bytes = b"",
    *,
    content_type: str = HTML,
    extra: str = "",
) -> SimResponse:
    """Build a well-formed response with the correct Content-Length.

    304 and HEAD responses have no body. `extra` are more header lines, each ended by CRLF.
    """
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n"
    head += f"Date: {http_date(request.at)}\r\n{extra}"
    if status == 304:
        return SimResponse(status, (head + "\r\n").encode("latin-1"))
    head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    wire = head.encode("latin-1")
    return SimResponse(status, wire if request.method == "HEAD" else wire + body)


def build_error_response(request: SimRequest, status: int) -> SimResponse:
    """Build a short HTML response that shows `status`."""
    text = f"<!DOCTYPE html><title>{status}</title><h1>{status} {_REASONS.get(status, '')}</h1>"
    return build_response(request, status, text.encode())
