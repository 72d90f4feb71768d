"""Memory of analyses: one lease for each visit, one for each analysis outside of visits."""

import math

import pytest
import trio
import trio.testing

from crawld.core.content.page_memory import analysis_bytes
from crawld.core.content.tree_memory import working_set_bytes
from crawld.daemon.analyser import Analyser
from crawld.daemon.analysis_memory import COPY_FACTOR, AnalysisDroppedError, AnalysisMemory
from crawld.memory import LEAST_BYTES, MIB, MemoryBudget, MemoryShares
from crawld.workers import THREADS

URL = "http://a.test/"
LARGE = b"<p>x</p>" * 50_000


def make_budget(limit_bytes=512 * MIB):
    return MemoryBudget(MemoryShares.of(limit_bytes, 64), max_body_bytes=64 * MIB)


@pytest.fixture
def budget():
    return make_budget()


async def fill(budget):
    """Take the whole pool of analyses; return the leases."""
    leases = []
    while budget.analyses.room_bytes:
        leases.append(budget.analyses.lease())
        await leases[-1].grow(budget.analyses.room_bytes)
    return leases


async def test_an_analysis_holds_memory_while_it_runs(budget):
    analyser = Analyser(THREADS, budget=budget)
    held = await analyser.read(lambda: budget.analyses.used_bytes, url=URL, bodies=(LARGE,))
    assert held == working_set_bytes(len(LARGE))
    assert budget.used_bytes == 0


async def test_a_visit_keeps_its_memory_until_it_ends(budget):
    analyser = Analyser(THREADS, budget=budget)
    with analyser.memory.visit():
        await analyser.read(len, LARGE, url=URL, bodies=(LARGE,))
        assert budget.used_bytes == working_set_bytes(len(LARGE))
        await analyser.read(len, LARGE, url=URL, bodies=(LARGE,))
        assert budget.used_bytes == working_set_bytes(len(LARGE))
        assert await analyser.memory.reserve(len(LARGE), 1000)
        assert budget.used_bytes > working_set_bytes(len(LARGE)) + len(LARGE)
    assert budget.used_bytes == 0


async def test_a_visit_that_fails_gives_its_memory_back(budget):
    analyser = Analyser(THREADS, budget=budget)
    with pytest.raises(ZeroDivisionError), analyser.memory.visit():
        await analyser.read(lambda: 1 / 0, url=URL, bodies=(LARGE,))
    assert budget.used_bytes == 0


async def test_small_pages_take_no_lease(budget):
    analyser = Analyser(THREADS, budget=budget)
    with analyser.memory.visit():
        assert not analyser.memory.ends_visit()
        held = await analyser.read(lambda: budget.used_bytes, url=URL, bodies=(b"<p>x",))
        assert analyser.memory.ends_visit()
    assert held == 0
    assert not analyser.memory.ends_visit()


async def read_copy(analyser, body, call):
    async with analyser.memory.copy(len(body)) as memory:
        assert memory is not None
        return await analyser.read_copy(call, body, memory, url=URL)


async def test_a_stored_copy_holds_memory_with_its_analysis(budget):
    analyser = Analyser(THREADS, budget=budget)
    held = await read_copy(analyser, LARGE, lambda _: budget.analyses.used_bytes)
    assert held == COPY_FACTOR * len(LARGE) + analysis_bytes(LARGE, len(LARGE))
    assert await read_copy(analyser, b"<p>x", lambda _: budget.used_bytes) == 0
    assert budget.used_bytes == 0


async def test_of_a_copy_that_is_too_large_a_part_is_analysed_or_nothing():
    budget = make_budget(LEAST_BYTES)
    analyser, most_bytes = Analyser(THREADS, budget=budget), budget.analyses.largest_bytes
    body = b"<p a b c>" * 100_000
    size = await read_copy(analyser, body, len)
    assert 0 < size < len(body)
    assert COPY_FACTOR * len(body) + analysis_bytes(body, size) <= most_bytes
    async with analyser.memory.copy(most_bytes) as memory:
        assert memory is None
    assert budget.used_bytes == 0


async def test_a_stored_copy_waits_for_memory(budget, nursery):
    analyser = Analyser(THREADS, budget=budget)
    held, sizes = await fill(budget), []

    async def read():
        sizes.append(await read_copy(analyser, LARGE, len))

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    assert (sizes, budget.waiting) == ([], 1)
    held.clear()
    with trio.fail_after(30):
        while not sizes:
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert (sizes, budget.used_bytes) == ([len(LARGE)], 0)


async def test_an_analysis_waits_for_memory(budget, nursery):
    analyser = Analyser(THREADS, budget=budget)
    held = await fill(budget)
    done = []

    async def read():
        done.append(await analyser.read(len, LARGE, url=URL, bodies=(LARGE,)))

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    assert (done, budget.waiting) == ([], 1)
    assert await analyser.read(len, b"<p>", url=URL, bodies=(b"<p>",)) == 3
    held.clear()
    with trio.fail_after(30):
        while not done:
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert budget.used_bytes == 0


async def test_little_memory_limits_what_is_read_and_compared():
    memory = AnalysisMemory(make_budget(LEAST_BYTES))
    assert memory.page_bytes is not None
    assert working_set_bytes(memory.page_bytes) <= make_budget(LEAST_BYTES).analyses.size_bytes
    assert not await memory.reserve(8 * MIB, 8 * MIB)
    assert AnalysisMemory(make_budget(1024 * MIB)).page_bytes is None
    assert AnalysisMemory(None).page_bytes is None
    assert await AnalysisMemory(None).reserve(8 * MIB, 8 * MIB)


async def test_a_stop_ends_the_waiting_of_visits_for_memory(budget, nursery):
    analyser = Analyser(THREADS, budget=budget)
    held = await fill(budget)
    dropped = []

    async def visit(wait):
        with analyser.memory.visit():
            try:
                await wait()
            except AnalysisDroppedError:
                dropped.append(wait)

    async def read():
        await analyser.read(len, LARGE, url=URL, bodies=(LARGE,))

    async def reserve():
        await analyser.memory.reserve(len(LARGE), len(LARGE))

    nursery.start_soon(visit, read)
    nursery.start_soon(visit, reserve)
    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    analyser.drop(running_until=math.inf)
    await trio.testing.wait_all_tasks_blocked()
    assert set(dropped) == {read, reserve}
    await visit(read)
    assert len(dropped) == 3
    assert budget.waiting == 1
    held.clear()


async def test_a_medium_page_passes_the_large_ones_that_wait(budget, nursery):
    analyser, order = Analyser(THREADS, budget=budget), []
    held = await fill(budget)

    async def read(host, body):
        await analyser.read(order.append, host, url=f"http://{host}/", bodies=(body,))

    for number in range(5):
        nursery.start_soon(read, f"large{number}.test", LARGE * 40)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(read, "medium.test", LARGE)
    await trio.testing.wait_all_tasks_blocked()
    assert (order, budget.waiting) == ([], 6)
    held.clear()
    waiting = {lease.host for lease in budget.analyses._waiting}
    assert len(waiting) == 4
    assert "medium.test" not in waiting
    with trio.fail_after(30):
        while len(order) < 6:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_medium_pages_are_analysed_beside_a_large_one(budget):
    large = budget.analyses.lease()
    await large.grow(budget.analyses.size_bytes)
    assert large.held_bytes == budget.analyses.largest_bytes
    with trio.fail_after(30):
        assert await Analyser(THREADS, budget=budget).read(len, LARGE, url=URL, bodies=(LARGE,))
