"""Run a plan: lives of the real daemon, one after the other, in one simulated time."""

from __future__ import annotations

import math
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final

import trio

from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.core.politeness import ADDRESS_SHARE
from crawld.daemon.clock import Clock
from crawld.daemon.daemon import Daemon
from crawld.daemon.environment import Environment
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import OperatorError
from crawld.marks import marks_path
from crawld.simweb.server import SimWeb
from crawld.store.doctor import examine
from crawld.store.engine.connection import open_connection
from crawld.store.mirror.rows import TABLES, rows
from crawld.universe.auditor import Auditor
from crawld.universe.daemon_log import listened_log
from crawld.universe.event_log import EventLog
from crawld.universe.jumping_clock import JumpingClock
from crawld.universe.network import SimulatedNetwork
from crawld.universe.plan import DAY_S, EndKind, LifeEnd, UniversePlan
from crawld.universe.scheduling import seeded_scheduling
from crawld.universe.simulated_host import START_AT, SimulatedHost
from crawld.universe.workers import SimulatedWorkers

MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Named, so that a run does not depend on the memory of the machine."""

MAX_IN_FLIGHT: Final = 32
"""Named, so that a run does not depend on the limit of open files."""

MEAN_CPU_S: Final = 0.001
"""Mean CPU time between two looks at it; an analysis seems to overrun its estimate at times."""

CPU_CHECK_S: Final = 60.0
"""Simulated seconds between two looks at the CPU time."""


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
            "hosts": len(self.plan.hosts),
            "lives": self.lives,
            "requests": self.auditor.requests,
            "visits": self.visits,
            "events": self.log.events,
            "event_log_sha256": self.log.sha256(),
            "violations": self.auditor.as_json(),
            "simulated_days_per_cpu_s": self.plan.days / self.cpu_s,
            "visits_per_cpu_s": self.visits / self.cpu_s,
        }


def run_universe(
    plan: UniversePlan,
    folder: Path,
    *,
    event_file: IO[str] | None = None,
    max_cpu_s: float = math.inf,
) -> UniverseResult:
    """Run a plan to its end; call it on the main thread.

    Args:
        folder: an empty folder for the files of the lives.
        event_file: gets a line for each event.
        max_cpu_s: CPU time after which the run is given up.

    Raises:
        OperatorError: the CPU time is used up; in an exception group.
    """
    began_s = time.process_time()
    universe = _Universe(plan, folder, EventLog(event_file))
    with seeded_scheduling(plan.seed), listened_log(universe.daemon_logged):
        trio.run(universe.run, began_s + max_cpu_s, clock=JumpingClock())
    return UniverseResult(
        plan,
        universe.auditor,
        universe.log,
        universe.lives,
        universe.visits,
        time.process_time() - began_s,
    )


class _Universe:
    def __init__(self, plan: UniversePlan, folder: Path, log: EventLog) -> None:
        self._plan = plan
        self._folder = folder
        self.log = log
        delay_s = plan.host_delay_s
        self.auditor = Auditor(delay_s, delay_s / ADDRESS_SHARE, START_AT, log)
        self.lives = 0
        self.visits = 0
        self._is_alive = False
        # One generator for each part of the world: a draw of one moves no draw of another.
        self._rng = partial(_generator, plan.seed)
        self._clock = Clock(wall=_wall, cpu=_SimulatedCpu(self._rng("cpu")), is_simulated=True)
        self._names = {host.name: host.address for host in plan.hosts}
        faults = self._rng("faults")
        sites = [SimulatedHost(host, self.auditor, faults) for host in plan.hosts]
        self._web = SimWeb(sites, clock=_wall)

    async def run(self, cpu_ends_s: float) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_cpu, cpu_ends_s)
            await self._run_lives()
            nursery.cancel_scope.cancel()

    async def _watch_cpu(self, ends_s: float) -> None:
        """Give up when the process has used so much CPU time."""
        while True:
            if time.process_time() >= ends_s:
                at_days = trio.current_time() / DAY_S
                raise OperatorError(
                    f"the CPU time was used up on day {at_days:.3f} of {self._plan.days:g}",
                    hint="simulate fewer days, or permit more with --max-cpu",
                )
            await trio.sleep(CPU_CHECK_S)

    async def _run_lives(self) -> None:
        last = LifeEnd(EndKind.STOP, self._plan.duration_s, 0.0)
        path = self._next_path()
        for end in (*self._plan.ends, last):
            path = await self._live(path, end)
            await trio.sleep(end.down_s)

    def daemon_logged(self, level: str, event: str) -> None:
        """Note what the daemon logs while it is alive."""
        if self._is_alive:
            self.log.add("log", level, event)
            if level in ("error", "critical"):
                self.auditor.note_error(trio.current_time(), event)

    async def _live(self, path: Path, end: LifeEnd) -> Path:
        """Run a daemon until the end of its life; return the file of the next one."""
        self.log.add("life", self.lives)
        self.lives += 1
        self._is_alive = True
        async with trio.open_nursery() as servers:
            network = self._network(servers)
            async with trio.open_nursery() as nursery:
                daemon: Daemon = await nursery.start(run_daemon, self._start(path, network))
                await trio.sleep_until(end.at_s)
                ended_s = trio.current_time()
                self.log.add(end.kind.value)
                if end.kind is EndKind.KILL:
                    self._is_alive = False
                    path = self._copy(path)
                    network.cut()
                    nursery.cancel_scope.cancel()
                else:
                    daemon.shutdown()
            self._is_alive = False
            network.cut()
        self.auditor.life_ended(ended_s)
        self._check(path)
        return path

    def _network(self, servers: trio.Nursery) -> SimulatedNetwork:
        rng = self._rng(f"network {self.lives}")
        return SimulatedNetwork(self._web, self._names, servers, rng, self.log)

    def _start(self, path: Path, network: SimulatedNetwork) -> Start:
        environment = Environment(
            clock=self._clock,
            rng=self._rng(f"daemon {self.lives}"),
            workers=SimulatedWorkers(self._rng(f"workers {self.lives}")),
            network=network,
        )
        config = Config.model_validate(self._tables(path))
        _, seeds = check_config(config)
        return Start(config=config, seeds=seeds, environment=environment)

    def _tables(self, path: Path) -> dict[str, object]:
        return {
            "daemon": {
                "db": str(path),
                "contact": "universe@example.org",
                "max_memory": MEMORY_BYTES,
                "max_in_flight": MAX_IN_FLIGHT,
            },
            "politeness": {"host_delay_s": self._plan.host_delay_s},
            "store": {"min_free_bytes": 0},
            "site": [
                {"name": host.name.partition(".")[0], "seeds": [f"http://{host.name}/"]}
                for host in self._plan.hosts
            ],
        }

    # --- files -------------------------------------------------------------------------------

    def _next_path(self) -> Path:
        folder = self._folder / f"life-{self.lives}"
        folder.mkdir()
        return folder / "mirror.db"

    def _copy(self, path: Path) -> Path:
        """Copy what a killed process leaves; the shared memory of the log is rebuilt."""
        copy = self._next_path()
        for file in (path, path.with_name(f"{path.name}-wal"), marks_path(path)):
            if file.exists():
                shutil.copyfile(file, copy.with_name(file.name))
        return copy

    def _check(self, path: Path) -> None:
        findings = [f"{each.kind}: {each.text} ({each.count})" for each in examine(path).findings]
        visits = _stored_visits(path)
        self.visits = sum(map(len, visits.values()))
        self.auditor.check_file(trio.current_time(), findings, visits)


class _SimulatedCpu:
    """The CPU time of the event loop's thread: each look finds that a drawn time has been used."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used_s = 0.0

    def __call__(self) -> float:
        self._used_s += self._rng.expovariate(1.0 / MEAN_CPU_S)
        return self._used_s


def _wall() -> float:
    return START_AT + trio.current_time()


def _generator(seed: int, part: str) -> random.Random:
    return random.Random(f"{seed} {part}")


def _stored_visits(path: Path) -> Mapping[str, list[float]]:
    """Return the Unix times of the stored visits by URL."""
    visits: defaultdict[str, list[float]] = defaultdict(list)
    table = TABLES["visits"]
    url, at = table.columns.index("url"), table.columns.index("visited_at")
    with closing(open_connection(path, read_only=True)) as connection:
        for chunk in rows(connection, table, None):
            for row in chunk:
                visits[row[url]].append(row[at])
    return visits
