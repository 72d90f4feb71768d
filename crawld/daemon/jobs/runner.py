"""When jobs run: one task a job, each again some time after it ended, with jitter.

A job is one run at a time; what came of it is stored in the file, so that a restart neither repeats
nor forgets a job. An error of a job is its result: it is logged, stored and tried again at the next
time; the daemon goes on. The jitter keeps jobs of one period, and daemons started together, apart.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import structlog
import trio

from crawld.daemon.clock import Clock
from crawld.errors import OperatorError
from crawld.store import job as job_rows
from crawld.store.engine.database import Database
from crawld.store.job import JobRow

log = structlog.get_logger(__name__)

JITTER_SHARE = 0.1
"""A pause is shorter or longer by up to this share of itself."""

MAX_DETAIL = 500


class Job(Protocol):
    """Something to be done again and again."""

    @property
    def name(self) -> str:
        """Its name in commands, in the log and in the file."""

    @property
    def every_s(self) -> float:
        """The pause between the end of a run and the next, seconds; asked before each."""

    async def run(self) -> str:
        """Do it once, and return in a few words what came of it."""

    async def progress(self) -> dict[str, int]:
        """Return counts by which an operator sees how far it is."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as it stands.

    Attributes:
        job: the job.
        running: whether a run is under way.
        next_run_at: Unix seconds of the next, None while one is under way.
        last: its last run as stored, None before the first.
    """

    job: Job
    running: bool
    next_run_at: float | None
    last: JobRow | None


class _ScheduledJob:
    """One job's place in time."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.running = False
        self.next_at = 0.0
        self.requested = trio.Event()
        self.last_detail: str | None = None


class JobRunner:
    """Runs jobs until cancelled."""

    def __init__(
        self, database: Database, clock: Clock, jobs: Iterable[Job], *, rng: random.Random
    ) -> None:
        """Take jobs to run; `rng` gives the jitter."""
        self._database = database
        self._clock = clock
        self._rng = rng
        self._tasks = {job.name: _ScheduledJob(job) for job in jobs}

    async def run(self) -> None:
        """Run every job at its times until cancelled."""
        async with trio.open_nursery() as nursery:
            for task in self._tasks.values():
                nursery.start_soon(self._repeat, task)

    def run_soon(self, name: str) -> None:
        """Let a job run as soon as it can: now, or once more after the run under way.

        Raises:
            OperatorError: there is no such job; names those there are.
        """
        task = self._tasks.get(name)
        if task is None:
            known = ", ".join(sorted(self._tasks))
            raise OperatorError(f"there is no job {name}", hint=f"known are: {known}")
        task.requested.set()

    async def states(self) -> list[JobState]:
        """Return every job as it stands."""
        last = {row.name: row for row in await self._database.read(job_rows.list_jobs)}
        return [
            JobState(
                task.job,
                task.running,
                None if task.running else self._clock.to_wall(task.next_at),
                last.get(name),
            )
            for name, task in self._tasks.items()
        ]

    async def _repeat(self, task: _ScheduledJob) -> None:
        last = await self._database.read(job_rows.last_run, task.job.name)
        ended_at = last.last_finished_at if last else None
        since_s = max(0.0, self._clock.now() - ended_at) if ended_at is not None else 0.0
        # What is overdue after a restart still waits a little: the crawl comes first.
        pause_s = self._pause_s(task.job) - since_s if ended_at is not None else 0.0
        while True:
            task.next_at = self._clock.monotonic() + max(pause_s, 0.0)
            with trio.move_on_at(task.next_at):
                await task.requested.wait()
            task.requested = trio.Event()
            await self._run_once(task)
            pause_s = self._pause_s(task.job)

    def _pause_s(self, job: Job) -> float:
        return job.every_s * self._rng.uniform(1.0 - JITTER_SHARE, 1.0 + JITTER_SHARE)

    async def _run_once(self, task: _ScheduledJob) -> None:
        name = task.job.name
        await self._database.write(job_rows.record_start, name, self._clock.now())
        task.running = True
        began_at = self._clock.monotonic()
        try:
            result, detail = "done", await task.job.run()
        except Exception as error:  # a job must not take the crawl down with it
            result, detail = "failed", f"{type(error).__name__}: {error}"
            log.exception("job_failed", job=name)
        finally:
            task.running = False
        duration_s = self._clock.monotonic() - began_at
        # The same again ("0 pages indexed", every half a minute) is no news.
        tell = log.debug if detail == task.last_detail else log.info
        task.last_detail = detail
        tell("job", job=name, result=result, detail=detail, duration_s=round(duration_s, 3))
        await self._database.write(
            job_rows.record_finish, name, self._clock.now(), result, detail[:MAX_DETAIL]
        )
