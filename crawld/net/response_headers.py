"""Checks the header of a response.

h11 checks the lines of HTTP/1. httpcore leaves those of HTTP/2 unchecked, so they are checked here
by the same rules: a value may be sent back in a request, or written into a log or a file.

Different Location headers are an error, as in browsers: they show that a response was split. Both
HTTP libraries check Content-Length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from crawld.core.outcome import REDIRECT_STATUSES
from crawld.core.page import Failure
from crawld.net.errors import FetchError
from crawld.net.exchange import Headers, header_value

MAX_HEADER_LINES = 1_000
"""Lines of a response header. Pages have some thirty; each costs time at every look-up."""

_BODILESS = frozenset({204, 304})

# One class without a choice: linear.
_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+").fullmatch
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*").fullmatch
_STATUS = re.compile(rb"[1-9][0-9][0-9]").fullmatch


def check_headers(status: int, headers: Headers) -> None:
    """Refuse a header that is too long or contradicts itself.

    Raises:
        FetchError: `PROTOCOL`.
    """
    if len(headers) > MAX_HEADER_LINES:
        raise FetchError(Failure.PROTOCOL, f"{len(headers)} lines in the response header")
    if status in REDIRECT_STATUSES:
        places = {value.strip() for key, value in headers if key.lower() == b"location"}
        if len(places) > 1:
            raise FetchError(Failure.PROTOCOL, f"{len(places)} different Location headers")


def check_length(status: int, headers: Headers, wire_bytes: int) -> None:
    """Refuse a body under HTTP/2 that is not as long as stated (RFC 9113, section 8.1.1).

    h2 checks this only where DATA frames end the response.

    Raises:
        FetchError: `TRUNCATED`.
    """
    stated = header_value(headers, "content-length")
    if stated is None or status in _BODILESS or int(stated) == wire_bytes:
        return
    raise FetchError(Failure.TRUNCATED, f"{wire_bytes} of {stated} bytes")


def check_http2_headers(lines: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse lines of an HTTP/2 response that HTTP/1 could not express (RFC 9113, section 8.2).

    Raises:
        FetchError: `PROTOCOL`.
    """
    statuses = []
    for name, value in lines:
        if name == b":status":
            statuses.append(value)
        elif _NAME(name) is None:
            raise FetchError(Failure.PROTOCOL, f"illegal header name {name[:40]!r}")
        elif _VALUE(value) is None:
            text = f"illegal value {value[:40]!r} of header {name[:40].decode('latin-1')}"
            raise FetchError(Failure.PROTOCOL, text)
    if len(statuses) != 1 or _STATUS(statuses[0]) is None:
        raise FetchError(Failure.PROTOCOL, f"illegal status {b', '.join(statuses)[:40]!r}")
