import gzip

import pytest
import trio

from crawld.core.page import Failure
from crawld.core.robots import ROBOTS_MAX_BYTES, ROBOTS_MAX_REDIRECTS, RobotsVerdict
from crawld.net.exchange import FetchLimits
from crawld.net.robots import fetch_robots
from tests.unit.net.scripted_server import answering, anywhere, response

RULES = b"User-agent: *\nDisallow: /private\n"


def answer(status, body=b"", *lines):
    return response(body, *lines, status=status)


def moved(location):
    return answer(b"302 Found", b"", b"Location: " + location)


async def robots_of(fetcher, site, *, permits_private=anywhere, turns=None):
    async def wait_turn(url):
        await trio.lowlevel.checkpoint()
        if turns is not None:
            turns.append(url)

    return await fetch_robots(
        fetcher.fetch,
        site.url("").rstrip("/"),
        wait_turn=wait_turn,
        limits=FetchLimits(header_s=0.3),
        permits_private=permits_private,
    )


@pytest.mark.parametrize(
    ("sent", "verdict", "text"),
    [
        (answer(b"200 OK", RULES), RobotsVerdict.RULES, RULES),
        (answer(b"200 OK"), RobotsVerdict.RULES, b""),
        (answer(b"404 Not Found", b"<p>no"), RobotsVerdict.OPEN, None),
        (answer(b"403 Forbidden"), RobotsVerdict.OPEN, None),
        (answer(b"404 Gone", b"junk", b"Content-Encoding: gzip"), RobotsVerdict.OPEN, None),
        (answer(b"503 Busy"), RobotsVerdict.CLOSED, None),
        (answer(b"200 OK", b"junk", b"Content-Encoding: gzip"), RobotsVerdict.CLOSED, None),
        (b"", RobotsVerdict.CLOSED, None),
        (b"junk\r\n\r\n", RobotsVerdict.CLOSED, None),
        (moved(b"ftp://site.test/robots.txt"), RobotsVerdict.CLOSED, None),
        (answer(b"302 Found"), RobotsVerdict.CLOSED, None),
    ],
)
async def test_the_status_decides_the_verdict(serve, fetcher, sent, verdict, text):
    site = await serve(answering(sent))
    got = await robots_of(fetcher, site)
    assert (got.verdict, got.text) == (verdict, text)
    assert bool(got.detail) == (verdict is RobotsVerdict.CLOSED) or got.status == 404


async def test_each_redirect_waits_its_turn(serve, fetcher):
    turns = []
    other = await serve(answering(answer(b"200 OK", RULES)))
    elsewhere = other.url("/three", "other.test").encode()
    site = await serve(answering(moved(b"/two"), moved(elsewhere)))
    got = await robots_of(fetcher, site, turns=turns)
    assert (got.verdict, got.redirects, got.text) == (RobotsVerdict.RULES, 2, RULES)
    assert turns == [site.url("/robots.txt"), site.url("/two"), elsewhere.decode()]


@pytest.mark.parametrize("hops", [ROBOTS_MAX_REDIRECTS, ROBOTS_MAX_REDIRECTS + 1])
async def test_redirects_are_limited(serve, fetcher, hops):
    site = await serve(answering(*[moved(b"/again")] * hops, answer(b"200 OK", RULES)))
    got = await robots_of(fetcher, site)
    reached = hops <= ROBOTS_MAX_REDIRECTS
    assert got.verdict is (RobotsVerdict.RULES if reached else RobotsVerdict.CLOSED)
    assert len(site.requests) == ROBOTS_MAX_REDIRECTS + 1


async def test_a_redirect_into_the_private_network_is_refused(make_fetcher):
    fetcher = make_fetcher({"site.test": "10.0.0.1"})

    async def wait_turn(url):
        await trio.lowlevel.checkpoint()

    got = await fetch_robots(fetcher.fetch, "http://site.test", wait_turn=wait_turn)
    assert got.verdict is RobotsVerdict.CLOSED
    assert got.last.failure is Failure.ADDRESS_REFUSED


async def test_a_redirect_does_not_inherit_the_permission_of_its_origin(serve, fetcher):
    inside = await serve(answering(answer(b"200 OK", RULES)))
    place = inside.url("/robots.txt", "other.test").encode()
    site = await serve(answering(moved(place), moved(place)))
    got = await robots_of(fetcher, site, permits_private=lambda host: host == "site.test")
    assert got.verdict is RobotsVerdict.CLOSED
    assert (got.last.failure, got.redirects) == (Failure.ADDRESS_REFUSED, 1)
    assert inside.connections == 0
    got = await robots_of(fetcher, site, permits_private={"site.test", "other.test"}.__contains__)
    assert (got.verdict, got.text) == (RobotsVerdict.RULES, RULES)


@pytest.mark.parametrize("coding", [b"identity", b"gzip"])
async def test_a_file_that_is_too_long_is_cut_and_used(serve, fetcher, coding):
    long = RULES + b"# filler\n" * 100_000
    sent = gzip.compress(long) if coding == b"gzip" else long
    site = await serve(answering(answer(b"200 OK", sent, b"Content-Encoding: " + coding)))
    got = await robots_of(fetcher, site)
    assert got.verdict is RobotsVerdict.RULES
    assert got.text == long[: ROBOTS_MAX_BYTES + 1]
