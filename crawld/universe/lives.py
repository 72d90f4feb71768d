"""Lives of the real daemon, one after the other, in one simulated time.

A killed life goes on for the moments in which its tasks are cancelled, but nothing sees it: its
files were copied before, its connections are cut, and what it logs is dropped.
"""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import trio

from crawld.config.load import load
from crawld.core.units import DAY_S
from crawld.daemon.clock import Clock
from crawld.daemon.daemon import Daemon
from crawld.daemon.environment import Environment
from crawld.daemon.jobs.present_freshness import KEPT_EVERY_S, SiteEstimate
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import OperatorError
from crawld.marks import marks_path
from crawld.simweb.ledger import Ledger
from crawld.store.engine import migrate
from crawld.universe.auditor import Auditor
from crawld.universe.disk import SimulatedDisk, installed
from crawld.universe.event_log import EventLog
from crawld.universe.network import SimulatedNetwork, SimulatedWeb
from crawld.universe.plan import START_AT, ControlRequest, DiskFault, EndKind, LifeEnd, UniversePlan
from crawld.universe.simulated_feed import FEED_PATH, STREAM_PATH
from crawld.universe.simulated_host import SimulatedHost
from crawld.universe.workers import SimulatedWorkers

MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Named, so that a run does not depend on the memory of the machine."""

MAX_IN_FLIGHT: Final = 32
"""Named, so that a run does not depend on the limit of open files."""

MEAN_CPU_S: Final = 0.001
"""Mean CPU time between two looks at it; an analysis seems to overrun its estimate at times."""

CPU_CHECK_S, MAX_CPU_CHECK_S = 60.0, 300.0
"""Simulated seconds between two looks at the CPU time, in a universe of a day and of five."""

MOST_RESTARTS: Final = 50
"""A fault of the disk ends sooner."""

LEAST_ASK_S: Final = 900.0
MOST_ASKS: Final = 50
"""Least simulated seconds between two questions for the freshness, and how many there are."""

PROGRESS_S: Final = 10.0
"""CPU time between two lines of progress."""

MOST_WAIT_S: Final = 60.0
"""Simulated seconds that the end of a life waits for operations of the disk."""

RESTART_S: Final = 60.0
"""Simulated seconds until a daemon that failed is started again, as systemd does."""


class Lives:
    """All lives of one universe.

    Attributes:
        auditor: watches them.
        begun: number of lives so far.
        is_interrupted: set by whoever wants the run to end soon.
    """

    def __init__(
        self, plan: UniversePlan, folder: Path, log: EventLog, progress: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._progress = progress
        self._folder = folder
        self._log = log
        hosts: dict[str, SimulatedHost] = {}
        self.auditor = Auditor(plan, log, hosts)
        self.begun = 0
        self.is_interrupted = False
        self._is_alive = False
        self._scope = trio.CancelScope()
        # One generator for each part of the world: a draw of one moves no draw of another.
        self._rng = partial(_generator, plan.seed)
        cpu = _SimulatedCpu(self._rng("cpu"))
        self._clock = Clock(wall=self._wall, cpu=cpu, is_simulated=True)
        self._delay_s = plan.host_delay_s
        loses_power = any(end.kind is EndKind.POWER_CUT for end in plan.ends)
        self._disk = SimulatedDisk(
            self._rng("disk"), self._disk_fault, loses_power=loses_power, may_fail=bool(plan.disk)
        )
        faults = self._rng("faults")
        # The auditor notes each request itself.
        web = self._web = SimulatedWeb((), clock=_true_time, ledger=Ledger(max_rows=0))
        for host in plan.hosts:
            hosts[host.name] = SimulatedHost(host, self.auditor, faults, lambda: web.address)
            web.add(hosts[host.name])

    def _wall(self) -> float:
        return self._plan.wall(trio.current_time())

    def _disk_fault(self) -> DiskFault | None:
        return self._plan.disk_fault(trio.current_time()) if self._is_alive else None

    async def run(self, cpu_ends_s: float) -> None:
        """Run all lives; `cpu_ends_s` is the CPU time of the process at which it gives up.

        Raises:
            OperatorError: the CPU time is used up; in an exception group.
        """
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_cpu, cpu_ends_s)
                await self._run_lives()
                self._scope.cancel()

    def end_spin(self) -> None:
        """End the run: a daemon goes on without the clock."""
        if not self._scope.cancel_called:
            what = "its tasks go on without a pause, and the time stands still"
            self.auditor.found.add("daemon_spins", trio.current_time(), what)
            self._scope.cancel()

    async def _watch_cpu(self, ends_s: float) -> None:
        """Give up when the process has used so much CPU time; tell how far it has come."""
        told_s = began_s = time.process_time()
        while True:
            now_s = time.process_time()
            if now_s >= told_s + PROGRESS_S:
                told_s = now_s
                at_days, requests = trio.current_time() / DAY_S, self.auditor.requests
                self._progress(
                    f"day {at_days:.2f} of {self._plan.days:g}, {requests} requests,"
                    f" {now_s - began_s:.0f} CPU s"
                )
            if self.is_interrupted:
                hint = "the same command runs the same universe from its start"
                self._give_up("interrupted", hint=hint)
            if now_s >= ends_s:
                hint = "simulate fewer days, or permit more with --max-cpu"
                self._give_up("the CPU time was used up", hint=hint)
            await trio.sleep(
                min(max(self._plan.duration_s / 1_440.0, CPU_CHECK_S), MAX_CPU_CHECK_S)
            )

    def _give_up(self, why: str, *, hint: str) -> NoReturn:
        """End the run, and say how far it has come and what was found."""
        at_days, found = trio.current_time() / DAY_S, self.auditor.found.violations
        broken = ", ".join(sorted({each.invariant for each in found})) or "no violation so far"
        raise OperatorError(
            f"{why} on day {at_days:.3f} of {self._plan.days:g},"
            f" after {self.auditor.requests} requests in {self.begun} lives: {broken}",
            hint=hint,
        )

    async def _run_lives(self) -> None:
        path = self._next_path()
        if self._plan.old_schema:
            _make_old(path, self._plan.old_schema)
        last = LifeEnd(EndKind.STOP, self._plan.duration_s, 0.0)
        for end in (*self._plan.ends, last):
            path = await self._live_until(path, end)
            await trio.sleep(end.down_s)
        self.auditor.universe_ended(trio.current_time())

    async def _live_until(self, path: Path, end: LifeEnd) -> Path:
        """Run daemons, each after the failure of the one before; return the next file."""
        for _ in range(MOST_RESTARTS):
            with installed(self._disk):
                left = await self._live(path, end)
            self.auditor.life_ended(trio.current_time())
            self.auditor.log_grew(self._disk.longest_log_bytes())
            if left is not None:
                self.auditor.file.check(left)
                return left
            await trio.sleep(RESTART_S)
        raise OperatorError("the daemon failed at every start", hint="see --events")

    def daemon_logged(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        """Note what the daemon logs while it is alive."""
        if self._is_alive:
            self._log.add("log", level, event)
            self.auditor.note_logged(level, event)
            if event == "probe_wanted":
                self.auditor.set_aside(facts["url"])

    async def _live(self, path: Path, end: LifeEnd) -> Path | None:
        """Run a daemon until the end of its life.

        Returns:
            The file of the next life; None: the daemon failed.
        """
        self._log.add("life", self.begun)
        self.begun += 1
        self.auditor.delay_set(self._delay_s)
        self.auditor.life_began()
        self._is_alive = True
        left: Path | None = None
        async with trio.open_nursery() as servers:
            network = self._network(servers)
            life = Life(self._start(path, network), network)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(life.run)
                    nursery.start_soon(self._operate, life)
                    nursery.start_soon(self._ask_freshness, life)
                    await trio.sleep_until(end.at_s)
                    self.auditor.check_starved(trio.current_time())
                    if end.kind is EndKind.STOP:
                        await self._wait_for(end, then=_nothing)
                        self._log.add(end.kind.value)
                        await life.stop()
                        self._is_alive, left = False, path
                    else:
                        left = await self._break(life, end)
                    nursery.cancel_scope.cancel()
            except* Exception as errors:
                if self._is_alive:  # a killed one ends as it likes
                    self.auditor.daemon_failed(_first(errors))
            self._is_alive = False
            if end.kind is EndKind.STOP and left is not None:
                names = sorted(each.name for each in left.parent.iterdir())
                self.auditor.left_open(network.left_open(), self._disk.open_files, names)
            network.cut()
        return left

    async def _wait_for(self, end: LifeEnd, *, then: Callable[[], None]) -> None:
        """Wait for what the end of a life comes after, for a time; call a function within it."""
        over = trio.Event()

        def now() -> None:
            then()
            over.set()

        # A cut cancels this task, too.
        with trio.move_on_after(MOST_WAIT_S, shield=True):
            if end.operations:
                self._disk.after_operations(end.operations, now)
                await over.wait()
            elif end.answers:
                self.auditor.after_answers(end.answers, over.set)
                await over.wait()
                await trio.sleep(end.later_s)
        self._disk.forget_operations()

    async def _break(self, life: Life, end: LifeEnd) -> Path:
        """End a life by a kill or a power cut; return the file of the next."""
        left: list[Path] = []

        def now() -> None:
            self._log.add(end.kind.value)
            self._is_alive = False
            left.append(self._copy(life.start.config.daemon.db, end.kind))
            life.network.cut()

        await self._wait_for(end, then=now)
        if not left:
            now()
        return left[0]

    def _network(self, servers: trio.Nursery) -> SimulatedNetwork:
        rng = self._rng(f"network {self.begun}")
        return SimulatedNetwork(self._web, self._plan.hosts, self.auditor, servers, rng, self._log)

    def _start(self, path: Path, network: SimulatedNetwork) -> Start:
        environment = Environment(
            clock=self._clock,
            rng=self._rng(f"daemon {self.begun}"),
            workers=SimulatedWorkers(self._rng(f"workers {self.begun}")),
            network=network,
        )
        config_path = self._write_config(path)
        loaded = load(config_path)
        return Start(
            config=loaded.config,
            seeds=loaded.seeds,
            config_path=config_path,
            environment=environment,
        )

    def _write_config(self, path: Path) -> Path:
        config_path = path.with_suffix(".toml")
        config_path.write_text(config_text(self._plan, path, self._delay_s))
        return config_path

    # --- the operator ------------------------------------------------------------------------

    async def _operate(self, life: Life) -> None:
        """Send the requests of the plan that are due in a life."""
        for request in self._plan.requests:
            if request.at_s >= trio.current_time():
                await trio.sleep_until(request.at_s)
                await self._request(life, request)

    async def _request(self, life: Life, request: ControlRequest) -> None:
        control, delay_s = life.network.control, request.host_delay_s
        if control is None:
            return
        if delay_s is not None:
            if delay_s < self._delay_s:
                self.auditor.delay_set(delay_s)
            self._delay_s = delay_s
            self._write_config(life.start.config.daemon.db)
        if request.target in ("/pause", "/drain"):
            self.auditor.pause_set(is_paused=True)
        elif request.target.endswith("/forgive"):
            self.auditor.forgiven(request.target.split("/")[2])
        status, _ = await control.request(request.method, request.target, request.body.encode())
        self.auditor.control_answered(request.target, status, is_stopping=life.is_stopping)
        if status == 200 and delay_s is not None:
            self.auditor.delay_set(delay_s)
        if status == 200 and request.target == "/resume":
            self.auditor.pause_set(is_paused=False)

    async def _ask_freshness(self, life: Life) -> None:
        """Ask now and then how fresh the sites are, as a dashboard does."""
        names = {host.name.partition(".")[0]: host.name for host in self._plan.hosts}
        every_s, audit = max(LEAST_ASK_S, self._plan.duration_s / MOST_ASKS), self.auditor.freshness
        while True:
            await trio.sleep(every_s)
            await life.freshness()  # the answer is an old one, and asks for a new one
            await trio.sleep(KEPT_EVERY_S)
            for site, stated in await life.freshness():
                told = stated.now
                if site in names:  # else a request has added it, with some pages of a host
                    audit.told(names[site], stated.at, told.low, told.high, stated.copies)

    # --- files -------------------------------------------------------------------------------

    def _next_path(self) -> Path:
        folder = self._folder / f"life-{self.begun}"
        folder.mkdir()
        return folder / "mirror.db"

    def _copy(self, path: Path, end: EndKind) -> Path:
        """Copy what a killed process, or a power cut, leaves of its files."""
        copy = self._next_path()
        for file in (path, path.with_name(f"{path.name}-wal")):
            if file.exists():
                whole = end is EndKind.KILL
                image = file.read_bytes() if whole else self._disk.power_cut_image(file)
                copy.with_name(file.name).write_bytes(image)
        marks = marks_path(path)
        if end is EndKind.KILL and marks.exists():  # never synced: a power cut may take it
            marks_path(copy).write_bytes(marks.read_bytes())
        return copy


class Life:
    """One life of a daemon.

    Attributes:
        start: what it is started with.
        network: its own.
    """

    def __init__(self, start: Start, network: SimulatedNetwork) -> None:
        self.start = start
        self.network = network
        self._daemon: Daemon | None = None
        self._changed = trio.Event()
        self._ended = trio.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether the daemon stops, or has stopped."""
        return self._daemon is not None and self._daemon.phase == "stopping"

    async def run(self) -> None:
        """Run the daemon until it ends."""
        async with trio.open_nursery() as nursery:
            self._daemon = await nursery.start(run_daemon, self.start)
            self._changed.set()
        self._ended.set()

    async def freshness(self) -> list[tuple[str, SiteEstimate]]:
        """Return what the daemon states of its sites, by their names; nothing before its start."""
        daemon = self._daemon
        if daemon is None:
            return []
        known = await daemon.background.present_freshness.get()
        daemon.background.present_freshness.forget_question()
        sites = daemon.state.sites
        return [(sites[each.site_id].name, each) for each in known if each.site_id in sites]

    async def stop(self) -> None:
        """Stop the daemon cleanly, once it has started."""
        await self._changed.wait()
        assert self._daemon is not None
        self._daemon.shutdown()
        await self._ended.wait()


class _SimulatedCpu:
    """The CPU time of the event loop's thread: each look finds that a drawn time has been used."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used_s = 0.0

    def __call__(self) -> float:
        self._used_s += self._rng.expovariate(1.0 / MEAN_CPU_S)
        return self._used_s


def config_text(plan: UniversePlan, path: Path, host_delay_s: float) -> str:
    """Return the config file of a life: TOML, whose plain values are those of JSON."""
    tables: list[tuple[str, dict[str, object]]] = [
        (
            "[daemon]",
            {
                "db": str(path),
                "contact": "universe@example.org",
                "max_memory": MEMORY_BYTES,
                "max_in_flight": MAX_IN_FLIGHT,
            },
        ),
        ("[politeness]", {"host_delay_s": host_delay_s, **_quiet_hours(plan)}),
        *_group(plan),
        ("[store]", {"min_free_bytes": 0}),
        ("[schedule]", _schedule_keys(plan)),
        ("[replicas]", {"prune": plan.prune}),
    ]
    for host in plan.hosts:
        name, seeds = host.name.partition(".")[0], [f"http://{host.name}/"]
        site: dict[str, object] = {"name": name, "seeds": seeds}
        if host.wiki:
            site["api"] = True
        if host.feed:
            site["feeds"] = [f"http://{host.name}{FEED_PATH}"]
        if host.stream:
            site["event_stream"] = f"http://{host.name}{STREAM_PATH}"
        if plan.keep_versions is not None:
            site["keep_versions"] = plan.keep_versions
        tables.append(("[[site]]", site))
    lines = []
    for title, keys in tables:
        lines.append(title)
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _quiet_hours(plan: UniversePlan) -> dict[str, object]:
    if plan.quiet_minutes is None:
        return {}
    begin, end = (f"{minute // 60:02d}:{minute % 60:02d}" for minute in plan.quiet_minutes)
    return {"quiet_hours": [f"{begin}-{end}"]}


def _schedule_keys(plan: UniversePlan) -> dict[str, object]:
    keys = {
        "min_revisit_s": plan.min_revisit_s,
        "max_requests_per_s": plan.max_requests_per_s,
        "max_bytes_per_s": plan.max_bytes_per_s,
    }
    return {name: value for name, value in keys.items() if value is not None}


def _group(plan: UniversePlan) -> list[tuple[str, dict[str, object]]]:
    if plan.group is None:
        return []
    keys = {name: value for name, value in asdict(plan.group).items() if value is not None}
    return [("[[politeness.groups]]", keys)]


def _make_old(path: Path, version: int) -> None:
    """Make a file as an older crawld left it."""
    migrate.migrate(path, upto=version)


def _first(errors: BaseExceptionGroup[Exception]) -> str:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} at {Path(place.filename).name}:{place.lineno}"


def _nothing() -> None:
    pass


def _true_time() -> float:
    return START_AT + trio.current_time()


def _generator(seed: int, part: str) -> random.Random:
    return random.Random(f"{seed} {part}")
