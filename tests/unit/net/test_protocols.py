"""HTTP/1.1 or HTTP/2, as a request asks for it."""

import pytest
import trio

from crawld.net.exchange import FetchRequest, FetchResponse
from tests.unit.net.h2_frames import HELLO, OK_HEADERS, answering_h2
from tests.unit.net.scripted_server import answering, anywhere, response

PAGE = response(b"hello")


@pytest.fixture
async def both(serve, server_tls):
    """Return a server that speaks what the handshake selects, and what it selected."""
    tls = server_tls("site.test")
    tls.set_alpn_protocols(["h2", "http/1.1"])
    spoken = []

    async def handle(peer):
        await peer.stream.do_handshake()
        spoken.append(peer.stream.selected_alpn_protocol())
        if spoken[-1] == "h2":
            await answering_h2(OK_HEADERS, HELLO)(peer)
        else:
            await answering(PAGE, PAGE)(peer)

    return await serve(handle, tls=tls), spoken


async def fetched(fetcher, site, http2, keep_alive=False):
    url = site.url(scheme="https")
    request = FetchRequest(url=url, permits_private=anywhere, http2=http2, keep_alive=keep_alive)
    got = await fetcher.fetch(request)
    assert isinstance(got, FetchResponse), got
    return got.http_version


@pytest.mark.parametrize("usual", [False, True])
async def test_a_request_offers_what_it_wants_whatever_is_usual(both, make_fetcher, usual):
    site, spoken = both
    fetcher = make_fetcher(http2=usual)
    assert await fetched(fetcher, site, True) == "HTTP/2"
    assert await fetched(fetcher, site, False) == "HTTP/1.1"
    assert await fetched(fetcher, site, None) == ("HTTP/2" if usual else "HTTP/1.1")
    assert spoken[:2] == ["h2", "http/1.1"]


async def test_a_connection_kept_for_one_protocol_is_not_used_for_the_other(both, make_fetcher):
    site, spoken = both
    fetcher = make_fetcher()
    assert await fetched(fetcher, site, False, keep_alive=True) == "HTTP/1.1"
    assert await fetched(fetcher, site, True) == "HTTP/2"
    assert await fetched(fetcher, site, False) == "HTTP/1.1"
    assert spoken == ["http/1.1", "h2"]


async def test_handshakes_at_once_offer_each_its_own(both, make_fetcher):
    site, _ = both
    fetcher = make_fetcher()
    found = []

    async def ask(http2):
        found.append((http2, await fetched(fetcher, site, http2)))

    async with trio.open_nursery() as nursery:
        for http2 in (True, False) * 4:
            nursery.start_soon(ask, http2)
    assert {("HTTP/2" if http2 else "HTTP/1.1") == version for http2, version in found} == {True}


async def test_a_server_without_http2_answers_by_http1(serve, server_tls, make_fetcher):
    site = await serve(answering(PAGE), tls=server_tls("site.test"))
    assert await fetched(make_fetcher(), site, True) == "HTTP/1.1"
