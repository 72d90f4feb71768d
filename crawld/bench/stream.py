"""`crawld bench stream`: does a flood of stream events delay fetches?

A daemon in this process crawls many hosts of a simulated web, while an event stream (in its own
process) offers it 10,000 events per second over a socket: once those of a farm of wikis, of which
one in twenty names a stored page, and once all of them. The rate of events read and the lateness of
requests are compared with the same crawl at one event per second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import trio

from crawld.bench import crawld_process
from crawld.bench.hints import FULL, QUICK, HintLoad
from crawld.bench.in_process_daemon import SITE_NAME, fill_database, measure_window, run_daemon_here
from crawld.bench.process import run_child
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.bench.simweb_process import run_simweb, wait_port
from crawld.daemon.daemon import Daemon
from crawld.simweb.demo import loopback_addresses
from crawld.store.changes import hint_source

SHARES = {"farm": 0.05, "all_held": 1.0, "no_events": 0.0}
"""Share of the events that name stored pages; the last case has practically no events."""

_CONNECTED_S = 60.0


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    runs: dict[str, list[Metrics]] = {name: [] for name in SHARES}
    for _ in range(1 if quick else 3):
        for name, share in SHARES.items():
            with tempfile.TemporaryDirectory() as folder:
                runs[name].append(_measure(Path(folder), QUICK if quick else FULL, share, progress))
    idle = runs["no_events"]
    for name in ("farm", "all_held"):
        runs[name] = [_with_cost(busy, base) for busy, base in zip(runs[name], idle, strict=True)]
    return build_result("stream", runs.pop("farm"), runs)


def _with_cost(busy: Metrics, idle: Metrics) -> Metrics:
    """Add the number of events read per CPU second, without the CPU time of the crawl."""
    spent = max(busy["cpu_share"] - idle["cpu_share"], 1e-3)
    return {**busy, "events_per_cpu_s": busy["events_per_s"] / spent}


def _measure(directory: Path, load: HintLoad, share: float, progress: Progress) -> Metrics:
    (directory / "stream").mkdir()
    *crawled, hinted, streaming = loopback_addresses(load.hosts + 2)
    sizes = ("--addresses", str(load.hosts + 1), "--pages", "200", "--page-bytes", "3000")
    with run_simweb(directory / "web", *sizes) as (_, port):
        prefix = f"http://{hinted}:{port}/held/"
        command = [sys.executable, "-m", "crawld.bench.event_server", "--host", streaming]
        command += ["--url-prefix", prefix, "--pages", str(load.pages), "--share", str(share)]
        command += ["--per-s", str(load.hints_per_s if share else 1)]
        with run_child(command, directory / "stream") as events:
            url = f"http://{streaming}:{wait_port(events)}/stream"
            seeds = [f"http://{address}:{port}/" for address in crawled]
            site = [f'hosts = ["{hinted}"]', f'event_stream = "{url}"']
            tables = {"politeness": f"host_delay_s = {load.delay_s}"}
            config = crawld_process.write_config(directory, SITE_NAME, seeds, tables, site)
            return trio.run(_window, config, prefix, load, share, progress)


async def _window(
    config: Path, prefix: str, load: HintLoad, share: float, progress: Progress
) -> Metrics:
    urls = [f"{prefix}{number}" for number in range(load.pages)]
    await fill_database(crawld_process.database_path(config.parent), urls)
    async with run_daemon_here(config) as daemon:
        progress(f"{load.hints_per_s:,} events per second, a share of {share:g} names stored pages")
        await _wait_position(daemon)
        await trio.sleep(load.warm_up_s)
        before = await _wait_position(daemon)
        cpu_s, at = time.process_time(), trio.current_time()
        metrics = await measure_window(daemon, load.window_s)
        cpu_share = (time.process_time() - cpu_s) / (trio.current_time() - at)
        after = await _wait_position(daemon, before.at)
        per_s = (after.number - before.number) / (after.at - before.at)
        return {**metrics, "events_per_s": per_s, "cpu_share": cpu_share}


class _StreamPosition(NamedTuple):
    """Number of the last event that the daemon read, and when it was stored."""

    number: int
    at: float


async def _wait_position(daemon: Daemon, later_than: float = 0.0) -> _StreamPosition:
    """Wait until a position later than a time is stored, and return it."""
    with trio.fail_after(_CONNECTED_S):
        while True:
            for row in await daemon.database.read(hint_source.list_sources):
                if (
                    row.kind == "event_stream"
                    and row.cursor
                    and (row.last_poll_at or 0.0) > later_than
                ):
                    return _StreamPosition(int(row.cursor), row.last_poll_at or 0.0)
            await trio.sleep(0.1)
