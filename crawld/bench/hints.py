"""`crawld bench hints`: does a flood of change hints delay fetches?

A daemon in this process crawls many hosts of a simulated web (in its own process). One source
reports 10,000 changes per second on a host of 20,000 pages. They are processed like all hints:
stored with the source's cursor, then passed to the policy. How late requests are sent after their
permitted time is measured in two windows, without and with the flood.
"""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import trio

from crawld.bench import crawld_process
from crawld.bench.in_process_daemon import SITE_NAME, fill_database, measure_window, run_daemon_here
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.bench.simweb_process import run_simweb
from crawld.daemon.daemon import Daemon
from crawld.daemon.hints.source import Hint, Poll
from crawld.simweb.demo import loopback_addresses
from crawld.store.changes import hint_source
from crawld.store.frontier import host as host_rows

_TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class HintLoad:
    """Size of the measurement.

    Attributes:
        hosts: crawled hosts, besides the hinted host.
        delay_s: delay between two requests to one host.
        pages: pages of the hinted host.
        hints_per_s: hints per second.
        warm_up_s: time before anything is measured.
        window_s: length of each window.
    """

    hosts: int = 200
    delay_s: float = 1.0
    pages: int = 20_000
    hints_per_s: int = 10_000
    warm_up_s: float = 15.0
    window_s: float = 20.0


FULL = HintLoad()
QUICK = HintLoad(hosts=20, pages=2_000, warm_up_s=2.0, window_s=3.0)


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    calm, flooded = [], []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as folder:
            without, with_hints = _measure(Path(folder), QUICK if quick else FULL, progress)
        calm.append(without)
        flooded.append(with_hints)
    return build_result("hints", flooded, {"without_hints": calm})


def _measure(directory: Path, load: HintLoad, progress: Progress) -> tuple[Metrics, Metrics]:
    sizes = ("--addresses", str(load.hosts + 1), "--pages", "200", "--page-bytes", "3000")
    with run_simweb(directory / "web", *sizes) as (_, port):
        return trio.run(_windows, directory, load, port, progress)


async def _windows(
    directory: Path, load: HintLoad, port: int, progress: Progress
) -> tuple[Metrics, Metrics]:
    *crawled, hinted = loopback_addresses(load.hosts + 1)
    urls = [f"http://{hinted}:{port}/held/{number}" for number in range(load.pages)]
    seeds = [f"http://{address}:{port}/" for address in crawled]
    delay = {"politeness": f"host_delay_s = {load.delay_s}"}
    config = crawld_process.write_config(directory, SITE_NAME, seeds, delay)
    progress(f"filling a database with the {load.pages:,} hinted pages")
    await fill_database(crawld_process.database_path(directory), urls)
    async with run_daemon_here(config) as daemon:
        await trio.sleep(load.warm_up_s)
        progress(f"{load.hosts} hosts with a delay of {load.delay_s:g} s, without hints")
        calm = await measure_window(daemon, load.window_s)
        progress(f"{load.hints_per_s:,} hints per second")
        async with trio.open_nursery() as nursery:
            accepted = [0]
            nursery.start_soon(_send_hints, daemon, hinted, urls, load, accepted)
            await trio.sleep(1.0)
            before, since = accepted[0], trio.current_time()
            flooded = await measure_window(daemon, load.window_s)
            per_s = (accepted[0] - before) / (trio.current_time() - since)
            nursery.cancel_scope.cancel()
    return calm, {**flooded, "hints_per_s": per_s}


async def _send_hints(
    daemon: Daemon, host: str, urls: list[str], load: HintLoad, accepted: list[int]
) -> None:
    """Send hints until cancelled, at the configured rate or as fast as they are accepted."""
    database, rng = daemon.database, random.Random(7)
    host_id = await database.write(host_rows.ensure, host, time.time())
    [site_id] = daemon.state.sites
    row = await database.write(hint_source.ensure, site_id, host_id, "flood", "bench:", time.time())
    sent_at = trio.current_time()
    while True:
        await trio.sleep(_TICK_S)
        # Hints due while the database was busy are sent with the next batch.
        count = round(load.hints_per_s * (trio.current_time() - sent_at))
        sent_at += count / load.hints_per_s
        now = time.time()
        hints = [Hint(url, now - 1.0, now) for url in rng.choices(urls, k=count)]
        await daemon.background.hint_poller.accept(
            row, Poll(at=now, hints=hints, told_until=now, requests=0)
        )
        accepted[0] += count
