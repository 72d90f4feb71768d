"""Range requests (RFC 9110, section 14): the rest of a body whose fetch broke off, or its start.

A body can be continued if it has no content coding, its length was stated, and a strong validator
names it: the server then sends the rest only of the same body (If-Range), and else the whole.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from crawld.core.page import Failure
from crawld.core.politeness import parse_http_date
from crawld.net.errors import FetchError
from crawld.net.exchange import Headers, PartialBody, header_value

LEAST_BYTES: Final = 256 * 1024
"""Received bytes from which on the rest is asked for; less is quickly sent again."""

STRONG_AGE_S: Final = 60.0
"""Age from which a Last-Modified is a strong validator: the page may change twice in a second."""

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
_STATED_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15}|\*)")


def rest_headers(start: PartialBody) -> tuple[tuple[str, str], ...]:
    """Return the headers of the request for the rest of a body."""
    return (
        ("Range", f"bytes={len(start.body)}-"),
        ("If-Range", start.validator),
        ("Accept-Encoding", "identity"),
    )


def check_rest(start: PartialBody, headers: Headers) -> None:
    """Check that a response of status 206 is the rest of a body.

    Raises:
        FetchError: `PROTOCOL`: it is another range, or of another body.
    """
    stated = (header_value(headers, "content-range") or "").strip()
    found = _CONTENT_RANGE.fullmatch(stated)
    wanted = (len(start.body), start.total_bytes - 1, start.total_bytes)
    if found is None or tuple(map(int, found.groups())) != wanted:
        raise FetchError(Failure.PROTOCOL, f"not the range asked for: {stated[:60]!r}")
    etag = header_value(headers, "etag")
    if start.validator.startswith('"') and etag is not None and etag != start.validator:
        raise FetchError(Failure.PROTOCOL, "the range is of another body: its ETag differs")
    if header_value(headers, "content-encoding"):
        raise FetchError(Failure.PROTOCOL, "the range has a content coding")


def start_headers(first_bytes: int) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request for the first bytes of a body.

    A content coding is refused: its first bytes need not decode to anything.
    """
    return ("Range", f"bytes=0-{first_bytes - 1}"), ("Accept-Encoding", "identity")


def check_start(first_bytes: int, headers: Headers) -> tuple[int, int | None]:
    """Check that a response of status 206 is the start of a body.

    Returns:
        How many bytes it has, and the length of the whole body; None: the server does not say.

    Raises:
        FetchError: `PROTOCOL`: it is another range, or has a content coding.
    """
    stated = (header_value(headers, "content-range") or "").strip()
    found = _STATED_RANGE.fullmatch(stated)
    if found is None or int(found[1]) != 0 or int(found[2]) >= first_bytes:
        raise FetchError(Failure.PROTOCOL, f"not the range asked for: {stated[:60]!r}")
    if header_value(headers, "content-encoding"):
        raise FetchError(Failure.PROTOCOL, "the range has a content coding")
    return int(found[2]) + 1, None if found[3] == "*" else int(found[3])


def partial_body(
    status: int, headers: Headers, body: bytes, earlier: PartialBody | None
) -> PartialBody | None:
    """Return what a broken response left to be continued; None if it cannot be.

    Args:
        status: of the response: 200, or 206 for the rest of `earlier`.
        body: all bytes received, with those of `earlier` for a 206.
    """
    if len(body) < LEAST_BYTES:
        return None
    if status == 206 and earlier is not None:
        return replace(earlier, body=body, lease=None)
    length = header_value(headers, "content-length") or ""
    validator = _strong_validator(headers)
    if status != 200 or validator is None or not length.isdecimal() or len(length) > 15:
        return None
    if (header_value(headers, "accept-ranges") or "").strip().lower() == "none":
        return None
    return PartialBody(body, validator, int(length)) if int(length) > len(body) else None


def whole_headers(headers: Headers, total_bytes: int) -> Headers:
    """Return the headers of a 206 as those of the whole body."""
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in (b"content-range", b"content-length")
    ]
    return (*kept, (b"content-length", str(total_bytes).encode("ascii")))


def _strong_validator(headers: Headers) -> str | None:
    etag = header_value(headers, "etag")
    if etag is not None:
        is_strong = etag.startswith('"') and etag.endswith('"') and len(etag) > 2
        return etag if is_strong else None
    modified, sent = header_value(headers, "last-modified"), header_value(headers, "date")
    if modified is None or sent is None:
        return None
    sent_at = parse_http_date(sent, 0.0)
    modified_at = parse_http_date(modified, 0.0)
    if sent_at is None or modified_at is None or sent_at - modified_at < STRONG_AGE_S:
        return None
    return modified
