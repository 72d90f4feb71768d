"""Run a plan to its end, and tell what it has shown."""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import trio

from crawld.universe.auditor import Auditor
from crawld.universe.daemon_log import listened_log
from crawld.universe.event_log import EventLog, Lines
from crawld.universe.jumping_clock import JumpingClock
from crawld.universe.lives import Lives
from crawld.universe.plan import UniversePlan
from crawld.universe.scenario import plan_sha256
from crawld.universe.scheduling import seeded_scheduling, signals_wake_no_task
from crawld.universe.spin_watch import spins_watched


@dataclass(frozen=True, slots=True)
class UniverseResult:
    """What a run has shown.

    Attributes:
        auditor: with the violations.
        log: of all events.
        lives: lives of the daemon.
        visits: stored visits at the end.
        cpu_s: CPU time of the run.
    """

    plan: UniversePlan
    auditor: Auditor
    log: EventLog
    lives: int
    visits: int
    cpu_s: float

    def as_json(self) -> dict[str, object]:
        """Return the result for programs; all but the last two are equal in equal runs."""
        return {
            "seed": self.plan.seed,
            "days": self.plan.days,
            "plan_sha256": plan_sha256(self.plan),
            "hosts": len(self.plan.hosts),
            "lives": self.lives,
            "requests": self.auditor.requests,
            "visits": self.visits,
            "events": self.log.events,
            "event_log_sha256": self.log.sha256(),
            "freshness": self.auditor.freshness.as_json(),
            "measured_freshness": self.auditor.measured.as_json(),
            "violations": self.auditor.found.as_json(),
            "simulated_days_per_cpu_s": self.plan.days / self.cpu_s,
            "visits_per_cpu_s": self.visits / self.cpu_s,
        }


def run_universe(
    plan: UniversePlan,
    folder: Path,
    *,
    event_file: Lines | None = None,
    max_cpu_s: float = math.inf,
    progress: Callable[[str], None] = lambda line: None,
) -> UniverseResult:
    """Run a plan to its end; call it on the main thread.

    Args:
        folder: an empty folder for the files of the lives.
        event_file: gets a line for each event.
        max_cpu_s: CPU time after which the run is given up.
        progress: called with a line of text now and then.

    Raises:
        OperatorError: the CPU time is used up, or the run was interrupted; in an exception group.
    """
    began_s = time.process_time()
    log = EventLog(event_file)
    lives, clock = Lives(plan, folder, log, progress), JumpingClock()
    with (
        seeded_scheduling(plan.seed),
        listened_log(lives.daemon_logged),
        _interrupts(lives),
        spins_watched(clock, lives.end_spin),
        _no_collections(),
    ):
        trio.run(_run_lives, lives, began_s + max_cpu_s, clock=clock)
    cpu_s = time.process_time() - began_s
    visits = lives.auditor.file.visits
    return UniverseResult(plan, lives.auditor, log, lives.begun, visits, cpu_s)


async def _run_lives(lives: Lives, cpu_ends_s: float) -> None:
    with signals_wake_no_task():
        await lives.run(cpu_ends_s)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Let the collector rest: it takes a thirtieth of a run, and a daemon leaves it nothing.

    What one leaves grows, as in a real one, which hardly ever collects (`daemon/process.py`).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _interrupts(lives: Lives) -> Iterator[None]:
    """Let SIGINT end a run between two steps; trio would raise in the middle of a daemon's task."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        lives.is_interrupted = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
