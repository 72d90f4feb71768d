"""`crawld bench hostile`: a healthy host, its readers and the control socket beside hostile hosts.

A daemon crawls a healthy host every 0.25 s, first alone (the baseline `alone`), then beside waves
of hosts that try to stop it (`crawld/simweb/hostile`). At the end it gets SIGTERM while hostile
hosts are under way. The healthy host, the hostile web and the daemon are processes of their own.

    healthy_gap_p99_ms, healthy_gap_max_ms   time between two requests, as the healthy host saw them
    status_max_ms       slowest answer of GET /status, asked for ten times a second
    serve_max_ms        slowest healthy page of `crawld serve`, while others read hostile pages
    web_max_ms          the same of the daemon's own listener
    sigterm_s           from SIGTERM to the end
    rss_at_rest_mb      memory of the daemon at the end of the baseline
    rss_peak_mb, rss_over_rest_mb            its largest, and the difference
    rss_after_60s_mb    memory 60 s after the last case and the last reader of a hostile page (not
                        with --quick)
    loop_stall_max_ms   longest time the event loop stood still, by the daemon's own account
    cases_run, cases_failed
    cases_waited        those that failed once because others used the budget of memory; the
                        budget is small here, and such a visit is made again

The result also has `cases` (outcomes and seconds of each) and `failed` (those without an acceptable
outcome within their deadline).
"""

from __future__ import annotations

import itertools
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from crawld.bench import crawld_process
from crawld.bench.crawld_process import DaemonProcess
from crawld.bench.hostile_outcomes import OUT_OF_MEMORY, Outcomes
from crawld.bench.hostile_probe import Probe, over_tcp, over_unix
from crawld.bench.hostile_world import (
    HEALTHY_HOST,
    HostileWorld,
    Limits,
    run_hostile_world,
    trusting,
    write_config,
)
from crawld.bench.nginx import free_port
from crawld.bench.process import run_child
from crawld.bench.result import Metrics, build_result, figures
from crawld.bench.run import Progress
from crawld.bench.serve import serve_mirror
from crawld.bench.simweb_process import run_simweb
from crawld.process_status import memory_mb
from crawld.simweb.hostile.case import HostileCase
from crawld.simweb.hostile.catalogue import SOCKET_FAMILIES
from crawld.simweb.ledger import Ledger
from crawld.web.address import mirror_path

_HEALTHY_PAGES = 4_000
_PER_FAMILY = 12
_SIZES = 26
_READ_PAGES = 200
_POLL_S = 0.5
_REST_S = 60.0
# Families that go together: those that wait beside those that compute.
_WAVES = (
    ("messages", "connections", "http2", "markup"),
    ("fields", "framing", "redirects", "robots", "styles"),
    ("names", "links", "everywhere", "pace", "volatile"),
    ("compression", "charsets"),
    ("listings", "wiki_api"),
    ("amplified",),
    ("sizes",),
)
_QUICK_WAVES = (tuple(family for wave in _WAVES for family in wave),)


@dataclass(frozen=True, slots=True)
class Period:
    """A period, Unix seconds: the one clock that all the processes share."""

    since: float
    until: float


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    waves = select_waves(quick=quick)
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        names = [case.name for wave in waves for case in wave]
        progress(f"{len(names)} hostile hosts are made")
        world = stack.enter_context(run_hostile_world(directory / "world", names))
        limits = Limits(total_s=6.0 if quick else 8.0)
        with _Measurement(directory, world, limits, progress) as measured:
            measured.baseline(8.0 if quick else 30.0)
            for number, wave in enumerate(waves, start=1):
                progress(f"wave {number} of {len(waves)}: {len(wave)} hosts")
                measured.wave(wave)
            if not quick:
                measured.rest(_REST_S)
            measured.stop(waves[0])
        ours, alone = measured.metrics()
    progress(figures(ours))
    for each in measured.outcomes.failed():
        progress(f"failed: {each}")
    return build_result("hostile", [ours], {"alone": [alone]}) | measured.outcomes.as_dict()


def select_waves(*, quick: bool) -> list[list[HostileCase]]:
    """Return the cases of each wave."""
    return [
        [case for family in wave for case in _representatives(family, quick=quick)]
        for wave in (_QUICK_WAVES if quick else _WAVES)
    ]


def _representatives(family: str, *, quick: bool) -> list[HostileCase]:
    """Return the cases that stand for a family, then others at equal distances in its list."""
    cases = SOCKET_FAMILIES[family]
    first = [case for case in cases if case.quick] or list(cases[:2])
    if quick:
        return first[:3]
    others = [case for case in cases if case not in first]
    wanted = max((_SIZES if family == "sizes" else _PER_FAMILY) - len(first), 1)
    if family == "sizes":
        return [*first, *others[:wanted]]
    return [*first, *others[:: max(len(others) // wanted, 1)][:wanted]]


class _Measurement:
    """The daemon and its surroundings, and what was measured of them."""

    def __init__(
        self, directory: Path, world: HostileWorld, limits: Limits, progress: Progress
    ) -> None:
        self._directory = directory
        self._world = world
        self._limits = limits
        self._progress = progress
        self._stack = ExitStack()
        self._web_port = free_port()
        self._config = directory / "crawld.toml"
        self._ledger_file = directory / "healthy" / "ledger.jsonl"
        self._alone = self._beside = Period(0.0, 0.0)
        self._ours: Metrics = {}
        self._pid = 0
        self._peak_mb = 0.0
        self._rss_mb = [0.0]
        self.outcomes = Outcomes(world, limits)

    def __enter__(self) -> _Measurement:
        options = ["--host", HEALTHY_HOST, "--pages", str(_HEALTHY_PAGES)]
        options += ["--page-bytes", "2000", "--ledger", str(self._ledger_file)]
        _, self._healthy_port = self._stack.enter_context(
            run_simweb(self._directory / "healthy", *options)
        )
        self._write_config(())
        self._daemon = self._start()
        self._probes = {
            "status": self._probe(over_unix(self._socket), "crawld", lambda: ["/status"]),
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def baseline(self, for_s: float) -> None:
        """Let the daemon crawl the healthy host alone; then start the readers."""
        self._pid = int(str(self._daemon.wait_answering()["pid"]))
        began_at = time.time()
        self._watch(for_s)
        self.outcomes.update(self._daemon, ())
        db = self._directory / "mirror.db"
        _, serve_port = self._stack.enter_context(serve_mirror(db, self._directory))
        self._readers = {"serve": serve_port, "web": self._web_port}
        for name, port in self._readers.items():
            host = f"127.0.0.1:{port}"
            self._probes[name] = self._probe(over_tcp(port), host, self._healthy_targets)
        self._read_hostile_pages()
        self._watch(for_s / 4)
        self._alone = self._beside = Period(began_at, time.time())
        self._ours["rss_at_rest_mb"] = self._rss_mb[-1]

    def _read_hostile_pages(self) -> None:
        """Let readers ask both listeners for the stored copies of hostile pages."""
        self._hostile_probes = [
            self._probe(over_tcp(port), f"127.0.0.1:{port}", self._hostile_targets)
            for port in self._readers.values()
        ]

    def wave(self, cases: Sequence[HostileCase]) -> None:
        """Add hosts, and wait until each of them has an outcome or is late."""
        self._write_config(cases)
        self._daemon.command("/reload")
        began_s = time.monotonic()
        self._peak_mb = max(self._peak_mb, memory_mb(self._pid, "VmHWM"))
        limit_s = max(self._limits.deadline_s(case) for case in cases)
        pending = list(cases)
        while pending and time.monotonic() - began_s < limit_s:
            self._watch(_POLL_S)
            pending = self.outcomes.update(self._daemon, pending)
        self._progress(
            f"  {time.monotonic() - began_s:.0f} s, {len(pending)} without outcome, "
            f"{self._rss_mb[-1]:.0f} MB"
        )

    def rest(self, for_s: float) -> None:
        """Let the daemon crawl the healthy host alone again, with readers of its pages only."""
        for probe in self._hostile_probes:
            probe.stop()
        self._write_config(())
        self._daemon.command("/reload")
        self._watch(for_s)
        self._ours["rss_after_60s_mb"] = self._rss_mb[-1]

    def stop(self, cases: Sequence[HostileCase]) -> None:
        """Send SIGTERM while hosts are under way, and readers ask for hostile pages."""
        self._read_hostile_pages()
        status = self._daemon.status() or {}
        self._peak_mb = max(self._peak_mb, memory_mb(self._pid, "VmHWM"))
        stall_ms = status.get("loop_stall_max_ms")
        if isinstance(stall_ms, int | float):
            self._ours["loop_stall_max_ms"] = float(stall_ms)
        self._write_config(cases)
        self._daemon.command("/reload")
        self._watch(1.0)
        self._beside = Period(self._alone.until, time.time())
        for probe in self._probes.values():
            probe.stop()
        began_s = time.monotonic()
        usage = self._daemon.child.stop(signal.SIGTERM)
        self._ours["sigterm_s"] = time.monotonic() - began_s
        if usage.exit_code:
            self._progress(f"the daemon ended with {usage.exit_code}")

    def metrics(self) -> tuple[Metrics, Metrics]:
        """Return what was measured beside hostile hosts, and alone."""
        ours = self._period_metrics(self._beside) | self._ours
        ours["rss_peak_mb"] = max(self._peak_mb, *self._rss_mb)
        ours["rss_over_rest_mb"] = ours["rss_peak_mb"] - ours["rss_at_rest_mb"]
        ours["cases_run"] = float(len(self.outcomes.found))
        ours["cases_failed"] = float(len(self.outcomes.failed()))
        ours["cases_waited"] = float(self.outcomes.count(OUT_OF_MEMORY))
        for name, probe in self._probes.items():
            self._progress(f"{name}: {probe.slowest()}")
        return ours, self._period_metrics(self._alone)

    def _period_metrics(self, period: Period) -> Metrics:
        gaps_ms = healthy_gaps_ms(Ledger.read(self._ledger_file), period)
        found = {
            "healthy_gap_p99_ms": quantiles(gaps_ms, n=100, method="inclusive")[98]
            if len(gaps_ms) > 1
            else gaps_ms[0],
            "healthy_gap_max_ms": max(gaps_ms),
        }
        for name, probe in self._probes.items():
            if took_ms := probe.durations_ms(period.since, period.until):
                found[f"{name}_max_ms"] = max(took_ms)
        return found

    def _watch(self, for_s: float) -> None:
        """Let time pass, and sample the memory of the daemon."""
        until_s = time.monotonic() + for_s
        while (left_s := until_s - time.monotonic()) > 0:
            self._daemon.child.running(for_ms=int(1e3 * min(left_s, 0.1)))
            self._rss_mb.append(memory_mb(self._pid, "VmRSS") or self._rss_mb[-1])

    def _write_config(self, cases: Sequence[HostileCase]) -> None:
        seeds = (f"http://{HEALTHY_HOST}:{self._healthy_port}/",)
        write_config(
            self._directory,
            self._world,
            cases,
            self._limits,
            healthy_seeds=seeds,
            web_port=self._web_port,
        )

    def _start(self) -> DaemonProcess:
        directory = self._directory / "daemon"
        directory.mkdir()
        self._socket = self._directory / "mirror.sock"
        arguments = ("run", "--config", str(self._config), "--socket", str(self._socket))
        command = trusting(self._world, crawld_process.command(*arguments))
        child = self._stack.enter_context(run_child(command, directory))
        daemon = DaemonProcess(child, self._socket)
        self._stack.callback(daemon.close)
        return daemon

    def _probe(self, *arguments: object) -> Probe:
        probe = Probe(*arguments)  # type: ignore[arg-type]
        return self._stack.enter_context(probe)

    def _healthy_targets(self) -> list[str]:
        return [mirror_path(url) for url in self.outcomes.healthy[:_READ_PAGES]]

    def _hostile_targets(self) -> list[str]:
        return [mirror_path(url) for url in self.outcomes.stored]


def healthy_gaps_ms(ledger: Ledger, period: Period) -> list[float]:
    """Return the times between requests in a period, its ends included: silence is a gap too."""
    rows = (ledger.row(index).at for index in range(len(ledger)))
    times = [at for at in rows if period.since <= at < period.until]
    ends = [*(times or [period.since]), period.until]
    return [1e3 * (after - before) for before, after in itertools.pairwise(ends)]
