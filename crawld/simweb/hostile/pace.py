"""Servers that are slow at one stage of an exchange, from the name to the last byte."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Iterator

import trio

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import (
    BROKEN,
    NO_ROBOTS,
    STORED,
    TIMEOUT,
    HostileCase,
    NameAnswer,
    Place,
    Transport,
    failed,
    html,
    stream,
)
from crawld.simweb.hostile.connections import swallow
from crawld.simweb.message import AbnormalEnd, SimRequest, SimResponse, Step, build_response

_PAGE = html("<p>slowly")
_OK = b"HTTP/1.1 200 OK\r\n"
_TYPE = b"Content-Type: text/html\r\n"
_SIZED = _OK + _TYPE + b"Content-Length: %d\r\n\r\n" % len(_PAGE)
_CHUNKED = _OK + _TYPE + b"Transfer-Encoding: chunked\r\n\r\n"
_GZIPPED = zlib.compress(_PAGE, 9, 31)
_NOT_REACHED = failed("connect", "dns", "timeout", "tls") | NO_ROBOTS
GAP_S = 0.9
"""Shorter than a silence may be: only the limits of a stage and the total end such a server."""


def _apart(first: bytes, rest: bytes, then: Step = AbnormalEnd.HANG) -> Iterator[Step]:
    """Yield bytes at once, the next one by one, then another step."""
    yield first
    for byte in rest:
        yield bytes((byte,))
        yield GAP_S
    yield then


def _slow(
    name: str,
    steps: Callable[[], Iterable[Step]],
    *,
    outcomes: frozenset[str] = TIMEOUT,
    quick: bool = False,
) -> HostileCase:
    return stream(name, steps, outcomes=outcomes, quick=quick)


def _stage(name: str, outcomes: frozenset[str], **more: object) -> HostileCase:
    """Return a case that is slow before HTTP begins, and harmless after."""

    def respond(_: Place) -> Fault:
        return lambda request, _: build_response(request, 200, _PAGE)

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        outcomes=outcomes,
        wait=4.0,
        **more,  # type: ignore[arg-type]
    )


def _robots(name: str, steps: Callable[[], Iterable[Step]]) -> HostileCase:
    """Return a case whose robots.txt is slow."""

    def respond(_: Place) -> Fault:
        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path == "/robots.txt":
                return SimResponse(200, steps(), close=True)
            return build_response(request, 200, _PAGE)

        return handler

    return HostileCase(
        name=name, family="", respond=respond, outcomes=STORED | NO_ROBOTS, owns=True, wait=4.0
    )


def _handshake(name: str, *steps: bytes | float) -> HostileCase:
    """Return a case that sends bytes instead of a handshake of TLS."""

    async def connect(plain: trio.abc.HalfCloseableStream) -> None:
        for step in itertools.cycle(steps):
            if isinstance(step, bytes):
                await plain.send_all(step)
            elif math.isinf(step):
                await swallow(plain)
                return
            else:
                await trio.sleep(step)

    return HostileCase(
        name=name,
        family="",
        connect=lambda _: connect,
        outcomes=failed("tls", "connect", "timeout", "protocol") | {"robots"},
        transport=Transport.TLS,
        wait=4.0,
    )


def _hop(request: SimRequest, _: Handler) -> SimResponse:
    """Redirect slowly, hop after hop."""
    if request.path == "/robots.txt":
        return build_response(request, 404)
    number = request.path.strip("/") or "0"
    to = int(number) + 1 if number.isdigit() else 1
    head = f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /{to}\r\n\r\n".encode()
    return SimResponse(302, (head[:20], 3.0, head[20:]))


def _answers(**answer: object) -> Callable[[str, int, str], NameAnswer]:
    return lambda host, asked, address: NameAnswer((address,), **answer)  # type: ignore[arg-type]


CASES: tuple[HostileCase, ...] = (
    # the name
    _stage("pace-name-5s", STORED | _NOT_REACHED, resolve=_answers(delay_s=5.0)),
    _stage("pace-name-9s", STORED | _NOT_REACHED, resolve=_answers(delay_s=9.0)),
    _stage("pace-name-never", _NOT_REACHED, resolve=_answers(delay_s=math.inf), quick=True),
    _stage("pace-name-fails", _NOT_REACHED, resolve=_answers(delay_s=3.0, error="temporary")),
    _stage(
        "pace-name-first-time",
        STORED | _NOT_REACHED,
        resolve=lambda h, n, a: NameAnswer((a,), delay_s=0.0 if n else math.inf),
    ),
    # the connection
    _stage("pace-dial-3s", STORED, dial_s=3.0),
    _stage("pace-dial-5s", _NOT_REACHED, dial_s=5.0),
    _stage("pace-dial-never", _NOT_REACHED, dial_s=math.inf, quick=True),
    _stage(
        "pace-dial-dead-first",
        STORED,
        resolve=lambda h, n, a: NameAnswer(("45.67.0.1", "45.67.0.2", a)),
    ),
    _stage(
        "pace-dial-dead-all",
        _NOT_REACHED,
        resolve=lambda h, n, a: NameAnswer(tuple(f"45.67.0.{k}" for k in range(1, 17))),
    ),
    # the handshake of TLS
    _handshake("pace-tls-never", math.inf),
    _handshake("pace-tls-header-drip", b"\x16", GAP_S, b"\x03", GAP_S, b"\x03", GAP_S),
    _handshake("pace-tls-alert-drip", b"\x15\x03\x03\x00\x02\x01\x00", GAP_S),
    _handshake("pace-tls-empty-records", b"\x16\x03\x03\x00\x00"),
    # the header
    _slow("pace-status-line", lambda: _apart(b"", _OK), quick=True),
    _slow("pace-reason", lambda: _apart(b"HTTP/1.1 200 ", b"O" * 999)),
    _slow("pace-field-name", lambda: _apart(_OK, b"X" * 999)),
    _slow("pace-field-value", lambda: _apart(_OK + b"X: ", b"v" * 999)),
    _slow("pace-field-blanks", lambda: _apart(_OK + b"X:", b" " * 999)),
    _slow("pace-folds", lambda: _apart(_OK + b"X: a", b"\r\n \r\n " * 99)),
    _slow("pace-last-crlf", lambda: (_SIZED[:-2], AbnormalEnd.HANG)),
    _slow("pace-empty-lines", lambda: _apart(b"", b"\r\n" * 999), outcomes=BROKEN),
    _slow("pace-interim", lambda: itertools.cycle((b"HTTP/1.1 102 P\r\n\r\n", GAP_S))),
    # the body
    _slow("pace-before-body", lambda: (_SIZED, AbnormalEnd.HANG)),
    _slow("pace-body", lambda: _apart(_SIZED, _PAGE), quick=True),
    _slow("pace-last-byte", lambda: (_SIZED + _PAGE[:-1], AbnormalEnd.HANG)),
    _slow("pace-chunk-size", lambda: _apart(_CHUNKED, b"0" * 999)),
    _slow("pace-chunk-data", lambda: _apart(_CHUNKED + b"fff\r\n", b"x" * 999)),
    _slow("pace-chunk-end", lambda: (_CHUNKED + b"1\r\nx", AbnormalEnd.HANG)),
    _slow("pace-last-chunk", lambda: (_CHUNKED + b"1\r\nx\r\n", AbnormalEnd.HANG)),
    _slow("pace-trailer", lambda: _apart(_CHUNKED + b"0\r\n", b"X: " + b"y" * 999)),
    _slow(
        "pace-trailers",
        lambda: itertools.chain((_CHUNKED + b"0\r\n",), itertools.cycle((b"X: y\r\n", GAP_S))),
    ),
    _slow("pace-gzip-header", lambda: _gzip(_GZIPPED[:4])),
    _slow("pace-gzip-data", lambda: _gzip(_GZIPPED[:-8])),
    _slow("pace-gzip-trailer", lambda: _gzip(_GZIPPED[-8:], _GZIPPED[:-8])),
    stream("pace-keeps-just-within", lambda: _within(), outcomes=TIMEOUT | STORED),
    stream(
        "pace-reset-at-the-end",
        lambda: (_SIZED + _PAGE[:-1], 1.8, AbnormalEnd.RESET),
        outcomes=BROKEN,
    ),
    # other requests
    _robots("pace-robots-status", lambda: _apart(b"", _OK)),
    _robots("pace-robots-body", lambda: _apart(_OK + b"Connection: close\r\n\r\n", b"#" * 999)),
    _robots("pace-robots-hang", lambda: (_OK + b"\r\nUser-agent: *\nDis", AbnormalEnd.HANG)),
    HostileCase(
        name="pace-redirects",
        family="",
        respond=lambda _: _hop,
        outcomes=frozenset({"moved"}) | failed("bad_redirect"),
        owns=True,
        wait=4.0,
    ),
)


def _gzip(slow: bytes, at_once: bytes = b"") -> Iterator[Step]:
    """Yield a coded body, a part of it byte by byte."""
    head = _OK + _TYPE + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n"
    return _apart(head + at_once, slow)


def _within() -> Iterator[Step]:
    """Use as much time as each stage has."""
    yield 3.9
    yield _SIZED
    yield 1.9
    yield _PAGE[:9]
    yield 1.9
    yield _PAGE[9:]
