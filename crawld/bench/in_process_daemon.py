"""Run the daemon in the benchmark's own process, on a database filled beforehand.

For benchmarks that read what only the process itself knows: how late requests are sent, and whether
the event loop stalls.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import trio

from crawld.bench.result import Metrics
from crawld.config.load import load
from crawld.core.page import Outcome, PageState
from crawld.core.units import DAY_S
from crawld.daemon.daemon import Daemon
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord

SITE_NAME = "web"
_WRITE_PAGES = 5_000


@asynccontextmanager
async def run_daemon_here(config_path: Path) -> AsyncIterator[Daemon]:
    """Run a daemon in this process until the block ends."""
    loaded = load(config_path)
    async with trio.open_nursery() as nursery:
        start = Start(config=loaded.config, seeds=loaded.seeds)
        daemon: Daemon = await nursery.start(run_daemon, start)
        yield daemon
        daemon.stop_now()


def lateness_metrics(daemon: Daemon) -> Metrics:
    """Return how late requests were sent after their permitted time."""
    lateness = daemon.crawl.schedule.lateness
    return {
        "lateness_p50_ms": lateness.quantile_ms(0.5),
        "lateness_p99_ms": lateness.quantile_ms(0.99),
        "lateness_max_ms": lateness.quantile_ms(1.0),
    }


async def measure_window(daemon: Daemon, window_s: float) -> Metrics:
    """Measure for a while how late requests are sent and how long the event loop stalls."""
    lateness, stalls = daemon.crawl.schedule.lateness, []
    lateness.forget()
    until = trio.current_time() + window_s
    while (now := trio.current_time()) < until:
        await trio.sleep(0.005)
        stalls.append(trio.current_time() - now - 0.005)
    stalls.sort()
    return {
        **lateness_metrics(daemon),
        "loop_stall_p99_ms": 1000.0 * stalls[int(0.99 * len(stalls))],
        "requests_per_s": lateness.count / window_s,
    }


async def fill_database(path: Path, urls: Iterable[str]) -> None:
    """Make a database whose pages were visited a day ago."""
    at = time.time() - DAY_S
    async with await Database.open(path) as database:
        site_id = await database.write(site.upsert, SITE_NAME, "{}", source="config", at=at)
        discoveries = (Discovery.of(url, site_id=site_id, at=at) for url in urls)
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
