"""WARC 1.1 records: text and bytes in, compressed records out.

Each record is a gzip member of its own, so that a reader can start at any of them. Bodies are kept
decoded, therefore the header fields that tell how they travelled are kept under other names
(`X-Crawler-Content-Encoding` ...), as Common Crawl does, and Content-Length says what is there.

Written here and not by warcio, which is read by the tests instead: its writer spools each record
through a temporary file and hashes it in pieces, at half the speed (`crawld bench export`).

Source: ISO 28500:2017 (WARC 1.1); sections named where they decide.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from isal import isal_zlib

Fields = Sequence[tuple[str, str]]

LEVEL: Final = 3
"""Of igzip, its highest: real pages of 28 KB take 0.11 ms and are 6 % larger than at level 6 of
zlib, which takes 0.39 ms, nearly as long as the rest of an export; zlib-ng takes 0.29 ms."""

SERVER_NOT_MODIFIED: Final = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
IDENTICAL_PAYLOAD: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"

_TRANSFER_HEADERS: Final = frozenset({b"content-encoding", b"transfer-encoding", b"content-length"})


def record(kind: str, record_id: str, at: float, fields: Fields, block: bytes) -> bytes:
    """Return a record as a gzip member.

    Args:
        kind: WARC-Type.
        record_id: a URN.
        at: WARC-Date, Unix seconds.
        fields: the other header fields; Content-Length and WARC-Block-Digest are added.
        block: its content.
    """
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <{record_id}>",
        f"WARC-Date: {date_text(at)}",
        *(f"{name}: {_one_line(value)}" for name, value in fields),
        f"WARC-Block-Digest: {digest(block)}",
        f"Content-Length: {len(block)}",
    ]
    head = "\r\n".join(lines).encode()
    return isal_zlib.compress(b"".join((head, b"\r\n\r\n", block, b"\r\n\r\n")), LEVEL, 31)


def digest(content: bytes) -> str:
    """Return a digest as WARC files and their indexes usually have it: SHA-1 in base 32."""
    return f"sha1:{b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}"


def date_text(at: float) -> str:
    """Return an instant as W3CDTF with microseconds (section 5.4).

    >>> date_text(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def warc_fields(fields: Fields) -> bytes:
    """Return a block of the type application/warc-fields."""
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields).encode()


def http_request(target: str, authority: str) -> bytes:
    """Return the request of a page, as far as the file knows it."""
    return f"GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()


def http_header(
    version: str,
    status: int,
    reason: str | None,
    headers: Sequence[tuple[bytes, bytes]],
    length: int | None,
) -> bytes:
    """Return the header of an answer whose body follows decoded.

    Args:
        version: as stored, `HTTP/1.1`; HTTP/2 has no header to be written and becomes 1.1.
        status: its code.
        reason: its phrase.
        headers: names and values as received.
        length: bytes of the body that it belongs to; None: it has none.
    """
    version = version if version.startswith("HTTP/1.") else "HTTP/1.1"
    parts = [f"{version} {status} {_one_line(reason or '')}".encode("latin-1", "replace")]
    for name, value in headers:
        if name.lower() in _TRANSFER_HEADERS:
            name = b"X-Crawler-" + name
        parts.append(name + b": " + value)
    if length is not None:
        parts.append(b"Content-Length: %d" % length)
    clean = (part.translate(None, b"\r\n\0") for part in parts)
    return b"\r\n".join(clean) + b"\r\n\r\n"


def _one_line(text: str) -> str:
    return text if text.isprintable() else " ".join(text.split())
