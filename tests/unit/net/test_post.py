"""POST requests to receivers that accept, refuse, redirect, hang, cut and flood."""

import pytest
import trio
from pydantic import SecretStr

from crawld.net.exchange import FetchLimits
from crawld.net.network import SystemNetwork
from crawld.net.post import Poster, PostRequest
from crawld.net.resolver import FixedResolver
from tests.unit.net.scripted_server import HOSTS, OK, answering, anywhere, response

SHORT = FetchLimits(connect_s=0.3, header_s=0.3, stall_s=0.3, total_s=0.6, max_wire_bytes=10_000)
SECRET = "correct-horse-battery"


@pytest.fixture
def poster(client_tls):
    return Poster(
        resolver=FixedResolver(HOSTS),
        network=SystemNetwork(),
        ssl_context=client_tls,
    )


def order(url, body=b'{"a": 1}', **fields):
    return PostRequest(url=url, body=body, **{"permits_private": anywhere, **fields})


def reading(answer, holds=False):
    """Return a handler that reads a request with its body, then answers."""

    async def handle(peer):
        head = await peer.request()
        head, _, body = head.partition(b"\r\n\r\n")
        [length] = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ]
        while len(body) < length:
            body += await peer.stream.receive_some(65536)
        peer.site.requests[-1] = head + b"\r\n\r\n" + body
        await peer.send(answer)
        if holds:
            await trio.sleep_forever()

    return handle


async def test_a_request_is_sent_whole(serve, poster):
    site = await serve(reading(OK))
    body = b"x" * 300_000
    headers = (("User-Agent", "crawld/0"), ("Authorization", SecretStr(SECRET)))
    result = await poster.post(order(site.url("/a?b=1"), body, headers=headers))
    assert (result.status, result.trouble) == (200, "")
    head, _, got = site.requests[0].partition(b"\r\n\r\n")
    assert got == body
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /a?b=1 HTTP/1.1"
    for line in (
        b"Host: site.test:%d" % site.port,
        b"User-Agent: crawld/0",
        b"Content-Length: 300000",
        b"Connection: close",
        b"Authorization: " + SECRET.encode(),
    ):
        assert line in lines


async def test_a_request_with_tls(serve, poster, server_tls):
    site = await serve(reading(OK), tls=server_tls("site.test"))
    assert (await poster.post(order(site.url(scheme="https")))).trouble == ""
    wrong = await poster.post(order(site.url(scheme="https", host="wrong.test")))
    assert "mismatch" in wrong.trouble


@pytest.mark.parametrize(
    ("answer", "status", "part"),
    [
        (response(status=b"204 No Content"), 204, ""),
        (response(b"no", status=b"500 Oops"), 500, "status 500"),
        (response(b"no", status=b"410 Gone"), 410, "status 410"),
        (response(b"", b"Location: http://10.0.0.1/a", status=b"302 Found"), 302, "10.0.0.1/a"),
        (response(b"", status=b"302 Found"), 302, "status 302"),
        (response(b"", b"Location: /" + b"a" * 5_000, status=b"308 Moved"), 308, "not followed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 200, ""),  # cut, yet answered
        (b"SMTP ready\r\n\r\n", None, "illegal"),
        (b"", None, "ended before the response"),
    ],
)
async def test_answers(serve, poster, answer, status, part):
    site = await serve(reading(answer))
    result = await poster.post(order(site.url()))
    assert result.status == status
    assert part in result.trouble
    assert bool(part) == bool(result.trouble)
    assert len(result.trouble) < 400
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("answer", "status"),
    [(b"", None), (b"HTTP/1.1 200", None), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200)],
)
async def test_a_receiver_that_hangs_ends_at_the_deadline(serve, poster, answer, status):
    site = await serve(reading(answer, holds=True))
    result = await poster.post(order(site.url(), limits=SHORT))
    assert result.status == status
    assert ("0.3 s" in result.trouble) == (status is None)


async def test_a_receiver_that_trickles_ends_at_the_deadline(serve, poster):
    async def trickle(peer):
        await peer.request()
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000:
            await peer.send(bytes([byte]))
            await trio.sleep(0.01)

    site = await serve(trickle)
    result = await poster.post(order(site.url(), limits=SHORT))
    assert result.status is None
    assert result.trouble


async def test_an_endless_response_is_cut(serve, poster):
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site = await serve(answering(endless, flood=b"1000\r\n" + b"x" * 4096 + b"\r\n"))
    limits = FetchLimits(max_wire_bytes=10_000)
    assert (await poster.post(order(site.url(), limits=limits))).status == 200
    site = await serve(answering(b"HTTP/1.1 200 OK\r\n", flood=b"X: " + b"x" * 4096 + b"\r\n"))
    assert (await poster.post(order(site.url()))).status is None


async def test_private_addresses_are_refused_without_permission(serve, poster):
    site = await serve(reading(OK))
    for host in ("site.test", "127.0.0.1"):
        url = site.url(host=host)
        result = await poster.post(PostRequest(url=url, body=b""))
        assert "is not a public address" in result.trouble
    assert site.connections == 0
    result = await poster.post(order("http://site.test:25/"))
    assert "belongs to another service" in result.trouble


async def test_names_and_ports_without_a_receiver(serve, poster):
    assert "absent.test" in (await poster.post(order("http://absent.test/"))).trouble
    site = await serve(answering())
    assert "connection ended" in (await poster.post(order(site.url()))).trouble


async def test_secrets_are_in_no_result(serve, poster):
    answer = response(b"", f"Location: /a?key={SECRET}".encode(), status=b"301 Moved")
    site = await serve(reading(answer))
    headers = (("X-Key", SecretStr(SECRET)),)
    result = await poster.post(order(site.url(), headers=headers))
    assert "/a?key=***" in result.trouble
    away = response(b"", f"Location: https://b.test/{SECRET}".encode(), status=b"301 Moved")
    site = await serve(reading(away))
    request = order(site.url(f"/{SECRET}"), hides_url=True)
    assert SECRET not in repr(request)
    result = await poster.post(request)
    assert "redirect to https://b.test;" in result.trouble
    assert SECRET not in repr(result)
