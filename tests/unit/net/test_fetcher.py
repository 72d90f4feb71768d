import gzip
import zlib

import pytest
import trio
import zstandard

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from crawld.net.resolver import ResolutionError
from tests.unit.net.scripted_server import CUT, OK, answering, anywhere, response

MIB = 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = b"Content-Encoding: gzip"
SHORT = FetchLimits(header_s=0.3)
STALLED = FetchLimits(stall_s=0.3)


def ask(site, path="/", **fields):
    fields.setdefault("permits_private", anywhere)
    return FetchRequest(url=site.url(path), **fields)


async def failure_of(fetcher, request):
    result = await fetcher.fetch(request)
    assert isinstance(result, FetchFailure), result
    return result


async def test_a_response_is_returned_as_sent(serve, fetcher):
    answer = (
        b'HTTP/1.1 203 Quite So\r\nX-Twice: a\r\nETag: "\xe9"\r\nx-twice: b\r\n'
        b"Content-Length: 5\r\n\r\nhello"
    )
    site = await serve(answering(answer))
    before = trio.current_time()
    got = await fetcher.fetch(ask(site, "/a|b?c=%7e&d"))
    assert isinstance(got, FetchResponse)
    assert (got.status, got.reason, got.http_version) == (203, "Quite So", "HTTP/1.1")
    assert got.headers[0] == (b"X-Twice", b"a")
    assert got.header("X-TWICE") == "a, b"
    assert got.header("etag") == '"\xe9"'
    assert got.header("absent") is None
    assert (got.body, got.wire_bytes, got.address) == (b"hello", 5, "127.0.0.1")
    assert before <= got.sent_at <= got.arrived_at <= trio.current_time()
    assert got.duration_s >= got.arrived_at - got.sent_at


async def test_a_request_has_the_user_agent_and_given_headers(serve, fetcher):
    site = await serve(answering(OK))
    given = (("If-None-Match", '"\xe9"'), ("accept", "text/plain"), ("X-Name", "Ā"))
    await fetcher.fetch(ask(site, "/x?y=1", headers=given))
    lines = site.requests[0].split(b"\r\n")
    assert lines[0] == b"GET /x?y=1 HTTP/1.1"
    assert b"Host: site.test:%d" % site.port in lines
    assert b"User-Agent: crawld/0 (+test@example.org)" in lines
    assert b"Accept-Encoding: gzip, deflate, zstd" in lines
    assert b'If-None-Match: "\xe9"' in lines
    assert b"accept: text/plain" in lines
    assert b"X-Name: \xc4\x80" in lines
    assert not any(line.startswith((b"Accept:", b"Cookie", b"Connection")) for line in lines)


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"308 Permanent"])
async def test_redirects_are_not_followed(serve, fetcher, status):
    site = await serve(answering(response(b"", b"Location: http://10.0.0.1/", status=status)))
    got = await fetcher.fetch(ask(site))
    assert got.status == int(status[:3])
    assert got.header("location") == "http://10.0.0.1/"
    assert len(site.requests) == 1


async def test_cookies_are_not_kept(serve, fetcher):
    site = await serve(answering(response(b"", b"Set-Cookie: a=b; Path=/"), OK))
    await fetcher.fetch(ask(site))
    await fetcher.fetch(ask(site))
    assert b"ookie" not in site.requests[1]


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        (b"gzip", gzip.compress(b"hello" * 999)),
        (b"deflate", zlib.compress(b"hello" * 999)),
        (b"zstd", zstandard.compress(b"hello" * 999)),
    ],
)
async def test_bodies_are_decoded(serve, fetcher, coding, sent):
    site = await serve(answering(response(sent, b"Content-Encoding: " + coding)))
    got = await fetcher.fetch(ask(site))
    assert got.body == b"hello" * 999
    assert got.wire_bytes == len(sent)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", b"old"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK, b"hello"),
        (CHUNKED + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: z\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nContent-Encoding: gzip\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\nX: y\n\nok", b"ok"),
        (HEAD + b"X: a\r\n\t b\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nok and more", b"ok"),
        (OK + b"\0\0 no response", b"hello"),
    ],
)
async def test_all_framings_are_read(serve, fetcher, answer, body):
    site = await serve(answering(answer))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse), got
    assert got.body == body


@pytest.mark.parametrize(
    ("answer", "failure", "status"),
    [
        (b"", Failure.CONNECT, None),
        (HEAD + b"X-Half", Failure.TRUNCATED, None),
        (b"220 smtp.example.org ESMTP\r\n\r\n", Failure.PROTOCOL, None),
        (b"\x00\x01\x02\r\n\r\n", Failure.PROTOCOL, None),
        (HEAD + b"no colon\r\n\r\n", Failure.PROTOCOL, None),
        (HEAD + b"Content-Length: -5\r\n\r\n", Failure.PROTOCOL, None),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", Failure.PROTOCOL, None),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", Failure.PROTOCOL, None),
        (CUT, Failure.TRUNCATED, 200),
        (CHUNKED + b"5\r\nhello\r\n", Failure.TRUNCATED, 200),
        (CHUNKED + b"zz\r\nhello", Failure.PROTOCOL, 200),
        (response(b"plain", GZIP), Failure.DECODING, 200),
        (response(b"plain", b"Content-Encoding: br"), Failure.DECODING, 200),
        (response(gzip.compress(b"x" * 999)[:-8], GZIP), Failure.TRUNCATED, 200),
    ],
)
async def test_a_broken_response_is_a_failure_value(serve, fetcher, answer, failure, status):
    site = await serve(answering(answer))
    got = await failure_of(fetcher, ask(site))
    assert (got.failure, got.status) == (failure, status)
    assert got.detail
    assert got.address == "127.0.0.1"
    assert got.sent_at is not None
    assert got.sent_at <= got.at
    assert fetcher.statistics().idle == 0


HOSTILE = {
    "status 000": b"HTTP/1.1 000 \r\n\r\n",
    "status 099": b"HTTP/1.1 099 \r\n\r\n",
    "status 2000": b"HTTP/1.1 2000 OK\r\n\r\n",
    "status +20": b"HTTP/1.1 +20 OK\r\n\r\n",
    "status of other digits": "HTTP/1.1 ٢٠٠ OK\r\n\r\n".encode(),
    "version digits": b"HTTP/" + b"1" * 5000 + b".1 200 OK\r\n\r\n",
    "http 2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "frames": b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 4 + b"\r\n\r\n",
    "nul in a value": HEAD + b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    "cr in a value": HEAD + b"X: a\rb\r\nContent-Length: 0\r\n\r\n",
    "nul in a name": HEAD + b"X\0: a\r\nContent-Length: 0\r\n\r\n",
    "blank name": HEAD + b" X: a\r\nContent-Length: 0\r\n\r\n",
    "no name": HEAD + b": a\r\nContent-Length: 0\r\n\r\n",
    "length digits": HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "length of other digits": HEAD + "Content-Length: ٥\r\n\r\n".encode(),
    "length list": HEAD + b"Content-Length: 5, 6\r\n\r\nhello",
    "length hex": HEAD + b"Content-Length: 0x5\r\n\r\nhello",
    "coding": HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
    "coding twice": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunk digits": CHUNKED + b"f" * 5000 + b"\r\n",
    "chunk negative": CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "chunk end": CHUNKED + b"5\r\nhelloXX0\r\n\r\n",
    "chunk line": CHUNKED + b"5;" + b"x" * 120_000,
    "trailer": CHUNKED + b"0\r\nno colon\r\n\r\n",
    "reason": b"HTTP/1.1 200 a\0b\r\n\r\n",
    "lines": HEAD + b"X:\r\n" * 1_001 + b"Content-Length: 0\r\n\r\n",
    "places": b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
    "a place in the middle": b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nlocation: /a\r\n"
    b"LOCATION: /a/\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_response_is_a_protocol_failure(serve, fetcher, name):
    site = await serve(answering(HOSTILE[name], holds=True))
    got = await failure_of(fetcher, ask(site))
    assert got.failure is Failure.PROTOCOL, got
    assert got.detail
    assert fetcher.statistics().idle == 0


@pytest.mark.parametrize("flood", [b"T: x\r\n" * 1_000, b"T" * 4_000], ids=["lines", "a line"])
async def test_trailers_without_end_are_a_protocol_failure(serve, fetcher, flood):
    site = await serve(answering(CHUNKED + b"2\r\nok\r\n0\r\n", flood=flood))
    got = await failure_of(fetcher, ask(site))
    assert got.failure is Failure.PROTOCOL
    assert got.received_bytes < MIB


async def test_a_folded_line_is_one_line(serve, fetcher):
    site = await serve(answering(response(b"", b"X: a\r\n\t b", b"Y: c\n d")))
    got = await fetcher.fetch(ask(site))
    assert (got.header("x"), got.header("y")) == ("a b", "c d")


async def test_a_header_that_comes_byte_by_byte(serve, fetcher):
    async def trickle(peer):
        await peer.request()
        for at in range(len(OK)):
            await peer.send(OK[at : at + 1])
            await trio.lowlevel.checkpoint()

    site = await serve(trickle)
    got = await fetcher.fetch(ask(site))
    assert (got.status, got.headers, got.body) == (200, ((b"Content-Length", b"5"),), b"hello")


@pytest.mark.parametrize(
    "line", [("X\r\nY", "a"), ("X", "a\r\nHost: b"), ("X", "a\0b"), ("", "a"), ("X Y", "a")]
)
async def test_a_request_that_is_not_http_is_never_sent(serve, fetcher, line):
    site = await serve(answering(OK))
    got = await failure_of(fetcher, ask(site, headers=(line,)))
    assert (got.failure, got.sent_at) == (Failure.PROTOCOL, None)
    assert site.requests == []


async def test_a_body_that_ends_inside_a_chunk_size_is_truncated(serve, fetcher):
    site = await serve(answering(CHUNKED + b"5\r\nhello\r\n5"))
    assert (await failure_of(fetcher, ask(site))).failure is Failure.TRUNCATED


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Location", ("/a", "/a"), "/a"),
        ("Location", ("/a", "/b"), "/a"),
        ("Content-Type", ("text/html", "text/html"), "text/html"),
        ("Content-Type", ("text/plain", "text/html; charset=utf-8"), "text/html; charset=utf-8"),
        ("Content-Type", ("text/html", "broken"), "text/html"),
        ("Content-Type", ("a", "b"), "a"),
        ("ETag", ('"a"', '"a"'), '"a"'),
        ("ETag", ('"a"', '"b"'), None),
        ("Last-Modified", ("x", "y"), None),
        ("Last-Modified", ("x", "x"), "x"),
        ("Retry-After", ("5", "9"), "5"),
        ("X-Robots-Tag", ("noindex", "noarchive"), "noindex, noarchive"),
        ("Content-Length", ("0", "0"), "0"),
    ],
)
async def test_repeated_headers(serve, fetcher, name, values, expected):
    lines = [f"{name}: {value}".encode() for value in values]
    answer = b"\r\n".join([b"HTTP/1.1 200 OK", *lines])
    answer += b"\r\nContent-Length: 0" if name != "Content-Length" else b""
    site = await serve(answering(answer + b"\r\n\r\n"))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse), got
    assert got.header(name) == expected


async def test_equal_locations_count_once(serve, fetcher):
    lines = (b"Location: /a", b"location:  /a ")
    site = await serve(answering(response(b"", *lines, status=b"301 Moved")))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse), got
    assert (got.status, got.header("location")) == (301, "/a")


@pytest.mark.parametrize("label", [b"none", b"utf-8", b"identity", b"", b'""', b"binary"])
async def test_a_label_that_names_no_coding_does_not_fail_a_page(serve, fetcher, label):
    site = await serve(answering(response(b"<p>page", b"Content-Encoding: " + label)))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse), got
    assert got.body == b"<p>page"


async def test_a_reset_in_the_header_or_the_body(serve, fetcher):
    async def handle(peer):
        if b"/body" in await peer.request():
            await peer.send(CUT)
        peer.reset()

    site = await serve(handle)
    assert (await failure_of(fetcher, ask(site))).failure is Failure.CONNECT
    assert (await failure_of(fetcher, ask(site, "/body"))).failure is Failure.TRUNCATED


async def test_a_refused_connection(fetcher):
    with trio.socket.socket() as unused:
        await unused.bind(("127.0.0.1", 0))
        url = f"http://site.test:{unused.getsockname()[1]}/"
        got = await failure_of(fetcher, FetchRequest(url=url, permits_private=anywhere))
    assert got.failure is Failure.CONNECT
    assert "refused" in got.detail
    assert got.sent_at is None
    assert not got.local_fault


async def test_timeouts_before_the_header_and_inside_the_body(serve, fetcher):
    async def handle(peer):
        if b"/body" in await peer.request():
            await peer.send(CUT)
        await trio.sleep_forever()

    site = await serve(handle)
    got = await failure_of(fetcher, ask(site, limits=SHORT))
    assert (got.failure, got.status) == (Failure.TIMEOUT, None)
    assert "no response" in got.detail
    got = await failure_of(fetcher, ask(site, "/body", limits=STALLED))
    assert (got.failure, got.status) == (Failure.TIMEOUT, 200)
    assert "no data" in got.detail


@pytest.mark.parametrize("head", [HEAD + b"\r\n", HEAD + b"X-Slow: "])
async def test_a_slow_trickle_ends_at_the_total_time(serve, fetcher, head):
    async def handle(peer):
        await peer.request()
        await peer.send(head)
        while True:
            await peer.send(b"x")
            await trio.sleep(0.02)

    site = await serve(handle)
    got = await failure_of(fetcher, ask(site, limits=FetchLimits(total_s=0.3)))
    assert got.failure is Failure.TIMEOUT
    assert "not complete" in got.detail


async def test_a_header_without_end_is_limited(serve, fetcher):
    site = await serve(answering(HEAD, flood=b"X-Flood: " + b"y" * 1000 + b"\r\n"))
    got = await failure_of(fetcher, ask(site, limits=FetchLimits(max_header_bytes=20_000)))
    assert got.failure is Failure.PROTOCOL
    assert "20000" in got.detail


@pytest.mark.parametrize(
    ("begin", "flood"),
    [
        (b"", b"HTTP/1.1 103 Early\r\n\r\n"),
        (CHUNKED, b"1;" + b"e" * 500 + b"\r\nx\r\n"),
    ],
)
async def test_floods_without_a_body_are_limited(serve, fetcher, begin, flood):
    site = await serve(answering(begin, flood=flood))
    limits = FetchLimits(max_header_bytes=20_000, max_wire_bytes=50_000)
    got = await failure_of(fetcher, ask(site, limits=limits))
    assert got.failure in (Failure.PROTOCOL, Failure.TOO_LARGE)


async def test_an_endless_body_is_not_read_beyond_its_limit(serve, fetcher):
    sent = 0

    async def handle(peer):
        nonlocal sent
        await peer.request()
        await peer.send(HEAD + b"\r\n")
        while True:
            await peer.send(b"x" * 65536)
            sent += 65536

    site = await serve(handle)
    got = await failure_of(fetcher, ask(site, limits=FetchLimits(max_wire_bytes=MIB)))
    assert (got.failure, got.status) == (Failure.TOO_LARGE, 200)
    assert MIB <= got.received_bytes <= 2 * MIB
    # Bytes beyond the limit stay in the kernel's buffers.
    assert sent < 12 * MIB


async def test_a_content_length_beyond_the_limit_is_not_read(serve, fetcher):
    site = await serve(answering(HEAD + b"Content-Length: 10000000000\r\n\r\n"))
    got = await failure_of(fetcher, ask(site))
    assert got.failure is Failure.TOO_LARGE
    assert "10000000000" in got.detail


async def test_a_bomb_stops_at_the_limit(serve, fetcher):
    bomb = gzip.compress(b"\0" * 50 * MIB)
    site = await serve(answering(response(bomb, GZIP), OK))
    got = await failure_of(fetcher, ask(site, limits=FetchLimits(max_body_bytes=MIB)))
    assert got.failure is Failure.TOO_LARGE
    assert "decompression" in got.detail


async def test_a_cut_body_has_exactly_the_limit(serve, fetcher):
    long = gzip.compress(b"0123456789" * MIB)
    site = await serve(answering(response(long, GZIP)))
    limits = FetchLimits(max_body_bytes=12_345)
    got = await fetcher.fetch(ask(site, limits=limits, cut=True))
    assert isinstance(got, FetchResponse)
    assert got.cut
    assert got.body == (b"0123456789" * 2000)[:12_345]
    assert fetcher.statistics().idle == 0


async def test_accept_sees_decoded_bytes_and_can_refuse(serve, fetcher):
    looks = []

    def accept(status, headers, prefix):
        looks.append((status, dict(headers)[b"Content-Type"], prefix))
        return Failure.WRONG_TYPE if prefix.startswith(b"MZ") else None

    def page(body):
        return response(gzip.compress(body), b"Content-Type: text/html", GZIP)

    site = await serve(answering(page(b"<p>" * 2000), page(b"<p>"), page(b""), page(b"MZ" * 9000)))
    for size in (6000, 3, 0):
        assert len((await fetcher.fetch(ask(site, accept=accept))).body) == size
    got = await failure_of(fetcher, ask(site, accept=accept))
    assert (got.failure, got.status) == (Failure.WRONG_TYPE, 200)
    assert [len(prefix) for _, _, prefix in looks] == [1024, 3, 0, 1024]


async def test_a_refused_download_ends_at_once(serve, fetcher):
    site = await serve(answering(HEAD + b"\r\n" + b"MZ" * 600, holds=True))
    request = ask(site, accept=lambda *_: Failure.WRONG_TYPE)
    assert (await failure_of(fetcher, request)).failure is Failure.WRONG_TYPE


async def test_an_invalid_request_header_is_not_sent(serve, fetcher):
    site = await serve(answering(OK))
    got = await failure_of(fetcher, ask(site, headers=(("X-A", "b\r\nX-Evil: c"),)))
    assert (got.failure, got.sent_at) == (Failure.PROTOCOL, None)
    assert site.requests == []


@pytest.mark.parametrize("url", ["ftp://site.test/", "no url", "http://", "mailto:a@b.c"])
async def test_other_schemes_are_refused(fetcher, url):
    got = await failure_of(fetcher, FetchRequest(url=url, permits_private=anywhere))
    assert (got.failure, got.sent_at) == (Failure.ADDRESS_REFUSED, None)


async def test_cancellation_propagates_and_closes_the_connection(serve, fetcher):
    asked, closed = trio.Event(), trio.Event()

    async def handle(peer):
        await peer.request()
        asked.set()
        assert await peer.request() is None
        closed.set()

    site = await serve(handle)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetcher.fetch, ask(site))
            await asked.wait()
            nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    with trio.fail_after(60):
        await closed.wait()
    assert fetcher.statistics().active == 0


@pytest.mark.parametrize(
    ("kind", "local"), [("nxdomain", False), ("temporary", True), ("timeout", True)]
)
async def test_a_name_without_an_address(make_fetcher, kind, local):
    class Broken:
        async def resolve(self, host):
            raise ResolutionError(kind, "so it is")

    fetcher = make_fetcher(resolver=Broken())
    got = await failure_of(fetcher, FetchRequest(url="http://site.test/"))
    assert (got.failure, got.local_fault, got.sent_at) == (Failure.DNS, local, None)
