"""`crawlctl pin`, `purge` and `retention`: control which copies are kept and deleted."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from crawld.cli import tables
from crawld.cli.history import When
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import ago_text, count_text, size_text

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.retention import PinStatus, PurgeReport, PurgeStatus, QuotaStatus

Url = Annotated[str | None, typer.Argument(metavar="URL", show_default=False)]


def pin(
    session: Session,
    url: Url = None,
    *,
    at: Annotated[str | None, When] = None,
    release: Annotated[bool, typer.Option("--release", help="Remove the pin.")] = False,
) -> None:
    """Pin a page to the version valid at a time; without a URL, list the pins."""
    if url is None:
        if at is not None or release:
            raise typer.BadParameter("URL is missing")
        response = session.client.get("/pins")
        session.show(response, partial(pins_table, now=time.time()))
        return
    form: dict[str, object] = {"url": url, "at": at, "release": release}
    session.show_done(session.client.post("/pin", form))


def purge(
    session: Session,
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    reason: Annotated[
        str | None, typer.Option(help="Reason, stored with the deleted URLs.", show_default=False)
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Unblock the URLs; their copies stay deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete every copy of pages, from search and exports too, and block the URLs."""
    if not (release or yes):
        confirm_purge(urls)
    form: dict[str, object] = {"urls": urls, "reason": reason, "release": release}
    response = session.client.post("/purge", form, patient=True)
    session.show(response, release_text if release else purge_table)


def retention(session: Session) -> None:
    """Show quota use, and which copies the next retention run deletes."""
    response = session.client.get("/retention")
    session.show(response, retention_table)


def retention_table(quotas: list[QuotaStatus]) -> RenderableType:
    """Return the quotas and the deletable copies of each, in the order of deletion."""
    headings = ("quota of", "used", "quota", "deletion order", "copies", "stored", "next run")
    rows = []
    for each in quotas:
        most = "none" if each.max_bytes is None else size_text(each.max_bytes)
        name = each.site or "the file"
        for index, held in enumerate(each.holdings):
            first = (name, size_text(each.used_bytes), most) if not index else ("", "", "")
            kind = HOLDING_KINDS[held.kind]
            size = size_text(held.stored_bytes)
            fate = "deleted as needed" if held.goes else "kept"
            rows.append((*first, kind, count_text(held.copies), size, fate))
    return Group(tables.table(headings, rows), "", "to run it now: crawlctl run-job retention")


HOLDING_KINDS = {
    "superseded": "superseded versions",
    "needless": "requisites that no page uses",
    "gone": "pages that are gone",
}
"""Kinds of deletable copies; none includes pinned versions or the last version of a live page."""


def confirm_purge(urls: list[str]) -> None:
    """Ask for confirmation on a terminal; elsewhere `--yes` is required."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("this cannot be undone; add --yes")
    what = urls[0] if len(urls) == 1 else f"{len(urls)} pages"
    typer.confirm(f"Delete every copy of {what} permanently?", abort=True)


def release_text(report: PurgeReport) -> RenderableType:
    """Return which pages are admitted again."""
    return "\n".join(f"{clean(each.url)} may be crawled again" for each in report.pages)


def purge_table(report: PurgeReport) -> RenderableType:
    """Return the result of a purge, and the older backups that still hold the pages."""
    lines = [_purged_text(each) for each in report.pages]
    if not report.erased:
        lines.append("a reader holds the write-ahead log; its bytes go when the daemon stops")
    lines += [f"older backup, not purged: {clean(each)}" for each in report.copies]
    return "\n".join(lines)


def _purged_text(page: PurgeStatus) -> str:
    if not page.known:
        return f"{clean(page.url)}: unknown page, blocked from now on"
    text = f"{clean(page.url)}: {count_text(page.versions)} versions deleted, blocked from now on"
    return "\n".join([text, *(f"  same content at: {clean(each)}" for each in page.same_at)])


def pins_table(pins: list[PinStatus], now: float) -> RenderableType:
    """Return the pinned pages, one per line."""
    headings = ("version", "fetched", "pinned", "url")
    return tables.listing(
        headings,
        (
            (
                str(each.version_id),
                ago_text(each.visited_at, now),
                ago_text(each.pinned_at, now),
                clean(each.url),
            )
            for each in pins
        ),
        "no page is pinned; to show one as it was at a time: crawlctl pin URL --at TIME",
    )


COMMANDS = (pin, purge, retention)
