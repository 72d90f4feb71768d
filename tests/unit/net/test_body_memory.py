"""Bodies wait for their share of the memory budget, over real sockets."""

import gzip
from functools import partial

import pytest
import trio
import zstandard

from crawld.core.page import Failure
from crawld.memory import FREE_BYTES, LEAST_BYTES, MIB, MemoryBudget, MemoryShares
from crawld.net.exchange import FetchFailure, FetchLimits, FetchRequest, FetchResponse
from crawld.net.outage import network_evidence
from crawld.net.progress import Progress
from tests.daemon.harness import until
from tests.unit.net.scripted_server import answering, anywhere, response

SMALL = response(b"s" * FREE_BYTES)
LARGE_BYTES = 10 * MIB


@pytest.fixture
def budget():
    return MemoryBudget(MemoryShares.of(LEAST_BYTES, 64), max_body_bytes=64 * MIB)


def ask(site, **limits):
    return FetchRequest(
        url=site.url("/"), permits_private=anywhere, keep_alive=False, limits=FetchLimits(**limits)
    )


async def fill(budget):
    """Take the whole pool of bodies; return the leases."""
    leases = []
    while budget.bodies.room_bytes:
        leases.append(budget.bodies.lease())
        await leases[-1].grow(budget.bodies.largest_bytes)
    return leases


async def test_a_small_body_takes_no_lease_and_never_waits(serve, make_fetcher, budget):
    site = await serve(answering(SMALL))
    fetcher = make_fetcher(budget=budget)
    leases = await fill(budget)
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchResponse)
    assert (len(got.body), got.lease) == (FREE_BYTES, None)
    assert leases


@pytest.mark.parametrize("coding", ["", "gzip", "zstd"])
async def test_a_large_body_holds_a_lease_of_its_size(serve, make_fetcher, budget, coding):
    body = bytes(range(256)) * (LARGE_BYTES // 256)
    packers = {"": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}
    lines = [f"Content-Encoding: {coding}".encode()] if coding else []
    site = await serve(answering(response(packers[coding](body), *lines)))
    fetcher = make_fetcher(budget=budget)
    got = await fetcher.fetch(ask(site))
    assert got.body == body
    assert got.lease.held_bytes == budget.used_bytes == LARGE_BYTES
    del got
    assert budget.used_bytes == 0


async def test_what_fails_gives_its_bytes_back(serve, make_fetcher, budget):
    packed = gzip.compress(bytes(LARGE_BYTES))[:-100]
    lines = (b"Content-Encoding: gzip",)
    site = await serve(answering(response(packed, *lines), response(packed[:-100] + packed)))
    fetcher = make_fetcher(budget=budget)
    got = await fetcher.fetch(ask(site))
    assert isinstance(got, FetchFailure)
    assert (budget.used_bytes, budget.waiting) == (0, 0)


async def test_a_fetch_waits_for_its_share(serve, make_fetcher, budget, nursery):
    site = await serve(answering(response(bytes(LARGE_BYTES))))
    fetcher = make_fetcher(budget=budget)
    leases = await fill(budget)
    answers = []

    async def fetch():
        answers.append(await fetcher.fetch(ask(site)))

    nursery.start_soon(fetch)
    await until(lambda: budget.waiting, what="a fetch that waits")
    assert not answers
    leases.clear()
    await until(lambda: answers, what="the response")
    assert isinstance(answers[0], FetchResponse)
    assert len(answers[0].body) == LARGE_BYTES


async def test_a_wait_is_no_stall_and_its_time_is_no_fault_of_the_server(autojump_clock):
    progress = Progress(FetchLimits(stall_s=1.0, total_s=60.0))
    with progress.scope:
        progress.note_header(200, ())
        with progress.wait_for_memory():
            await trio.sleep(30.0)
        assert not progress.lacked_memory()
        progress.note_received(1)
        await trio.sleep_forever()
    assert trio.current_time() - progress.started_at == pytest.approx(31.0)
    assert not progress.lacked_memory()
    assert progress.timeout_detail() == "no data for 1 s inside the body"


@pytest.mark.parametrize(("waited_s", "local"), [(0.0, False), (1.0, False), (30.0, True)])
async def test_a_fetch_that_waited_long_and_ran_out_of_time(autojump_clock, waited_s, local):
    progress = Progress(FetchLimits(stall_s=60.0, total_s=60.0))
    with progress.scope:
        progress.note_header(200, ())
        with progress.wait_for_memory():
            await trio.sleep(waited_s)
        await trio.sleep_forever()
    assert progress.lacked_memory() is local


async def test_a_fetch_that_gets_no_share_fails_for_a_local_reason(serve, make_fetcher, budget):
    site = await serve(answering(response(bytes(LARGE_BYTES))))
    fetcher = make_fetcher(budget=budget)
    leases = await fill(budget)
    got = await fetcher.fetch(ask(site, total_s=0.2))
    assert isinstance(got, FetchFailure)
    assert (got.failure, got.local_fault) == (Failure.MEMORY, True)
    assert network_evidence(got) is True
    assert "64 MiB" in got.detail
    assert leases
    assert budget.waiting == 0


async def test_a_fetch_fails_at_once_where_too_many_wait(serve, make_fetcher, budget):
    site = await serve(answering(response(bytes(LARGE_BYTES))))
    fetcher = make_fetcher(budget=budget)
    leases = await fill(budget)
    budget.bodies.max_waiting = 0
    with trio.fail_after(30):
        got = await fetcher.fetch(ask(site))
    assert (got.failure, got.local_fault) == (Failure.MEMORY, True)
    assert leases


async def test_many_large_bodies_share_the_budget(serve, make_fetcher, budget):
    site = await serve(
        answering(response(gzip.compress(bytes(LARGE_BYTES)), b"Content-Encoding: gzip"))
    )
    fetcher = make_fetcher(budget=budget)
    most = 0
    done = []

    async def fetch():
        nonlocal most
        got = await fetcher.fetch(ask(site))
        most = max(most, budget.used_bytes)
        done.append(len(got.body))

    async with trio.open_nursery() as fetches:
        for _ in range(12):
            fetches.start_soon(fetch)
    assert done == [LARGE_BYTES] * 12
    assert most <= budget.bodies.size_bytes
    assert budget.used_bytes == 0


async def test_a_sender_that_stops_keeps_little_more_than_it_sent(
    serve, make_fetcher, budget, nursery
):
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 15000000\r\n\r\n" + bytes(MIB)
    site = await serve(answering(begun, holds=True))
    fetcher = make_fetcher(budget=budget)
    nursery.start_soon(fetcher.fetch, ask(site))
    await until(lambda: budget.used_bytes >= MIB, what="a megabyte")
    assert budget.used_bytes <= 2 * MIB
    nursery.cancel_scope.cancel()


async def test_a_body_above_the_budget_is_refused(serve, make_fetcher, budget):
    packed = gzip.compress(bytes(64 * MIB))
    site = await serve(answering(response(packed, b"Content-Encoding: gzip")))
    got = await make_fetcher(budget=budget).fetch(ask(site))
    assert isinstance(got, FetchFailure)
    assert got.failure is Failure.TOO_LARGE
    assert not got.local_fault


async def test_a_slow_body_ends_while_others_wait_for_its_memory(
    serve, make_fetcher, budget, nursery
):
    begun = b"HTTP/1.1 200 OK\r\nContent-Length: 15000000\r\n\r\n" + bytes(LARGE_BYTES)
    slow = await serve(answering(begun, holds=True))
    site = await serve(answering(response(bytes(LARGE_BYTES))))
    fetcher = make_fetcher(budget=budget)
    slow_answers, answers = [], []

    async def fetch(site, found, **limits):
        found.append(await fetcher.fetch(ask(site, **limits)))

    nursery.start_soon(partial(fetch, slow, slow_answers, stall_s=600.0, total_s=600.0))
    received = budget.bodies.received
    await until(lambda: sum(received().values()) > LARGE_BYTES, what="the bytes that were sent")
    nursery.start_soon(fetch, site, answers)
    await until(lambda: budget.waiting, what="a fetch that waits")
    assert budget.bodies.evict_slow(received(), 1.0) == 1
    await until(lambda: answers, what="the response")
    assert len(answers[0].body) == LARGE_BYTES
    (failure,) = slow_answers
    assert (failure.failure, failure.local_fault) == (Failure.MEMORY, True)
    assert "slowly" in failure.detail
