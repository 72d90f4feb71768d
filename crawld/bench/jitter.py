"""Slot jitter on many hosts at their full delay: how late requests are, and whether any is early.

A simulated web in its own process gives each host its own address of 127.0.0.0/8. The daemon does
all its normal work (robots.txt, links, fingerprint, store). After the warm-up, in which it visits
all hosts at once, its reported lateness (p99 of its last few thousand requests; median of all
readings) and its resource use are read. The ledger of the simulated web is independent evidence:
two requests to a host closer than the delay are `early_requests`; `jitter_ledger_p99_ms` is how
much a gap exceeds the delay, including the time of the previous response.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crawld.bench import crawld_process
from crawld.bench.process import program_error
from crawld.bench.result import Metrics
from crawld.bench.simweb_process import run_simweb
from crawld.simweb.demo import loopback_addresses
from crawld.simweb.ledger import Ledger

_POLL_MS = 5_000


@dataclass(frozen=True, slots=True)
class JitterLoad:
    """Size of the measurement.

    Attributes:
        hosts: number of hosts, each on its own address.
        delay_s: delay between two requests to one host.
        warm_up_s: time from the daemon's first response until the measurement starts.
        window_s: length of the measurement.
        pages: pages per host; few, so that most links are known after the warm-up, as in a crawl
            that has run for a while.
        page_bytes: planned page size.
    """

    hosts: int = 10_000
    delay_s: float = 15.0
    warm_up_s: float = 45.0
    window_s: float = 60.0
    pages: int = 20
    page_bytes: int = 6_000


def measure(directory: Path, load: JitterLoad) -> Metrics:
    """Crawl the hosts and return jitter, early requests, CPU share and memory."""
    directory = directory / "jitter"
    ledger_file = directory / "web" / "ledger.jsonl"
    arguments = ["--addresses", str(load.hosts), "--pages", str(load.pages)]
    arguments += ["--page-bytes", str(load.page_bytes), "--ledger", str(ledger_file)]
    with run_simweb(directory / "web", *arguments) as (web, port):
        seeds = [f"http://{address}:{port}/" for address in loopback_addresses(load.hosts)]
        tables = {"politeness": f"host_delay_s = {load.delay_s:.1f}"}
        config = crawld_process.write_config(directory, "many", seeds, tables)
        with crawld_process.run_daemon_process(config) as daemon:
            daemon.wait_answering()
            _wait_running(daemon, load.warm_up_s)
            since = time.time()
            metrics = _watch(daemon, load.window_s)
            daemon.child.stop(signal.SIGTERM)
        web.stop(signal.SIGTERM)
    return metrics | ledger_metrics(Ledger.read(ledger_file), load.delay_s, since)


def _wait_running(daemon: crawld_process.DaemonProcess, for_s: float) -> None:
    if not daemon.child.running(for_ms=int(1000 * for_s)):
        raise program_error("crawld", "ended too early", daemon.child)


def _watch(daemon: crawld_process.DaemonProcess, window_s: float) -> Metrics:
    """Read the lateness every few seconds, and CPU and memory over the whole window."""
    child = daemon.child
    began_s, cpu_s = time.monotonic(), child.cpu_s()
    polls = max(1, round(1000 * window_s / _POLL_MS))
    lateness_ms = []
    for _ in range(polls):
        _wait_running(daemon, window_s / polls)
        lateness_ms.append(_lateness_ms(daemon))
    return {
        "slot_jitter_p99_ms": median(lateness_ms),
        "jitter_cpu_share": (child.cpu_s() - cpu_s) / (time.monotonic() - began_s),
        "jitter_rss_mb": child.peak_rss_mb,
    }


def _lateness_ms(daemon: crawld_process.DaemonProcess) -> float:
    status = daemon.status()
    slots = status["slots"] if status is not None else None
    if not isinstance(slots, dict):
        raise program_error("crawld", "does not report the lateness of its slots", daemon.child)
    return float(slots["lateness_p99_ms"])


def ledger_metrics(ledger: Ledger, delay_s: float, since: float) -> Metrics:
    """Return early requests of the whole run, and the excess of gaps that end after the warm-up.

    Args:
        since: end of the warm-up, Unix seconds: the monotonic times of a ledger are those of the
            process that wrote it.
    """
    excess_s = sorted(
        gap_s - delay_s for _, gap_s, index in ledger.gaps() if ledger.row(index).at >= since
    )
    p99_s = excess_s[int(0.99 * (len(excess_s) - 1))] if excess_s else 0.0
    return {
        "early_requests": float(len(ledger.violations(delay_s=delay_s))),
        "jitter_ledger_p99_ms": 1000.0 * p99_s,
    }
