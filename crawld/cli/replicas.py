"""`crawlctl replicas`: hosts that are copies of others, questions about them, and the answers."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from functools import partial
from typing import Annotated, Final

import typer

from crawld.cli.client import Client
from crawld.cli.replica_tables import decision_text, replicas_table
from crawld.cli.response import read_response
from crawld.cli.session import Session

PART: Final = 1_000
"""Replicas, and pairs, in one response."""


class Action(StrEnum):
    """What `crawlctl replicas` does."""

    LIST = "list"
    CONFIRM = "confirm"
    REJECT = "reject"
    FORGET = "forget"
    PREFER = "prefer"


def replicas(
    session: Session,
    action: Annotated[
        Action,
        typer.Argument(
            help="list; confirm or reject that hosts are replicas; forget such an answer; prefer a "
            "host as canonical."
        ),
    ] = Action.LIST,
    host: Annotated[
        str | None,
        typer.Argument(metavar="HOST", help="A replica; list: any host.", show_default=False),
    ] = None,
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="Other host of the pair.", show_default=False),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="CANONICAL", help="All replicas of this host.", show_default=False),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="All replicas with such a name: '*.example.org'.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="list: each replica and judged pair; confirm: all that wait for their turn "
            "(storm_share).",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Change nothing; show which pages would rest and which of them differ.",
        ),
    ] = False,
) -> None:
    """List replicas (hosts with the same content as another), and answer questions about them.

    A replica's pages rest where the canonical host has the same text; pages that differ, and those
    that only the replica has, are visited as before. Lease: whether pages of the canonical host may
    be fetched from the replica (use_replicas).
    """
    given: dict[str, object] = {
        "--group": group,
        "--match": match,
        "--dry-run": dry_run or None,
        "OTHER": other,
    }
    if action is Action.LIST:
        _refuse(given, action)
        whole = every or host is not None
        found = every_part(session.client, host, every=every)
        session.show(found, partial(replicas_table, now=time.time(), whole=whole))
        return
    if action is Action.PREFER:
        _refuse({**given, "--all": every or None}, action)
        if host is None:
            raise typer.BadParameter("HOST is missing: crawlctl replicas prefer HOST")
        session.show_done(session.client.post("/replicas/prefer", {"host": host}))
        return
    form: dict[str, object] = {
        name: value
        for name, value in (("host", host), ("other", other), ("group", group), ("match", match))
        if value is not None
    }
    command = f"crawlctl replicas {action.value}"
    if every:
        if action is not Action.CONFIRM or form:
            raise typer.BadParameter("--all is only for list, and for confirm without hosts")
        target = f"/replicas/confirm-all{'?dry_run=true' if dry_run else ''}"
    else:
        if len({"host", "group", "match"} & set(form)) != 1:
            raise typer.BadParameter(
                f"name what it is about: {command} HOST, {command} --group CANONICAL, or "
                f"{command} --match PATTERN"
            )
        target, form["dry_run"] = f"/replicas/{action.value}", dry_run
    session.show(session.client.post(target, form), decision_text)


def every_part(client: Client, host: str | None, *, every: bool) -> bytes:
    """Return one response with the replicas and pairs of all parts."""
    query = {"host": host, "all": True if every else None, "limit": PART}
    body = client.get("/replicas", **query)
    found = read_response(body)
    count = max(found.replicas_in_all, found.pairs_in_all)
    if count <= PART:
        return body
    for start in range(PART, count, PART):
        part = read_response(client.get("/replicas", **query, start=start))
        found.replicas.extend(part.replicas)
        found.pairs.extend(part.pairs)
    return json.dumps(found, ensure_ascii=False).encode()


def _refuse(given: dict[str, object], action: Action) -> None:
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"{name} is not for {action.value}")


COMMANDS = (replicas,)
