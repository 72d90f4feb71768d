"""`crawlctl quarantine`: pages that froze or killed the process, and their release."""

from __future__ import annotations

import time
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import ago_text

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.status import QuarantinedPage


class QuarantineAction(StrEnum):
    """What to do with a page in quarantine."""

    RELEASE = "release"


Action = Annotated[QuarantineAction | None, typer.Argument(metavar="[release]", show_default=False)]
Url = Annotated[str | None, typer.Argument(metavar="URL", show_default=False)]


def quarantine(session: Session, action: Action = None, url: Url = None) -> None:
    """List pages that froze or killed the process, stored without analysis; release URL."""
    if action is None:
        response = session.client.get("/quarantine")
        session.show(response, partial(quarantine_table, now=time.time()))
        return
    if url is None:
        raise typer.BadParameter("URL is missing")
    session.show_done(session.client.post("/quarantine/release", {"url": url}))


def quarantine_table(pages: list[QuarantinedPage], now: float) -> RenderableType:
    """Return what is in quarantine, one per line."""
    headings = ("state", "step", "found", "url")
    rows = (
        (
            "not analysed" if each.held else "suspect",
            each.step,
            ago_text(each.found_at, now),
            clean(each.url),
        )
        for each in pages
    )
    return tables.listing(headings, rows, "no pages; none has frozen or killed the process")


COMMANDS = (quarantine,)
