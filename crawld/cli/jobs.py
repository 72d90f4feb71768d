"""`crawlctl` on what runs beside the crawl: jobs, and the wikis whose histories are read.

Commands as in `crawld/cli/history.py`: `mount` makes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import RenderableType

from crawld.cli.history import Call
from crawld.cli.output import clean
from crawld.cli.tables import table
from crawld.core.display import ago_text, count_text, duration_text
from crawld.daemon.api.schemas import status
from crawld.daemon.api.schemas.audit import FreshnessStatus


def mount(command: Callable[[Callable[..., int | None]], object]) -> None:
    """Make the functions of this module commands."""
    for function in (jobs, run_job, wikis, audit):
        command(function)


def jobs(call: Call) -> None:
    """Show the jobs: last run, next run, how far they are."""
    call.show(call.client.get("/jobs"), list[status.JobStatus], jobs_table)


def run_job(call: Call, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Run a job now instead of at its time."""
    answer = call.client.post(f"/jobs/{quote(name, safe='')}/run", {})
    call.show(answer, status.Done, lambda done: done.done)


def wikis(call: Call) -> None:
    """Show the MediaWikis whose API is asked, and how far their histories are read."""
    call.show(call.client.get("/wikis"), list[status.WikiStatus], wikis_table)


def audit(
    call: Call,
    *,
    site: Annotated[str | None, typer.Option("--site", help="Of this site only.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=731, help="So many days back.")] = 30,
) -> None:
    """Show how fresh the copies were found by random visits, day by day."""
    answer = call.client.get("/audits", site=site, days=days)
    call.show(answer, list[FreshnessStatus], audits_table)


def audits_table(found: list[FreshnessStatus]) -> RenderableType:
    """Return a line a site and day."""
    headings = ("day", "site", "audits", "fresh", "95 %", "model", "unknown")
    return table(
        headings,
        (
            (
                time.strftime("%Y-%m-%d", time.gmtime(each.since)),
                clean(each.site),
                count_text(each.audits),
                "" if each.freshness is None else f"{each.freshness:.1%}",
                "" if each.freshness is None else f"{each.low:.1%} to {each.high:.1%}",
                "" if each.modelled is None else f"{each.modelled:.1%}",
                count_text(each.unknown),
            )
            for each in found
        ),
    )


def _progress(counts: dict[str, int]) -> str:
    return ", ".join(f"{count_text(n)} {name}" for name, n in counts.items() if n)


def jobs_table(found: list[status.JobStatus]) -> RenderableType:
    """Return a line a job."""
    now = time.time()
    return table(
        ("job", "last run", "took", "result", "next", "progress"),
        [
            (
                each.name,
                "running" if each.running else ago_text(each.last_finished_at, now),
                duration_text(each.last_duration_s),
                clean(" ".join(filter(None, (each.result, each.detail)))),
                "" if each.next_run_at is None else duration_text(max(0, each.next_run_at - now)),
                _progress(each.progress),
            )
            for each in found
        ],
    )


def wikis_table(found: list[status.WikiStatus]) -> RenderableType:
    """Return a line a wiki."""
    return table(
        ("wiki", "site", "software", "pages", "requests", "changes", "trouble"),
        [
            (
                clean(each.api_url),
                clean(each.site),
                clean(each.generator),
                _progress(each.pages),
                count_text(each.request_count),
                count_text(each.change_count),
                clean(": ".join(filter(None, (each.trouble, each.trouble_detail)))),
            )
            for each in found
        ],
    )
