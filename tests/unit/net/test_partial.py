"""Bodies that break off are continued by range requests, and lying ranges refused."""

import random
import zlib
from dataclasses import replace

import pytest

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchLimits, FetchResponse, PartialBody
from crawld.net.partial import LEAST_BYTES, rest_headers
from tests.unit.net.scripted_server import answering
from tests.unit.net.test_fetcher import ask

BODY = random.Random(3).randbytes(4 * LEAST_BYTES)
SIZE = len(BODY)
HALF = 2 * LEAST_BYTES
ETAG = b'ETag: "one"'
PARTIAL = PartialBody(BODY[:HALF], '"one"', SIZE)
SHORT = FetchLimits(stall_s=1.0)


def whole(*lines, sent=SIZE):
    """Return a response with the whole body stated and its first bytes."""
    head = b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"Content-Length: %d" % SIZE))
    return head + b"\r\n\r\n" + BODY[:sent]


def rest(*lines, start=HALF, total=SIZE, body=None):
    """Return the response to a range request."""
    content = BODY[start:] if body is None else body
    stated = b"Content-Range: bytes %d-%d/%d" % (start, total - 1, total)
    length = b"Content-Length: %d" % len(content)
    head = b"\r\n".join((b"HTTP/1.1 206 Partial Content", *lines, stated, length))
    return head + b"\r\n\r\n" + content


async def broken_off(serve, fetcher, answer, **fields):
    site = await serve(answering(answer))
    failed = await fetcher.fetch(ask(site, keeps_partial=True, **fields))
    assert isinstance(failed, FetchFailure), failed
    return failed


async def continued(serve, fetcher, answer):
    site = await serve(answering(answer))
    request = ask(site, keeps_partial=True, partial=PARTIAL, headers=rest_headers(PARTIAL))
    return site, await fetcher.fetch(request)


async def test_the_rest_is_asked_for_and_joined(serve, fetcher):
    failed = await broken_off(serve, fetcher, whole(ETAG, sent=HALF))
    assert failed.failure is Failure.TRUNCATED
    assert failed.partial == PARTIAL
    site, got = await continued(serve, fetcher, rest(ETAG))
    lines = site.requests[0].split(b"\r\n")
    assert b"Range: bytes=%d-" % HALF in lines
    assert b'If-Range: "one"' in lines
    assert b"Accept-Encoding: identity" in lines
    assert isinstance(got, FetchResponse)
    assert (got.status, got.body) == (200, BODY)
    assert got.header("content-length") == str(SIZE)
    assert got.header("content-range") is None
    assert got.wire_bytes == SIZE - HALF


async def test_a_rest_that_breaks_off_is_continued_again(serve, fetcher):
    answer = rest(ETAG)[:-LEAST_BYTES]
    _, got = await continued(serve, fetcher, answer)
    assert isinstance(got, FetchFailure)
    assert got.partial == replace(PARTIAL, body=BODY[:-LEAST_BYTES])


async def test_a_stalled_body_is_kept(serve, fetcher):
    site = await serve(answering(whole(ETAG, sent=HALF), holds=True))
    got = await fetcher.fetch(ask(site, keeps_partial=True, limits=SHORT))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.partial) == (Failure.TIMEOUT, PARTIAL)


async def test_a_server_may_ignore_the_range(serve, fetcher):
    _, got = await continued(serve, fetcher, whole(ETAG))
    assert (got.status, got.body) == (200, BODY)


async def test_a_server_may_refuse_the_range(serve, fetcher):
    answer = b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n"
    _, got = await continued(serve, fetcher, answer)
    assert isinstance(got, FetchResponse)
    assert (got.status, got.body) == (416, b"")


@pytest.mark.parametrize(
    "answer",
    [
        lambda: rest(ETAG, start=HALF - 1),
        lambda: rest(ETAG, start=HALF + 1),
        lambda: rest(ETAG, start=0),
        lambda: rest(ETAG, total=SIZE + 1),
        lambda: rest(ETAG, total=SIZE - 1),
        lambda: rest(b'ETag: "two"'),
        lambda: rest(ETAG, b"Content-Encoding: gzip"),
        lambda: rest(ETAG, body=BODY[HALF:-1]),
        lambda: rest(ETAG, body=BODY[HALF:] + b"more"),
        lambda: rest(ETAG).replace(b"Content-Range", b"X-Range"),
        lambda: rest(ETAG).replace(b"bytes %d-" % HALF, b"bytes %d-x" % HALF),
        lambda: rest(ETAG).replace(b"/%d" % SIZE, b"/*"),
    ],
)
async def test_a_lying_range_is_refused(serve, fetcher, answer):
    _, got = await continued(serve, fetcher, answer())
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.partial) == (Failure.PROTOCOL, None)


CHUNKED = b'HTTP/1.1 200 OK\r\nETag: "one"\r\nTransfer-Encoding: chunked\r\n\r\n'
GZIPPED = zlib.compress(BODY, wbits=31)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: whole(sent=HALF),
        lambda: whole(b'ETag: W/"one"', sent=HALF),
        lambda: whole(b"ETag: one", sent=HALF),
        lambda: whole(b'ETag: "one"', b'ETag: "two"', sent=HALF),
        lambda: whole(ETAG, sent=LEAST_BYTES - 1),
        lambda: whole(ETAG, b"Accept-Ranges: none", sent=HALF),
        lambda: whole(b"Last-Modified: Mon, 06 Jul 2026 10:00:00 GMT", sent=HALF),
        lambda: whole(
            b"Last-Modified: Mon, 06 Jul 2026 10:00:00 GMT",
            b"Date: Mon, 06 Jul 2026 10:00:59 GMT",
            sent=HALF,
        ),
        lambda: whole(ETAG, sent=HALF).replace(b"200 OK", b"404 Not Found"),
        lambda: whole(ETAG, b"Content-Encoding: gzip", sent=0) + GZIPPED[:HALF],
        lambda: CHUNKED + b"%x\r\n" % SIZE + BODY[:HALF],
    ],
)
async def test_what_cannot_be_continued_is_not_kept(serve, fetcher, answer):
    assert (await broken_off(serve, fetcher, answer())).partial is None


async def test_an_old_modification_time_is_a_validator(serve, fetcher):
    modified = b"Last-Modified: Mon, 06 Jul 2026 10:00:00 GMT"
    date = b"Date: Mon, 06 Jul 2026 10:01:00 GMT"
    failed = await broken_off(serve, fetcher, whole(modified, date, sent=HALF))
    assert rest_headers(failed.partial)[1] == ("If-Range", "Mon, 06 Jul 2026 10:00:00 GMT")


async def test_only_requests_that_ask_for_it_keep_a_part(serve, fetcher):
    site = await serve(answering(whole(ETAG, sent=HALF)))
    assert (await fetcher.fetch(ask(site))).partial is None
