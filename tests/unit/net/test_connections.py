"""Reuse and closing of connections, and the address check."""

import gc
from contextlib import aclosing
from dataclasses import replace
from types import FunctionType, ModuleType

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
from crawld.net.fetcher import Fetcher
from crawld.net.resolver import ResolutionError
from tests.parsers import use_parser
from tests.unit.net.scripted_server import HOSTS, OK, answering, anywhere


def ask(site, path="/", *, host="site.test", **fields):
    fields.setdefault("permits_private", anywhere)
    return FetchRequest(url=site.url(path, host), **fields)


async def fetched(fetcher, request):
    result = await fetcher.fetch(request)
    assert isinstance(result, FetchResponse), result
    return result


async def test_a_connection_is_reused_for_its_origin(serve, fetcher):
    site = await serve(answering(*[OK] * 5))
    for _ in range(3):
        await fetched(fetcher, ask(site))
    assert site.connections == 1
    await fetched(fetcher, ask(site, host="other.test"))
    assert site.connections == 2
    statistics = fetcher.statistics()
    assert (statistics.requests, statistics.connections, statistics.reused) == (4, 2, 2)
    assert (statistics.active, statistics.idle) == (0, 2)


async def test_an_idle_connection_holds_nothing_of_its_last_response(serve, fetcher, monkeypatch):
    """There may be ten thousand of them."""
    use_parser("llhttp", monkeypatch)
    head = OK.replace(b"\r\n", b"\r\nX-Last: told only here\r\n", 1)
    site = await serve(answering(head, head))
    for _ in range(2):
        await fetched(fetcher, ask(site))
    assert fetcher.statistics().idle == 1
    assert b"told only here" not in bytes_held(fetcher._idle)


def bytes_held(held):
    """Return all `bytes` that an object holds, directly or not."""
    seen, left, found = set(), [held], set()
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen.add(id(each))
        if isinstance(each, bytes):
            found.add(each)
        left += gc.get_referents(each)
    return found


async def test_concurrent_fetches_use_separate_connections_and_one_is_kept(serve, fetcher):
    site = await serve(answering(*[OK] * 5))
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(fetched, fetcher, ask(site))
    assert fetcher.statistics().idle == 1
    assert len(site.requests) == 3


@pytest.mark.parametrize(
    "answer", [OK, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"]
)
async def test_a_connection_is_closed_if_either_side_asks(serve, fetcher, answer):
    site = await serve(answering(answer, answer))
    for _ in range(2):
        await fetched(fetcher, ask(site, keep_alive=answer is not OK))
    assert site.connections == 2
    assert fetcher.statistics().idle == 0
    assert (b"Connection: close" in site.requests[0]) == (answer is OK)


async def test_a_closed_connection_is_detected_before_a_request_is_sent(serve, fetcher):
    closed = trio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(OK)
        await peer.stream.aclose()
        closed.set()

    site = await serve(handle)
    for _ in range(3):
        await fetched(fetcher, ask(site))
        await closed.wait()
        closed = trio.Event()
    assert (site.connections, len(site.requests)) == (3, 3)


async def test_a_request_is_never_sent_twice(serve, fetcher):
    async def handle(peer):
        await peer.request()
        await peer.send(OK)
        await peer.request()

    site = await serve(handle)
    await fetched(fetcher, ask(site))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.reused) == (Failure.CONNECT, True)
    assert got.sent_at is not None
    assert len(site.requests) == 2
    assert len((await fetched(fetcher, ask(site))).body) == 5


async def test_bytes_beyond_content_length_do_not_become_the_next_response(serve, fetcher):
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
    site = await serve(answering(OK + poison, OK))
    assert (await fetched(fetcher, ask(site, "/a"))).body == b"hello"
    assert (await fetched(fetcher, ask(site, "/b"))).body == b"hello"
    assert site.connections == 2


async def test_a_private_connection_is_not_used_without_permission(serve, fetcher):
    site = await serve(answering(OK, OK))
    await fetched(fetcher, ask(site))
    got = await fetcher.fetch(ask(site, permits_private=permits_public_only))
    assert got.failure is Failure.ADDRESS_REFUSED
    assert len(site.requests) == 1
    await fetched(fetcher, ask(site))
    assert site.connections == 1


async def test_the_connection_idle_longest_is_evicted(serve, make_fetcher):
    site = await serve(answering(*[OK] * 5))
    hosts = [f"h{number}.test" for number in range(6)]
    fetcher = make_fetcher(dict.fromkeys(hosts, "127.0.0.1"), max_connections=3)
    for host in hosts:
        await fetched(fetcher, ask(site, host=host))
        statistics = fetcher.statistics()
        assert statistics.idle + statistics.active <= 3
    await fetched(fetcher, ask(site, host=hosts[-1]))
    assert fetcher.statistics().reused == 1
    await fetched(fetcher, ask(site, host=hosts[0]))
    assert fetcher.statistics().reused == 1
    await fetcher.aclose()
    assert fetcher.statistics().idle == 0


async def test_open_connections_never_exceed_the_limit(serve, make_fetcher):
    at_once = 0
    most = 0

    async def handle(peer):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await peer.request()
        await trio.testing.wait_all_tasks_blocked(0.02)
        await peer.send(OK)
        await peer.request()
        at_once -= 1

    site = await serve(handle)
    fetcher = make_fetcher(max_connections=2)
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(fetched, fetcher, ask(site, keep_alive=False))
    assert most == 2


async def test_idle_connections_expire(serve, fetcher, mock_clock):
    site = await serve(answering(OK, OK))
    await fetched(fetcher, ask(site))
    mock_clock.jump(59)
    assert await fetcher.sweep() == 0
    mock_clock.jump(2)
    await fetched(fetcher, ask(site, host="other.test"))
    assert fetcher.statistics().idle == 1
    mock_clock.jump(61)
    assert await fetcher.sweep() == 1
    assert fetcher.statistics().idle == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "localhost.test"]
)
async def test_no_spelling_of_loopback_is_dialed(serve, make_fetcher, host):
    site = await serve(answering(OK))
    fetcher = make_fetcher({"localhost.test": ["127.0.0.1", "::1", "::ffff:127.0.0.1"]})
    got = await fetcher.fetch(ask(site, host=host, permits_private=permits_public_only))
    assert got.failure is Failure.ADDRESS_REFUSED
    assert (got.sent_at, got.address, site.connections) == (None, None, 0)


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://site.test:{}/", "site.test"),
        ("http://127.0.0.1:{}/", "127.0.0.1"),
        ("http://0x7f.1:{}/", "127.0.0.1"),
        ("http://2130706433:{}/", "127.0.0.1"),
        ("http://[::1]:{}/", "::1"),
        ("http://[::ffff:127.0.0.1]:{}/", "::ffff:7f00:1"),
    ],
)
async def test_the_permission_is_asked_for_the_host_of_the_url(serve, make_fetcher, url, asked):
    site = await serve(answering(OK))
    hosts = ("127.0.0.1", "::1", "::ffff:7f00:1")
    fetcher = make_fetcher({**HOSTS, **{host: host for host in hosts}})
    seen = []
    refused = FetchRequest(url=url.format(site.port), permits_private=seen.append)
    assert (await fetcher.fetch(refused)).failure is Failure.ADDRESS_REFUSED
    assert (seen, site.connections) == ([asked], 0)
    # The permission of another URL does not come along with a changed one.
    moved = replace(ask(site, permits_private="other.test".__eq__), url=url.format(site.port))
    assert (await fetcher.fetch(moved)).failure is Failure.ADDRESS_REFUSED
    assert site.connections == 0


@pytest.mark.parametrize("port", [22, 25, 6667])
async def test_ports_of_other_services_are_refused(fetcher, port):
    got = await fetcher.fetch(
        FetchRequest(url=f"http://site.test:{port}/", permits_private=anywhere)
    )
    assert got.failure is Failure.ADDRESS_REFUSED


async def test_a_name_that_resolves_to_private_later_gains_nothing(serve, make_fetcher):
    site = await serve(answering(OK))

    class Rebinding:
        answers = [("3ffe::1",), ("127.0.0.1",)]
        asked = 0

        async def resolve(self, host):
            self.asked += 1
            return self.answers[min(self.asked, 2) - 1]

    resolver = Rebinding()
    fetcher = make_fetcher(resolver=resolver)
    limits = FetchLimits(connect_s=0.1)
    got = await fetcher.fetch(ask(site, permits_private=permits_public_only, limits=limits))
    # The address that was checked was dialed, without a second lookup.
    assert (got.address, resolver.asked) == ("3ffe::1", 1)
    got = await fetcher.fetch(ask(site, permits_private=permits_public_only, limits=limits))
    assert (got.failure, got.address) == (Failure.ADDRESS_REFUSED, None)
    assert site.connections == 0


async def test_the_next_address_is_tried(serve, make_fetcher):
    site = await serve(answering(OK))
    fetcher = make_fetcher({"site.test": ["127.0.0.99", "::1", "127.0.0.1"]})
    got = await fetched(fetcher, ask(site))
    assert got.address == "127.0.0.1"


async def test_private_addresses_beside_a_public_one_are_skipped(serve, make_fetcher):
    site = await serve(answering(OK))
    fetcher = make_fetcher({"site.test": ["127.0.0.1", "3ffe::1", "10.0.0.1"]})
    limits = FetchLimits(connect_s=0.1)
    got = await fetcher.fetch(ask(site, permits_private=permits_public_only, limits=limits))
    assert (got.address, site.connections) == ("3ffe::1", 0)


class Moving:
    """A resolver whose answer changes, or fails."""

    def __init__(self, *answers):
        self.answers = answers

    async def resolve(self, host):
        await trio.lowlevel.checkpoint()
        if not self.answers:
            raise ResolutionError("temporary", host)
        return self.answers


@pytest.mark.parametrize("moved_to", [("127.0.0.2",), ()])
async def test_a_connection_is_not_used_after_its_host_has_moved(serve, client_tls, moved_to):
    # The schedule keeps the delay of the address that the name has now.
    site, resolver = await serve(answering(*[OK] * 3)), Moving("127.0.0.1", "127.0.0.9")
    fetcher = Fetcher(user_agent="test", resolver=resolver, ssl_context=client_tls)
    async with aclosing(fetcher):
        await fetched(fetcher, ask(site))
        resolver.answers = ("127.0.0.9", "127.0.0.1")
        await fetched(fetcher, ask(site))
        assert (site.connections, len(site.requests)) == (1, 2)
        resolver.answers = moved_to
        assert isinstance(await fetcher.fetch(ask(site)), FetchFailure)
        assert fetcher.statistics().idle == 0
    assert len(site.requests) == 2
