"""`crawlctl notify`: the rules of notification, what became of their messages, test messages."""

from __future__ import annotations

import time
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.console import RenderableType

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import ago_text, count_text, duration_text
from crawld.errors import EXIT_OK, EXIT_OPERATOR

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.notify import NotifyStatus, NotifyTest


class NotifyAction(StrEnum):
    """What to do about a rule of notification."""

    LIST = "list"
    TEST = "test"
    RETRY = "retry"


Action = Annotated[NotifyAction, typer.Argument(metavar="[list|test|retry]", show_default=False)]
Name = Annotated[str | None, typer.Argument(metavar="NAME", show_default=False)]


def notify(session: Session, action: Action = NotifyAction.LIST, name: Name = None) -> int:
    """List the notifications; test NAME sends a test message, retry NAME sends what waits now."""
    if action is NotifyAction.LIST:
        table = partial(notify_table, now=time.time())
        session.show(session.client.get("/notify"), table)
        return EXIT_OK
    if name is None:
        raise typer.BadParameter("NAME of the notification is missing")
    path = f"/notify/{quote(name, safe='')}/{action.value}"
    if action is NotifyAction.RETRY:
        session.show_done(session.client.post(path, {}))
        return EXIT_OK
    sent = session.show(session.client.post(path, {}, patient=True), result_text)
    return EXIT_OK if sent.delivered else EXIT_OPERATOR


def result_text(sent: NotifyTest) -> str:
    """Return what became of a test message."""
    trouble = clean(sent.trouble)
    if not sent.delivered:
        return f"{sent.name}: not delivered: {trouble}"
    return f"{sent.name}: delivered" + (f", but {trouble}" if trouble else "")


def notify_table(rules: list[NotifyStatus], now: float) -> RenderableType:
    """Return the rules, one per line."""
    if not rules:
        return "no notifications: add [[notify]] to the config and reload"
    headings = ("name", "receiver", "when", "delivered", "last", "waiting", "next", "trouble")
    return tables.table(headings, ([*_cells(each, now)] for each in rules))


def _cells(rule: NotifyStatus, now: float) -> tuple[str, ...]:
    given_up = f"{count_text(rule.events_given_up)} given up" if rule.events_given_up else ""
    trouble = clean(rule.trouble)
    if rule.trouble and rule.tries:
        trouble += f" ({count_text(rule.tries)}x)"
    return (
        rule.name,
        clean(rule.receiver),
        rule.when,
        count_text(rule.events_delivered),
        ago_text(rule.delivered_at, now),
        count_text(rule.waiting),
        _next_text(rule, now),
        "; ".join(filter(None, (trouble, given_up))),
    )


def _next_text(rule: NotifyStatus, now: float) -> str:
    times = [at for at in (rule.next_try_at, rule.due_at) if at is not None]
    if not rule.waiting or not times:
        return ""
    left_s = (rule.next_try_at if rule.next_try_at is not None else times[0]) - now
    return "now" if left_s <= 0.0 else f"in {duration_text(left_s)}"


COMMANDS = (notify,)
