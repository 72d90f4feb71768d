"""Run background jobs: one task per job, each run some time after the last, with jitter.

A job has one run at a time. Its result is stored, so that a restart neither repeats nor forgets a
long run; one that a stop or a kill interrupted begins again soon. An exception is a result too: it
is logged and stored, and the job runs again at its next time. Jitter separates jobs of the same
period, and daemons that start together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog
import trio

from crawld.daemon.clock import Clock
from crawld.errors import OperatorError, StoreError
from crawld.store import job as job_rows
from crawld.store.engine.background import background_reads
from crawld.store.engine.database import Database
from crawld.store.job import JobRow

log = structlog.get_logger(__name__)

JITTER_SHARE = 0.1
"""A pause varies by up to this share in both directions."""

INTERRUPTED_S = 5.0
"""Pause after a start before an interrupted run is repeated: the crawl goes on first, even if the
job was the reason why the process ended."""

START_STORED_S = 1.0
"""A run that takes longer is stored at its start: one that a kill interrupts begins again soon. A
shorter one that is due begins again in any case."""

SHORT_STORED_S = 3_600.0
"""Short runs that end alike, of all jobs, are stored together at most so often, unless they were
asked for: two syncs of the disk for each look at an idle mirror would keep the disk awake. A
restart repeats them at most so much sooner."""

MAX_DETAIL_CHARS = 500


class Job(Protocol):
    """A task that runs periodically."""

    @property
    def name(self) -> str:
        """Name in commands, log and database."""

    @property
    def every_s(self) -> float:
        """Pause between the end of a run and the next, seconds; read before each pause."""

    def has_work(self) -> bool:
        """Whether a run may find anything, by what is in memory: an idle job costs nothing.

        One that is asked for runs in any case.
        """

    async def run(self) -> str:
        """Run once and return a short summary."""

    async def progress(self) -> dict[str, int]:
        """Return counts that show the operator how far the job is."""


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job.

    Attributes:
        next_run_at: Unix seconds of the next run, None during a run.
        last: the last stored run, None before the first.
    """

    job: Job
    running: bool
    next_run_at: float | None
    last: JobRow | None


class _ScheduledJob:
    """A job and when it runs next (monotonic clock)."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.running = False
        self.next_at = 0.0
        self.requested = trio.Event()
        self.last: JobRow | None = None
        self.is_stored = True


class JobRunner:
    """Runs jobs until cancelled."""

    def __init__(
        self, database: Database, clock: Clock, jobs: Iterable[Job], *, rng: random.Random
    ) -> None:
        """Create a runner; `rng` draws the jitter."""
        self._database = database
        self._clock = clock
        self._rng = rng
        self._stored_at = -math.inf
        self._tasks = {job.name: _ScheduledJob(job) for job in jobs}

    async def run(self) -> None:
        """Run every job periodically until cancelled."""
        with background_reads():
            async with trio.open_nursery() as nursery:
                for task in self._tasks.values():
                    nursery.start_soon(self._repeat, task)

    def run_soon(self, name: str) -> None:
        """Run a job now, or once more after the run under way.

        Raises:
            OperatorError: unknown job; the hint names the known ones.
        """
        task = self._tasks.get(name)
        if task is None:
            known = ", ".join(sorted(self._tasks))
            raise OperatorError(f"there is no job {name}", hint=f"known are: {known}")
        task.requested.set()

    async def states(self) -> list[JobState]:
        """Return the state of every job."""
        last = {row.name: row for row in await self._database.read(job_rows.list_jobs)}
        return [
            JobState(
                task.job,
                task.running,
                None if task.running else self._clock.to_wall(task.next_at),
                self._newest(task, last.get(name)),
            )
            for name, task in self._tasks.items()
        ]

    @staticmethod
    def _newest(task: _ScheduledJob, stored: JobRow | None) -> JobRow | None:
        if task.last is None or stored is None or task.running:
            return stored
        return task.last

    async def _repeat(self, task: _ScheduledJob) -> None:
        last = await self._database.read(job_rows.last_run, task.job.name)
        pause_s = 0.0 if last is None else self._first_pause_s(task.job, last)
        while True:
            task.next_at = self._clock.monotonic() + max(pause_s, 0.0)
            with trio.move_on_at(task.next_at):
                await task.requested.wait()
            is_asked, task.requested = task.requested.is_set(), trio.Event()
            if is_asked or task.job.has_work():
                await self._run_once(task, is_asked=is_asked)
            pause_s = self._pause_s(task.job)

    def _first_pause_s(self, job: Job, last: JobRow) -> float:
        """Return the pause after a start, seconds; negative if the job is overdue."""
        ended_at = last.last_finished_at
        if ended_at is None:
            return 0.0
        pause_s = self._pause_s(job) - max(0.0, self._clock.now() - ended_at)
        interrupted = last.last_started_at is not None and last.last_started_at > ended_at
        return min(pause_s, INTERRUPTED_S) if interrupted else pause_s

    def _pause_s(self, job: Job) -> float:
        return job.every_s * self._rng.uniform(1.0 - JITTER_SHARE, 1.0 + JITTER_SHARE)

    async def _run_once(self, task: _ScheduledJob, *, is_asked: bool) -> None:
        name, began_at, known = task.job.name, self._clock.monotonic(), task.last
        started_at = self._clock.now()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._store_start, name, started_at)
            task.running = True
            try:
                result, detail = await self._outcome(task.job)
            finally:
                task.running = False
            ended = JobRow(name, started_at, self._clock.now(), result, detail[:MAX_DETAIL_CHARS])
            is_same = known is not None and (known.result, known.detail) == ended[3:]
            duration_s = round(self._clock.monotonic() - began_at, 3)
            # A repeated result ("0 pages indexed" every minute) is logged at debug level.
            log_result = log.debug if is_same else log.info
            log_result(
                "job_finished", job=name, result=result, detail=detail, duration_s=duration_s
            )
            task.last, task.is_stored = ended, False
            nursery.cancel_scope.cancel()
        is_alike = known is not None and known.result == result and duration_s < START_STORED_S
        if is_asked or not is_alike or began_at >= self._stored_at + SHORT_STORED_S:
            await self._store_runs(began_at)

    async def _store_runs(self, at: float) -> None:
        """Store what is not stored of all jobs: one sync of the disk for short runs of an hour."""
        runs, self._stored_at = [], at
        for task in self._tasks.values():
            if task.last is not None and not (task.is_stored or task.running):
                task.is_stored = True
                runs.append(task.last)
        await self._database.write(job_rows.record_runs, runs)

    async def _store_start(self, name: str, started_at: float) -> None:
        await trio.sleep(START_STORED_S)
        with suppress(StoreError):  # what ends the daemon tells of itself
            await self._database.write(job_rows.record_start, name, started_at)

    @staticmethod
    async def _outcome(job: Job) -> tuple[str, str]:
        """Run a job; return how it ended, and what it tells."""
        try:
            return "done", await job.run()
        except StoreError as error:  # no bug: the disk is full as the daemon ends, or a damage
            log.error("job_failed", job=job.name, why=error.message, hint=error.hint)
            return "failed", error.message
        except Exception as error:  # a failing job must not stop the crawl
            log.exception("job_failed", job=job.name)
            return "failed", f"{type(error).__name__}: {error}"
