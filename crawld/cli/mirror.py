"""`crawld mirror URL...`: run a daemon without a config file and show its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import structlog
import trio

from crawld.cli.logs import configure_logs
from crawld.cli.output import clean, json_text
from crawld.cli.progress_view import (
    REDRAW_S,
    RateMeter,
    progress_fields,
    read_progress,
    resting_hosts,
    stuck_text,
)
from crawld.cli.summary import MirrorSummary, read_summary
from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.config.site import SiteConfig
from crawld.core.display import count_text, duration_text, plural, size_text
from crawld.core.words import FAILURE_WORDS, label, outcome_counts
from crawld.daemon.daemon import Daemon
from crawld.daemon.process import return_heap_memory
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, StoreError
from crawld.store.engine.connection import open_connection, store_error
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier.caps import SITE_CAP
from crawld.store.versions.finish_copies import CopyFinisher

log = structlog.get_logger(__name__)

REPORT_S = 5.0
"""Time between two lines of progress without a terminal."""

IDLE_REPORT_S = 600.0
"""The same while there are no visits."""


def mirror(config: Config, *, once: bool, as_json: bool) -> int:
    """Mirror until interrupted, or with `once` until done; return the exit code."""
    _, seeds = check_config(config)
    start = Start(config=config, seeds=seeds, source="command_line", once=once, own_process=True)
    configure_logs(style="console", level=lambda: "info")
    return trio.run(_mirror, start, as_json)


async def _mirror(start: Start, as_json: bool) -> int:
    began_s, began_at = trio.current_time(), time.time()
    watch = watch_lines
    if sys.stderr.isatty():
        from crawld.cli.mirror_view import watch_live

        watch = watch_live
    daemon = await run_daemon(start, watch)
    return_heap_memory()  # what follows takes as much again, and must not come on top
    resting = resting_hosts(daemon)
    db, site = start.config.daemon.db, start.config.sites[0]
    counts = await read_summary(db, site, began_at)
    content = start.config.content
    leave = partial(leave_one_file, db, index=content.search, analyse=content.analyse)
    trouble = await trio.to_thread.run_sync(leave if start.once else partial(leave_one_file, db))
    summary = summary_json(daemon, counts, resting, trio.current_time() - began_s)
    summary["limits"] = limits_met(site, counts)
    print(json_text(summary) if as_json else summary_text(summary, counts.examples))
    if trouble and start.once and content.search:
        hint = f"crawld index --db {db} makes the copies searchable"
        print(f"warning: {clean(trouble)}; {hint}", file=sys.stderr)
    return EXIT_INCOMPLETE if start.once and not counts.complete else EXIT_OK


# --- watching --------------------------------------------------------------------------------


async def watch_lines(daemon: Daemon) -> None:
    """Log progress at intervals until cancelled, rarely while there are no visits."""
    rates = RateMeter()
    rates.add(trio.current_time(), 0, 0)
    logged, silent_s, stuck = 0, 0.0, False
    while True:
        await trio.sleep(REDRAW_S if not (logged or stuck) else REPORT_S)
        progress = await read_progress(daemon)
        rates.add(trio.current_time(), progress.visit_count, progress.wire_bytes)
        if progress.stuck and not stuck:
            log.warning("nothing_can_be_fetched", why=stuck_text(progress.stuck))
            stuck = True
        silent_s += REPORT_S if logged or stuck else REDRAW_S
        due = silent_s >= REPORT_S and progress.visit_count > logged
        if due or silent_s >= IDLE_REPORT_S:
            log.info("progress", **progress_fields(progress, rates))
            logged, silent_s = progress.visit_count, 0.0


# --- the end ---------------------------------------------------------------------------------


def leave_one_file(path: Path, *, index: bool = False, analyse: bool = False) -> str:
    """Finish the copies as far as wanted, and leave no log beside the file.

    Args:
        index: whether to index the copies, so that a search finds them.
        analyse: whether to analyse first copies that were only stored.

    Returns:
        Why the copies are not indexed; empty: they are.
    """
    try:
        with DatabaseLock.acquire(path), closing(open_connection(path)) as connection:
            finisher, more = CopyFinisher(connection, index=index, analyse=analyse), True
            while more:
                with connection:
                    more = finisher.finish_slice()
            with suppress(apsw.BusyError):  # the last reader of the file removes its log
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.Error, StoreError) as error:
        known = store_error(error, path) if isinstance(error, apsw.Error) else error
        return known.message
    return ""


def limits_met(site: SiteConfig, counts: MirrorSummary) -> list[str]:
    """Return which limits of the command line left pages out, and the options that raise them."""
    texts = []
    if SITE_CAP in counts.refused and site.max_pages is not None:
        texts.append(
            f"the limit of {plural(site.max_pages, 'page')} left further links out; to raise it:"
            f" --max-pages {10 * site.max_pages}"
        )
    if "depth" in counts.refused and site.max_depth is not None:
        texts.append(
            f"links more than {plural(site.max_depth, 'step')} from the start were not followed;"
            f" to follow one more: --depth {site.max_depth + 1}"
        )
    return texts


def summary_json(
    daemon: Daemon, counts: MirrorSummary, resting: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Return the summary of a mirror as JSON types."""
    crawl = daemon.crawl
    return {
        "db": str(daemon.database.path),
        "complete": counts.complete,
        "pages_in_all": counts.pages.total(),
        "pages": {state.value: n for state, n in counts.pages.items()},
        "held_back": counts.unvisited,
        "resting_hosts": dict(resting),
        "failed": counts.failed.total(),
        "failed_by_reason": dict(counts.failed),
        "visits": {outcome.value: n for outcome, n in crawl.visitor.counts.items()},
        "new_pages": crawl.visitor.new_pages,
        "wire_bytes": crawl.visitor.wire_bytes,
        "duration_s": round(seconds, 3),
    }


def summary_text(summary: Mapping[str, Any], examples: Sequence[tuple[str, str]]) -> str:
    """Return the summary as text, with a few of the failed pages."""
    pages, visits = summary["pages"], summary["visits"]
    lines = [
        f"{summary['db']}: {plural(pages.get('visited', 0), 'page')} visited,"
        f" {count_text(summary['failed'])} of them failed,"
        f" {count_text(summary['held_back'])} never visited,"
        f" {count_text(pages.get('excluded', 0))} excluded by robots.txt",
        f"{plural(sum(visits.values()), 'visit')} in {duration_text(summary['duration_s'])}:"
        f" {outcome_counts(visits, summary['new_pages'])}; {size_text(summary['wire_bytes'])}",
        *(f"failed: {clean(url)} ({label(FAILURE_WORDS, reason)})" for url, reason in examples),
        *(f"not fetched: {host} ({why})" for host, why in summary["resting_hosts"].items()),
        *summary["limits"],
    ]
    return "\n".join(lines)
