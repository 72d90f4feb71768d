"""`crawlctl jobs`, `run-job`, `wikis` and `audit`: background jobs and their results."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType

from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.cli.tables import listing, table
from crawld.core.display import ago_text, count_text, duration_text
from crawld.core.words import trouble_label

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status
    from crawld.daemon.api.schemas.status import AuditStatus

PROBLEMS_SHOWN = 20
"""Titles with a problem shown per part of a wiki; `--json` has more."""


def jobs(session: Session) -> None:
    """List the jobs: last run, next run, progress."""
    session.show(session.client.get("/jobs"), jobs_table)


def run_job(session: Session, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Run a job now."""
    response = session.client.post(f"/jobs/{quote(name, safe='')}/run", {})
    session.show_done(response)


def wikis(session: Session) -> None:
    """List the MediaWikis whose API is used, and the progress of reading their histories."""
    session.show(session.client.get("/wikis"), wikis_table)


def audit(
    session: Session,
    *,
    site: Annotated[str | None, typer.Option("--site", help="Only this site.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=731, help="Days to show.")] = 30,
) -> None:
    """Show the freshness measured by random visits, per day."""
    response = session.client.get("/audits", site=site, days=days)
    session.show(response, audits_table)


def audits_table(found: list[AuditStatus]) -> RenderableType:
    """Return measured freshness, one line per site and day."""
    headings = ("day", "site", "audits", "fresh", "95 %", "model", "unknown")
    return listing(
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
        "no audits in these days; random visits to pages that have a copy measure the freshness:"
        " [jobs] audit_share",
    )


def _progress(counts: dict[str, int]) -> str:
    return ", ".join(f"{count_text(n)} {name.replace('_', ' ')}" for name, n in counts.items() if n)


def jobs_table(found: list[status.JobStatus]) -> RenderableType:
    """Return the jobs, one per line."""
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
    """Return the wikis, one per line; then the titles of their parts, and those with a problem."""
    if not found:
        return "no wikis; a MediaWiki is found by the first visits to a site with api = true"
    parts = [part for each in found for part in each.parts]
    whole = table(
        ("wiki", "sites", "software", "pages", "requests", "changes", "trouble"),
        [
            (
                clean(each.api_url),
                clean(", ".join(each.sites)),
                clean(each.generator),
                _progress(each.pages),
                count_text(each.request_count),
                count_text(each.change_count),
                clean(": ".join(filter(None, (trouble_label(each.trouble), each.trouble_detail)))),
            )
            for each in found
        ],
    )
    if not parts:
        return whole
    titles = table(
        ("part of", "titles", "as listed"),
        [(clean(part.site), _progress(part.members), _progress(part.listed)) for part in parts],
    )
    problems = [
        f"{part.site}: {problem}" for part in parts for problem in part.problems[:PROBLEMS_SHOWN]
    ]
    return Group(whole, "", titles, *(["", *map(clean, problems)] if problems else ()))


COMMANDS = (jobs, run_job, wikis, audit)
