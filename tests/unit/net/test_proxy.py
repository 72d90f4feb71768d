"""The tunnel of an https request through a proxy, and the faults of a proxy."""

import pytest
import trio

from crawld.core.page import Failure
from crawld.net.exchange import (
    FetchFailure,
    FetchLimits,
    FetchRequest,
    FetchResponse,
    permits_public_only,
)
from crawld.net.proxy import proxy_address
from crawld.net.resolver import ResolutionError
from tests.unit.net.scripted_server import CUT, HOSTS, OK, answering, anywhere

OPEN = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 here\r\n\r\n"
SHORT = FetchLimits(connect_s=0.5)


@pytest.fixture
async def origin(serve, server_tls):
    """A TLS server for `site.test`."""
    return await serve(answering(OK, OK), server_tls("site.test"))


def tunnelling(opened=OPEN):
    """Return a handler that opens the tunnel to loopback, whatever the name in CONNECT."""

    async def pump(source, sink, scope):
        async for data in source:
            await sink.send_all(data)
        scope.cancel()

    async def handle(peer):
        head = await peer.request()
        port = int(head.split()[1].rpartition(b":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as onward:
            await peer.send(opened)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pump, peer.stream, onward, nursery.cancel_scope)
                nursery.start_soon(pump, onward, peer.stream, nursery.cancel_scope)

    return handle


def through(proxy, url, *, permits_private=anywhere, **fields):
    place = f"http://127.0.0.1:{proxy.port}"
    return FetchRequest(url=url, permits_private=permits_private, proxy=place, **fields)


@pytest.mark.parametrize("opened", [OPEN, b"HTTP/1.0 200\r\n\r\n", b"HTTP/1.1 204 So\r\n\r\n"])
async def test_a_tunnel_carries_tls_to_the_host(serve, fetcher, origin, opened):
    proxy = await serve(tunnelling(opened))
    for _ in range(2):
        got = await fetcher.fetch(through(proxy, origin.url("/page", scheme="https")))
        assert isinstance(got, FetchResponse), got
        assert got.body == b"hello"
    # One tunnel serves both; the proxy gets name and port, the host an ordinary request.
    place = f"site.test:{origin.port}".encode()
    assert proxy.requests == [b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (place, place)]
    assert [each.split(b"\r\n")[0] for each in origin.requests] == [b"GET /page HTTP/1.1"] * 2


async def test_a_name_that_only_the_proxy_resolves_is_left_to_it(serve, server_tls, make_fetcher):
    origin = await serve(answering(OK), server_tls("inside.test"))
    proxy = await serve(tunnelling())
    fetcher = make_fetcher({"127.0.0.1": "127.0.0.1"})
    url = origin.url("/", "inside.test", "https")
    got = await fetcher.fetch(through(proxy, url, permits_private=permits_public_only))
    assert isinstance(got, FetchResponse), got


class _NoFilesOnce:
    """A resolver that has no open file for the first lookup of a name; all names are loopback."""

    def __init__(self, name):
        self.name, self.failed = name, 0

    async def resolve(self, host):
        if host == self.name and not self.failed:
            self.failed += 1
            raise ResolutionError("no_files", "too many open files")
        return ("127.0.0.1",)


async def test_a_target_without_a_lookup_is_not_passed_to_the_proxy(
    serve, server_tls, make_fetcher, autojump_clock
):
    origin = await serve(answering(OK), server_tls("inside.test"))
    proxy = await serve(tunnelling())
    resolver = _NoFilesOnce("inside.test")
    url = origin.url("/", "inside.test", "https")
    request = through(proxy, url, permits_private=permits_public_only)
    got = await make_fetcher(resolver=resolver).fetch(request)
    assert isinstance(got, FetchFailure)
    assert (got.failure, resolver.failed) == (Failure.ADDRESS_REFUSED, 1)
    assert proxy.requests == []


async def test_a_certificate_is_checked_through_a_tunnel(serve, fetcher, origin):
    proxy = await serve(tunnelling())
    got = await fetcher.fetch(through(proxy, origin.url("/", "wrong.test", "https")))
    assert (got.failure, got.sent_at, got.local_fault) == (Failure.TLS, None, False)
    assert "wrong.test" in got.detail
    assert origin.requests == []


@pytest.mark.parametrize(
    ("answer", "said", "local"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy answered 403", True),
        (b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n", "the proxy answered 407", True),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "the proxy answered 502", False),
        (b"HTTP/1.1 504 Gateway Timeout\r\n\r\n", "the proxy answered 504", False),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP", True),
        (b"HTTP/1.1 200 OK\r\nX: cut", "does not speak HTTP", True),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "does not speak HTTP", True),
        (b"", "does not speak HTTP", True),
    ],
    ids=["403", "407", "502", "504", "other protocol", "cut", "endless", "hangs up"],
)
async def test_a_proxy_that_refuses_a_tunnel(serve, fetcher, origin, answer, said, local):
    proxy = await serve(answering(answer))
    got = await fetcher.fetch(through(proxy, origin.url("/", scheme="https")))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.sent_at, got.local_fault) == (Failure.CONNECT, None, local)
    assert said in got.detail
    assert origin.connections == 0


async def test_a_proxy_that_resets_or_does_not_answer(serve, fetcher, origin):
    async def reset(peer):
        await peer.request()
        peer.reset()

    async def silent(peer):
        await trio.sleep_forever()

    url = origin.url("/", scheme="https")
    got = await fetcher.fetch(through(await serve(reset), url))
    assert (got.failure, got.local_fault) == (Failure.CONNECT, True)
    assert "closed the connection" in got.detail
    got = await fetcher.fetch(through(await serve(silent), url, limits=SHORT))
    assert (got.failure, got.sent_at) == (Failure.TIMEOUT, None)
    assert origin.connections == 0


async def test_a_tunnel_cut_off_in_the_handshake_or_in_the_body(serve, fetcher, server_tls):
    proxy = await serve(answering(OPEN))
    got = await fetcher.fetch(through(proxy, "https://site.test:1234/"))
    assert got.failure is Failure.TLS
    cut = await serve(answering(CUT), server_tls("site.test"))
    proxy = await serve(tunnelling())
    got = await fetcher.fetch(through(proxy, cut.url("/", scheme="https")))
    assert got.failure is Failure.TRUNCATED


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("https://site.test:4433/", "not a public address"),
        ("https://127.0.0.1:4433/", "not a public address"),
        ("https://[::1]:4433/", "not a public address"),
        ("https://mixed.test:4433/", "not a public address"),
        ("https://public.test:25/", "port 25"),
    ],
)
async def test_private_targets_are_refused_before_the_proxy(serve, make_fetcher, target, said):
    proxy = await serve(tunnelling())
    mixed = {"mixed.test": ["192.0.32.8", "10.0.0.1"], "public.test": "192.0.32.8"}
    fetcher = make_fetcher({**HOSTS, "127.0.0.1": "127.0.0.1", **mixed})
    got = await fetcher.fetch(through(proxy, target, permits_private=permits_public_only))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.sent_at) == (Failure.ADDRESS_REFUSED, None)
    assert said in got.detail
    assert proxy.connections == 0


async def test_an_unreachable_proxy_is_a_local_fault(fetcher):
    # Bound and not listening: connections fail, and nothing else can take the port.
    with trio.socket.socket() as bound:
        await bound.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{bound.getsockname()[1]}"
        request = FetchRequest(url="https://site.test/", permits_private=anywhere, proxy=place)
        got = await fetcher.fetch(request)
    assert (got.failure, got.local_fault) == (Failure.CONNECT, True)
    assert "the proxy" in got.detail


@pytest.mark.parametrize("url", ["ftp://a:1", "http://u@a:1", "http://a:1/x", "https://a:1"])
def test_an_invalid_proxy_url_is_refused(url):
    with pytest.raises(ValueError, match="http"):
        proxy_address(url)


@pytest.mark.parametrize("host", ["a" * 64 + ".test", "a..test", ".test"])
async def test_a_name_that_no_certificate_can_have_is_a_failure_value(serve, make_fetcher, host):
    proxy = await serve(answering(OPEN))
    fetcher = make_fetcher({})
    got = await fetcher.fetch(through(proxy, f"https://{host}/"))
    assert isinstance(got, FetchFailure), got
    assert got.failure in (Failure.TLS, Failure.CONNECT, Failure.DNS, Failure.ADDRESS_REFUSED)
