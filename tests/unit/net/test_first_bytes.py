"""Requests for the first bytes of a body, whatever the server makes of their range."""

import pytest

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchResponse
from tests.unit.net.scripted_server import OK, answering, response
from tests.unit.net.test_fetcher import ask

BODY = bytes(range(256)) * 40
FIRST = 2_000


def start(content_range, body=BODY[:FIRST], *lines):
    return response(body, b"Content-Range: " + content_range, *lines, status=b"206 Partial Content")


async def first_bytes_of(serve, fetcher, answer):
    site = await serve(answering(answer, OK))
    return site, await fetcher.fetch(ask(site, first_bytes=FIRST))


async def test_the_start_that_a_server_sends_is_kept_as_cut(serve, fetcher):
    site, got = await first_bytes_of(serve, fetcher, start(b"bytes 0-1999/10240"))
    lines = site.requests[0].split(b"\r\n")
    assert b"Range: bytes=0-1999" in lines
    assert [each for each in lines if each.lower().startswith(b"accept-encoding")] == [
        b"Accept-Encoding: identity"
    ]
    assert (got.status, got.body, got.cut) == (200, BODY[:FIRST], True)
    assert got.header("content-range") is None
    assert got.header("content-length") == "2000"
    # Nothing is left to read, so the connection can have another request.
    assert (await fetcher.fetch(ask(site))).body == b"hello"
    assert site.connections == 1


async def test_a_body_that_is_shorter_is_whole(serve, fetcher):
    _, got = await first_bytes_of(serve, fetcher, start(b"bytes 0-99/100", BODY[:100]))
    assert (got.status, got.body, got.cut) == (200, BODY[:100], False)


async def test_a_length_that_is_not_told_counts_as_longer(serve, fetcher):
    _, got = await first_bytes_of(serve, fetcher, start(b"bytes 0-99/*", BODY[:100]))
    assert (got.body, got.cut) == (BODY[:100], True)


async def test_a_server_that_sends_the_whole_is_read_no_further(serve, fetcher):
    _, got = await first_bytes_of(serve, fetcher, response(BODY))
    assert (got.status, got.body, got.cut) == (200, BODY[:FIRST], True)


async def test_a_short_whole_body_is_not_cut(serve, fetcher):
    _, got = await first_bytes_of(serve, fetcher, OK)
    assert (got.status, got.body, got.cut) == (200, b"hello", False)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (start(b"bytes 5-1999/10240"), Failure.PROTOCOL),
        (start(b"bytes 0-2000/10240", BODY[:2_001]), Failure.PROTOCOL),
        (start(b"bytes 0-1999"), Failure.PROTOCOL),
        (start(b"bytes */10240"), Failure.PROTOCOL),
        (start(b"bytes 0-1999/10240", BODY[:FIRST], b"Content-Encoding: gzip"), Failure.PROTOCOL),
        (start(b"bytes 0-1999/10240", BODY[:1_000]), Failure.TRUNCATED),
        (response(b"", status=b"206 Partial Content"), Failure.PROTOCOL),
    ],
)
async def test_a_lying_range_is_refused(serve, fetcher, answer, failure):
    _, got = await first_bytes_of(serve, fetcher, answer)
    assert isinstance(got, FetchFailure)
    assert got.failure is failure


async def test_a_range_nobody_asked_for_is_no_page(serve, fetcher):
    site = await serve(answering(start(b"bytes 0-1999/10240")))
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse)
    assert got.status == 206
