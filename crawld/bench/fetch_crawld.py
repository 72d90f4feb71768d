"""crawld's part of `crawld bench fetch`: mirror the site, then revisit it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from crawld.bench import crawld_process
from crawld.bench.process import measure_run, program_error, run_child
from crawld.bench.result import Metrics
from crawld.bench.served_site import PAGES_PER_CPU_S, ServedSite
from crawld.core.page import Outcome
from crawld.errors import OperatorError

_LIMIT_S = 1800.0
_POLL_MS = 500


def crawl(web: ServedSite, known: Path | None = None) -> Metrics:
    """Mirror the whole site like a new user; it ends when every copy is analysed and indexed.

    Args:
        known: a file to begin with a copy of; None: a new one.
    """
    return _mirror(web, "crawld", known)


def warm_up(web: ServedSite) -> None:
    """Mirror one page, so that the bytecode of every module exists before the first measurement."""
    directory = web.new_directory("warm-up")
    database = ["--db", str(crawld_process.database_path(directory))]
    seed = web.tree.seeds(web.port)[0]
    options = ["--delay", "0", "--max-pages", "1", "--once"]
    command = crawld_process.command("mirror", seed, *database, *options)
    measure_run(command, directory, limit_s=_LIMIT_S)


def store(web: ServedSite) -> Metrics:
    """Mirror the whole site and only store it, as the peers do."""
    metrics = _mirror(web, "crawld-stored", None, "--no-analysis", "--no-search")
    return {f"stored_{PAGES_PER_CPU_S}": metrics[PAGES_PER_CPU_S]}


def _mirror(web: ServedSite, name: str, known: Path | None, *options: str) -> Metrics:
    directory = web.new_directory(name)
    if known is not None:
        shutil.copyfile(known, crawld_process.database_path(directory))
    seeds = web.tree.seeds(web.port)
    limits = ["--delay", "0", "--depth", "50", "--max-pages", str(2 * web.tree.page_count)]
    database = ["--db", str(crawld_process.database_path(directory))]
    command = crawld_process.command("mirror", *seeds, *database, *limits, "--once", *options)
    with run_child(command, directory) as child:
        usage = child.wait(_LIMIT_S)
        stored = crawld_process.count_visits(directory)[Outcome.CHANGED]
        return web.crawl_metrics("crawld", stored, usage, child)


def revalidate(web: ServedSite) -> Metrics:
    """Run the daemon on the database of `crawl` until as many visits as pages found no change.

    The daemon revisits pages in a loop; pages visited twice count too, with their cost. It sends a
    few requests without conditions to check the server's validators; their outcomes count as they
    are.
    """
    directory = web.directory / "crawld"
    before = crawld_process.count_visits(directory)
    name = web.tree.addresses[0]  # `crawld mirror` has given the site this name
    tables = {"politeness": "host_delay_s = 0.0", "schedule": "min_revisit_s = 0.0"}
    seeds = web.tree.seeds(web.port)
    config = crawld_process.write_config(directory, name, seeds, tables)
    with crawld_process.run_daemon_process(config) as daemon:
        daemon.wait_answering()
        while daemon.child.running(for_ms=_POLL_MS):
            status = daemon.status()
            if status is not None and _unchanged(status["visits"]) >= web.tree.page_count:
                break
        usage = daemon.child.stop(signal.SIGTERM)
        if usage.exit_code:
            raise program_error("crawld", f"ended with {usage.exit_code}", daemon.child)
    after = crawld_process.count_visits(directory)
    done = _unchanged(after) - _unchanged(before)
    if sum(after.values()) - sum(before.values()) != done or done < web.tree.page_count:
        raise OperatorError(f"not every revisit found its page unchanged: {before}, then {after}")
    return {"revalidations_per_cpu_s": done / usage.cpu_s}


def _unchanged(counts: object) -> int:
    if not isinstance(counts, Mapping):
        return 0
    return sum(int(counts.get(each, 0)) for each in (Outcome.NOT_MODIFIED, Outcome.UNCHANGED))
