"""What the number of known pages costs: each visit, the start, the jobs, memory and the file.

Databases of growing size are made by the store's own functions. A daemon then revisits pages of a
thousand hosts as fast as it can, while the whole file is known and any page may be next; nginx
answers each with a 304. After that the daemon drains, and each of its jobs that reads all pages
runs alone. The smallest size is the baseline: where a visit costs the same at every size, its
ratio is 1.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import trio

from crawld.bench import crawld_process, nginx
from crawld.bench.crawld_process import DaemonProcess, visits_made
from crawld.bench.process import program_error
from crawld.bench.result import Metrics, build_result, figures, size_suffix
from crawld.bench.run import Progress
from crawld.bench.site_tree import SiteTree
from crawld.bench.start import ETAG, KNOWN_SITE, DatabaseSize, fill_known_pages, known_url
from crawld.errors import OperatorError
from crawld.simweb.demo import loopback_addresses

SIZES: Final = (10_000, 100_000, 1_000_000)
QUICK_SIZES: Final = (500, 1_000)

JOBS: Final = ("allocate", "estimate", "replicas", "dust", "retention", "refresh")
"""The jobs of the daemon that read pages or visits of all hosts."""

_VISITS, _QUICK_VISITS = 4_000, 100
_HOSTS, _QUICK_HOSTS = 1_000, 10
_LIMIT_S = 1_800.0
_JOB_LIMIT_S = 3_600.0
_PAGE = "/page.html"


@dataclass(frozen=True, slots=True)
class ScaleLoad:
    """How much is measured.

    Attributes:
        hosts: hosts of the pages.
        visits: revisits that are measured, after a quarter of them that is not.
    """

    hosts: int
    visits: int


def run(*, quick: bool, progress: Progress, known: int | None = None) -> dict[str, object]:
    """Measure one size, or each of `SIZES`.

    Raises:
        OperatorError: nginx is missing, or the daemon ended.
    """
    load = ScaleLoad(_QUICK_HOSTS, _QUICK_VISITS) if quick else ScaleLoad(_HOSTS, _VISITS)
    sizes = QUICK_SIZES if quick else SIZES
    if known is not None:
        if known <= sizes[0]:
            raise OperatorError(f"scale needs more than {sizes[0]:,} known pages")
        sizes = (sizes[0], known)
    ours: Metrics = {}
    smallest: Metrics = {}
    for pages in sizes:
        with tempfile.TemporaryDirectory(prefix="crawld-bench-") as folder:
            found = _measure(Path(folder), pages, load, progress)
        progress(f"{pages:,} pages: {figures(found)}")
        if pages == sizes[0]:
            smallest = found
        ours |= {name + size_suffix(pages): figure for name, figure in found.items()}
    baseline = {
        name + size_suffix(pages): figure
        for pages in sizes[1:]
        for name, figure in smallest.items()
    }
    return build_result("scale", [ours], {"smallest": [baseline]})


def _measure(folder: Path, pages: int, load: ScaleLoad, progress: Progress) -> Metrics:
    folder.chmod(0o711)  # nginx workers run as another user
    addresses = loopback_addresses(load.hosts)
    tree = _write_page(folder / "site", addresses)
    with nginx.serve(tree, folder / "nginx", fallback=_PAGE) as port:
        size = DatabaseSize(pages, load.hosts, unvisited_every=0, port=port, copies=True)
        config = crawld_process.write_config(
            folder,
            KNOWN_SITE,
            # Of each host: pages of others are out of the scope, and would be left out.
            [known_url(address, 0, port) for address in addresses],
            {
                "politeness": "host_delay_s = 0.0\naddress_delay_s = 0.0",
                "schedule": "min_revisit_s = 0.0",
            },
        )
        path = crawld_process.database_path(folder)
        progress(f"{pages:,} pages: filling a file")
        trio.run(fill_known_pages, path, size, addresses)
        found: Metrics = {"file_bytes_per_page": path.stat().st_size / pages}
        with crawld_process.run_daemon_process(config) as daemon:
            daemon.wait_answering()
            found["start_s"] = time.monotonic() - daemon.child.started_s
            found["start_cpu_s"] = daemon.child.cpu_s()
            found |= _revisits(daemon, load)
            daemon.command("/drain")
            for name in JOBS:
                found |= _job(daemon, name)
            usage = daemon.child.stop(signal.SIGTERM)
        return found | {"peak_rss_mb": usage.peak_rss_mb}


def _write_page(folder: Path, addresses: list[str]) -> SiteTree:
    """Write the page that each host shows at every path, with the ETag of the stored visits."""
    shown = folder / "shown"
    shown.mkdir(parents=True)
    modified_at, size = (int(part, 16) for part in ETAG.strip('"').split("-"))
    head, tail = b"<!doctype html><title>Page</title><p>", b"</p>"
    page = shown / _PAGE.strip("/")
    page.write_bytes(head + b"x " * ((size - len(head) - len(tail)) // 2) + tail)
    os.truncate(page, size)
    os.utime(page, (modified_at, modified_at))
    (shown / "robots.txt").write_text("User-agent: *\nDisallow:\n", encoding="utf-8")
    for address in addresses:
        (folder / address).symlink_to(shown)
    return SiteTree(folder, tuple(addresses))


def _revisits(daemon: DaemonProcess, load: ScaleLoad) -> Metrics:
    """Return the cost of revisits while every page is known."""
    warm = _wait_visits(daemon, load.visits // 4)
    cpu_s, at = daemon.child.cpu_s(), time.monotonic()
    done = _wait_visits(daemon, warm + load.visits) - warm
    cpu_s, wall_s = daemon.child.cpu_s() - cpu_s, time.monotonic() - at
    return {"revisit_cpu_ms": 1_000 * cpu_s / done, "revisits_per_s": done / wall_s}


def _wait_visits(daemon: DaemonProcess, count: int) -> int:
    until_s = time.monotonic() + _LIMIT_S
    while time.monotonic() < until_s and daemon.child.running(for_ms=200):
        if (status := daemon.status()) is not None:
            done = visits_made(status)
            if done >= count:
                return done
    raise program_error("crawld", f"did not make {count} visits", daemon.child)


def _job(daemon: DaemonProcess, name: str) -> Metrics:
    """Run a job alone and return what it cost; nothing if the daemon has no such job."""
    before = _job_state(daemon, name)
    if before is None:
        return {}
    _wait_job(daemon, name, None)
    cpu_s, last = daemon.child.cpu_s(), _job_state(daemon, name)
    daemon.command(f"/jobs/{name}/run")
    _wait_job(daemon, name, last)
    return {f"{name}_job_cpu_s": daemon.child.cpu_s() - cpu_s}


def _job_state(daemon: DaemonProcess, name: str) -> Mapping[str, object] | None:
    jobs = cast("list[Mapping[str, object]]", daemon.get("/jobs") or [])
    return next((job for job in jobs if job["name"] == name), None)


def _wait_job(daemon: DaemonProcess, name: str, last: Mapping[str, object] | None) -> None:
    """Wait until a job does not run, and has run since `last`."""
    until_s = time.monotonic() + _JOB_LIMIT_S
    while time.monotonic() < until_s and daemon.child.running(for_ms=100):
        state = _job_state(daemon, name)
        if state is None or state["running"]:
            continue
        if last is None or state["last_finished_at"] != last["last_finished_at"]:
            return
    raise program_error("crawld", f"did not end the job {name}", daemon.child)
