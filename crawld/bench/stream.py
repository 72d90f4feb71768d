"""`crawld bench stream`: a flood of an event stream, and whether fetch slots keep their instants.

A daemon in this process crawls many hosts of a simulated web, while a stream (a process of its own)
offers it 10,000 events a second over a socket. Once they are those of a farm of wikis, of which one
in twenty names a page held, and once all of them do. How many are read and how late requests leave
stands beside the same with one event a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import trio

from crawld.bench import crawld_process
from crawld.bench.hints import HintLoad, fill_database, measure_window, run_daemon_here, wait_port
from crawld.bench.process import run_child
from crawld.bench.result import Metrics, build_result
from crawld.daemon.daemon import Daemon
from crawld.simweb.demo import loopback_addresses
from crawld.store.changes import hint_source

SHARES = {"farm": 0.05, "all_held": 1.0, "no_events": 0.0}
"""Share of the events that name pages held; the last is without any event to speak of."""

_CONNECTED_S = 60.0


def run(*, quick: bool, progress: Callable[[str], None]) -> dict[str, object]:
    """Measure and return the value of `result.answer`; figures of a quick run mean little."""
    flood = HintLoad(hosts=20, pages=2_000, warm_up_s=2.0, window_s=3.0) if quick else HintLoad()
    runs: dict[str, list[Metrics]] = {name: [] for name in SHARES}
    for _ in range(1 if quick else 3):
        for name, share in SHARES.items():
            with tempfile.TemporaryDirectory() as folder:
                runs[name].append(_measure(Path(folder), flood, share, progress))
    idle = runs["no_events"]
    for name in ("farm", "all_held"):
        runs[name] = [_with_cost(heard, base) for heard, base in zip(runs[name], idle, strict=True)]
    return build_result("stream", runs.pop("farm"), runs)


def _with_cost(heard: Metrics, idle: Metrics) -> Metrics:
    """Return metrics with the events that a second of processor time reads, the crawl left out."""
    spent = max(heard["cpu_share"] - idle["cpu_share"], 1e-3)
    return {**heard, "events_per_cpu_s": heard["events_per_s"] / spent}


def _measure(room: Path, flood: HintLoad, share: float, progress: Callable[[str], None]) -> Metrics:
    (room / "web").mkdir()
    (room / "stream").mkdir()
    *crawled, told, teller = loopback_addresses(flood.hosts + 2)
    web = [sys.executable, "-m", "crawld.simweb", "--addresses", str(flood.hosts + 1)]
    with run_child([*web, "--pages", "200", "--page-bytes", "3000"], room / "web") as pages:
        port = wait_port(pages)
        stem = f"http://{told}:{port}/told/"
        command = [sys.executable, "-m", "crawld.bench.event_server", "--host", teller]
        command += ["--told", stem, "--pages", str(flood.pages), "--share", str(share)]
        command += ["--per-s", str(flood.hints_per_s if share else 1)]
        with run_child(command, room / "stream") as events:
            url = f"http://{teller}:{wait_port(events)}/stream"
            seeds = [f"http://{address}:{port}/" for address in crawled]
            site = [f'hosts = ["{told}"]', f'event_stream = "{url}"']
            tables = {"politeness": f"host_delay_s = {flood.delay_s}"}
            path = crawld_process.write_config(room, "web", seeds, tables, site)
            return trio.run(_windows, path, stem, flood, share, progress)


async def _windows(
    path: Path, stem: str, flood: HintLoad, share: float, progress: Callable[[str], None]
) -> Metrics:
    urls = [f"{stem}{number}" for number in range(flood.pages)]
    await fill_database(crawld_process.database_path(path.parent), urls)
    async with run_daemon_here(path) as daemon:
        progress(f"{flood.hints_per_s:,} events a second, a share of {share:g} of pages held")
        await _until(daemon)
        await trio.sleep(flood.warm_up_s)
        before = await _until(daemon)
        cpu_s, at = time.process_time(), trio.current_time()
        metrics = await measure_window(daemon, flood)
        cpu_share = (time.process_time() - cpu_s) / (trio.current_time() - at)
        after = await _until(daemon, before.at)
        per_s = (after.number - before.number) / (after.at - before.at)
        return {**metrics, "events_per_s": per_s, "cpu_share": cpu_share}


class _StreamPosition(NamedTuple):
    """How far the stream has been read: number of its last event, and when that was stored."""

    number: int
    at: float


async def _until(daemon: Daemon, later_than: float = 0.0) -> _StreamPosition:
    """Return how far the stream has been read, as soon as it is, or is further."""
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
