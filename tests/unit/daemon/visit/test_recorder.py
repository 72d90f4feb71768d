"""Recording of visits in a real database: in batches, bounded, bad records left out."""

import random
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from crawld.core.page import Outcome, PageState
from crawld.daemon.visit.recorder import (
    BATCH,
    LINK_BYTES,
    LINKS_AT_ONCE,
    LINKS_PER_BATCH,
    SLICE_S,
    WAITING,
    PendingVisit,
    Recorder,
)
from crawld.memory import MemoryPool
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.host import HostUpdate
from crawld.store.versions.body import encode
from crawld.store.visit import LinkPart, VisitRecord
from tests.daemon.harness import until
from tests.unit.daemon.site_values import make_discovery

NOW = 1_780_000_000.0
GATHER_S = 0.02


@pytest.fixture
async def database(tmp_path, nursery):
    async with await Database.open(
        tmp_path / "r.db", batch_max_age_s=GATHER_S, stall_retry_s=0.05
    ) as opened:
        await opened.write(site_rows.upsert, "s", "{}", source="config", at=NOW)
        yield opened


@asynccontextmanager
async def recording(database, *, running=True, **limits):
    """Yield a recorder; `running` runs it, otherwise only `drain` writes."""
    recorder = Recorder(database, gather_s=GATHER_S, **limits)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run_writer)
        if running:
            await nursery.start(recorder.run)
        yield recorder
        nursery.cancel_scope.cancel()


async def make_pages(database, count):
    """Store new pages; return their numbers."""
    new = await database.write(frontier.discover, [make_discovery(f"/{n}") for n in range(count)])
    return [page.page_id for page in new]


def make_record(page_id):
    return VisitRecord(
        page_id=page_id, visited_at=NOW, outcome=Outcome.GONE, state=PageState.VISITED
    )


def _visited(connection):
    return connection.execute("SELECT page_id FROM visit ORDER BY page_id").fetchall()


async def recorded_pages(database):
    """Return the page number of each recorded visit, as one-column rows."""
    return await database.read(_visited)


async def test_every_queued_visit_is_committed_and_reported(database):
    pages = await make_pages(database, 3 * BATCH + 5)
    results = []
    async with recording(database) as recorder:
        for page in pages:
            await recorder.put(
                PendingVisit(
                    make_record(page), lambda result, page=page: results.append((page, result))
                )
            )
        await until(lambda: len(results) == len(pages))
        assert recorder.unrecorded == 0
    assert [page for page, _ in results] == pages
    assert all(result.visit_id for _, result in results)
    assert await recorded_pages(database) == [(page,) for page in pages]


async def test_slow_callbacks_let_other_tasks_run(database):
    pages = await make_pages(database, 5)
    runs = []

    def slow_callback(_):
        runs.append("callback")
        began = trio.current_time()
        while trio.current_time() < began + SLICE_S:
            pass

    async with recording(database, running=False) as recorder:
        for page in pages:
            await recorder.put(PendingVisit(make_record(page), slow_callback))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recorder.drain)
            while runs.count("callback") < len(pages):
                runs.append("other")
                await trio.lowlevel.checkpoint()
    # Trio shuffles the order of tasks: two callbacks may follow each other, three may not.
    assert "callback callback callback" not in " ".join(runs)


async def test_a_long_callback_does_not_delay_the_visits_after_it(database):
    pages = await make_pages(database, 3)
    runs, go_on = [], trio.Event()

    async def enter_pages():
        await go_on.wait()
        runs.append("long")

    async with recording(database) as recorder:
        await recorder.put(PendingVisit(make_record(pages[0]), lambda _: enter_pages))
        await until(lambda: recorder.unrecorded == 1 and not recorder._writing)
        await recorder.put(PendingVisit(make_record(pages[1]), lambda _: runs.append("short")))
        await until(lambda: runs)
        assert (runs, recorder.unrecorded) == (["short"], 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recorder.drain)
            await trio.testing.wait_all_tasks_blocked()
            go_on.set()
        assert (runs, recorder.unrecorded) == (["short", "long"], 0)


async def test_a_failing_long_callback_does_not_stop_the_others(database):
    pages = await make_pages(database, 2)
    runs = []

    async def fail():
        raise RuntimeError("a bug")

    async def enter_pages():
        runs.append("long")

    async with recording(database) as recorder:
        for page, callback in zip(pages, (fail, enter_pages), strict=True):
            await recorder.put(PendingVisit(make_record(page), lambda _, each=callback: each))
        await until(lambda: runs and not recorder.unrecorded)


async def test_a_bad_record_does_not_affect_the_others(database):
    pages = await make_pages(database, 20)
    results = {}
    async with recording(database) as recorder:
        for page in pages:
            record = make_record(page)
            if page == pages[7]:
                record = replace(record, state="nonsense")
            await recorder.put(
                PendingVisit(record, lambda result, page=page: results.setdefault(page, result))
            )
        await until(lambda: len(results) == len(pages))
    assert results[pages[7]].visit_id is None
    stored = [page for (page,) in await recorded_pages(database)]
    assert stored == [page for page in pages if page != pages[7]]


async def test_a_failing_callback_does_not_stop_the_others(database):
    pages = await make_pages(database, 3)
    results = []

    def bug(_):
        raise RuntimeError("a bug")

    async with recording(database) as recorder:
        for page, callback in zip(pages, (results.append, bug, results.append), strict=True):
            await recorder.put(PendingVisit(make_record(page), callback))
        await until(lambda: len(results) == 2 and not recorder.unrecorded)
        await recorder.put(PendingVisit(make_record(pages[1]), results.append))
        await until(lambda: len(results) == 3)


async def test_a_visit_of_a_removed_page_is_dropped(database):
    (page,) = await make_pages(database, 1)
    results = []
    async with recording(database) as recorder:
        await recorder.put(PendingVisit(make_record(page + 99), results.append))
        await recorder.put(PendingVisit(make_record(page), results.append))
        await until(lambda: len(results) == 2)
    assert [result.visit_id is None for result in results] == [True, False]


async def test_a_full_queue_makes_put_wait(database):
    pages = await make_pages(database, WAITING + 1)
    async with recording(database, running=False) as recorder:
        with trio.fail_after(60):
            for page in pages[:-1]:
                await recorder.put(PendingVisit(make_record(page), lambda result: None))
        assert recorder.unrecorded == WAITING
        with trio.move_on_after(0.2) as waiting:
            await recorder.put(PendingVisit(make_record(pages[-1]), lambda result: None))
        assert waiting.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                recorder.put, PendingVisit(make_record(pages[-1]), lambda result: None)
            )
            await recorder.drain()
        await recorder.drain()
    assert len(await recorded_pages(database)) == WAITING + 1


async def test_a_queue_full_of_bytes_makes_put_wait(database, nursery):
    pages = await make_pages(database, 3)
    pool = MemoryPool(10**6, largest_bytes=10**6, max_waiting=1)
    large = encode(random.Random(1).randbytes(600_000))
    records = [replace(make_record(page), body=large) for page in pages]
    async with recording(database, running=False, max_bytes=10**6) as recorder:
        lease = pool.lease()
        await lease.grow(len(large.data))
        # What a lease covers does not count.
        await recorder.put(PendingVisit(records[0], lambda result: None, lease))
        del lease
        await recorder.put(PendingVisit(records[1], lambda result: None))
        await recorder.put(PendingVisit(records[2], lambda result: None))
        assert pool.used_bytes == 600_000
        done = []

        async def put():
            await recorder.put(PendingVisit(make_record(pages[0]), lambda result: None))
            done.append(True)

        nursery.start_soon(put)
        await trio.testing.wait_all_tasks_blocked()
        assert not done
        await recorder.drain()
        await trio.testing.wait_all_tasks_blocked()
        await recorder.drain()
        assert done
        assert pool.used_bytes == 0


async def test_links_count_into_the_bytes_of_a_record():
    links = [make_discovery(f"/{n}") for n in range(100)]
    record = replace(make_record(1), discoveries=links, requisites=links)
    urls_bytes = 2 * sum(len(link.url) for link in links)
    assert PendingVisit(record, print).size_bytes == urls_bytes + 200 * LINK_BYTES


async def test_drain_returns_when_every_visit_is_committed(database):
    pages = await make_pages(database, 40)
    async with recording(database) as recorder:
        for page in pages:
            await recorder.put(PendingVisit(make_record(page), lambda result: None))
        assert recorder.unrecorded == 40
        async with trio.open_nursery() as nursery:  # each of several callers waits for all
            for _ in range(3):
                nursery.start_soon(check_drain, recorder, database, len(pages))


async def check_drain(recorder, database, count):
    await recorder.drain()
    assert recorder.unrecorded == 0
    assert len(await recorded_pages(database)) == count


# --- pages with many links -----------------------------------------------------------------------


class HeldParts:
    """A database that notes the links of each transaction, and holds the transaction after some."""

    def __init__(self, database, held_at=99):
        self._database = database
        self._held_at = held_at
        self.links = []
        self.held, self.may_go_on = trio.Event(), trio.Event()

    async def write_each(self, function, items):
        self.links.append([links_of(item) for item in items])
        if len(self.links) == self._held_at:
            self.held.set()
            await self.may_go_on.wait()
        return await self._database.write_each(function, items)


def links_of(item):
    """Return how many links an item of a transaction has; negative: its visit comes later."""
    return -len(item.links) if isinstance(item, LinkPart) else len(item.discoveries)


def large_record(page_id, parts=5, left=1):
    """Return a record with links for so many parts, and some for the transaction of the visit."""
    links = [make_discovery(f"/of-{page_id}/{n}") for n in range(parts * LINKS_AT_ONCE + left)]
    return replace(make_record(page_id), discoveries=links)


async def test_records_of_other_pages_are_committed_between_the_links_of_a_large_one(database):
    pages = await make_pages(database, 2)
    large = large_record(pages[0])
    results, small = [], trio.Event()
    with trio.fail_after(60):
        async with recording(database) as recorder:
            recorder._database = held = HeldParts(database, held_at=3)
            await recorder.put(PendingVisit(large, results.append))
            await held.held.wait()
            await recorder.put(PendingVisit(make_record(pages[1]), lambda _: small.set()))
            await small.wait()
            assert (results, recorder.unrecorded) == ([], 1)
            held.may_go_on.set()
            await until(lambda: not recorder.unrecorded)
    assert sorted(held.links) == sorted([[-LINKS_AT_ONCE]] * 5 + [[0], [1]])
    assert results[0].visit_id is not None
    assert [page.url for page in results[0].new_pages] == [link.url for link in large.discoveries]
    assert await recorded_pages(database) == [(page,) for page in pages]


async def test_links_of_a_large_page_are_written_at_once_while_the_daemon_stops(database):
    pages = await make_pages(database, 2)
    async with recording(database) as recorder, trio.open_nursery() as nursery:
        recorder._database = held = HeldParts(database, held_at=2)
        await recorder.put(PendingVisit(large_record(pages[0]), lambda _: None))
        await held.held.wait()
        await recorder.put(PendingVisit(large_record(pages[1]), lambda _: None))
        nursery.start_soon(recorder.drain)
        await until(lambda: len(held.links) == 3)
        held.may_go_on.set()
    # The parts of the first page that are committed already stay, the rest is one transaction.
    whole = [5 * LINKS_AT_ONCE + 1]
    assert held.links == [[-LINKS_AT_ONCE], [-LINKS_AT_ONCE], whole, [3 * LINKS_AT_ONCE + 1]]
    assert await recorded_pages(database) == [(page,) for page in pages]


async def test_a_batch_ends_when_its_pages_have_many_links(database):
    pages = await make_pages(database, 20)
    links = [make_discovery(f"/link/{n}") for n in range(LINKS_AT_ONCE)]
    async with recording(database, running=False) as recorder:
        recorder._database = held = HeldParts(database)
        for page in pages:
            record = replace(make_record(page), discoveries=links)
            await recorder.put(PendingVisit(record, lambda _: None))
        await recorder.drain()
    per_batch = LINKS_PER_BATCH // LINKS_AT_ONCE
    assert list(map(len, held.links)) == [per_batch, per_batch, 20 - 2 * per_batch]
    assert await recorded_pages(database) == [(page,) for page in pages]


async def test_links_that_cannot_be_stored_cost_only_their_part(database):
    (page,) = await make_pages(database, 1)
    record = large_record(page, parts=2)
    record.discoveries[0] = replace(record.discoveries[0], site_id="none")
    results = []
    async with recording(database) as recorder:
        await recorder.put(PendingVisit(record, results.append))
        await until(lambda: results)
    assert len(results[0].new_pages) == LINKS_AT_ONCE + 1
    assert await recorded_pages(database) == [(page,)]


async def test_links_of_a_removed_page_are_not_stored(database):
    (page,) = await make_pages(database, 1)
    results = []
    async with recording(database) as recorder:
        await recorder.put(PendingVisit(large_record(page + 99), results.append))
        await until(lambda: results)
    assert results[0].visit_id is None
    assert results[0].new_pages == []
    assert await database.read(count_pages) == 1


def count_pages(connection):
    return connection.execute("SELECT count(*) FROM page").get


async def test_the_state_of_a_host_is_that_of_its_last_visit(database):
    """A visit of the same host is stored before the last links of a large page."""
    pages = await make_pages(database, 2)
    update = HostUpdate(last_fetch_at=NOW, backoff_level=3)
    large = replace(large_record(pages[0]), host=update)
    later = replace(make_record(pages[1]), host=replace(update, backoff_level=0))
    async with recording(database) as recorder:
        recorder._database = held = HeldParts(database, held_at=2)
        await recorder.put(PendingVisit(large, lambda _: None))
        await held.held.wait()
        assert await database.read(backoff_level) == 3
        await recorder.put(PendingVisit(later, lambda _: None))
        await until(lambda: recorder.unrecorded == 1)
        held.may_go_on.set()
        await until(lambda: not recorder.unrecorded)
    assert await database.read(backoff_level) == 0
    assert await database.read(lambda c: c.execute("SELECT visit_count FROM host").get) == 2


def backoff_level(connection):
    return connection.execute("SELECT backoff_level FROM host").get
