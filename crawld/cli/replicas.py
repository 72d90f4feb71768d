"""`crawlctl replicas`: hosts that are copies of others, the evidence, the operator's verdict."""

from __future__ import annotations

import time
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import ago_text, count_text, duration_text

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.replicas import PairStatus, Replicas, ReplicaStatus


class Action(StrEnum):
    """What `crawlctl replicas` does."""

    LIST = "list"
    CONFIRM = "confirm"
    REJECT = "reject"
    PREFER = "prefer"


def replicas(
    session: Session,
    action: Annotated[
        Action, typer.Argument(help="list; confirm or reject a pair; prefer a host as canonical.")
    ] = Action.LIST,
    host: Annotated[str | None, typer.Argument(metavar="HOST", show_default=False)] = None,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="Other host of the pair.", show_default=False),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="confirm: prune all that wait because of storm_share at the next search."
        ),
    ] = False,
) -> None:
    """List replicas (hosts with the same content as another) and the evidence; correct verdicts.

    Lease: whether pages of the canonical host may be fetched from the replica (use_replicas).
    """
    if every:
        if action is not Action.CONFIRM or host is not None:
            raise typer.BadParameter("--all is only for confirm without a host")
        session.show_done(session.client.post("/replicas/confirm-all", {}))
        return
    if action is Action.LIST:
        response = session.client.get("/replicas", host=host)
        session.show(response, partial(replicas_table, now=time.time()))
        return
    if host is None:
        raise typer.BadParameter(f"HOST is missing: crawlctl replicas {action.value} HOST")
    form: dict[str, object] = {"host": host, "other": other}
    session.show_done(session.client.post(f"/replicas/{action.value}", form))


def replicas_table(found: Replicas, now: float) -> RenderableType:
    """Return replicas as a table, followed by the evidence of every pair."""
    if not found.replicas and not found.pairs:
        return "no replicas found so far; see: crawlctl jobs"
    parts: list[RenderableType] = [_table(found.replicas, now)] if found.replicas else []
    parts += [_pair_text(pair) for pair in found.pairs]
    return Group(*parts)


def _table(rows: list[ReplicaStatus], now: float) -> RenderableType:
    headings = (
        "host", "canonical", "verdict", "since", "suspended", "samples", "lag", "lease", "reason",
    )  # fmt: skip
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
    verdict = f", {pair.word} by the operator" if pair.word else ""
    odds = "" if pair.probability is None else f", probability {pair.probability:.2f}"
    text = Text(f"\n{clean(pair.hosts[0])} = {clean(pair.hosts[1])}: {pair.level}{odds}{verdict}\n")
    text.append("  " + "; ".join(clean(reason) for reason in pair.reasons))
    return text


COMMANDS = (replicas,)
