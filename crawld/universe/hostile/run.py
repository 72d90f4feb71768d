"""Run a daemon over hostile cases and a healthy host, in simulated time, and judge each case."""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import trio

from crawld.config.load import load
from crawld.daemon.clock import Clock
from crawld.daemon.environment import Environment
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.net.tls import client_context
from crawld.process_status import memory_mb
from crawld.simweb.hostile.case import HostileCase, Transport
from crawld.simweb.hostile.serving import Authority
from crawld.simweb.message import SimRequest, SimResponse, build_response
from crawld.simweb.server import SimWeb
from crawld.universe.daemon_log import listened_log
from crawld.universe.hostile.network import (
    HEALTHY_ADDRESS,
    HEALTHY_HOST,
    HostileNetwork,
)
from crawld.universe.jumping_clock import JumpingClock
from crawld.universe.plan import START_AT
from crawld.universe.scheduling import seeded_scheduling
from crawld.universe.workers import SimulatedWorkers

TOTAL_S: Final = 8.0
DELAY_S: Final = 1.0
GRACE_S: Final = 1.0
"""What a request may take beyond its total time."""

MOST_S: Final = 400.0
"""Simulated seconds after which a case without an outcome has failed."""

LEAST_S: Final = 60.0
"""Simulated seconds of each run: the healthy host is watched, and pages are visited again."""

MAX_MEMORY_BYTES: Final = 256 * 2**20
HEALTHY_PAGES: Final = 60
BATCH: Final = 100
"""Cases beside one daemon."""

_POLL_S = 5.0
_LOG_PAGE = 10_000
_SITE = {"max_pages": "8", "max_requisites": "8", "host_delay_s": DELAY_S}


@dataclass
class CaseResult:
    """What became of one case.

    Attributes:
        outcomes: of the visits to its page, as in `HostileCase.outcomes`.
        seconds: simulated, from the first lookup of its name to the first outcome.
        longest_s: longest simulated time from a request, as its server saw it, to its outcome.
        requests: requests its server saw, if it reads any.
    """

    case: HostileCase
    outcomes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    longest_s: float = 0.0
    requests: int = 0

    def faults(self) -> list[str]:
        """Return what is wrong with it."""
        found = []
        if not self.outcomes:
            found.append("no outcome")
        elif wrong := sorted(set(self.outcomes) - self.case.outcomes):
            found.append(f"outcome {', '.join(wrong)}")
        # A server that reads no requests has two of them: robots.txt and the page.
        requests = self.case.wait if self.case.transport is Transport.HTTP else 2.0
        deadline_s = requests * (TOTAL_S + DELAY_S) + GRACE_S
        if self.seconds > deadline_s:
            found.append(f"{self.seconds:.1f} s to its outcome, {deadline_s:g} s at most")
        if self.longest_s > TOTAL_S + GRACE_S:
            found.append(f"a visit of {self.longest_s:.1f} s, {TOTAL_S + GRACE_S:g} s at most")
        return found


@dataclass
class HostileResult:
    """What hostile cases have shown.

    Attributes:
        cases: by name.
        healthy_requests: of the healthy host.
        healthy_gap_s: longest simulated time between two of them.
        crossed: private addresses that were dialed.
        early: requests that a host had sooner than its delay permits.
        errors: what the daemon logged as an error.
        server_faults: bugs of the cases.
        received_bytes: bytes that the daemon read from hostile servers.
        left_open: connections that a clean stop left open.
        stop_s: longest simulated time of a clean stop.
        simulated_s, cpu_s: of all runs.
    """

    cases: dict[str, CaseResult] = field(default_factory=dict)
    healthy_requests: int = 0
    healthy_gap_s: float = 0.0
    crossed: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    server_faults: list[str] = field(default_factory=list)
    received_bytes: int = 0
    left_open: int = 0
    stop_s: float = 0.0
    simulated_s: float = 0.0
    cpu_s: float = 0.0

    def faults(self) -> list[str]:
        """Return everything that is wrong, a line each."""
        found = [
            f"{name}: {fault}" for name, result in self.cases.items() for fault in result.faults()
        ]
        if self.healthy_gap_s > DELAY_S + GRACE_S:
            found.append(f"the healthy host waited {self.healthy_gap_s:.2f} s")
        found += [f"private address dialed: {each}" for each in self.crossed]
        found += [f"too early: {each}" for each in self.early]
        found += [f"logged as an error: {each}" for each in self.errors]
        found += [f"bug of a case: {each}" for each in self.server_faults]
        if self.left_open:
            found.append(f"{self.left_open} connections left open")
        if self.stop_s > TOTAL_S + GRACE_S:
            found.append(f"a clean stop took {self.stop_s:.1f} s")
        return found

    def as_json(self) -> dict[str, object]:
        """Return the result for programs."""
        return {
            "cases": {
                name: {
                    "family": each.case.family,
                    "outcomes": list(dict.fromkeys(each.outcomes)),
                    "seconds": round(each.seconds, 3),
                    "longest_s": round(each.longest_s, 3),
                    "requests": each.requests,
                }
                for name, each in self.cases.items()
            },
            "healthy_requests": self.healthy_requests,
            "healthy_gap_s": round(self.healthy_gap_s, 3),
            "received_bytes": self.received_bytes,
            "stop_s": round(self.stop_s, 3),
            "simulated_s": round(self.simulated_s, 1),
            "cpu_s": round(self.cpu_s, 1),
            "peak_rss_mb": round(memory_mb(os.getpid(), "VmHWM")),
            "faults": self.faults(),
        }


class _HealthySite:
    """A site of small pages that all link to the next ones."""

    hosts = (HEALTHY_HOST, HEALTHY_ADDRESS)

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the page of a path; there is no robots.txt."""
        if request.path == "/robots.txt":
            return build_response(request, 404)
        number = int(request.path[1:] or 0)
        links = "".join(f"<a href='/{number * 3 + k}'>x</a>" for k in (1, 2, 3))
        return build_response(request, 200, f"<title>{number}</title><p>{number}{links}".encode())


def run_hostile(
    cases: Sequence[HostileCase],
    folder: Path,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> HostileResult:
    """Run daemons over the cases, a hundred at a time; call it on the main thread.

    Args:
        folder: an empty folder for the files.
        seed: draws latencies and the order of tasks.
        progress: called with a line of text now and then.
    """
    result = HostileResult()
    began_s = time.process_time()
    for number, batch in enumerate(_batches(cases)):
        place = folder / str(number)
        place.mkdir()
        run = _Run(batch, place, random.Random(f"{seed} {number}"), result)
        with seeded_scheduling(seed), listened_log(run.logged), _trusted(run.authority, place):
            trio.run(run.run, clock=JumpingClock())
        progress(f"{len(result.cases)} of {len(cases)} cases, {len(result.faults())} faults")
    result.cpu_s = time.process_time() - began_s
    return result


def _batches(cases: Sequence[HostileCase]) -> Iterator[Sequence[HostileCase]]:
    for start in range(0, len(cases), BATCH):
        yield cases[start : start + BATCH]


@contextmanager
def _trusted(authority: Authority, folder: Path) -> Iterator[None]:
    """Let TLS contexts made inside trust the authority of the cases."""
    path, before = folder / "authority.pem", os.environ.get("SSL_CERT_FILE")
    authority.trusted.cert_pem.write_to_path(str(path))
    os.environ["SSL_CERT_FILE"] = str(path)
    client_context.cache_clear()
    try:
        yield
    finally:
        client_context.cache_clear()
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before


class _Run:
    """One daemon, and the cases beside it."""

    def __init__(
        self,
        cases: Sequence[HostileCase],
        folder: Path,
        rng: random.Random,
        result: HostileResult,
    ) -> None:
        self._cases = cases
        self._folder = folder
        self._rng = rng
        self._result = result
        self._after = 0
        self.authority = Authority()
        self._web = SimWeb((_HealthySite(),), clock=lambda: START_AT + trio.current_time())
        self._pending = {case.name: case for case in cases}
        self._by_page = {_page(case): case for case in cases}
        self._by_host = {case.host: case for case in cases}
        self._visits: list[tuple[str, str, float]] = []
        for case in cases:
            result.cases[case.name] = CaseResult(case)

    def logged(self, level: str, event: str, _facts: Mapping[str, Any]) -> None:
        """Note what the daemon logs as an error."""
        if level in ("error", "critical"):
            self._result.errors.append(event)

    async def run(self) -> None:
        """Run the daemon until each case has an outcome, or has had the time for it."""
        async with trio.open_nursery() as servers:
            self._network = HostileNetwork(
                self._cases, self.authority, self._web, servers, self._rng
            )
            async with trio.open_nursery() as nursery:
                daemon = await nursery.start(run_daemon, self._start())
                while trio.current_time() < MOST_S:
                    await trio.sleep(_POLL_S)
                    await self._read_outcomes()
                    if not self._pending and trio.current_time() >= LEAST_S:
                        break
                watched_s = trio.current_time()
                daemon.shutdown()
            self._note_end(watched_s)
            servers.cancel_scope.cancel()

    def _start(self) -> Start:
        path = self._folder / "crawld.toml"
        path.write_text(self._config_text(), encoding="utf-8")
        loaded = load(path)
        environment = Environment(
            clock=Clock(
                wall=lambda: START_AT + trio.current_time(), cpu=lambda: 0.0, is_simulated=True
            ),
            rng=self._rng,
            workers=SimulatedWorkers(self._rng),
            network=self._network,
        )
        return Start(
            config=loaded.config, seeds=loaded.seeds, config_path=path, environment=environment
        )

    def _config_text(self) -> str:
        keys: dict[str, dict[str, object]] = {
            "daemon": {
                "db": str(self._folder / "mirror.db"),
                "contact": "hostile@example.org",
                "max_memory": MAX_MEMORY_BYTES,
                "max_in_flight": 2 * BATCH,
            },
            "fetch": {
                "connect_s": TOTAL_S / 2,
                "header_s": TOTAL_S / 2,
                "stall_s": TOTAL_S / 4,
                "total_s": TOTAL_S,
                "http2": True,
            },
            "store": {"min_free_bytes": 0},
        }
        tables = [
            f"[{table}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in of.items())
            for table, of in keys.items()
        ]
        healthy = f'name = "healthy"\nseeds = ["http://{HEALTHY_HOST}/"]\n'
        tables.append(f"[[site]]\n{healthy}host_delay_s = {DELAY_S}\nmax_pages = {HEALTHY_PAGES}")
        tables += [case.site_table(_origin(case), **_SITE) for case in self._cases]
        return "\n\n".join(tables) + "\n"

    # --- outcomes ----------------------------------------------------------------------------

    async def _get(self, target: str) -> Any:  # noqa: ANN401 (JSON)
        assert self._network.control is not None
        status, body = await self._network.control.request("GET", target)
        return json.loads(body) if status == 200 else None

    async def _read_outcomes(self) -> None:
        while visits := await self._get(f"/log?after={self._after}&limit={_LOG_PAGE}"):
            self._after = visits[-1]["visit_id"]
            for visit in visits:
                self._note(visit)
        for case in list(self._pending.values()):
            if "robots" in case.outcomes:
                host = await self._get(f"/hosts/{case.host}")
                if host is not None and any(each["verdict"] for each in host["robots"]):
                    self._end(case, "robots", trio.current_time() - _POLL_S)

    def _note(self, visit: dict[str, Any]) -> None:
        url, at_s = visit["url"], visit["visited_at"] - START_AT
        case = self._by_page.get(url)
        parts = urlsplit(url)
        if parts.hostname in self._by_host:
            target = urlunsplit(("", "", parts.path, parts.query, ""))
            self._visits.append((parts.hostname, target, at_s))
        if case is not None:
            outcome = visit["outcome"]
            if visit["failure"]:
                outcome += f":{visit['failure']}"
            self._end(case, outcome, at_s)

    def _end(self, case: HostileCase, outcome: str, at_s: float) -> None:
        found = self._result.cases[case.name]
        if not found.outcomes:
            begun_s = self._network.begun_s.get(case.host, 0.0)
            found.seconds = max(at_s - begun_s, 0.0)
        found.outcomes.append(outcome)
        self._pending.pop(case.name, None)

    def _note_end(self, watched_s: float) -> None:
        result, ended_s = self._result, trio.current_time()
        result.stop_s = max(result.stop_s, ended_s - watched_s)
        result.simulated_s += ended_s
        result.received_bytes += self._network.received_bytes()
        result.left_open += self._network.left_open()
        result.crossed += [f"{address} port {port}" for address, port in self._network.crossed]
        result.server_faults += self._network.server_faults
        times: dict[str, list[float]] = {}
        asked: dict[tuple[str, str], list[float]] = {}
        ledger = self._web.ledger
        for row in (ledger.row(index) for index in range(len(ledger))):
            times.setdefault(row.host, []).append(row.first_byte_s)
            asked.setdefault((row.host, row.target), []).append(row.first_byte_s)
        for host, at in times.items():
            self._note_requests(host, at, watched_s)
        last_s: dict[tuple[str, str], float] = {}
        for host, target, at_s in self._visits:
            page = host, target
            # A visit whose request never came to the server has none of its own.
            since_s = last_s.get(page, 0.0)
            own = [each for each in asked.get(page, ()) if since_s < each <= at_s]
            last_s[page] = at_s
            if own:
                found = result.cases[self._by_host[host].name]
                found.longest_s = max(found.longest_s, at_s - own[-1])

    def _note_requests(self, host: str, at: list[float], watched_s: float) -> None:
        result = self._result
        gaps = [after - before for before, after in itertools.pairwise(at)]
        if host == HEALTHY_HOST:
            # After its last page it rests.
            waits = gaps[: HEALTHY_PAGES - 1]
            if len(at) < HEALTHY_PAGES:
                waits.append(watched_s - at[-1])
            result.healthy_requests += len(at)
            result.healthy_gap_s = max(result.healthy_gap_s, *waits)
        elif host in self._by_host:
            result.cases[self._by_host[host].name].requests = len(at)
        # Latencies of two connections differ; a request that is early by more is early.
        result.early += [f"{host} after {gap:.3f} s" for gap in gaps if gap < DELAY_S - 0.3]


def _origin(case: HostileCase) -> str:
    return f"{case.scheme}://{case.host}"


def _page(case: HostileCase) -> str:
    return f"{_origin(case)}{case.path}"
