"""Run the replicas job through rounds of simulated days; see the package."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import trio
from trio.testing import MockClock

from crawld.bench.replica_rounds.inline_workers import INLINE
from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.bench.replica_rounds.page_truth import PageTruth
from crawld.bench.replica_rounds.page_visits import START_AT
from crawld.bench.replica_rounds.round_figures import RoundFigures, Verdict
from crawld.bench.replica_rounds.simulated_crawl import SimulatedCrawl
from crawld.core.units import DAY_S
from crawld.simweb.lookalike.web import LookalikeWeb
from crawld.store.engine.database import Database
from crawld.store.frontier import server
from crawld.store.replica import inputs, replica, survey
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.replica import RESTING
from crawld.store.replica.survey import TwinStanding

AFTER_VISITS_S: Final = 1_800.0
"""Time from the visits of a step to the job, before the visits of the next, an hour later."""


@dataclass(frozen=True, slots=True)
class RoundsScenario:
    """How long the rounds last.

    Attributes:
        days: simulated days.
        step_days: time between two runs of the job.
        follow_ups: runs an hour later each, after visits to the pages that do not wait; in a daemon
            every run is an hour after the last.
    """

    days: float = 60.0
    step_days: float = 0.5
    follow_ups: int = 2


def run_rounds(
    web: LookalikeWeb,
    seed: int,
    scenario: RoundsScenario,
    progress: Callable[[str], None] = lambda line: None,
) -> RoundsResult:
    """Run the job on a web in a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        # The job rests in proportion to its work: this clock stands still while it works.
        clock = MockClock(rate=0.0, autojump_threshold=0.0)
        return trio.run(_run, Path(folder) / "m.db", web, seed, scenario, progress, clock=clock)


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """The result of the rounds.

    Attributes:
        figures: what was seen.
        metrics: the figures as numbers.
        job_cpu_s: CPU seconds of the job in each step.
    """

    figures: RoundFigures
    metrics: dict[str, float]
    job_cpu_s: list[float]


async def _run(
    path: Path,
    web: LookalikeWeb,
    seed: int,
    scenario: RoundsScenario,
    progress: Callable[[str], None],
) -> RoundsResult:
    async with await Database.open(path, workers=INLINE) as database:
        await database.on_writer(survey.spare_disk)
        crawl = SimulatedCrawl(web, database, step_days=scenario.step_days)
        await crawl.fill()
        job, requested = replicas_job(
            database, crawl.site_id, lambda: START_AT + crawl.day * DAY_S + AFTER_VISITS_S, seed
        )
        figures = RoundFigures(web, crawl, PageTruth(web))
        names = {host.name: host.number for host in web.hosts}
        job_cpu_s = []
        while crawl.day < scenario.days:
            began_s = time.process_time()
            told = await job.run()
            job_cpu_s.append(time.process_time() - began_s)
            for _ in range(scenario.follow_ups):
                now = await _state(database, names)
                await crawl.step(now.resting, requested.take(), now.watched, soon=True)
                told = await job.run()
                now = await _state(database, names)
                figures.diverged.note_resting(crawl.day, set(crawl.indexes(now.resting)))
                if figures.diverged.awaits(crawl.day):
                    figures.diverged.note_known(crawl.day, await _standings(database, crawl))
            now = await _state(database, names)
            under = {crawl.index_of[page_id]: host for page_id, host in now.resting.items()}
            figures.note(crawl.day, now.declared, now.twins, under)
            await _note_standings(database, names, crawl, figures, now.twins)
            progress(f"day {crawl.day:.1f}: {told}; {len(now.resting)} pages rest")
            await crawl.step(now.resting, requested.take(), now.watched)
        stored = await database.read(replica_pair.list_pairs)
        numbers = {row.server_id: names.get(row.host) for row in await database.read(inputs.hosts)}
        pairs = []
        for pair in stored:
            one, other = numbers.get(pair.one_id), numbers.get(pair.other_id)
            if one is not None and other is not None:
                pairs.append((one, other, pair.evidence.probability))
        return RoundsResult(figures, figures.metrics(pairs), job_cpu_s)


async def _note_standings(
    database: Database,
    names: Mapping[str, int],
    crawl: SimulatedCrawl,
    figures: RoundFigures,
    twins: Mapping[int, int],
) -> None:
    """Tell the figures what is stored, under which the next visits are counted."""
    found = await _standings(database, crawl)
    rows = await database.read(replica.list_replicas)
    figures.diverged.note_known(crawl.day, found)
    figures.unsaved.note(found, {names[row.host]: row.status for row in rows}, twins)


async def _standings(database: Database, crawl: SimulatedCrawl) -> dict[int, TwinStanding]:
    """Return what is stored of the compared pages, by their indexes."""
    found = await database.read(survey.twin_standings)
    return {crawl.index_of[page_id]: one for page_id, one in found.items()}


class _State(NamedTuple):
    """What is stored now, with the numbers of hosts.

    Attributes:
        resting: the host with the twin of each page that rests, by page_id.
        twins: the canonical host of each host of which pages may rest.
        declared: the hosts that are declared replicas.
        watched: hosts of which pages rest, or under which they may.
    """

    resting: dict[int, int]
    twins: dict[int, int]
    declared: list[Verdict]
    watched: set[int]


async def _state(database: Database, names: Mapping[str, int]) -> _State:
    rows = await database.read(replica.list_replicas)
    resting = await database.read(survey.resting_hosts)
    others = {other for row in rows for other in row.alternate_ids}
    pairs = [
        (names[row.host], names[row.canonical_host], row.status)
        for row in rows
        if row.status in RESTING
    ]
    twins = {host: canonical for host, canonical, _ in pairs}
    alternates = (await database.read(server.names, others)).values()
    return _State(
        {page_id: names[host] for page_id, host in resting.items()},
        twins,
        [(host, canonical) for host, canonical, status in pairs if status == "pruned"],
        {*twins, *twins.values(), *(names[host] for host in alternates)},
    )
