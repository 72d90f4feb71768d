"""HTTP/1 messages: status lines, fields, lengths, chunks, pace, and how connections end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from crawld.simweb.hostile.case import (
    BROKEN,
    PROTOCOL,
    STORED,
    TIMEOUT,
    TOO_LARGE,
    TRUNCATED,
    HostileCase,
    failed,
    html,
    stream,
    wire,
)
from crawld.simweb.message import AbnormalEnd, Step

_PAGE = html("<p>a message")
_TYPE = b"Content-Type: text/html\r\n"
_OK = b"HTTP/1.1 200 OK\r\n" + _TYPE
_OPEN = _OK + b"Connection: close\r\n\r\n"
_WHOLE = _OK + b"Content-Length: %d\r\n\r\n" % len(_PAGE) + _PAGE
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNK = b"%x\r\n%s\r\n" % (len(_PAGE), _PAGE)
_ANY = STORED | BROKEN
_TOO_MUCH = TOO_LARGE | PROTOCOL


def _status(line: bytes) -> bytes:
    return line + b"\r\n" + _WHOLE.partition(b"\r\n")[2]


def _length(value: bytes) -> bytes:
    return _OK + b"Content-Length: " + value + b"\r\n\r\n" + _PAGE


def _fields(text: bytes) -> bytes:
    return _WHOLE.replace(_TYPE, _TYPE + text, 1)


def _bytes_apart(data: bytes, gap_s: float) -> Iterator[Step]:
    for byte in data:
        yield bytes((byte,))
        yield gap_s


def _then_endless(first: bytes, block: bytes) -> Iterator[Step]:
    yield first
    yield from itertools.repeat(block)


def _rows(count: int) -> bytes:
    return b"".join(b"X-Field-%d: value\r\n" % k for k in range(count))


CASES: tuple[HostileCase, ...] = (
    # pace
    stream("slow-head", lambda: _bytes_apart(_WHOLE, 1.0), outcomes=TIMEOUT, quick=True),
    stream("slow-head-fields", lambda: _slow_fields(), outcomes=TIMEOUT),
    stream("slow-body", lambda: (_OPEN, *_bytes_apart(_PAGE, 1.0)), outcomes=TIMEOUT, quick=True),
    stream("slow-chunks", lambda: _slow_chunks(), outcomes=TIMEOUT),
    stream("slow-extension", lambda: _slow_extension(), outcomes=BROKEN),
    wire("hang-at-once", AbnormalEnd.HANG, outcomes=TIMEOUT),
    wire("hang-in-head", _OK, AbnormalEnd.HANG, outcomes=TIMEOUT),
    wire("hang-in-body", _OPEN + _PAGE[:40], AbnormalEnd.HANG, outcomes=TIMEOUT),
    wire("hang-after-body", _OPEN + _PAGE, AbnormalEnd.HANG, outcomes=TIMEOUT),
    # ends
    wire("close-at-once", AbnormalEnd.CLOSE, outcomes=BROKEN),
    wire("close-in-status", b"HTTP/1.1 2", AbnormalEnd.CLOSE, outcomes=BROKEN),
    wire("close-in-head", _OK, AbnormalEnd.CLOSE, outcomes=BROKEN),
    wire("close-in-body", _WHOLE[:-9], AbnormalEnd.CLOSE, outcomes=TRUNCATED, quick=True),
    wire("close-in-chunk", _CHUNKED + _CHUNK[:-9], AbnormalEnd.CLOSE, outcomes=TRUNCATED),
    wire("close-before-last-chunk", _CHUNKED + _CHUNK, AbnormalEnd.CLOSE, outcomes=TRUNCATED),
    wire("reset-at-once", AbnormalEnd.RESET, outcomes=BROKEN),
    wire("reset-in-head", _OK, 0.1, AbnormalEnd.RESET, outcomes=BROKEN),
    wire("reset-in-body", _WHOLE[:-9], 0.1, AbnormalEnd.RESET, outcomes=BROKEN),
    wire("reset-open-body", _OPEN + _PAGE, 0.1, AbnormalEnd.RESET, outcomes=BROKEN),
    wire("reset-in-chunk", _CHUNKED + _CHUNK[:-9], 0.1, AbnormalEnd.RESET, outcomes=BROKEN),
    # head
    stream(
        "head-1mb", lambda: (_fields(b"X-Huge: " + b"x" * 1_000_000 + b"\r\n"),), outcomes=_TOO_MUCH
    ),
    wire("head-10000-fields", _fields(_rows(10_000)), outcomes=_TOO_MUCH, quick=True),
    wire("head-2000-fields", _fields(_rows(2_000)), outcomes=_ANY),
    stream(
        "head-endless",
        lambda: _then_endless(b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n" * 5_000),
        outcomes=_TOO_MUCH,
        quick=True,
    ),
    stream("head-endless-name", lambda: _then_endless(_OK, b"x" * 65_536), outcomes=_TOO_MUCH),
    stream("head-endless-lines", lambda: _then_endless(b"", b"\r\n" * 30_000), outcomes=BROKEN),
    wire("head-folded", _fields(b"X-Folded: a\r\n" + b" b\r\n" * 10_000), outcomes=_ANY),
    wire("head-nul", _fields(b"X-Nul: a\0b\r\n"), outcomes=_ANY),
    wire("head-no-colon", _fields(b"no colon here\r\n"), outcomes=_ANY),
    wire("head-blank-name", _fields(b"X-Blank : 1\r\n"), outcomes=_ANY),
    wire("head-empty-name", _fields(b": empty\r\n"), outcomes=_ANY),
    wire("head-bare-lf", _WHOLE.replace(b"\r\n", b"\n", 4), outcomes=_ANY),
    wire("head-bare-cr", _fields(b"X-A: b\rX-C: d\r\n"), outcomes=_ANY),
    wire("head-latin", _fields("X-Ä: ß\r\n".encode("latin-1")), outcomes=_ANY),
    # status
    wire("status-abc", _status(b"HTTP/1.1 abc OK"), outcomes=BROKEN),
    wire("status-negative", _status(b"HTTP/1.1 -200 OK"), outcomes=BROKEN),
    wire("status-4-digits", _status(b"HTTP/1.1 2000 OK"), outcomes=BROKEN),
    wire("status-unicode", _status("HTTP/1.1 ２００ OK".encode()), outcomes=BROKEN),
    wire("status-version-9", _status(b"HTTP/9.9 200 OK"), outcomes=_ANY),
    wire("status-icy", _status(b"ICY 200 OK"), outcomes=_ANY),
    wire("status-no-reason", _status(b"HTTP/1.1 200"), outcomes=STORED),
    wire("status-reason-200kb", _status(b"HTTP/1.1 200 " + b"O" * 200_000), outcomes=_TOO_MUCH),
    wire("status-0", _status(b"HTTP/1.1 000 OK"), outcomes=BROKEN | failed("http_status")),
    wire("status-999", _status(b"HTTP/1.1 999 No"), outcomes=BROKEN | failed("http_status")),
    wire("status-204-body", _status(b"HTTP/1.1 204 No"), outcomes=BROKEN | failed("http_status")),
    wire("status-206", _status(b"HTTP/1.1 206 Part"), outcomes=BROKEN | failed("http_status")),
    wire("status-304", b"HTTP/1.1 304 Not\r\n\r\n", outcomes=PROTOCOL),
    wire("status-101", b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n" + _PAGE, outcomes=BROKEN),
    wire("status-100-only", b"HTTP/1.1 100 Continue\r\n\r\n", outcomes=BROKEN),
    stream(
        "informational-endless",
        lambda: _then_endless(b"", b"HTTP/1.1 103 Early\r\n\r\n" * 3_000),
        outcomes=BROKEN,
        quick=True,
    ),
    stream(
        "informational-large",
        lambda: _then_endless(b"", b"HTTP/1.1 100 C\r\nX: " + b"y" * 60_000 + b"\r\n\r\n"),
        outcomes=BROKEN,
    ),
    wire("informational-100", b"HTTP/1.1 103 Early\r\n\r\n" * 100 + _WHOLE, outcomes=_ANY),
    wire("http-0.9", _PAGE, outcomes=BROKEN),
    wire("junk", bytes(range(256)) * 300, outcomes=BROKEN),
    wire("ssh", b"SSH-2.0-OpenSSH_9.2\r\n", AbnormalEnd.HANG, outcomes=BROKEN),
    # lengths
    wire("length-negative", _length(b"-5"), outcomes=BROKEN),
    wire("length-plus", _length(b"+5"), outcomes=BROKEN),
    wire("length-exponent", _length(b"1e3"), outcomes=BROKEN),
    wire("length-30-digits", _length(b"9" * 30), outcomes=BROKEN),
    wire("length-40000-digits", _length(b"9" * 40_000), outcomes=BROKEN),
    wire("length-10gb", _length(b"10000000000"), outcomes=TOO_LARGE | TRUNCATED),
    wire("length-twice", _length(b"5\r\nContent-Length: 6"), outcomes=BROKEN),
    wire("length-list", _length(b"5, 5"), outcomes=_ANY),
    wire("length-short", _length(b"10"), outcomes=_ANY, close=False),
    wire("length-and-chunks", _length(b"5\r\nTransfer-Encoding: chunked"), outcomes=BROKEN),
    wire("two-responses", _WHOLE + b"HTTP/1.1 200 OK\r\n\r\nevil", outcomes=_ANY, close=False),
    wire("bytes-behind", _WHOLE + b"\0" * 200_000, outcomes=_ANY, close=False),
    # chunks
    wire("chunk-size-letters", _CHUNKED + b"zz\r\n" + _CHUNK, outcomes=BROKEN),
    wire("chunk-size-negative", _CHUNKED + b"-1\r\n" + _PAGE, outcomes=BROKEN),
    wire("chunk-size-2-64", _CHUNKED + b"1" + b"0" * 16 + b"\r\n" + _PAGE, outcomes=BROKEN),
    wire("chunk-size-zeros", _CHUNKED + b"0" * 100_000 + b"5\r\nhello\r\n", outcomes=BROKEN),
    stream(
        "chunk-extension-1mb",
        lambda: (_CHUNKED + b"5;" + b"e" * 1_000_000 + b"\r\n",),
        outcomes=BROKEN,
    ),
    wire("chunk-no-end", _CHUNKED + _CHUNK.rstrip() + b"5\r\n", outcomes=BROKEN),
    stream(
        "chunks-1-byte",
        lambda: (_CHUNKED + b"1\r\na\r\n" * 1_000_000 + b"0\r\n\r\n",),
        outcomes=_ANY,
    ),
    wire("chunks-bare-lf", _CHUNKED + b"1\na\n" * 100 + b"0\n\n", outcomes=_ANY),
    stream("chunks-endless", lambda: _then_endless(_CHUNKED, b"1\r\na\r\n" * 9_000), outcomes=_ANY),
    stream(
        "trailers-endless",
        lambda: _then_endless(_CHUNKED + _CHUNK + b"0\r\n", b"X-T: y\r\n" * 8_000),
        outcomes=_ANY,
    ),
    wire("coding-unknown", _OK + b"Transfer-Encoding: x\r\n\r\n" + _PAGE, outcomes=BROKEN),
    wire(
        "coding-gzip", _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + _CHUNK, outcomes=BROKEN
    ),
    wire("coding-twice", _CHUNKED.replace(b"chunked", b"chunked, chunked"), outcomes=BROKEN),
    # sizes
    stream("body-endless", lambda: _then_endless(_OPEN, b"<p>on</p>" * 7_000), outcomes=_TOO_MUCH),
    stream("body-endless-links", lambda: _endless_links(), outcomes=_TOO_MUCH),
    wire("body-empty", _OPEN, outcomes=_ANY | failed("wrong_type")),
)


def _slow_fields() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\n"
    for k in itertools.count():
        yield b"X-%d: y\r\n" % k
        yield 0.5


def _slow_chunks() -> Iterator[Step]:
    yield _CHUNKED
    while True:
        yield b"1\r\na\r\n"
        yield 0.5


def _slow_extension() -> Iterator[Step]:
    yield _CHUNKED + b"5;"
    while True:
        yield b"e"
        yield 0.5


def _endless_links() -> Iterator[Step]:
    yield _OPEN
    for k in itertools.count():
        yield b"".join(b"<a href=/%d/%d>x</a>" % (k, n) for n in range(1_000))
