"""Bodies that are passed on piece by piece instead of collected."""

import gzip
from math import inf

import pytest
import trio
import zstandard

from crawld.core.page import Failure
from crawld.net import body as body_module
from crawld.net.body import PAUSE_CHUNKS
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from tests.unit.net.scripted_server import answering, anywhere

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
    return FetchRequest(url=site.url("/"), permits_private=anywhere, **fields)


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


class Turns:
    """Counts the pieces that arrive in each turn of the event loop."""

    def __init__(self):
        self.turn = 0
        self.by_turn = {}

    async def count(self):
        while True:
            self.turn += 1
            await trio.lowlevel.checkpoint()

    def receive(self, status, headers):
        return self._take

    async def _take(self, piece):
        self.by_turn[self.turn] = self.by_turn.get(self.turn, 0) + 1


async def test_other_tasks_run_between_the_chunks_of_one_read(serve, fetcher, nursery):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site = await serve(answering(head + b"1\r\nx\r\n" * 5_000 + b"0\r\n\r\n"))
    turns = Turns()
    nursery.start_soon(turns.count)
    got = await fetcher.fetch(ask(site, turns))
    assert isinstance(got, FetchResponse), got
    assert sum(turns.by_turn.values()) == 5_000
    # Within a turn of the loop the order of tasks is random.
    assert max(turns.by_turn.values()) <= 2 * PAUSE_CHUNKS


async def test_chunks_are_limited_in_number(serve, fetcher, monkeypatch):
    monkeypatch.setattr(body_module, "FREE_CHUNKS", 640)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site = await serve(answering(head, flood=b"1\r\nx\r\n" * 1000))
    got = await fetcher.fetch(FetchRequest(url=site.url("/"), permits_private=anywhere))
    assert (got.failure, got.status) == (Failure.PROTOCOL, 200)
    assert "chunks" in got.detail
    whole = head + (b"10\r\n" + b"x" * 16 + b"\r\n") * 3_000 + b"0\r\n\r\n"
    site = await serve(answering(whole))
    got = await fetcher.fetch(FetchRequest(url=site.url("/"), permits_private=anywhere))
    assert got.body == b"x" * 48_000


async def test_a_body_of_many_short_pieces_is_joined_in_order(serve, fetcher):
    lines = [b"%05d" % number for number in range(10_000)]
    chunks = b"".join(b"5\r\n" + line + b"\r\n" for line in lines)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    site = await serve(answering(head + chunks + b"0\r\n\r\n"))
    got = await fetcher.fetch(FetchRequest(url=site.url("/"), permits_private=anywhere))
    assert got.body == b"".join(lines)


@pytest.mark.parametrize("coding", ["gzip, zstd", "gzip, gzip", "gzip"])
async def test_empty_members_fail_the_fetch_and_not_the_loop(serve, fetcher, coding):
    wire = gzip.compress(b"", mtime=0) * 100_000
    if coding.endswith("zstd"):
        wire = zstandard.ZstdCompressor().compress(wire)
    elif coding != "gzip":
        wire = gzip.compress(wire)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\n" % coding.encode()
    site = await serve(answering(head + b"Content-Length: %d\r\n\r\n" % len(wire) + wire))
    got = await fetcher.fetch(FetchRequest(url=site.url("/"), permits_private=anywhere))
    assert got.failure in (Failure.DECODING, Failure.TOO_LARGE)
    assert got.status == 200


async def test_decoding_can_be_cancelled(serve, fetcher, nursery, monkeypatch):
    monkeypatch.setattr("crawld.net.decompress.FREE_MEMBERS", 10**9)
    monkeypatch.setattr("crawld.net.decompress.FREE_INNER_BYTES", 10**9)
    wire = gzip.compress(gzip.compress(b"", mtime=0) * 100_000, 1)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\n"
    site = await serve(answering(head + b"Content-Length: %d\r\n\r\n" % len(wire) + wire))
    scope = trio.CancelScope()

    async def cancel():
        await begun.wait()
        scope.cancel()

    def receive(status, headers):
        begun.set()

    begun = trio.Event()
    nursery.start_soon(cancel)
    with scope:
        # The whole body arrives in one read; each pause of the decoder is a checkpoint.
        await fetcher.fetch(
            FetchRequest(url=site.url("/"), permits_private=anywhere, receive=receive)
        )
    assert scope.cancelled_caught


@pytest.mark.parametrize(("coding", "failure"), [("gzip", Failure.DECODING), ("identity", None)])
async def test_a_body_in_quarantine_is_not_decoded(serve, fetcher, coding, failure):
    head = HEAD + f"Content-Encoding: {coding}\r\n".encode()
    body = gzip.compress(b"hello") if failure else b"hello"
    site = await serve(answering(head + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    got = await fetcher.fetch(
        FetchRequest(url=site.url("/"), permits_private=anywhere, decode=False)
    )
    assert getattr(got, "failure", None) is failure
