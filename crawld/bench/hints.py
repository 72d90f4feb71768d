"""`crawld bench hints`: a flood of change hints, and whether fetch slots keep their instants.

A daemon in this process crawls many hosts of a simulated web (a process of its own), while one
source tells of 10,000 changes a second on a host of 20,000 pages. They go the way of all hints:
into the file with the source's cursor, then to the policy. How late requests leave against the
instants they were permitted is read over two windows, without the flood and with it.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import trio

from crawld.bench import crawld_process
from crawld.bench.process import Child, program_error, run_child
from crawld.bench.result import Metrics, build_result
from crawld.config.load import load
from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash
from crawld.daemon.daemon import Daemon, Start
from crawld.daemon.hints.source import Hint, Poll
from crawld.daemon.run import run_daemon
from crawld.simweb.demo import loopback_addresses
from crawld.store import visit
from crawld.store.changes import hint_source
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord

_START_S = 60.0
_TICK_S = 0.1
_NAME = "web"
_WRITE_PAGES = 5_000


@dataclass(frozen=True, slots=True)
class HintLoad:
    """What is measured.

    Attributes:
        hosts: hosts that are crawled, beside the one that is told of.
        delay_s: rest between two requests to one.
        pages: pages of the host that is told of.
        hints_per_s: changes told.
        warm_up_s: until figures count.
        window_s: how long each window is.
    """

    hosts: int = 200
    delay_s: float = 1.0
    pages: int = 20_000
    hints_per_s: int = 10_000
    warm_up_s: float = 15.0
    window_s: float = 20.0


def run(*, quick: bool, progress: Callable[[str], None]) -> dict[str, object]:
    """Measure and return the value of `result.answer`; figures of a quick run mean little."""
    flood = HintLoad(hosts=20, pages=2_000, warm_up_s=2.0, window_s=3.0) if quick else HintLoad()
    calm, flooded = [], []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as folder:
            without, with_it = _measure(Path(folder), flood, progress)
        calm.append(without)
        flooded.append(with_it)
    return build_result("hints", flooded, {"without_hints": calm})


def _measure(
    room: Path, flood: HintLoad, progress: Callable[[str], None]
) -> tuple[Metrics, Metrics]:
    web_room = room / "web"
    web_room.mkdir()
    command = [sys.executable, "-m", "crawld.simweb", "--addresses", str(flood.hosts + 1)]
    with run_child([*command, "--pages", "200", "--page-bytes", "3000"], web_room) as web:
        return trio.run(_windows, room, flood, wait_port(web), progress)


def wait_port(web: Child) -> int:
    """Return the port of a simulated web that has just been started."""
    until_s = time.monotonic() + _START_S
    while web.running() and time.monotonic() < until_s:
        words = web.output().split()
        if len(words) >= 2 and words[0] == "PORT":
            return int(words[1])
    raise program_error("crawld.simweb", "does not start", web)


async def _windows(
    room: Path, flood: HintLoad, port: int, progress: Callable[[str], None]
) -> tuple[Metrics, Metrics]:
    *crawled, told = loopback_addresses(flood.hosts + 1)
    urls = [f"http://{told}:{port}/told/{number}" for number in range(flood.pages)]
    seeds = [f"http://{address}:{port}/" for address in crawled]
    delay = {"politeness": f"host_delay_s = {flood.delay_s}"}
    path = crawld_process.write_config(room, _NAME, seeds, delay)
    progress(f"a file of {flood.pages:,} pages that will be told of")
    await fill_database(crawld_process.database_path(room), urls)
    async with run_daemon_here(path) as daemon:
        await trio.sleep(flood.warm_up_s)
        progress(f"{flood.hosts} hosts, {flood.delay_s:g} s apart, without hints")
        calm = await measure_window(daemon, flood)
        progress(f"{flood.hints_per_s:,} hints a second")
        async with trio.open_nursery() as nursery:
            taken = [0]
            nursery.start_soon(_tell, daemon, told, urls, flood, taken)
            await trio.sleep(1.0)
            before, since = taken[0], trio.current_time()
            flooded = await measure_window(daemon, flood)
            per_s = (taken[0] - before) / (trio.current_time() - since)
            nursery.cancel_scope.cancel()
    return calm, {**flooded, "hints_per_s": per_s}


@asynccontextmanager
async def run_daemon_here(path: Path) -> AsyncIterator[Daemon]:
    """Run the daemon of a config in this process for as long as the block lasts."""
    loaded = load(path)
    async with trio.open_nursery() as nursery:
        start = Start(config=loaded.config, seeds=loaded.seeds)
        daemon: Daemon = await nursery.start(run_daemon, start)
        yield daemon
        daemon.hurry()


async def measure_window(daemon: Daemon, flood: HintLoad) -> Metrics:
    """Watch for a while how late requests leave, and how long the event loop stands still."""
    lateness, stalls = daemon.crawl.schedule.lateness, []
    lateness.forget()
    until = trio.current_time() + flood.window_s
    while (now := trio.current_time()) < until:
        await trio.sleep(0.005)
        stalls.append(trio.current_time() - now - 0.005)
    stalls.sort()
    return {
        "slot_late_p50_ms": lateness.quantile_ms(0.5),
        "slot_late_p99_ms": lateness.quantile_ms(0.99),
        "slot_late_most_ms": lateness.quantile_ms(1.0),
        "loop_stall_p99_ms": 1000.0 * stalls[int(0.99 * len(stalls))],
        "requests_per_s": lateness.count / flood.window_s,
    }


async def _tell(
    daemon: Daemon, host: str, urls: list[str], flood: HintLoad, taken: list[int]
) -> None:
    """Tell of changes without end, as fast as asked for, or as fast as they are taken."""
    database, chance = daemon.database, random.Random(7)
    host_id = await database.write(host_rows.ensure, host, time.time())
    [site_id] = daemon.crawl.sites
    row = await database.write(hint_source.ensure, site_id, host_id, "flood", "bench:", time.time())
    told_at = trio.current_time()
    while True:
        await trio.sleep(_TICK_S)
        # What came while the file was busy comes with the next.
        some = round(flood.hints_per_s * (trio.current_time() - told_at))
        told_at += some / flood.hints_per_s
        now = time.time()
        hints = [Hint(url, now - 1.0, now) for url in chance.choices(urls, k=some)]
        await daemon.hint_poller.take(row, Poll(at=now, hints=hints, told_until=now, requests=0))
        taken[0] += some


async def fill_database(path: Path, urls: Iterable[str]) -> None:
    """Make a file whose pages were visited a day ago."""
    at = time.time() - 86_400.0
    async with await Database.open(path) as database:
        site_id = await database.write(site.upsert, _NAME, "{}", source="config", at=at)
        discoveries = (_discovery(url, site_id, at) for url in urls)
        while part := list(islice(discoveries, _WRITE_PAGES)):
            new = await database.write(frontier.discover, part)
            records = [
                VisitRecord(
                    page_id=page.page_id,
                    visited_at=at,
                    outcome=Outcome.UNCHANGED,
                    state=PageState.VISITED,
                )
                for page in new
            ]
            await database.write(visit.record_all, records)


def _discovery(url: str, site_id: int, at: float) -> Discovery:
    origin = "/".join(url.split("/", 3)[:3])
    host = origin.removeprefix("http://").partition(":")[0]
    key = url_hash(url)
    return Discovery(url=url, url_hash=key, site_id=site_id, host=host, origin=origin, at=at)
