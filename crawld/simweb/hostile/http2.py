"""HTTP/2 servers that send wrong, endless or withheld frames."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing

import trio
from hpack import Decoder

from crawld.simweb.hostile.case import (
    BROKEN,
    STORED,
    Connection,
    HostileCase,
    Place,
    Transport,
    failed,
    html,
)

_DATA, _HEADERS, _RST, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = (
    *(0, 1, 3, 4, 5, 6, 7, 8, 9),
)
_END_STREAM, _END_HEADERS, _PRIORITY = 1, 4, 32
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_PAGE = html("<p>in frames")
_BAD = BROKEN | failed("tls", "http_status", "bad_redirect") | {"robots"}
_ANY = _BAD | STORED

Step = bytes | float
Answer = Callable[[int], Iterable[Step]]
"""Makes what is sent to the request on a stream."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def _integer(value: int, prefix: int) -> bytes:
    """Return an integer of HPACK (RFC 7541, 5.1)."""
    limit = (1 << prefix) - 1
    if value < limit:
        return bytes((value,))
    value -= limit
    made = [limit]
    while value >= 128:
        made.append(value % 128 + 128)
        value //= 128
    return bytes((*made, value))


def fields(*pairs: tuple[bytes, bytes]) -> bytes:
    """Return literal fields, without table and Huffman code, and without any check."""
    return b"".join(
        b"\0" + _integer(len(name), 7) + name + _integer(len(value), 7) + value
        for name, value in pairs
    )


def _head(
    stream: int, *pairs: tuple[bytes, bytes], status: bytes = b"200", end: bool = False
) -> bytes:
    block = fields((b":status", status), (b"content-type", b"text/html"), *pairs)
    return frame(_HEADERS, _END_HEADERS | (_END_STREAM if end else 0), stream, block)


def _whole(stream: int, *pairs: tuple[bytes, bytes], status: bytes = b"200") -> bytes:
    return _head(stream, *pairs, status=status) + frame(_DATA, _END_STREAM, stream, _PAGE)


def _http2(
    name: str,
    answer: Answer,
    outcomes: frozenset[str],
    *,
    settings: bytes = b"",
    before: Callable[[], Iterable[bytes]] = lambda: (),
    quick: bool = False,
) -> HostileCase:
    """Return a case.

    Args:
        answer: what is sent after each request for the page.
        settings: the payload of the server's first frame.
        before: frames that follow it.
    """

    def made(place: Place) -> Connection:
        tls = place.context(place.host, http2=True)

        async def connect(plain: trio.abc.HalfCloseableStream) -> None:
            stream = trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
            await stream.send_all(frame(_SETTINGS, 0, 0, settings) + b"".join(before()))
            async with aclosing(_requests(stream)) as requests:
                async for number, path in requests:
                    if path == b"/robots.txt":
                        await stream.send_all(_head(number, status=b"404", end=True))
                        continue
                    for step in answer(number):
                        if isinstance(step, bytes):
                            await stream.send_all(step)
                        else:
                            await trio.sleep(step)

        return connect

    return HostileCase(
        name=name,
        family="",
        connect=made,
        outcomes=outcomes,
        transport=Transport.TLS,
        wait=4.0,
        quick=quick,
    )


async def _requests(
    stream: trio.SSLStream[trio.abc.HalfCloseableStream],
) -> AsyncGenerator[tuple[int, bytes]]:
    """Yield the stream number and the path of each request until the client closes."""
    buffer, decoder = bytearray(), Decoder()
    # Some cases allow the client a table of any size.
    decoder.max_allowed_table_size = 2**32
    left = len(_PREFACE)
    while data := await stream.receive_some(65_536):
        buffer += data
        while left and buffer:
            left -= 1
            del buffer[0]
        while len(buffer) >= 9 and len(buffer) >= 9 + int.from_bytes(buffer[:3], "big"):
            size, kind, flags = int.from_bytes(buffer[:3], "big"), buffer[3], buffer[4]
            number = int.from_bytes(buffer[5:9], "big")
            payload = bytes(buffer[9 : 9 + size])
            del buffer[: 9 + size]
            if kind == _HEADERS:
                block = payload[5:] if flags & _PRIORITY else payload
                yield number, dict(decoder.decode(block, raw=True)).get(b":path", b"")


def _many(stream: int, count: int) -> bytes:
    """Return a header block of `count` fields."""
    pairs = ((b"x-field-%d" % k, b"value") for k in range(count))
    return _head(stream, *pairs)


def _continuations(stream: int, block: bytes) -> Iterator[Step]:
    yield frame(_HEADERS, 0, stream, fields((b":status", b"200")))
    yield from itertools.repeat(frame(_CONTINUATION, 0, stream, block))


def _endless(first: bytes, block: bytes) -> Iterator[Step]:
    yield first
    yield from itertools.repeat(block)


def _reset(stream: int, code: int) -> bytes:
    return frame(_RST, 0, stream, code.to_bytes(4, "big"))


def _value(name: str, value: bytes, outcomes: frozenset[str] = _BAD) -> HostileCase:
    """Return a case with one odd field value."""
    return _http2(name, lambda n: (_whole(n, (b"x-odd", value)),), outcomes)


def _status(name: str, status: bytes, *, quick: bool = False) -> HostileCase:
    return _http2(name, lambda n: (_whole(n, status=status),), _BAD, quick=quick)


def _setting(key: int, value: int) -> bytes:
    return key.to_bytes(2, "big") + value.to_bytes(4, "big")


_SETTINGS_FLOOD = frame(_SETTINGS, 0, 0, _setting(3, 100)) * 2_000
_PING_FLOOD = frame(_PING, 0, 0, bytes(8)) * 3_000
_TABLE_FLAPS = frame(_SETTINGS, 0, 0, _setting(1, 0)) + frame(_SETTINGS, 0, 0, _setting(1, 4_096))
_GOODBYE = frame(_GOAWAY, 0, 0, bytes(8))
_PROMISE = (2).to_bytes(4, "big") + fields((b":path", b"/evil"), (b":method", b"GET"))

CASES: tuple[HostileCase, ...] = (
    _http2("h2-healthy", lambda n: (_whole(n),), STORED),
    _status("h2-status-abc", b"abc", quick=True),
    _status("h2-status-empty", b""),
    _status("h2-status-negative", b"-200"),
    _status("h2-status-5000-digits", b"2" * 5_000),
    _status("h2-status-unicode", "２００".encode()),
    _status("h2-status-blank", b" 200"),
    _status("h2-status-0", b"000"),
    _http2(
        "h2-status-twice",
        lambda n: (_head(n, (b":status", b"404")) + frame(_DATA, 1, n, _PAGE),),
        _BAD,
    ),
    _http2("h2-status-none", lambda n: (frame(_HEADERS, 5, n, fields((b"a", b"b"))),), _BAD),
    _http2("h2-no-fields", lambda n: (frame(_HEADERS, 5, n),), _BAD),
    _value("h2-value-crlf", b"a\r\nSet-Cookie: b=c"),
    _value("h2-value-lf", b"a\nb"),
    _value("h2-value-nul", b"a\0b"),
    _value("h2-value-blank", b" a ", _ANY),
    _value("h2-value-latin", b"\xff\xfe", _ANY),
    _value("h2-value-1mb", b"x" * 1_000_000, _BAD),
    _http2("h2-name-crlf", lambda n: (_whole(n, (b"x\r\ny: z", b"a")),), _BAD),
    _http2("h2-name-upper", lambda n: (_whole(n, (b"X-Upper", b"a")),), _ANY),
    _http2("h2-name-connection", lambda n: (_whole(n, (b"connection", b"close")),), _ANY),
    _http2("h2-etag-crlf", lambda n: (_whole(n, (b"etag", b'"a\r\nb"')),), _BAD),
    _http2(
        "h2-location-crlf", lambda n: (_whole(n, (b"location", b"/\r\nX: y"), status=b"302"),), _BAD
    ),
    _http2("h2-length-wrong", lambda n: (_whole(n, (b"content-length", b"5")),), _BAD),
    _http2("h2-length-abc", lambda n: (_whole(n, (b"content-length", b"abc")),), _BAD),
    _http2("h2-fields-10000", lambda n: (_many(n, 10_000),), _BAD),
    _http2("h2-continuation-endless", lambda n: _continuations(n, b""), _BAD, quick=True),
    _http2(
        "h2-continuation-fields",
        lambda n: _continuations(n, fields((b"x-more", b"y" * 1_000)) * 15),
        _BAD,
    ),
    _http2("h2-table-bomb", lambda n: _table_bomb(n), _BAD),
    _http2("h2-huffman-wrong", lambda n: (frame(_HEADERS, 5, n, b"\x00\x85" + b"\xff" * 5),), _BAD),
    _http2("h2-index-wrong", lambda n: (frame(_HEADERS, 5, n, b"\xff\xff\xff\xff\x7f"),), _BAD),
    _http2("h2-reset", lambda n: (_reset(n, 8),), _BAD),
    _http2("h2-reset-after-head", lambda n: (_head(n), _reset(n, 2)), _BAD),
    _http2("h2-reset-refused", lambda n: (_reset(n, 7),), _BAD),
    _http2("h2-resets-endless", lambda n: _endless(b"", _reset(n, 8) * 3_000), _BAD, quick=True),
    _http2(
        "h2-resets-idle", lambda n: (b"".join(_reset(k, 8) for k in range(3, 90_001, 2)),), _BAD
    ),
    _http2("h2-settings-endless", lambda n: _endless(b"", _SETTINGS_FLOOD), _BAD, quick=True),
    _http2("h2-pings-endless", lambda n: _endless(b"", _PING_FLOOD), _BAD),
    _http2("h2-settings-before", lambda n: (_whole(n),), _ANY, before=lambda: (_SETTINGS_FLOOD,)),
    _http2("h2-settings-size", lambda n: (_whole(n),), _BAD, settings=b"abc"),
    _http2("h2-window-zero", lambda n: (_head(n), 600.0), _BAD, settings=_setting(4, 0)),
    _http2("h2-window-huge", lambda n: (_whole(n),), _BAD, settings=_setting(4, 2**32 - 1)),
    _http2("h2-frame-size-0", lambda n: (_whole(n),), _BAD, settings=_setting(5, 0)),
    _http2("h2-streams-none", lambda n: (_whole(n),), _ANY, settings=_setting(3, 0)),
    _http2("h2-table-huge", lambda n: (_whole(n),), _ANY, settings=_setting(1, 2**32 - 1)),
    _http2("h2-window-overflow", lambda n: _endless(b"", _overflow(n)), _BAD),
    _http2("h2-window-updates-0", lambda n: (frame(_WINDOW, 0, n, bytes(4)), 600.0), _BAD),
    _http2(
        "h2-data-too-fast",
        lambda n: (_head(n), frame(_DATA, 0, n, bytes(16_384)) * 600),
        _BAD | failed("wrong_type"),
    ),
    _http2("h2-data-first", lambda n: (frame(_DATA, 1, n, _PAGE),), _BAD),
    _http2("h2-data-empty-endless", lambda n: _endless(_head(n), frame(_DATA, 0, n) * 7_000), _BAD),
    _http2(
        "h2-data-padding",
        lambda n: _endless(_head(n), frame(_DATA, 8, n, b"\xff" + bytes(255))),
        _BAD,
    ),
    _http2("h2-data-on-zero", lambda n: (_head(n), frame(_DATA, 1, 0, _PAGE)), _BAD),
    _http2("h2-frame-16mb", lambda n: _endless(b"\xff\xff\xff\0\0\0\0\0\x01", bytes(65_536)), _BAD),
    _http2("h2-frames-unknown", lambda n: _endless(b"", frame(200, 0, n, bytes(99)) * 600), _BAD),
    _http2("h2-push", lambda n: (frame(_PUSH, 4, n, _PROMISE), _whole(n)), _ANY),
    _http2("h2-goaway", lambda n: (_GOODBYE,), _BAD),
    _http2("h2-goaway-mid", lambda n: (_head(n), _GOODBYE, frame(_DATA, 1, n, _PAGE)), _ANY),
    _http2("h2-goaway-endless", lambda n: _endless(b"", _GOODBYE * 3_000), _BAD),
    _http2("h2-informational", lambda n: _endless(b"", _head(n, status=b"103") * 900), _BAD),
    _http2("h2-trailers-status", lambda n: (_head(n), _head(n, end=True)), _ANY),
    _http2("h2-never-ends", lambda n: (_head(n), frame(_DATA, 0, n, _PAGE), 600.0), _BAD),
    _http2("h2-never-answers", lambda n: (600.0,), _BAD),
    _http2("h2-http1-answer", lambda n: (b"HTTP/1.1 200 OK\r\n\r\n" + _PAGE,), _BAD),
    _http2("h2-junk", lambda n: (bytes(range(256)) * 900,), _BAD),
    _http2("h2-slow-frame", lambda n: _slow(_whole(n)), _BAD),
    # pace
    _http2("h2-slow-settings", lambda n: _every(0.9, frame(_SETTINGS, 0, 0)), _BAD),
    _http2("h2-slow-pings", lambda n: _every(0.9, frame(_PING, 0, 0, bytes(8))), _BAD, quick=True),
    _http2("h2-slow-continuations", lambda n: _slow_block(n), _BAD),
    _http2("h2-slow-data", lambda n: (_head(n), *_every(0.9, frame(_DATA, 0, n, b"x"), 30)), _BAD),
    _http2(
        "h2-slow-padding",
        lambda n: (_head(n), *_every(0.9, frame(_DATA, 8, n, b"\xff" + bytes(255)), 30)),
        _BAD,
    ),
    _http2("h2-slow-interim", lambda n: _every(0.9, _head(n, status=b"103")), _BAD),
    _http2("h2-slow-unknown", lambda n: _every(0.9, frame(200, 0, n, b"x")), _BAD),
    _http2("h2-slow-trailers", lambda n: (_head(n), frame(_DATA, 0, n, _PAGE), 600.0), _BAD),
    # floods
    _http2(
        "h2-priorities-endless", lambda n: _endless(b"", frame(2, 0, 9, bytes(5)) * 3_000), _BAD
    ),
    _http2("h2-acks-endless", lambda n: _endless(b"", frame(_SETTINGS, 1, 0) * 3_000), _BAD),
    _http2("h2-pongs-endless", lambda n: _endless(b"", frame(_PING, 1, 0, bytes(8)) * 900), _BAD),
    _http2(
        "h2-windows-endless", lambda n: _endless(b"", frame(_WINDOW, 0, n, b"\0\0\0\1") * 900), _BAD
    ),
    _http2(
        "h2-promises-endless", lambda n: _endless(b"", frame(_PUSH, 4, n, _PROMISE) * 900), _BAD
    ),
    _http2("h2-origins-endless", lambda n: _endless(b"", frame(12, 0, 0, bytes(99)) * 900), _BAD),
    _http2("h2-alt-svc-endless", lambda n: _endless(b"", frame(10, 0, 0, bytes(99)) * 900), _BAD),
    _http2("h2-trailers-endless", lambda n: _endless(_head(n), _head(n)), _BAD),
    _http2("h2-table-flaps", lambda n: _endless(b"", _TABLE_FLAPS), _BAD),
    _http2("h2-cookies-20000", lambda n: (_head(n, *[(b"set-cookie", b"a=b")] * 20_000),), _BAD),
    # rules of the protocol
    _http2("h2-status-101", lambda n: (_whole(n, status=b"101"),), _BAD),
    _http2("h2-pseudo-late", lambda n: (_whole(n, (b"x-a", b"b"), (b":path", b"/")),), _BAD),
    _http2("h2-coding-field", lambda n: (_whole(n, (b"transfer-encoding", b"chunked")),), _ANY),
    _http2("h2-head-after-end", lambda n: (_whole(n), _whole(n)), _ANY),
    _http2("h2-other-stream", lambda n: (_whole(n + 2),), _BAD),
    _http2("h2-even-stream", lambda n: (_whole(2),), _BAD),
    _http2(
        "h2-data-after-reset", lambda n: (_head(n), _reset(n, 0), frame(_DATA, 1, n, _PAGE)), _BAD
    ),
    _http2("h2-continuation-alone", lambda n: (frame(_CONTINUATION, 4, n, b"\x88"),), _BAD),
    _http2(
        "h2-head-broken-off",
        lambda n: (frame(_HEADERS, 0, n, b"\x88"), frame(_PING, 0, 0, bytes(8))),
        _BAD,
    ),
    _http2("h2-padding-too-long", lambda n: (_head(n), frame(_DATA, 9, n, b"\xff12")), _BAD),
    _http2(
        "h2-frame-too-large",
        lambda n: (_head(n), frame(_DATA, 1, n, bytes(70_000))),
        _BAD | failed("wrong_type"),
    ),
    _http2("h2-setting-push", lambda n: (_whole(n),), _ANY, settings=_setting(2, 2)),
    _http2("h2-settings-6000", lambda n: (_whole(n),), _ANY, settings=_setting(99, 1) * 2_700),
    _http2("h2-goaway-each", lambda n: (_GOODBYE, _whole(n)), _ANY),
    _http2("h2-gzip-empty", lambda n: (_whole(n, (b"content-encoding", b"gzip")),), _BAD),
)


def _table_bomb(stream: int) -> Iterator[Step]:
    """Put one large field into the compression table, then name it thousands of times."""
    large = b"\x40" + _integer(4, 7) + b"bomb" + _integer(3_900, 7) + b"x" * 3_900
    yield frame(_HEADERS, 0, stream, fields((b":status", b"200")) + large)
    for _ in range(300):
        yield frame(_CONTINUATION, 0, stream, b"\xbe" * 16_000)
    yield frame(_CONTINUATION, _END_HEADERS, stream)


def _every(gap_s: float, block: bytes, times: int | None = None) -> Iterator[Step]:
    """Repeat bytes after equal times, for ever or so often."""
    for _ in itertools.count() if times is None else range(times):
        yield block
        yield gap_s


def _slow_block(stream: int) -> Iterator[Step]:
    yield frame(_HEADERS, 0, stream, b"\x88")
    yield from _every(0.9, frame(_CONTINUATION, 0, stream, fields((b"x", b"y"))))


def _overflow(stream: int) -> bytes:
    return frame(_WINDOW, 0, stream, (2**31 - 1).to_bytes(4, "big")) * 2


def _slow(data: bytes) -> Iterator[Step]:
    for byte in data:
        yield bytes((byte,))
        yield 0.4
