"""Visits on their way into a real file: bounded, together, each on its own where one is bad."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from crawld.core.page import Outcome, PageState
from crawld.daemon.visit.recorder import BATCH, SLICE_S, WAITING, PendingVisit, Recorder
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier
from crawld.store.frontier import site as site_rows
from crawld.store.visit import VisitRecord
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
async def recording(database, *, running=True):
    """Run a recorder."""
    recorder = Recorder(database, gather_s=GATHER_S)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run_writer)
        if running:
            await nursery.start(recorder.run)
        yield recorder
        nursery.cancel_scope.cancel()


async def pages_in(database, count):
    new = await database.write(frontier.discover, [make_discovery(f"/{n}") for n in range(count)])
    return [page.page_id for page in new]


def gone(page_id):
    return VisitRecord(
        page_id=page_id, visited_at=NOW, outcome=Outcome.GONE, state=PageState.VISITED
    )


def _visited(connection):
    return connection.execute("SELECT page_id FROM visit ORDER BY page_id").fetchall()


async def visits_in(database):
    return await database.read(_visited)


async def test_everything_handed_over_is_committed_and_reported(database):
    pages = await pages_in(database, 3 * BATCH + 5)
    heard = []
    async with recording(database) as recorder:
        for page in pages:
            await recorder.put(
                PendingVisit(gone(page), lambda got, page=page: heard.append((page, got)))
            )
        await until(lambda: len(heard) == len(pages))
        assert recorder.unrecorded == 0
    assert [page for page, _ in heard] == pages
    assert all(got.visit_id for _, got in heard)
    assert await visits_in(database) == [(page,) for page in pages]


async def test_a_long_report_lets_others_have_their_turn(database):
    pages = await pages_in(database, 5)
    turns = []

    def heard(_):
        turns.append("report")
        begun = trio.current_time()
        while trio.current_time() < begun + SLICE_S:
            pass

    async with recording(database, running=False) as recorder:
        for page in pages:
            await recorder.put(PendingVisit(gone(page), heard))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recorder.drain)
            while turns.count("report") < len(pages):
                turns.append("other")
                await trio.lowlevel.checkpoint()
    # Trio shuffles who runs first in a round: two reports may meet, not three.
    assert "report report report" not in " ".join(turns)


async def test_a_bad_record_does_not_cost_its_neighbours(database):
    pages = await pages_in(database, 20)
    heard = {}
    async with recording(database) as recorder:
        for page in pages:
            record = gone(page)
            if page == pages[7]:
                record = replace(record, state="nonsense")
            await recorder.put(
                PendingVisit(record, lambda got, page=page: heard.setdefault(page, got))
            )
        await until(lambda: len(heard) == len(pages))
    assert heard[pages[7]].visit_id is None
    stored = [page for (page,) in await visits_in(database)]
    assert stored == [page for page in pages if page != pages[7]]


async def test_a_bug_in_who_hears_of_a_commit_keeps_none_from_hearing(database):
    pages = await pages_in(database, 3)
    heard = []

    def bug(_):
        raise RuntimeError("a bug")

    async with recording(database) as recorder:
        for page, hear in zip(pages, (heard.append, bug, heard.append), strict=True):
            await recorder.put(PendingVisit(gone(page), hear))
        await until(lambda: len(heard) == 2 and not recorder.unrecorded)
        await recorder.put(PendingVisit(gone(pages[1]), heard.append))
        await until(lambda: len(heard) == 3)


async def test_a_visit_of_a_page_that_was_removed_is_dropped(database):
    (page,) = await pages_in(database, 1)
    heard = []
    async with recording(database) as recorder:
        await recorder.put(PendingVisit(gone(page + 99), heard.append))
        await recorder.put(PendingVisit(gone(page), heard.append))
        await until(lambda: len(heard) == 2)
    assert [got.visit_id is None for got in heard] == [True, False]


async def test_more_than_may_wait_makes_the_next_wait(database):
    pages = await pages_in(database, WAITING + 1)
    async with recording(database, running=False) as recorder:
        with trio.fail_after(60):
            for page in pages[:-1]:
                await recorder.put(PendingVisit(gone(page), lambda got: None))
        assert recorder.unrecorded == WAITING
        with trio.move_on_after(0.2) as waiting:
            await recorder.put(PendingVisit(gone(pages[-1]), lambda got: None))
        assert waiting.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recorder.put, PendingVisit(gone(pages[-1]), lambda got: None))
            await recorder.drain()
        await recorder.drain()
    assert len(await visits_in(database)) == WAITING + 1


async def test_drain_returns_when_all_is_in_the_file(database):
    pages = await pages_in(database, 40)
    async with recording(database) as recorder:
        for page in pages:
            await recorder.put(PendingVisit(gone(page), lambda got: None))
        assert recorder.unrecorded == 40
        async with trio.open_nursery() as nursery:  # whoever asks hears the truth
            for _ in range(3):
                nursery.start_soon(drained, recorder, database, len(pages))


async def drained(recorder, database, count):
    await recorder.drain()
    assert recorder.unrecorded == 0
    assert len(await visits_in(database)) == count
