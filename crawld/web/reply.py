"""Requests and responses of the web mirror, with conditional requests and ranges.

Source: RFC 9110 sections 13 (conditional requests) and 14 (ranges; a request for several ranges
gets the whole body).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qsl

Header = tuple[bytes, bytes]

_MAX_PARAMETERS = 20
_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as it is sent; equal ETags mean equal bytes."""

    etag: str
    content_type: str
    body: bytes


@dataclass(slots=True)
class Reply:
    """A response.

    Attributes:
        status: HTTP status.
        body: the whole body; not sent for HEAD.
        headers: without Content-Length.
        rendered: the large page that was rendered for it.
    """

    status: int
    body: bytes = b""
    headers: list[Header] = field(default_factory=list)
    rendered: Rendered | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: HTTP method.
        target: path and query as sent.
        headers: by lower-case name; the last of repeated ones.
    """

    method: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Postponed:
    """The response takes long: it must be made apart.

    Attributes:
        etag: that of the page it shows, if it is one.
        finish: makes the response once that page is rendered.
        memory_bytes: what it takes at most until it is sent.
    """

    etag: str | None = None
    finish: Callable[[Rendered], Reply] | None = None
    memory_bytes: int = 0


def http_date(at: float) -> str:
    """Return a time in the format of HTTP headers."""
    return formatdate(at, usegmt=True)


def header(name: str, value: str) -> Header:
    """Return a header line; line breaks are replaced by spaces."""
    clean = value.replace("\r", " ").replace("\n", " ").encode("latin-1", "replace")
    return name.encode("ascii"), clean


def headers(*lines: tuple[str, str]) -> list[Header]:
    """Return header lines."""
    return [header(name, value) for name, value in lines]


def etag_matches(etag: str, condition: str | None) -> bool:
    """Return whether If-None-Match names a tag (weak comparison)."""
    if condition is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in condition.split(",")]
    return etag in tags or tags == ["*"]


def apply_range(reply: Reply, request: Request, etag: str) -> Reply:
    """Return the range of a response that a request selects, or the whole response."""
    reply.headers.append((b"accept-ranges", b"bytes"))
    value, size = request.headers.get("range"), len(reply.body)
    if value is None or request.headers.get("if-range", etag) != etag:
        return reply
    part = parse_range(value, size)
    if part is None:
        return reply
    if not part:
        lines = [*reply.headers, header("content-range", f"bytes */{size}")]
        return Reply(416, b"", lines, reply.rendered)
    reply.headers.append(header("content-range", f"bytes {part.start}-{part.stop - 1}/{size}"))
    return Reply(206, reply.body[part.start : part.stop], reply.headers, reply.rendered)


def parse_range(value: str, size_bytes: int) -> range | None:
    """Return the byte range of a Range header; empty: unsatisfiable; None: ignore the header.

    >>> parse_range("bytes=-2", 10), parse_range("bytes=20-", 10), parse_range("lines=1-2", 10)
    (range(8, 10), range(0, 0), None)
    """
    match = _RANGE.fullmatch(value.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return range(max(size_bytes - int(match[2]), 0), size_bytes)
    start = int(match[1])
    if start >= size_bytes:
        return range(0)
    end = int(match[2]) if match[2] else size_bytes - 1
    return range(start, min(end + 1, size_bytes)) if end >= start else None


def split_query(target: str) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return path and query parameters of a target; too many parameters are dropped."""
    path, _, query = target.partition("?")
    try:
        return path, parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        return path, []


def number(text: str | None) -> int:
    """Return the number in a query parameter, 0 if it has none."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else 0
