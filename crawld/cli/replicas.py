"""`crawlctl replicas`: which hosts are copies of which, why, and the operator's word on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli import tables
from crawld.cli.history import Call
from crawld.cli.output import clean
from crawld.core.display import ago_text, count_text, duration_text
from crawld.daemon.api.schemas.replicas import PairStatus, Replicas, ReplicaStatus
from crawld.daemon.api.schemas.status import Done


class Action(StrEnum):
    """What to do."""

    LIST = "list"
    CONFIRM = "confirm"
    REJECT = "reject"
    PREFER = "prefer"


def mount(command: Callable[[Callable[..., int | None]], object]) -> None:
    """Make the function of this module a command."""
    command(replicas)


def replicas(
    call: Call,
    action: Annotated[
        Action, typer.Argument(help="list; confirm or reject a pair; prefer the host to keep.")
    ] = Action.LIST,
    host: Annotated[str | None, typer.Argument(metavar="HOST", show_default=False)] = None,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="The other host of the pair.", show_default=False),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="confirm: prune all that are held because they came at once."),
    ] = False,
) -> None:
    """Show replicas, hosts that show what others show, and why; say which verdicts are right.

    Leave: whether a replica may be asked for pages of the host it copies (use_replicas).
    """
    if every:
        if action is not Action.CONFIRM or host is not None:
            raise typer.BadParameter("--all goes with confirm, and without a host")
        call.show(call.client.post("/replicas/confirm-all", {}), Done, lambda done: done.done)
        return
    if action is Action.LIST:
        call.show(
            call.client.get("/replicas", host=host),
            Replicas,
            lambda r: replicas_table(r, time.time()),
        )
        return
    if host is None:
        raise typer.BadParameter(f"name the host: crawlctl replicas {action.value} HOST")
    form: dict[str, object] = {"host": host, "other": other}
    call.show(call.client.post(f"/replicas/{action.value}", form), Done, lambda done: done.done)


def replicas_table(found: Replicas, now: float) -> RenderableType:
    """Return replicas as a table, and below it the reasons of every pair."""
    if not found.replicas and not found.pairs:
        return "no replicas known; see: crawlctl jobs"
    parts: list[RenderableType] = [_table(found.replicas, now)] if found.replicas else []
    parts += [_pair_text(pair) for pair in found.pairs]
    return Group(*parts)


def _table(rows: list[ReplicaStatus], now: float) -> RenderableType:
    headings = ("host", "kept", "verdict", "since", "resting", "samples", "lag", "leave", "why")
    return tables.table(
        headings,
        (
            (
                clean(row.host),
                clean(row.canonical_host),
                row.status,
                ago_text(row.since, now),
                count_text(row.suspended),
                f"{row.agreed} of {row.sampled}" if row.sampled else "-",
                "-" if row.lag_s is None else duration_text(row.lag_s),
                "yes" if row.stands_in else "-",
                clean(row.reason),
            )
            for row in rows
        ),
    )


def _pair_text(pair: PairStatus) -> Text:
    said = f", {pair.word} by the operator" if pair.word else ""
    sure = "" if pair.probability is None else f", probability {pair.probability:.2f}"
    text = Text(f"\n{clean(pair.hosts[0])} = {clean(pair.hosts[1])}: {pair.level}{sure}{said}\n")
    text.append("  " + "; ".join(clean(reason) for reason in pair.reasons))
    return text
