"""HTTP/1 framing that clients read in different ways, or that contradicts itself.

Fields twice, folded or odd; lengths, chunks, trailers, interim responses, statuses.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator

from crawld.simweb.fault import Fault
from crawld.simweb.hostile.case import (
    BROKEN,
    PROTOCOL,
    STORED,
    TOO_LARGE,
    HostileCase,
    Place,
    failed,
    html,
    stream,
    wire,
)
from crawld.simweb.message import AbnormalEnd, SimResponse, Step

_PAGE = html("<p>framed")
_SIZE = b"%d" % len(_PAGE)
_TYPE = b"Content-Type: text/html\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"
_LENGTH = b"Content-Length: " + _SIZE + b"\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(_PAGE), _PAGE)
_STATUS = failed("http_status")
_BLOCKED = frozenset({"blocked:unauthorized", "blocked:unavailable", "blocked:rate_limited"})
_ANY = STORED | BROKEN | failed("wrong_type")
_REDIRECT = frozenset({"moved"}) | failed("bad_redirect", "protocol")


def _fields(
    name: str, fields: bytes, outcomes: frozenset[str] = _ANY, *, quick: bool = False
) -> HostileCase:
    """Return a case with more fields in a sized response."""
    return wire(
        name, _OK + _TYPE + fields + _LENGTH + b"\r\n" + _PAGE, outcomes=outcomes, quick=quick
    )


def _length(name: str, value: bytes, outcomes: frozenset[str] = BROKEN) -> HostileCase:
    return wire(
        name, _OK + _TYPE + b"Content-Length:" + value + b"\r\n\r\n" + _PAGE, outcomes=outcomes
    )


def _coding(
    name: str, fields: bytes, body: bytes = _CHUNKS, outcomes: frozenset[str] = BROKEN
) -> HostileCase:
    return wire(name, _OK + _TYPE + fields + b"\r\n" + body, outcomes=outcomes)


def _chunk(name: str, size: bytes, outcomes: frozenset[str] = BROKEN) -> HostileCase:
    """Return a case whose one chunk of five bytes has its size written so."""
    head = _OK + _TYPE + _CHUNKED + b"\r\n"
    return wire(name, head + size + b"\r\nhello\r\n0\r\n\r\n", outcomes=outcomes)


def _gzip_of_404(place: Place) -> Fault:
    """Send 404 with 90 MB, packed: 0.2 s of work, so not done when this module is imported."""
    fields = b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n"
    sent = b"HTTP/1.1 404 No\r\n" + fields + gzip.compress(bytes(90_000_000))
    return lambda request, handler: SimResponse(200, (sent,), close=True)


def _trailers(name: str, fields: bytes, outcomes: frozenset[str] = _ANY) -> HostileCase:
    head = _OK + _TYPE + _CHUNKED + b"\r\n"
    return wire(name, head + _CHUNKS[:-2] + fields + b"\r\n", outcomes=outcomes)


def _interim(
    name: str, before: bytes, outcomes: frozenset[str] = _ANY, *, quick: bool = False
) -> HostileCase:
    """Return a case with bytes before its response."""
    return wire(
        name, before + _OK + _TYPE + _LENGTH + b"\r\n" + _PAGE, outcomes=outcomes, quick=quick
    )


def _status(
    name: str, status: str, fields: bytes = b"", outcomes: frozenset[str] = _STATUS
) -> HostileCase:
    head = f"HTTP/1.1 {status}\r\n".encode() + _TYPE + fields
    return wire(name, head + _LENGTH + b"\r\n" + _PAGE, outcomes=outcomes)


def _forever(first: bytes, block: bytes, every_s: float = 0.0) -> Iterator[Step]:
    yield first
    for _ in itertools.count():
        yield block
        if every_s:
            yield every_s


CASES: tuple[HostileCase, ...] = (
    # fields twice, folded, odd
    _fields("twice-type", b"Content-Type: image/png\r\n"),
    _fields("twice-type-charset", b"Content-Type: text/html; charset=utf-16\r\n"),
    _fields("twice-coding-field", b"Content-Encoding: gzip\r\nContent-Encoding: br\r\n", BROKEN),
    _fields("twice-etag", b'ETag: "a"\r\nETag: "b"\r\nETag: W/"c"\r\n', STORED),
    _fields("twice-modified", b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n" * 2_000),
    _fields("twice-connection", b"Connection: close\r\nConnection: keep-alive\r\n"),
    _fields("twice-status-line", _OK, _ANY, quick=True),
    _fields("cookies-of-others", b"Set-Cookie: a=b; Domain=.test; Path=/\r\n" * 500, STORED),
    _fields("folded-at-once", b" folded\r\n"),
    _fields("folded-tab", b"X-A: b\r\n\tc\r\n"),
    _fields("folded-length", b"Content-Length:\r\n 5\r\n", BROKEN),
    _fields("folded-coding", b"Transfer-Encoding:\r\n chunked\r\n", BROKEN),
    _fields("folded-empty", b"X-A: b\r\n \r\n \r\n"),
    _fields("name-with-blank", b"Content Length: 5\r\n"),
    _fields("name-underscore-length", b"Content_Length: 5\r\n", STORED),
    _fields("name-of-symbols", b"!#$%&'*+-.^_`|~: a\r\n", STORED),
    _fields("name-60kb", b"X" * 60_000 + b": a\r\n", _ANY | TOO_LARGE),
    _fields("value-of-blanks", b"X-A:" + b" \t" * 30_000 + b"\r\n", _ANY | TOO_LARGE),
    _fields("value-vertical-tab", b"X-A: a\x0bb\x0cc\r\n"),
    _fields("value-delete", b"X-A: a\x7fb\r\n"),
    # lengths
    _length("length-underscore", b" " + _SIZE[:1] + b"_" + _SIZE[1:]),
    _length("length-arabic", " \u0665\u0665".encode()),
    _length("length-hexadecimal", b" 0xff"),
    _length("length-empty", b""),
    _length("length-comma", b" ,"),
    _length("length-two-words", b" 5 5"),
    _length("length-list-wrong", b" 5, 6"),
    _length("length-zeros", b" " + b"0" * 30 + _SIZE, _ANY),
    _length("length-float", b" 5.0"),
    _length("length-minus-zero", b" -0"),
    _length("length-vertical-tab", b" \x0b" + _SIZE),
    _length("length-2-63", b" 9223372036854775808", BROKEN),
    # transfer codings
    _coding("coding-in-caps", b"Transfer-Encoding: CHUNKED\r\n", outcomes=_ANY),
    _coding("coding-blank-name", b"Transfer-Encoding : chunked\r\n", outcomes=_ANY),
    _coding("coding-vertical-tab", b"Transfer-Encoding: \x0bchunked\r\n"),
    _coding("coding-prefix", b"Transfer-Encoding: xchunked\r\n"),
    _coding("coding-quoted", b'Transfer-Encoding: "chunked"\r\n'),
    _coding("coding-parameter", b"Transfer-Encoding: chunked;a=b\r\n"),
    _coding("coding-not-last", b"Transfer-Encoding: chunked, gzip\r\n"),
    _coding("coding-identity", b"Transfer-Encoding: identity\r\n" + _LENGTH, _PAGE, _ANY),
    _coding("coding-two-fields", b"Transfer-Encoding: gzip\r\n" + _CHUNKED),
    _coding("coding-and-length", _CHUNKED + _LENGTH, outcomes=_ANY),
    wire(
        "coding-of-1.0",
        b"HTTP/1.0 200 OK\r\n" + _TYPE + _CHUNKED + b"\r\n" + _CHUNKS,
        outcomes=_ANY,
    ),
    # chunks
    _chunk("chunk-size-plus", b"+5"),
    _chunk("chunk-size-0x", b"0x5"),
    _chunk("chunk-size-underscore", b"0_5"),
    _chunk("chunk-size-blank", b" 5", _ANY),
    _chunk("chunk-size-empty", b""),
    _chunk("chunk-size-arabic", "\u0665".encode()),
    _chunk("chunk-size-bare-cr", b"5\r", _ANY),
    _chunk("chunk-size-short", b"4"),
    # llhttp takes the LF that is left as the end of the chunk; h11 refuses it.
    _chunk("chunk-size-long", b"6", _ANY),
    _chunk("chunk-extension-quoted", b'5;a="\r\n0\r\n\r\n"', _ANY),
    # trailers
    _trailers("trailer-length", _LENGTH),
    _trailers("trailer-coding", _CHUNKED),
    _trailers("trailer-encoding", b"Content-Encoding: gzip\r\n"),
    _trailers("trailer-location", b"Location: http://127.0.0.1/\r\n"),
    _trailers("trailer-retry-after", b"Retry-After: 999999\r\n"),
    _trailers("trailer-no-colon", b"no colon\r\n"),
    _trailers("trailer-1mb", b"X: " + b"y" * 1_000_000 + b"\r\n"),
    _trailers("trailers-20000", b"X: y\r\n" * 20_000),
    # interim responses
    _interim("interim-hints", b"HTTP/1.1 103 Early\r\nLink: </a>; rel=preload\r\n\r\n"),
    _interim("interim-length", b"HTTP/1.1 100 C\r\nContent-Length: 5\r\n\r\nhello"),
    _interim("interim-chunked", b"HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    _interim("interim-body", b"HTTP/1.1 102 Processing\r\n\r\n<html>not yet</html>", BROKEN),
    _interim("interim-199", b"HTTP/1.1 199 Odd\r\n\r\n"),
    _interim(
        "interim-101-then-200", b"HTTP/1.1 101 Switch\r\nUpgrade: h2c\r\n\r\n", BROKEN, quick=True
    ),
    _interim("interim-no-end", b"HTTP/1.1 100 Continue\r\n"),
    stream(
        "interim-dripped", lambda: _forever(b"", b"HTTP/1.1 102 P\r\n\r\n", 0.3), outcomes=BROKEN
    ),
    # statuses
    _status("status-199", "199 Odd", outcomes=BROKEN | _STATUS),
    _status("status-205-body", "205 Reset", outcomes=_STATUS | BROKEN),
    _status("status-207", "207 Multi"),
    _status("status-226", "226 Used"),
    _status("status-299", "299 Odd"),
    _status(
        "status-305", "305 Proxy", b"Location: http://127.0.0.1:3128/\r\n", _STATUS | _REDIRECT
    ),
    _status("status-306", "306 Switch", outcomes=_STATUS | _REDIRECT),
    _status(
        "status-401-basic",
        "401 No",
        b'WWW-Authenticate: Basic realm="' + b"r" * 9_000 + b'"\r\n',
        _BLOCKED,
    ),
    _status(
        "status-407",
        "407 Proxy",
        b"Proxy-Authenticate: Negotiate\r\n",
        _BLOCKED,
    ),
    _status("status-408", "408 Timeout", b"Connection: close\r\n"),
    _status("status-416", "416 Range", b"Content-Range: bytes */5\r\n"),
    _status("status-421", "421 Misdirected"),
    _status("status-425", "425 Early"),
    _status("status-451", "451 Legal", outcomes=_BLOCKED),
    _status(
        "status-511",
        "511 Network",
        b"Location: http://127.0.0.1/login\r\n",
        _STATUS,
    ),
    _status("status-599", "599 Odd"),
    _status(
        "busy-for-ever",
        "503 Busy",
        b"Retry-After: " + b"9" * 18 + b"\r\n",
        _BLOCKED,
    ),
    _status(
        "busy-in-year-9999",
        "429 Many",
        b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
        _BLOCKED,
    ),
    _status(
        "busy-twice",
        "503 Busy",
        b"Retry-After: 1\r\nRetry-After: 99\r\n",
        _BLOCKED,
    ),
    # bodies
    wire("body-of-304", b"HTTP/1.1 304 Not\r\n" + _LENGTH + b"\r\n" + _PAGE, outcomes=PROTOCOL),
    HostileCase(
        name="body-gzip-of-404",
        family="",
        respond=_gzip_of_404,
        outcomes=_ANY | _STATUS | frozenset({"missing", "gone"}),
    ),
    wire(
        "answer-of-others",
        _OK + _TYPE + _LENGTH + b"\r\n" + _PAGE + _OK + b"Content-Length: 5\r\n\r\nstale",
        outcomes=_ANY,
        close=False,
    ),
    wire(
        "close-said-and-not-done",
        _OK + _TYPE + b"Connection: close\r\n" + _LENGTH + b"\r\n" + _PAGE,
        AbnormalEnd.HANG,
        outcomes=STORED,
    ),
)
