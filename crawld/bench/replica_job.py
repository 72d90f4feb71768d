"""Measure the replicas job in a daemon of thousands of hosts: results, time, effect on fetches.

A daemon in this process revisits a web of replicas (in its own process). Its database is filled
with what a crawl of that web fetches, because the crawl itself is not measured. The lateness of
requests is measured without the job and while it runs; the verdicts are compared with the truth.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from crawld.bench import crawld_process
from crawld.bench.in_process_daemon import SITE_NAME, lateness_metrics, run_daemon_here
from crawld.bench.result import Metrics
from crawld.bench.run import Progress
from crawld.bench.simweb_process import run_simweb
from crawld.bench.stored_visit import first_visit
from crawld.core.units import DAY_S
from crawld.daemon.daemon import Daemon
from crawld.simweb.replica_host import ReplicaHost, loopback_addresses_of, replica_hosts
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import ReplicaWeb, make_web
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.replica import replica

_LIMIT_S = 600.0
_WRITE_HOSTS = 50


@dataclass(frozen=True, slots=True)
class JobScenario:
    """Size of the measurement.

    Attributes:
        hosts: number of hosts of the web.
        replicated: share of hosts in replica groups.
        pages: median number of pages per host.
        delay_s: delay between two requests to one host.
        window_s: length of the window without the job.
        seed: seed of the web.
    """

    hosts: int = 2_000
    replicated: float = 0.3
    pages: int = 15
    delay_s: float = 30.0
    window_s: float = 20.0
    seed: int = 0


def measure_job(scenario: JobScenario, progress: Progress) -> tuple[Metrics, Metrics]:
    """Return the metrics of the job, and the lateness of requests without it."""
    web = make_web(
        scale_web(STANDARD, scenario.hosts, scenario.replicated, scenario.pages), scenario.seed
    )
    arguments = ["--replica-hosts", str(scenario.hosts), "--replicated", str(scenario.replicated)]
    arguments += ["--pages", str(scenario.pages), "--seed", str(scenario.seed)]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with run_simweb(directory / "web", *arguments) as (_, port):
            return trio.run(_measure, directory, scenario, web, port, progress)


async def _measure(
    directory: Path, scenario: JobScenario, web: ReplicaWeb, port: int, progress: Progress
) -> tuple[Metrics, Metrics]:
    names = web.hosts.names
    addresses = dict(zip(names, loopback_addresses_of(web.hosts.addresses), strict=True))
    known = ", ".join(f'"{name}" = ["{address}"]' for name, address in addresses.items())
    tables = {
        "politeness": f"host_delay_s = {scenario.delay_s}\naddress_delay_s = 0.001",
        "schedule": 'min_revisit_s = 1.0\npolicy = "uniform"',
        "replicas": f"every_s = {DAY_S}\nstorm_share = 1.0",
        "dns": f"hosts = {{ {known} }}",
    }
    path = crawld_process.write_config(
        directory, SITE_NAME, [f"http://{name}:{port}/" for name in names], tables
    )
    progress(f"a database of {len(names):,} hosts and {len(web.hosts.page_host):,} pages")
    await _fill(crawld_process.database_path(directory), list(replica_hosts(web)), addresses, port)
    async with run_daemon_here(path) as daemon:
        await _run_job(daemon, trigger=False)
        before_mb = _peak_rss_mb()
        progress("requests without the job")
        await trio.sleep(scenario.delay_s)  # after a start, every host waits its delay first
        daemon.crawl.schedule.lateness.forget()
        await trio.sleep(scenario.window_s)
        calm = _lateness(daemon)
        metrics: Metrics = {}
        for name in ("first", "second"):
            progress(f"{name} run of the job")
            daemon.crawl.schedule.lateness.forget()
            began_s, began_cpu_s = time.monotonic(), time.process_time()
            await _run_job(daemon)
            metrics[f"{name}_run_s"] = time.monotonic() - began_s
            metrics[f"{name}_run_cpu_s"] = time.process_time() - began_cpu_s
            metrics |= {f"{name}_{key}": value for key, value in _lateness(daemon).items()}
        metrics |= await _verdicts(daemon, web)
        metrics["job_grows_mb"] = _peak_rss_mb() - before_mb
    return metrics, calm


def _lateness(daemon: Daemon) -> Metrics:
    return {**lateness_metrics(daemon), "requests": float(daemon.crawl.schedule.lateness.count)}


def _peak_rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _run_job(daemon: Daemon, *, trigger: bool = True) -> None:
    """Trigger the job and wait for its end; without `trigger`, wait for its own first run.

    Raises:
        trio.TooSlowError: it does not end in time.
    """
    before = await _finished_at(daemon)
    if trigger:
        daemon.background.jobs.run_soon("replicas")
    with trio.fail_after(_LIMIT_S):
        while await _finished_at(daemon) == before:  # noqa: ASYNC110 (state of the runner)
            await trio.sleep(0.1)


async def _finished_at(daemon: Daemon) -> float:
    states = {state.job.name: state for state in await daemon.background.jobs.states()}
    last = states["replicas"].last
    return (last.last_finished_at or 0.0) if last is not None else 0.0


# --- database ------------------------------------------------------------------------------------


async def _fill(
    path: Path, hosts: Sequence[ReplicaHost], addresses: dict[str, str], port: int
) -> None:
    """Make a database in which every page was visited a day ago."""
    at = time.time() - DAY_S
    async with await Database.open(path) as database:
        site_id = await database.write(site.upsert, SITE_NAME, "{}", source="config", at=at)
        for begin in range(0, len(hosts), _WRITE_HOSTS):
            some = hosts[begin : begin + _WRITE_HOSTS]
            shown = {
                f"http://{host.name}:{port}{target}": (host, target)
                for host in some
                for target in host.targets
            }
            found = [Discovery.of(url, site_id=site_id, at=at) for url in shown]
            records = []
            for page in await database.write(frontier.discover, found):
                host, target = shown[page.url]
                moved, html = host.redirect_url(target, port), host.html(target, port)
                records.append(first_visit(page.page_id, at, addresses[host.name], html, moved))
            await database.write(visit.record_all, records)


# --- verdicts ------------------------------------------------------------------------------------


async def _verdicts(daemon: Daemon, web: ReplicaWeb) -> Metrics:
    """Compare the daemon's verdicts with the truth."""
    rows = await daemon.database.read(replica.list_replicas)
    pruned = [row for row in rows if row.status == "pruned"]
    return {
        "copies": float((web.group >= 0).sum() - len(web.cause)),
        "pruned": float(len(pruned)),
        "pruned_wrongly": float(
            wrong_verdicts(web, [(row.host, row.canonical_host) for row in pruned])
        ),
        "held": float(len(rows) - len(pruned)),
        "resting_pages": float(sum(row.suspended for row in rows)),
    }


def wrong_verdicts(web: ReplicaWeb, pruned: Sequence[tuple[str, str]]) -> int:
    """Return how many pairs of a host and its original, both `name:port`, are no replicas."""
    group = dict(zip(web.hosts.names, web.group.tolist(), strict=True))
    pairs = [[group[host.rpartition(":")[0]] for host in pair] for pair in pruned]
    return sum(one != other or one < 0 for one, other in pairs)
