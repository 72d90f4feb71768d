"""HTTP/2 answers, right and wrong: whatever a server sends is a value."""

import struct

import hpack
import pytest

from crawld.core.page import Failure
from crawld.net.errors import FetchError
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from crawld.net.http2 import FREE_FRAMES, READ_BYTES, SMALL_READ_BYTES, FrameMeter
from tests.unit.net.h2_frames import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    HELLO,
    OK_HEADERS,
    PING,
    PRIORITY,
    PUSH,
    RESET,
    SETTINGS,
    SETTINGS_FRAME,
    WINDOW,
    answering_h2,
    block,
    frame,
    headers,
)
from tests.unit.net.scripted_server import anywhere

S = (b":status", b"200")
# A header of 4,000 bytes, named ten thousand times by a byte each.
BOMB = b"\x40\x01a" + hpack.hpack.encode_integer(4000, 7) + b"x" * 4000 + b"\xbe" * 10_000
PROMISE = struct.pack(">I", 2) + block((b":method", b"GET"), (b":path", b"/"))
LIMITS = FetchLimits(header_s=5.0, stall_s=5.0, total_s=5.0)


def setting(*pairs):
    return frame(SETTINGS, b"".join(struct.pack(">HI", *pair) for pair in pairs), stream=0)


def status(value):
    return [headers((b":status", value)), HELLO]


def line(name, value):
    return [headers(S, (name, value)), HELLO]


REFUSED = {
    "status abc": status(b"abc"),
    "status empty": status(b""),
    "status missing": [headers((b"a", b"b")), HELLO],
    "status twice": [headers(S, S), HELLO],
    "status 2_00": status(b"2_00"),
    "status +200": status(b"+200"),
    "status huge": status(b"9" * 30),
    "status 5000 digits": status(b"9" * 5000),
    "status -1": status(b"-1"),
    "status 0": status(b"0"),
    "status 099": status(b"099"),
    "status 1000": status(b"1000"),
    "status unicode": status("٢٠٠".encode()),
    "status nul": status(b"200\0"),
    "status 101": status(b"101"),
    "status 1xx end": [headers((b":status", b"103"), flags=5)],
    "value crlf": line(b"location", b"/a\r\nset-cookie: x"),
    "value nul": line(b"a", b"b\0c"),
    "value lf": line(b"a", b"b\nc"),
    "value cr": line(b"a", b"b\rc"),
    "value ctl": line(b"a", b"b\x01c\x7f"),
    "name crlf": line(b"a\r\nb", b"b"),
    "name space": line(b"a b", b"b"),
    "name colon": line(b"a:b", b"b"),
    "name empty": line(b"", b"b"),
    "name high": line(b"\xff\xfe", b"b"),
    "name nul": line(b"a\0", b"b"),
    "pseudo unknown": line(b":foo", b"b"),
    "pseudo request": line(b":path", b"/"),
    "cl abc": line(b"content-length", b"abc"),
    "cl 5000 digits": line(b"content-length", b"9" * 5000),
    "cl neg": line(b"content-length", b"-5"),
    "cl unicode": line(b"content-length", "٥".encode()),
    "cl wrong": line(b"content-length", b"9"),
    "cl less": line(b"content-length", b"2"),
    "cl two": [headers(S, (b"content-length", b"5"), (b"content-length", b"6")), HELLO],
    "cl list": line(b"content-length", b"5, 5"),
    "hpack index": [frame(HEADERS, b"\xff\xff\xff\xff\x0f", flags=4)],
    "hpack int": [frame(HEADERS, b"\xff" * 200, flags=4)],
    "hpack table": [frame(HEADERS, b"\x3f\xff\xff\xff\x7f", flags=4)],
    "hpack huff": [frame(HEADERS, b"\x88\x00\x81\xff\x81\xff", flags=4)],
    "hpack cut": [frame(HEADERS, b"\x00\x7f", flags=4)],
    "hpack empty": [frame(HEADERS, b"", flags=4)],
    "hpack bomb": [frame(HEADERS, BOMB, flags=4)],
    "hdr pad": [frame(HEADERS, b"\xff" + block(S), flags=4 | 8)],
    "hdr prio self": [frame(HEADERS, struct.pack(">IB", 1, 1) + block(S), flags=4 | 0x20), HELLO],
    "hdr stream 0": [headers(S, stream=0)],
    "hdr stream 3": [headers(S, stream=3)],
    "hdr stream 99": [headers(S, stream=99), HELLO],
    "data first": [HELLO],
    "data stream 3": [OK_HEADERS, frame(DATA, b"x", stream=3)],
    "data pad": [OK_HEADERS, frame(DATA, b"\x09abc", flags=8)],
    "data huge": [OK_HEADERS, frame(DATA, b"x" * 70000)],
    "headers twice": [OK_HEADERS, OK_HEADERS, HELLO],
    "push": [frame(PUSH, PROMISE, flags=4), OK_HEADERS, HELLO],
    "settings odd": [frame(SETTINGS, b"abc", stream=0)],
    "settings stream": [frame(SETTINGS, b"", stream=1)],
    "settings ack body": [frame(SETTINGS, b"abcdef", flags=1, stream=0)],
    "settings push": [setting((2, 5))],
    "settings window": [setting((4, 2**31))],
    "settings frame": [setting((5, 1))],
    "settings frame max": [setting((5, 2**31))],
    "settings connect": [setting((8, 2))],
    "ping short": [frame(PING, b"abc", stream=0)],
    "ping stream": [frame(PING, b"12345678", stream=1)],
    "goaway": [frame(GOAWAY, struct.pack(">II", 0, 0), stream=0)],
    "goaway short": [frame(GOAWAY, b"ab", stream=0)],
    "goaway last": [frame(GOAWAY, struct.pack(">II", 1, 0), stream=0), OK_HEADERS, HELLO],
    "goaway err": [OK_HEADERS, frame(GOAWAY, struct.pack(">II", 1, 0xFEFE) + b"x" * 99, stream=0)],
    "goaway twice": [OK_HEADERS, frame(GOAWAY, struct.pack(">II", 1, 0), stream=0) * 2, HELLO],
    "rst": [frame(RESET, struct.pack(">I", 8))],
    "rst code": [OK_HEADERS, frame(RESET, struct.pack(">I", 0xFFFFFFFF))],
    "rst short": [frame(RESET, b"a")],
    "rst 0": [frame(RESET, struct.pack(">I", 8), stream=0)],
    "rst then data": [frame(RESET, struct.pack(">I", 8)), OK_HEADERS, HELLO],
    "window 0": [frame(WINDOW, struct.pack(">I", 0), stream=0)],
    "window 0s": [frame(WINDOW, struct.pack(">I", 0), stream=1)],
    "window over": [frame(WINDOW, struct.pack(">I", 2**31 - 1), stream=0) * 2],
    "window over s": [frame(WINDOW, struct.pack(">I", 2**31 - 1), stream=1) * 2],
    "window short": [frame(WINDOW, b"a", stream=0)],
    "prio short": [frame(PRIORITY, b"a", stream=1)],
    "prio self": [frame(PRIORITY, struct.pack(">IB", 1, 1), stream=1), OK_HEADERS, HELLO],
    "prio 0": [frame(PRIORITY, struct.pack(">IB", 1, 1), stream=0)],
    "cont alone": [frame(CONTINUATION, block(S), flags=4)],
    "cont mixed": [headers(S, flags=0), frame(PING, b"12345678", stream=0)],
    "cont other": [headers(S, flags=0), frame(CONTINUATION, b"", stream=3)],
    "cont many": [headers(S, flags=0)] + [frame(CONTINUATION, b"")] * 500,
    "altsvc": [frame(10, b"\xff\xff", stream=0), OK_HEADERS, HELLO],
    "altsvc2": [frame(10, b"\0\x01a", stream=0), frame(10, b"", stream=1), OK_HEADERS, HELLO],
    "stream top bit": [b"\0\0\0\x01\x05\xff\xff\xff\xff"],
    "http1": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
    "zeros": [b"\0" * 500],
    "ones": [b"\xff" * 500],
    "many headers": [headers(S, *[(b"a", b"")] * 1500), HELLO],
}

READ = {
    "status 1abc": [headers((b":status", b"1abc")), OK_HEADERS, HELLO],
    "value lead ws": line(b"a", b" b"),
    "name upper": line(b"Aa", b"b"),
    "pseudo late": [headers((b"a", b"b"), S), HELLO],
    "connection hdr": line(b"connection", b"close"),
    "te chunked": line(b"transfer-encoding", b"chunked"),
    "data after end": [OK_HEADERS, HELLO, HELLO],
    "trailer pseudo": [OK_HEADERS, headers(S, flags=5)],
    "trailers ok": [OK_HEADERS, frame(DATA, b"hello"), headers((b"x", b"y"), flags=5)],
    "trailers crlf": [OK_HEADERS, frame(DATA, b"hello"), headers((b"x", b"y\r\nz"), flags=5)],
    "settings acks": [frame(SETTINGS, b"", flags=1, stream=0) * 20, OK_HEADERS, HELLO],
    "settings streams 0": [setting((3, 0)), OK_HEADERS, HELLO],
    "settings streams 1": [setting((3, 50)), setting((3, 1)), OK_HEADERS, HELLO],
    "settings unknown": [setting((999, 1)), OK_HEADERS, HELLO],
    "settings table huge": [setting((1, 2**32 - 1)), OK_HEADERS, HELLO],
    "ping ack": [frame(PING, b"12345678", flags=1, stream=0), OK_HEADERS, HELLO],
    "altsvc bad": [frame(10, b"\0\x02\xff\xfe", stream=0), OK_HEADERS, HELLO],
    "unknown": [frame(200, b"foo", stream=1), OK_HEADERS, HELLO],
    "unknown 0 flags": [frame(200, b"foo", stream=0, flags=255), OK_HEADERS, HELLO],
    "1xx many": [headers((b":status", b"103"), (b"a", b"b")) * 50, OK_HEADERS, HELLO],
    "end on headers": [headers(S, flags=5)],
    "204 body": [headers((b":status", b"204")), HELLO],
}


@pytest.fixture
def h2_tls(server_tls):
    tls = server_tls("site.test")
    tls.set_alpn_protocols(["h2"])
    return tls


@pytest.fixture
def fetch_h2(serve, h2_tls, make_fetcher):
    """Return a function that fetches from a server which sends these frames."""

    async def fetch(*frames, fetcher=None, flood=b"", limits=LIMITS):
        site = await serve(answering_h2(*frames, flood=flood), h2_tls)
        url = site.url("/", scheme="https")
        request = FetchRequest(url=url, permits_private=anywhere, limits=limits)
        return await (fetcher or make_fetcher(http2=True)).fetch(request)

    return fetch


@pytest.mark.parametrize("name", REFUSED)
async def test_illegal_frames_are_a_failure_value(fetch_h2, name):
    got = await fetch_h2(*REFUSED[name])
    assert isinstance(got, FetchFailure), got
    assert got.failure is Failure.PROTOCOL
    assert got.detail


@pytest.mark.parametrize("name", READ)
async def test_unusual_frames_are_read(fetch_h2, name):
    got = await fetch_h2(*READ[name])
    assert isinstance(got, FetchResponse), got
    assert got.status in (200, 204)
    assert got.body in (b"hello", b"")


@pytest.mark.parametrize("frames", [REFUSED["http1"], REFUSED["ones"]], ids=["http1", "ones"])
async def test_a_frame_longer_than_allowed_is_refused_from_its_head(fetch_h2, frames):
    got = await fetch_h2(*frames)
    assert got.failure is Failure.PROTOCOL
    assert "frame of" in got.detail


@pytest.mark.parametrize(
    "frames",
    [
        [headers(S, (b"content-length", b"5"), flags=5)],
        [headers(S, (b"content-length", b"9")), frame(DATA, b"hello"), headers(flags=5)],
    ],
)
async def test_a_body_shorter_than_stated_is_truncated(fetch_h2, frames):
    got = await fetch_h2(*frames)
    assert (got.failure, got.status) == (Failure.TRUNCATED, 200)


@pytest.mark.parametrize(
    "answer",
    [
        [headers((b":status", b"304"), (b"content-length", b"99"), flags=5)],
        [headers((b":status", b"304"), flags=5)],
    ],
)
async def test_a_304_needs_no_body(fetch_h2, answer):
    got = await fetch_h2(*answer)
    assert isinstance(got, FetchResponse), got
    assert (got.status, got.body) == (304, b"")


async def test_a_stream_that_never_answers_ends_at_its_time_limit(fetch_h2):
    for frames in ([headers(S, stream=2)], [frame(RESET, struct.pack(">I", 8), stream=7)]):
        got = await fetch_h2(*frames, limits=FetchLimits(header_s=0.2))
        assert got.failure is Failure.TIMEOUT


FLOODS = {
    "ping": frame(PING, b"12345678", stream=0),
    "settings": frame(SETTINGS, stream=0),
    "settings ack": frame(SETTINGS, flags=1, stream=0),
    "settings change": setting((3, 50)) + setting((3, 1)),
    "window": frame(WINDOW, struct.pack(">I", 1), stream=0),
    "priority": frame(PRIORITY, struct.pack(">IB", 3, 1)),
    "unknown": frame(200, b""),
    "empty data": frame(DATA),
    "short data": frame(DATA, b"x"),
    "padded data": frame(DATA, b"\x01x\0", flags=8),
    "reset of others": frame(RESET, struct.pack(">I", 8), stream=99),
}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", FLOODS)
async def test_frames_without_a_body_are_limited(fetch_h2, kind, begun):
    frames = [OK_HEADERS] if begun else []
    got = await fetch_h2(*frames, flood=FLOODS[kind] * 500)
    assert isinstance(got, FetchFailure), got
    assert got.failure is Failure.PROTOCOL


async def test_a_flood_of_informational_responses_is_limited(fetch_h2):
    got = await fetch_h2(flood=headers((b":status", b"103"), (b"a", b"b")) * 500)
    assert got.failure is Failure.PROTOCOL


async def test_a_long_body_in_small_frames_is_read(fetch_h2):
    body = bytes(range(256)) * 2_000
    parts = [frame(DATA, body[at : at + 256]) for at in range(0, len(body), 256)]
    got = await fetch_h2(OK_HEADERS, *parts, frame(DATA, flags=1))
    assert isinstance(got, FetchResponse), got
    assert got.body == body


def frames_until_refused(sent, size):
    meter = FrameMeter()
    for at in range(0, len(sent), size):
        try:
            meter.note(sent[at : at + size])
        except FetchError:
            return at // 100
    return None


async def test_the_meter_counts_frames_at_any_split():
    sent = (HELLO + frame(PING, b"12345678", stream=0) + SETTINGS_FRAME) * 1000
    refused = {frames_until_refused(sent, size) for size in (1, 2, 5, 9, 100)}
    assert len(refused) == 1
    assert None not in refused


async def test_the_meter_lets_few_bytes_be_read_after_many_frames():
    meter = FrameMeter()
    meter.note(SETTINGS_FRAME * 100)
    assert meter.read_bytes == SMALL_READ_BYTES
    meter.note(frame(DATA, b"x" * 9000))
    assert meter.read_bytes == READ_BYTES


async def test_an_unforeseen_error_of_the_library_is_a_failure_value(fetch_h2, monkeypatch):
    monkeypatch.setattr("crawld.net.http2.check_http2_headers", lambda lines: None)
    got = await fetch_h2(*status(b"abc"))
    assert isinstance(got, FetchFailure), got
    assert got.failure is Failure.PROTOCOL
    assert "valueerror" in got.detail


async def test_a_connection_is_not_used_again_after_a_failure(serve, h2_tls, make_fetcher):
    site = await serve(answering_h2(*status(b"abc")), h2_tls)
    fetcher = make_fetcher(http2=True)
    request = FetchRequest(url=site.url("/", scheme="https"), permits_private=anywhere)
    for _ in range(2):
        assert (await fetcher.fetch(request)).failure is Failure.PROTOCOL
    assert (site.connections, fetcher.statistics().idle) == (2, 0)


async def test_each_response_has_frames_of_its_own():
    meter, ping = FrameMeter(), bytes(9)
    for _ in range(3):
        meter.begin()
        meter.note(ping * FREE_FRAMES)
    with pytest.raises(FetchError):
        meter.note(ping * FREE_FRAMES)
