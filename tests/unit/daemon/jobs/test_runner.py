"""The job runner on trio's test clock and a real database."""

import random

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from crawld.daemon.clock import Clock
from crawld.daemon.jobs.runner import (
    INTERRUPTED_S,
    JITTER_SHARE,
    SHORT_STORED_S,
    START_STORED_S,
    JobRunner,
)
from crawld.errors import OperatorError, StoreError
from crawld.store import job as job_rows
from crawld.store.engine.database import Database
from crawld.store.job import JobRow

EVERY_S = 100.0
EPOCH_AT = 1_780_000_000.0


class CountingJob:
    """A job that records its runs."""

    def __init__(self, name="count", failing=()):
        self.name = name
        self.every_s = EVERY_S
        self.runs = []
        self.ran = trio.Event()
        self.gate = None
        self._failing = list(failing)
        self.idle = False

    def has_work(self):
        return not self.idle

    async def run(self):
        self.runs.append(trio.current_time())
        self.ran.set()
        self.ran = trio.Event()
        if self.gate is not None:
            await self.gate.wait()
        if self._failing and self._failing.pop(0):
            raise RuntimeError("no luck")
        return f"{len(self.runs)} runs"

    async def progress(self):
        return {"runs": len(self.runs)}


@pytest.fixture
async def database(tmp_path):
    async with await Database.open(tmp_path / "jobs.db") as opened:
        yield opened


def clock_at(started):
    return Clock(wall=lambda: EPOCH_AT + trio.current_time() - started)


@pytest.fixture
def start(nursery, database):
    """Return a function that starts a runner on trio's clock."""

    def run(*jobs, seed=1):
        clock = clock_at(trio.current_time())
        runner = JobRunner(database, clock, jobs, rng=random.Random(seed))
        nursery.start_soon(runner.run)
        return runner

    return run


def row(started_at, finished_at):
    return JobRow("count", started_at, finished_at, "done", None)


async def runs_of(job, count):
    """Wait until a job has run so often; the clock jumps when all tasks wait."""
    while len(job.runs) < count:
        await job.ran.wait()


async def result_of(database, name="count"):
    """Wait until a job has a stored result; return it with its detail."""
    while (row := await database.read(job_rows.last_run, name)) is None or row.result is None:
        pass
    return row.result, row.detail


@pytest.fixture
def autojump_clock():
    return trio.testing.MockClock(autojump_threshold=0.01)


async def test_runs_follow_each_other_with_jitter(start, autojump_clock):
    job = CountingJob()
    start(job)
    await runs_of(job, 12)
    gaps = [later - at for at, later in zip(job.runs, job.runs[1:], strict=False)]
    assert min(gaps) >= EVERY_S * (1 - JITTER_SHARE)
    assert max(gaps) <= EVERY_S * (1 + JITTER_SHARE) + 1
    assert len({round(gap, 3) for gap in gaps}) == len(gaps)


async def test_a_run_that_could_not_store_its_work_has_no_traceback(start, database, monkeypatch):
    job = CountingJob()

    async def run():
        raise StoreError("the disk is full", hint="pending writes were not stored")

    monkeypatch.setattr(job, "run", run)
    with capture_logs() as logged:
        start(job)
        assert await result_of(database) == ("failed", "the disk is full")
    [line] = [each for each in logged if each["event"] == "job_failed"]
    assert line["hint"] == "pending writes were not stored"
    assert "exc_info" not in line


async def test_a_failed_run_is_stored_and_the_job_runs_again(start, database, autojump_clock):
    job = CountingJob(failing=[True])
    start(job)
    await runs_of(job, 1)
    job.gate = trio.Event()  # the clock may jump to the next run while this one is stored
    assert await result_of(database) == ("failed", "RuntimeError: no luck")
    job.gate.set()
    await runs_of(job, 2)
    job.gate = trio.Event()
    while (result := await result_of(database))[0] == "failed":
        pass
    assert result == ("done", "2 runs")


async def test_a_repeated_result_is_logged_at_debug_level(start, autojump_clock):
    class Idle(CountingJob):
        async def run(self):
            return "3 pages" if await super().run() == "3 runs" else "0 pages"

    job = Idle()
    with capture_logs() as told:
        start(job)
        await runs_of(job, 4)
    levels = [(line["log_level"], line["detail"]) for line in told]
    nothing, again = ("info", "0 pages"), ("debug", "0 pages")
    assert levels == [nothing, again, ("info", "3 pages"), nothing]


async def test_a_restart_neither_repeats_nor_forgets_a_run(start, database, autojump_clock):
    await database.write(job_rows.record_runs, [row(EPOCH_AT - 70, EPOCH_AT - 60)])
    job = CountingJob()
    began = trio.current_time()
    start(job)
    await runs_of(job, 1)
    low, high = (EVERY_S * (1 + sign * JITTER_SHARE) - 60 for sign in (-1, 1))
    assert low <= job.runs[0] - began <= high + 1


async def test_an_interrupted_run_begins_again_soon_after_the_start(
    start, database, autojump_clock
):
    await database.write(job_rows.record_runs, [row(EPOCH_AT - 21, EPOCH_AT - 20)])
    await database.write(job_rows.record_start, "count", EPOCH_AT - 1)
    job = CountingJob()
    began = trio.current_time()
    start(job)
    await runs_of(job, 1)
    assert job.runs[0] - began <= INTERRUPTED_S + 1


async def test_a_run_stored_in_the_future_does_not_lengthen_the_pause(
    start, database, autojump_clock
):
    await database.write(job_rows.record_runs, [row(EPOCH_AT + 1e6, EPOCH_AT + 1e6)])
    job = CountingJob()
    began = trio.current_time()
    start(job)
    await runs_of(job, 1)
    assert job.runs[0] - began <= EVERY_S * (1 + JITTER_SHARE) + 1


async def test_short_runs_that_end_alike_are_stored_now_and_then(start, database, autojump_clock):
    job, changes = CountingJob(), []
    runner = start(job)
    for count in range(1, 80):
        await runs_of(job, count)
        found = await database.read(job_rows.last_run, "count")
        if found is not None and found.last_finished_at not in changes:
            changes.append(found.last_finished_at)
    assert len(changes) == pytest.approx(79 * EVERY_S / SHORT_STORED_S, abs=1)
    [state] = await runner.states()
    assert state.last.last_finished_at > changes[-1]  # operators see every run


async def test_the_short_runs_of_all_jobs_are_stored_together(
    start, database, autojump_clock, monkeypatch
):
    written, write = [], database.write

    async def noted(call, *args):
        written.append((call, *args))
        return await write(call, *args)

    monkeypatch.setattr(database, "write", noted)
    jobs = [CountingJob(name) for name in "abc"]
    start(*jobs)
    await runs_of(jobs[0], 200)
    stored = [rows for call, rows in written if call is job_rows.record_runs]
    hours = 200 * EVERY_S / SHORT_STORED_S
    assert len(stored) <= 3 + hours + 1  # and each job once after the start
    assert all(len(rows) == len(jobs) for rows in stored[3:])


async def test_what_is_stored_of_all_jobs_does_not_hide_a_run_under_way(
    start, database, autojump_clock
):
    long, short = CountingJob("long"), CountingJob("short")
    start(long, short)
    await runs_of(long, 2)
    long.gate = trio.Event()
    await runs_of(long, 3)
    await runs_of(short, 80)  # an hour and more
    found = await database.read(job_rows.last_run, "long")
    assert found.last_started_at > found.last_finished_at


async def test_a_long_run_is_stored_at_its_start(start, database, autojump_clock):
    job = CountingJob()
    job.gate = trio.Event()
    start(job)
    await trio.sleep(2.0 * START_STORED_S)
    while (found := await database.read(job_rows.last_run, "count")) is None:
        pass
    assert found.last_started_at is not None
    assert found.last_finished_at is None


async def test_the_end_of_a_long_run_is_stored_although_it_is_that_of_the_last(
    start, database, autojump_clock
):
    class Long(CountingJob):
        async def run(self):
            await super().run()
            await trio.sleep(2.0 * START_STORED_S)
            return "nothing"

    job = Long()
    start(job)
    await runs_of(job, 4)
    job.every_s = 1e6  # the fourth run is the last
    for _ in range(100):  # writes take no time of the clock that jumps
        await trio.sleep(START_STORED_S)
        found = await database.read(job_rows.last_run, "count")
        if found.last_finished_at > found.last_started_at > EPOCH_AT + 2.5 * EVERY_S:
            break
    assert found.last_finished_at > found.last_started_at > EPOCH_AT + 2.5 * EVERY_S


async def test_run_soon_starts_a_job_now_or_once_more(start, autojump_clock):
    job = CountingJob()
    runner = start(job)
    await runs_of(job, 1)
    before = trio.current_time()
    runner.run_soon("count")
    await runs_of(job, 2)
    assert trio.current_time() - before < EVERY_S / 2
    job.gate = trio.Event()
    runner.run_soon("count")
    await runs_of(job, 3)
    runner.run_soon("count")
    runner.run_soon("count")
    assert [state.running for state in await runner.states()] == [True]
    job.gate.set()
    before = trio.current_time()
    await runs_of(job, 4)
    assert trio.current_time() - before < EVERY_S / 2
    with pytest.raises(OperatorError, match="no job other"):
        runner.run_soon("other")


async def test_jobs_do_not_wait_for_each_other(start, autojump_clock):
    stuck, quick = CountingJob("stuck"), CountingJob("quick")
    stuck.gate = trio.Event()
    runner = start(stuck, quick)
    await runs_of(quick, 3)
    assert len(stuck.runs) == 1
    states = {state.job.name: state for state in await runner.states()}
    assert states["stuck"].next_run_at is None
    assert states["quick"].last.result == "done"
    assert states["quick"].next_run_at > EPOCH_AT


async def test_an_idle_job_has_no_run_and_stores_nothing(start, database, autojump_clock):
    job = CountingJob()
    runner = start(job)
    await runs_of(job, 1)
    await result_of(database)
    job.idle = True
    commits, began_at = [], trio.current_time()
    database._group()._on_committed = lambda: commits.append(trio.current_time())
    await trio.sleep(20 * EVERY_S)
    # That of the result may be told after it is read.
    assert (len(job.runs), [at for at in commits if at > began_at]) == (1, [])
    runner.run_soon("count")  # an operator knows better
    await runs_of(job, 2)
    job.idle = False
    await runs_of(job, 3)
