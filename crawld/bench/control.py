"""`crawld bench control`: what operators wait for, and whether their views delay the crawl.

A daemon runs on a file of a million pages and crawls hosts of a simulated web at their delay. Its
dashboard and its control socket are asked one request after the other. Then the lateness of its
requests is measured alone, and again while a hundred browsers hold live figures and a feed is
polled 50 times a second.

    overview_ms, page_view_ms   the overview, and the page about one page: medians
    overview_p99_ms, page_view_p99_ms
    status_ms                   `/status` of the control socket: median; status_p99_ms
    slot_shift_ms               how much later 99 of 100 requests are sent beside the clients
    feed_lag_s                  time from the visit that found a change, of which its commit is a
                                part, until a reader gets it in the feed: longest
    live_clients, polls_per_s   browsers that got figures until the end; answers of the feed

The baseline in the same run is a bare FastAPI route on the same HTTP server, in a process of its
own: `overview_ms`, `page_view_ms` and `status_ms` are the time of its answer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

import apsw
import httpx
import trio

from crawld.bench import crawld_process, nginx
from crawld.bench.crawld_process import DaemonProcess
from crawld.bench.live_clients import LiveClients
from crawld.bench.process import program_error, run_child
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.bench.simweb_process import run_simweb, wait_port
from crawld.bench.start import KNOWN_SITE, DatabaseSize, fill_known_pages, known_url
from crawld.errors import OperatorError
from crawld.simweb.demo import loopback_addresses
from crawld.simweb.ledger import Ledger
from crawld.store.engine.database import Database
from crawld.store.mirror import events

_ADDRESS = "127.0.0.1"
_TIMEOUT_S = 60.0
_DASHBOARD = "/-/dashboard"
_MAX_EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class ControlLoad:
    """Size of the measurement.

    Attributes:
        known: pages in the file that are not visited meanwhile, and their hosts.
        hosts: hosts that are crawled, each on an address of its own.
        delay_s: delay between two requests to one of them.
        requests: how often each view is asked for.
        clients: browsers with live figures.
        polls_per_s: how often the feed is polled.
        warm_up_s, window_s: time before a measurement of lateness, and its length.
    """

    known: DatabaseSize
    hosts: int = 100
    delay_s: float = 4.0
    requests: int = 200
    clients: int = 100
    polls_per_s: float = 50.0
    warm_up_s: float = 10.0
    window_s: float = 30.0


FULL = ControlLoad(known=DatabaseSize(pages=1_000_000, hosts=1_000))

QUICK = ControlLoad(
    known=DatabaseSize(pages=2_000, hosts=20),
    hosts=20,
    delay_s=0.5,
    requests=20,
    clients=20,
    warm_up_s=1.0,
    window_s=4.0,
)


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    load = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name:
        directory = Path(name)
        crawled, known = _addresses(load)
        arguments = ["--addresses", str(load.hosts), "--pages", "50", "--page-bytes", "6000"]
        arguments += ["--change-interval-s", "10", "60"]
        ledger_file = directory / "web" / "ledger.jsonl"
        arguments += ["--ledger", str(ledger_file)]
        with run_simweb(directory / "web", *arguments) as (crawled_web, port):
            seeds = [f"http://{address}:{port}/" for address in crawled]
            config, web = _write_config(directory, seeds, known, load)
            progress(f"{load.known.pages:,} pages into a database")
            path = crawld_process.database_path(directory)
            trio.run(fill_known_pages, path, load.known, known)
            with crawld_process.run_daemon_process(config) as daemon:
                daemon.wait_answering()
                ours = _measure(
                    daemon, _Targets(web, directory / "mirror.sock", known), load, progress
                )
                lags_s = trio.run(_feed_lags, path, ours.seen)
                daemon.child.stop()
            crawled_web.stop()
        progress("a bare FastAPI route")
        with _bare(directory) as url:
            bare = _measure_bare(url, load.requests)
        ledger = Ledger.read(ledger_file)
        alone_ms, beside_ms = (
            _lateness_ms(ledger, load.delay_s, window) for window in (ours.alone, ours.beside)
        )
    metrics = {
        **ours.metrics,
        "slot_shift_ms": max(beside_ms - alone_ms, 0.0),
        "slot_lateness_p99_ms": beside_ms,
        **({"feed_lag_s": max(lags_s)} if lags_s else {}),
    }
    return build_result("control", [metrics], {"fastapi": [bare]})


def _addresses(load: ControlLoad) -> tuple[list[str], list[str]]:
    """Return the addresses of the hosts that are crawled, and of those that are only known."""
    addresses = loopback_addresses(load.hosts + load.known.hosts)
    return addresses[: load.hosts], addresses[load.hosts :]


def _write_config(
    directory: Path, seeds: Sequence[str], known: Sequence[str], load: ControlLoad
) -> tuple[Path, str]:
    """Write a config of two sites; return its path and the URL of the web listener."""
    listen = f"{_ADDRESS}:{nginx.free_port()}"
    tables = {
        "politeness": f"host_delay_s = {load.delay_s}\naddress_delay_s = 0.0",
        "schedule": "min_revisit_s = 1.0",
        "web": f'listen = "{listen}"',
    }
    path = crawld_process.write_config(directory, "crawled", seeds, tables)
    site = f'name = "{KNOWN_SITE}"\nseeds = ["{known_url(known[0], 0)}"]\nallow_private = true\n'
    # Each host waits its delay before the first turn: none of these is asked for anything.
    site += "host_delay_s = 86400.0\n"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n[[site]]\n{site}", encoding="utf-8")
    return path, f"http://{listen}"


@dataclass(frozen=True, slots=True)
class _Targets:
    """Where a daemon answers, and the addresses of hosts whose pages it knows."""

    web: str
    socket: Path
    known: Sequence[str]


class _Window(NamedTuple):
    """From when to when requests are looked at, Unix seconds."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class _Measured:
    """The figures, the windows without and with clients, and when the feed held which event."""

    metrics: Metrics
    alone: _Window
    beside: _Window
    seen: dict[int, float]


def _measure(
    daemon: DaemonProcess, targets: _Targets, load: ControlLoad, progress: Progress
) -> _Measured:
    pages = [
        f"{_DASHBOARD}/page?url={quote(known_url(address, 1), safe='')}"
        for address in targets.known[: load.requests]
    ]
    metrics: Metrics = {}
    with httpx.Client(base_url=targets.web, timeout=_TIMEOUT_S) as web:
        for name, paths in (("overview", [_DASHBOARD]), ("page_view", pages)):
            progress(f"{name}, {load.requests} times")
            metrics |= _times(name, web, paths, load.requests)
    transport = httpx.HTTPTransport(uds=str(targets.socket))
    with httpx.Client(transport=transport, base_url="http://crawld", timeout=_TIMEOUT_S) as http:
        progress("status")
        metrics |= _times("status", http, ["/status"], load.requests)
    progress("requests of the crawl, alone")
    alone = _wait(daemon, load)
    progress(
        f"requests beside {load.clients} live clients and a feed polled {load.polls_per_s:g}/s"
    )
    with LiveClients(
        targets.web, f"{_DASHBOARD}/live", clients=load.clients, polls_per_s=load.polls_per_s
    ) as clients:
        beside = _wait(daemon, load)
    return _Measured(
        {
            **metrics,
            "live_clients": float(clients.listening),
            "polls_per_s": clients.polls_per_s,
            "failed_polls": float(clients.failed),
        },
        alone,
        beside,
        dict(clients.seen),
    )


def _times(name: str, http: httpx.Client, targets: Sequence[str], count: int) -> Metrics:
    """Return median and 99th percentile of the time of an answer, one request after the other."""
    took_s = []
    around = cycle(targets)
    for number in range(count + 1):
        target = next(around)
        began_s = time.perf_counter()
        answer = http.get(target)
        if answer.status_code != httpx.codes.OK:
            raise OperatorError(f"{target} answers {answer.status_code}", hint=answer.text[:1_000])
        if number:  # the first one also makes what is kept for the others
            took_s.append(time.perf_counter() - began_s)
    took_s.sort()
    return {
        f"{name}_ms": 1e3 * median(took_s),
        f"{name}_p99_ms": 1e3 * took_s[int(0.99 * (len(took_s) - 1))],
    }


def _wait(daemon: DaemonProcess, load: ControlLoad) -> _Window:
    """Let the daemon crawl for a while; return the time after the warm-up."""
    for for_s in (load.warm_up_s, load.window_s):
        began_at = time.time()
        if not daemon.child.running(for_ms=int(1e3 * for_s)):
            raise program_error("crawld", "ended too early", daemon.child)
    return _Window(began_at, time.time())


def _lateness_ms(ledger: Ledger, delay_s: float, window: _Window) -> float:
    """Return how late 99 of 100 requests of a window came at most, as the web saw them."""
    late_s = sorted(
        gap_s - delay_s
        for _, gap_s, index in ledger.gaps()
        if window.since <= ledger.row(index).at < window.until
    )
    if not late_s:
        raise OperatorError("the daemon sent no request in the time that is measured")
    return max(1e3 * late_s[int(0.99 * (len(late_s) - 1))], 0.0)


async def _feed_lags(path: Path, seen: dict[int, float]) -> list[float]:
    """Return how long after its visit each event was in the feed, seconds.

    An event that was there at the first poll is left out: it may have been there for long.
    """
    if not seen:
        return []
    first_s = min(seen.values())

    def read(connection: apsw.Connection) -> dict[int, float]:
        found = events.list_after(connection, min(seen) - 1, _MAX_EVENTS)
        return {each.event_id: each.at for each in found.events}

    async with await Database.open(path, read_only=True) as database:
        at = await database.read(read)
    return [
        found_s - at[number]
        for number, found_s in seen.items()
        if found_s > first_s and number in at
    ]


# --- the baseline --------------------------------------------------------------------------------

_BARE = """
import trio
from fastapi import FastAPI
from crawld.net.listener import listen_tcp
app = FastAPI()

@app.get("/")
async def answer() -> dict[str, str]:
    return {"state": "running"}

listener = listen_tcp("127.0.0.1", 0)
print("PORT", listener.url.rstrip("/").rpartition(":")[2], flush=True)
trio.run(listener.serve, app)
"""


@contextmanager
def _bare(directory: Path) -> Iterator[str]:
    """Serve a FastAPI application of one route; yield its URL."""
    (directory / "bare").mkdir()
    with run_child([sys.executable, "-c", _BARE], directory / "bare") as child:
        yield f"http://{_ADDRESS}:{wait_port(child)}"


def _measure_bare(url: str, requests: int) -> Metrics:
    with httpx.Client(base_url=url, timeout=_TIMEOUT_S) as http:
        found = _times("status", http, ["/"], requests)
    names = ("overview", "page_view", "status")
    return {f"{name}_ms": found["status_ms"] for name in names}
