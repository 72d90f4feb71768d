"""`crawlctl dust`: rules by which URLs show the same page, and the operator's word on them."""

from __future__ import annotations

import time
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.cli.tables import listing
from crawld.core.display import ago_text, count_text, plural

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.dust import DustList, DustRuleStatus

NOTHING = "no rules; they are learnt on hosts of 100 pages and more"


class DustAction(StrEnum):
    """What `crawlctl dust` does."""

    LIST = "list"
    CONFIRM = "confirm"
    REVOKE = "revoke"
    FORGET = "forget"


def dust(
    session: Session,
    action: Annotated[
        DustAction,
        typer.Argument(
            help="list; confirm or revoke a rule; forget such a decision.",
        ),
    ] = DustAction.LIST,
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", help="Of the rule.", show_default=False)
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="ORIGIN", help="list: only of https://example.org.", show_default=False
        ),
    ] = None,
) -> None:
    """List the rules by which URLs show the same page, and decide on them.

    Of URLs with the same page one is visited; the others are hidden, and some of them are compared
    from time to time. A page that was seen to differ is visited whatever the rules say.
    """
    if action is DustAction.LIST:
        if number is not None:
            raise typer.BadParameter("NUMBER is not for list")
        response = session.client.get("/dust", origin=origin)
        session.show(response, partial(dust_table, now=time.time()))
        return
    if number is None or origin is not None:
        raise typer.BadParameter(f"name the rule alone: crawlctl dust {action.value} NUMBER")
    session.show_done(session.client.post(f"/dust/{action.value}", {"number": number}))


def dust_table(found: DustList, now: float) -> RenderableType:
    """Return rules and trials, one per line, and how many pages they hide."""
    headings = ("rule", "state", "since", "equal", "differing", "where", "what")
    rows = (
        (
            str(each.number),
            _state(each),
            ago_text(each.since, now),
            count_text(each.equal),
            count_text(each.differing),
            clean(f"{each.origin}/{each.section}"),
            clean(each.text),
        )
        for each in found.rules
    )
    table = listing(headings, rows, NOTHING)
    hidden = [
        f"{clean(origin)}: {plural(count, 'page')} hidden"
        for origin, count in sorted(found.hidden.items())
    ]
    return Group(table, *hidden)


def _state(rule: DustRuleStatus) -> str:
    return rule.status if rule.word is None else rule.word


COMMANDS = (dust,)
