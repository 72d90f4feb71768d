"""What a simulated server is asked and what it answers, without a socket.

A site decides, the server acts: an answer is either its bytes, or steps (bytes to send, seconds to
pause, an end) that the server walks through. A fault is therefore a value that a test can read,
and an endless body is a generator that nobody has to hold.
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
    """How a conversation ends before its answer is whole."""

    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"


Step = bytes | float | AbnormalEnd


@dataclass(slots=True)
class SimRequest:
    """One request as the server read it; not frozen, because building a frozen one is slow.

    Attributes:
        method: as sent.
        target: path and query as sent.
        headers: lower-case name to value; of repeated names the last.
        host: host name of the Host header in lower case, or the address that was dialled.
        origin: scheme, host and port as the client named them.
        at: wall instant at which the header was complete, Unix seconds.
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
    """One answer.

    Attributes:
        status: status code; 0 if the answer never gets that far.
        wire: the bytes, or the steps that send them.
        close: whether the connection ends after it.
    """

    status: int
    wire: bytes | Iterable[Step]
    close: bool = False

    def to_bytes(self) -> bytes:
        """Return the bytes of an answer that is not made of steps."""
        if not isinstance(self.wire, bytes):
            raise TypeError("an answer made of steps has no bytes of its own")
        return self.wire


@lru_cache(maxsize=4096)
def _date_of_second(second: int) -> str:
    return formatdate(second, usegmt=True)


def http_date(at: float) -> str:
    """Return an instant as an HTTP date, rounded down to the second."""
    return _date_of_second(int(at))


def build_response(
    request: SimRequest,
    status: int = 200,
    body: bytes = b"",
    *,
    content_type: str = HTML,
    extra: str = "",
) -> SimResponse:
    """Build a well-formed answer to `request`.

    Args:
        request: decides about HEAD and about the Date header.
        status: 304 and HEAD go without a body.
        body: content as it goes over the wire.
        content_type: value of Content-Type.
        extra: more header lines, each ended by CRLF.

    Returns:
        The answer as bytes, with its true Content-Length.
    """
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n"
    head += f"Date: {http_date(request.at)}\r\n{extra}"
    if status == 304:
        return SimResponse(status, (head + "\r\n").encode("latin-1"))
    head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    wire = head.encode("latin-1")
    return SimResponse(status, wire if request.method == "HEAD" else wire + body)


def build_error_response(request: SimRequest, status: int) -> SimResponse:
    """Build a short page that says `status`."""
    text = f"<!DOCTYPE html><title>{status}</title><h1>{status} {_REASONS.get(status, '')}</h1>"
    return build_response(request, status, text.encode())
