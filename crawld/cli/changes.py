"""`crawlctl changes`: what changed, as it happens if asked."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, NoReturn, Protocol

import typer

from crawld.cli.console import console
from crawld.cli.output import clean, printable_json
from crawld.cli.response import read_response
from crawld.cli.session import Session
from crawld.core.display import LAST_AT, iso_text
from crawld.errors import UnreachableError

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.changes import Changes, ChangeStatus

SHOWN = 20
"""Newest changes that are shown where no time is given."""

AT_ONCE = 1000
"""Changes of one response."""

FOLLOW_INTERVAL_S = 0.5
"""Time between two questions of `--follow`."""

TITLE_CHARACTERS = 80

NONE_YET = "no changes yet; the first copies of pages begin the list: crawlctl status"
NONE_SELECTED = "no such changes; all of them: crawlctl changes"


class Ask(Protocol):
    """Asks the daemon for changes, within the filter of the command."""

    def __call__(self, **more: object) -> Changes:
        """Return changes; the arguments are parameters of the route."""
        ...


def changes(
    session: Session,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="All changes since 2026-11-01, or 3h ago.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", help="Only this site.", show_default=False)
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Only this page.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="Only new, changed, moved, gone, back; with commas.", show_default=False
        ),
    ] = None,
    size: Annotated[
        float | None,
        typer.Option("--size", help="Only changes of so many per cent.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=10_000, help="Maximum number of rows.", show_default=False
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new changes.")] = False,
) -> None:
    """Show what changed, oldest first; --json prints JSON lines."""
    asked = {"site": site, "url": url, "kind": kind, "size": size}

    def ask(**more: object) -> Changes:
        found: Changes = read_response(session.client.get("/changes", **asked, **more))
        return found

    with contextlib.suppress(KeyboardInterrupt):
        if since is None:
            last_id, shown = _print_newest(session, ask, limit or SHOWN)
        else:
            last_id, shown = _print_since(session, ask, since, limit)
        if not shown and not session.as_json:
            selected = since is not None or any(each is not None for each in asked.values())
            console().print(NONE_SELECTED if selected else NONE_YET)
        if follow:
            _follow(session, ask, last_id)


def _print_newest(session: Session, ask: Ask, limit: int) -> tuple[int, int]:
    """Print the newest changes; return the id after which later ones lie, and how many."""
    found = ask(limit=limit)
    events, first = found.events, found.last_id
    # A list by size ends after some thousand events, whether they fit or not.
    while not found.ended and len(events) < limit:
        found = ask(limit=limit - len(events), before=found.last_id)
        events += found.events
    _print(session, events[::-1])
    return events[0].event_id if events else first, len(events)


def _print_since(session: Session, ask: Ask, since: str, limit: int | None) -> tuple[int, int]:
    """Print changes since a time; return the id after which later ones lie, and how many."""
    most = limit or sys.maxsize
    last_id, shown, ended = 0, 0, False
    while shown < most and not ended:
        found = ask(since=since, after=last_id, limit=min(most - shown, AT_ONCE))
        _print(session, found.events)
        last_id, ended = found.last_id, found.ended
        shown += len(found.events)
    return last_id, shown


def _follow(session: Session, ask: Ask, last_id: int) -> NoReturn:
    """Print changes as they come; a daemon that restarts is waited for."""
    waits = False
    while True:
        try:
            found = ask(after=last_id, limit=AT_ONCE)
        except UnreachableError as error:
            if not waits:
                print(f"{error.message}; waiting for it", file=sys.stderr)
            waits = True
        else:
            waits = False
            _print(session, found.events)
            last_id = found.last_id
            if not found.ended:
                continue
        time.sleep(FOLLOW_INTERVAL_S)


def _print(session: Session, events: list[ChangeStatus]) -> None:
    out = console()
    for event in events:
        if session.as_json:
            print(printable_json(json.dumps(event, ensure_ascii=False, separators=(",", ":"))))
        else:
            out.print(change_line(event), soft_wrap=True, markup=False, highlight=False)
    sys.stdout.flush()


def change_line(event: ChangeStatus) -> str:
    """Return a change as a line: time, kind, size, site, URL, title."""
    share = event.difference
    size = "" if share is None else "<1 %" if share < 0.005 else f"{100 * share:.0f} %"
    target = f" -> {event.target_url}" if event.target_url else ""
    title = f"  {event.title[:TITLE_CHARACTERS]}" if event.title else ""
    when = iso_text(min(max(event.at, 0.0), LAST_AT))
    return clean(f"{when} {event.kind:<7} {size:>5}  {event.site}  {event.url}{target}{title}")


COMMANDS = (changes,)
