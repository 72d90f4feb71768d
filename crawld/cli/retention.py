"""`crawlctl` on what is kept: copies held, pages taken down, what retention gives up."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from crawld.cli import tables
from crawld.cli.history import Call, When
from crawld.cli.output import clean
from crawld.core.display import ago_text, count_text, size_text
from crawld.daemon.api.schemas.retention import PinStatus, PurgeReport, PurgeStatus, QuotaStatus
from crawld.daemon.api.schemas.status import Done

Url = Annotated[str | None, typer.Argument(metavar="URL", show_default=False)]


def mount(command: Callable[[Callable[..., int | None]], object]) -> None:
    """Make the functions of this module commands."""
    for function in (pin, purge, retention):
        command(function)


def pin(
    call: Call,
    url: Url = None,
    *,
    at: Annotated[str | None, When] = None,
    release: Annotated[bool, typer.Option("--release", help="Show the newest copy again.")] = False,
) -> None:
    """Hold a page at the copy in force at a time; without a URL, show what is held."""
    if url is None:
        if at is not None or release:
            raise typer.BadParameter("name the page: URL")
        answer = call.client.get("/pins")
        call.show(answer, list[PinStatus], lambda pins: pins_table(pins, time.time()))
        return
    form: dict[str, object] = {"url": url, "at": at, "release": release}
    call.show(call.client.post("/pin", form), Done, lambda done: done.done)


def purge(
    call: Call,
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    reason: Annotated[
        str | None, typer.Option(help="Why, kept with the tombstone.", show_default=False)
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Let the pages in again; their copies are gone.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take pages down: out of copies, search, exports and backups to come, and kept out."""
    if not (release or yes):
        confirm_purge(urls)
    form: dict[str, object] = {"urls": urls, "reason": reason, "release": release}
    answer = call.client.post("/purge", form, patient=True)
    call.show(answer, PurgeReport, release_text if release else purge_table)


def retention(call: Call) -> None:
    """Show what the quotas hold, what would go first, and what the next run gives up."""
    answer = call.client.get("/retention")
    call.show(answer, list[QuotaStatus], retention_table)


def retention_table(quotas: list[QuotaStatus]) -> RenderableType:
    """Return quotas with what could go, in the order it would."""
    headings = ("of", "used", "quota", "in this order", "copies", "stored", "next run")
    rows = []
    for each in quotas:
        most = "none" if each.max_bytes is None else size_text(each.max_bytes)
        name = each.site or "the file"
        for place, held in enumerate(each.holdings):
            first = (name, size_text(each.used_bytes), most) if not place else ("", "", "")
            what = HOLDING_KINDS[held.kind]
            size = size_text(held.stored_bytes)
            fate = "goes, as far as needed" if held.goes else "stays"
            rows.append((*first, what, count_text(held.copies), size, fate))
    return Group(
        tables.table(headings, rows), "", "to carry it out now: crawlctl run-job retention"
    )


HOLDING_KINDS = {
    "superseded": "superseded copies",
    "needless": "images, styles, scripts that no page shows",
    "gone": "pages that have gone",
}
"""Classes of copies by name; the last copies of live pages and pinned ones are in none."""


def confirm_purge(urls: list[str]) -> None:
    """Ask a person whether to go on; a program must have said so."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("this cannot be undone: say --yes")
    what = urls[0] if len(urls) == 1 else f"{len(urls)} pages"
    typer.confirm(f"Remove every copy of {what} for good?", abort=True)


def release_text(report: PurgeReport) -> RenderableType:
    """Return which pages may come back."""
    return "\n".join(f"{clean(each.url)} may be found again" for each in report.pages)


def purge_table(report: PurgeReport) -> RenderableType:
    """Return what became of a take-down, and what it could not reach."""
    lines = [_purged_text(each) for each in report.pages]
    if not report.erased:
        lines.append("a reader holds the log: its bytes go when the daemon ends")
    lines += [f"made before, and still holds it: {clean(each)}" for each in report.copies]
    return "\n".join(lines)


def _purged_text(page: PurgeStatus) -> str:
    if not page.known:
        return f"{clean(page.url)} was not known; it is kept out from now on"
    text = f"{clean(page.url)}: {count_text(page.versions)} copies removed, kept out from now on"
    shown = [f"  shown at another address too: {clean(each)}" for each in page.same_at]
    return "\n".join([text, *shown])


def pins_table(pins: list[PinStatus], now: float) -> RenderableType:
    """Return the pages that are held, one a line."""
    headings = ("version", "of", "held since", "url")
    return tables.table(
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
    )
