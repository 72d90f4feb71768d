"""Bodies that are passed on piece by piece instead of collected."""

import gzip
from math import inf

import pytest

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from tests.unit.net.scripted_server import answering

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Receiver:
    """Collects the pieces of a body, or declines it."""

    def __init__(self, *, declines=False):
        self.pieces, self.seen, self.declines = [], [], declines

    def receive(self, status, headers):
        self.seen.append((status, dict(headers)[b"Content-Type"]))
        return None if self.declines else self._take

    async def _take(self, piece):
        self.pieces.append(piece)


def ask(site, taken, **limits):
    fields = {"limits": FetchLimits(**limits), "receive": taken.receive, "keep_alive": False}
    return FetchRequest(url=site.url("/"), allow_private=True, **fields)


@pytest.mark.parametrize("packed", [False, True])
async def test_the_sink_gets_the_decoded_body(serve, fetcher, packed):
    body = gzip.compress(b"data: x\n\n" * 50_000) if packed else b"data: x\n\n" * 50_000
    coding = b"Content-Encoding: gzip\r\n" if packed else b""
    site = await serve(answering(HEAD + coding + b"\r\n" + body))
    taken = Receiver()
    got = await fetcher.fetch(ask(site, taken))
    assert isinstance(got, FetchResponse)
    assert (got.body, taken.seen) == (b"", [(200, b"text/event-stream")])
    assert b"".join(taken.pieces) == b"data: x\n\n" * 50_000


async def test_a_body_without_a_sink_is_collected(serve, fetcher):
    site = await serve(answering(HEAD + b"Content-Length: 5\r\n\r\nhello"))
    taken = Receiver(declines=True)
    got = await fetcher.fetch(ask(site, taken))
    assert (got.body, taken.pieces) == (b"hello", [])


async def test_an_endless_body_is_limited_by_the_stall_time_only(serve, fetcher):
    begin = HEAD + b"Content-Length: 100\r\n\r\ndata: x\n\n"
    site = await serve(answering(begin, holds=True))
    taken = Receiver()
    got = await fetcher.fetch(ask(site, taken, total_s=inf, stall_s=0.2))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.status) == (Failure.TIMEOUT, 200)
    assert b"".join(taken.pieces) == b"data: x\n\n"
