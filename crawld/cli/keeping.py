"""`crawlctl` on what is kept: copies held, pages taken down, what retention gives up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import RenderableType

from crawld.cli import tables
from crawld.cli.history import Call, When
from crawld.cli.output import ago_text, clean
from crawld.daemon.keeping_models import PinStatus
from crawld.daemon.models import Done

Url = Annotated[str | None, typer.Argument(metavar="URL", show_default=False)]


def mount(command: Callable[[Callable[..., int | None]], object]) -> None:
    """Make the functions of this module commands."""
    for function in (pin,):
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
