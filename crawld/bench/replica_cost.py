"""Measure the CPU time of the replicas job: its first run, later ones, and a plan of large groups.

    python -m crawld.bench.replica_cost HOSTS

A database is filled with what a crawl of the standard web of replicas fetches, without requests and
without the crawl: nothing but the job uses the processor. The job runs an hour after the last time,
again and again: first on all pages, then twice without news, then after 3,000 visits each time, of
which a third find new pages, a third new texts and a third nothing new. The clock stands still
while it works, so that its rests take no time. The storm limit is off: the first run judges,
compares and prunes all there is.

Prints JSON: CPU seconds, without the event loop's own turns, of the first run, of one without news,
and of the costliest after 3,000 visits (`first_run_cpu_s`, `idle_run_cpu_s`, `later_run_cpu_s`);
the longest step of the event loop in each (`_hold_ms`), and its longest transaction, without the
waits for the disk (`_writer_hold_ms`); and CPU seconds to plan groups of 2,000 hosts: each linked
to the next (`chained_plan_s`), and all declaring one of them to be the original
(`declared_plan_s`).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio
from trio.testing import MockClock

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.bench.replica_stored_crawl import StoredCrawl
from crawld.bench.result import Metrics
from crawld.bench.writer_holds import WriterHolds
from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.verdict import PairEvidence
from crawld.daemon.jobs.replicas.plan import PlanInput
from crawld.daemon.jobs.replicas.planner import plan
from crawld.daemon.process import switch_threads_often, tune_collector
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import ReplicaWeb, make_web
from crawld.store.engine.database import Database

NEW_VISITS: Final = 3_000

GROUP: Final = 2_000
"""Hosts of the groups that are planned."""

_EVERY_S: Final = 3_600.0
_RUNS: Final = (
    ("first_run", 0),
    ("idle_run", 0),
    ("idle_run", 0),
    *(("later_run", NEW_VISITS),) * 3,
)
"""The runs of the job: name, and visits before each."""

_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class CostScenario:
    """Size of the measurement: hosts, share of copies among them, median pages of a host."""

    hosts: int = 20_000
    replicated: float = 0.3
    pages: int = 15


class LoopSteps(trio.abc.Instrument):
    """Measures the steps of tasks on the event loop since `forget`.

    Attributes:
        longest_ms: processor time of the longest, milliseconds: a thread that holds the interpreter
            does not count.
        total_s: processor time of all, seconds.
    """

    def __init__(self) -> None:
        self.longest_ms = self.total_s = 0.0
        self._began_s = 0.0

    def forget(self) -> None:
        """Begin again."""
        self.longest_ms = self.total_s = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note the beginning of a step."""
        self._began_s = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note the end of a step."""
        step_s = time.thread_time() - self._began_s
        self.total_s += step_s
        self.longest_ms = max(self.longest_ms, step_s * 1e3)


def measure_cost(scenario: CostScenario) -> Metrics:
    """Return the metrics."""
    web = make_web(scale_web(STANDARD, scenario.hosts, scenario.replicated, scenario.pages), _SEED)
    with tempfile.TemporaryDirectory() as folder:
        clock = MockClock(rate=0.0, autojump_threshold=0.001)
        metrics: Metrics = trio.run(_measure, Path(folder) / "m.db", web, clock=clock)
    return metrics | plan_metrics(GROUP)


async def _measure(path: Path, web: ReplicaWeb) -> Metrics:
    holds = WriterHolds()
    async with await Database.open(path, workers=holds) as database:
        crawl = StoredCrawl(database, web, _SEED)
        await crawl.fill()
        job, _ = replicas_job(database, crawl.site_id, lambda: crawl.now, _SEED)
        steps = LoopSteps()
        trio.lowlevel.add_instrument(steps)
        metrics: Metrics = {}
        for name, visits in _RUNS:
            if visits:
                await crawl.visit(visits)
            crawl.now += _EVERY_S
            await trio.lowlevel.checkpoint()  # the job's first step is one of its own
            steps.forget()
            holds.forget()
            began_s = _threads_s()
            await job.run()
            for key, value in (
                (f"{name}_cpu_s", _threads_s() - began_s + steps.total_s),
                (f"{name}_hold_ms", steps.longest_ms),
                (f"{name}_writer_hold_ms", holds.longest_ms),
            ):
                metrics[key] = max(value, metrics.get(key, 0.0))
        return metrics


def _threads_s() -> float:
    """Return the processor time of all threads but this one, seconds.

    The loop itself is left out: before the clock jumps to the next deadline it turns every
    millisecond, for as long as threads work.
    """
    return time.process_time() - time.thread_time()


# --- plan ----------------------------------------------------------------------------------------


def plan_metrics(hosts: int) -> Metrics:
    """Return the CPU seconds to plan groups of so many hosts."""
    found: Metrics = {}
    for name, pairs, redirects in (
        ("chained", [(number, number + 1) for number in range(hosts - 1)], (0, 0)),
        ("declared", [(0, number) for number in range(1, hosts)], (0, 30)),
    ):
        given = _group(hosts, pairs, redirects)
        began_s = time.process_time()
        plan(given)
        found[f"{name}_plan_s"] = time.process_time() - began_s
    return found


def _group(hosts: int, pairs: Sequence[tuple[int, int]], redirects: tuple[int, int]) -> PlanInput:
    names = [f"h{number}.example.com" for number in range(hosts)]
    return PlanInput(
        evidence={
            (one, other): PairEvidence(
                names=(names[one], names[other]),
                pages=(30, 30),
                common=30,
                compared=30,
                equal=30,
                weight=30.0,
                root=True,
                redirects=redirects,
            )
            for one, other in pairs
        },
        operator_words={},
        replicas=[],
        profiles={number: HostProfile(name=name, pages=30) for number, name in enumerate(names)},
        hosts=hosts,
    )


def main() -> None:
    """Measure and print; the collector and the threads are tuned as in the daemon."""
    switch_threads_often()
    tune_collector()
    scenario = CostScenario(hosts=int(sys.argv[1])) if len(sys.argv) > 1 else CostScenario()
    print(json.dumps(measure_cost(scenario)))


if __name__ == "__main__":
    main()
