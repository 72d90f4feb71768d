"""`crawlctl`: control a running crawld over its socket.

Every command prints a table, or with `--json` the daemon's response. The three global options may
come before or after the command.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints
from urllib.parse import quote

import typer

from crawld.cli import (
    changes,
    dust,
    forecast,
    hints,
    history,
    jobs,
    notify,
    quarantine,
    replicas,
    retention,
    status_table,
    tables,
    top,
    why,
)
from crawld.cli.console import console
from crawld.cli.light_commands import LightCommand, LightGroup
from crawld.cli.output import printable_json, with_exit_code
from crawld.cli.response import read_response
from crawld.cli.session import Session
from crawld.cli.version import print_version
from crawld.core.display import iso_text
from crawld.core.page import Outcome, PageState
from crawld.core.units import DAY_S
from crawld.errors import EXIT_OK, EXIT_OPERATOR

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status as models

FOLLOW_INTERVAL_S = 0.5
"""Time between two polls of `log --follow`."""

FOLLOW_LIMIT = 1000
"""Visits per poll."""

Socket = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        help="Control socket. Default: CRAWLD_SOCKET, next to --db, or ./crawld.sock.",
        show_default=False,
    ),
]
Db = Annotated[
    Path | None,
    typer.Option("--db", help="Database of the daemon.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Watch = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        min=0.2,
        max=DAY_S,
        help="Show it again at intervals, by default of 2 s; q quits.",
        show_default=False,
    ),
]
GLOBAL_OPTIONS = {"socket": Socket, "db": Db, "json_out": Json}

WATCHED = frozenset(
    {"status", "sites", "hosts", "host", "pages", "history", "jobs", "wikis", "audit", "hints"}
    | {"replicas", "dust", "retention", "quarantine", "forecast"}
)
"""Commands that have `--watch`: they show what the daemon knows, and change nothing by default."""

app = typer.Typer(
    cls=LightGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Control a running crawld.",
)


@app.callback()
def global_options(
    context: typer.Context,
    *,
    socket: Socket = None,
    db: Db = None,
    json_out: Json = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Control a running crawld."""
    context.obj = (socket, db, json_out)


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Register a function of a `Session` as a command with the global options."""

    @functools.wraps(function)
    def run(context: typer.Context, **given: object) -> int | None:
        # An option after the command overrides the same option before it.
        common = [
            given.pop(name) or before
            for name, before in zip(GLOBAL_OPTIONS, context.obj, strict=True)
        ]
        from crawld.cli.client import Client, socket_path

        socket, db, json_out = cast("tuple[Path | None, Path | None, bool]", common)
        path = socket_path(socket, db)
        interval_s = given.pop("watch", None)
        if isinstance(interval_s, float):
            from crawld.cli.watch import watch

            run_once = functools.partial(function, **given)
            return watch(run_once, path, interval_s, as_json=json_out)
        return function(Session(Client(path), json_out), **given)

    _set_signature(run, function)
    registered = with_exit_code(run)
    app.command(cls=LightCommand)(registered)
    return registered


def _set_signature(run: Callable[..., object], function: Callable[..., object]) -> None:
    """Give a command the parameters of its function and the global options."""
    annotations = get_type_hints(function, include_extras=True)
    own = [
        each.replace(annotation=annotations[each.name])
        for each in list(inspect.signature(function).parameters.values())[1:]
    ]
    common = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if kind is Json else None,
            annotation=kind,
        )
        for name, kind in GLOBAL_OPTIONS.items()
    ]
    if function.__name__ in WATCHED:
        only = inspect.Parameter.KEYWORD_ONLY
        own.append(inspect.Parameter("watch", only, default=None, annotation=Watch))
    first = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [first, *own, *common]
    wrapper: Any = run
    wrapper.__signature__ = inspect.Signature(parameters)
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}


Site = Annotated[str | None, typer.Option("--site", help="Only this site.", show_default=False)]
Host = Annotated[str | None, typer.Option("--host", help="Only this host.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of rows.")]


@command
def status(session: Session) -> None:
    """Show the state of the daemon."""
    session.show(session.client.get("/status"), status_table.status_table)


@command
def sites(session: Session) -> None:
    """List the sites and their progress."""
    session.show(session.client.get("/sites"), tables.sites_table)


@command
def hosts(
    session: Session,
    *,
    after: Annotated[str, typer.Option(help="Start after this host.")] = "",
    limit: Limit = 100,
) -> None:
    """List the hosts: pages, politeness, back-off."""
    response = session.client.get("/hosts", after=after, limit=limit)
    session.show(response, tables.hosts_table)


@command
def host(session: Session, name: Annotated[str, typer.Argument(metavar="HOST")]) -> None:
    """Show one host in detail, with robots.txt and refused URLs."""
    response = session.client.get(f"/hosts/{quote(name, safe='')}")
    session.show(response, functools.partial(tables.host_table, now=time.time()))


for function in (
    *why.COMMANDS,
    *changes.COMMANDS,
    *history.COMMANDS,
    *forecast.COMMANDS,
    *jobs.COMMANDS,
    *hints.COMMANDS,
    *retention.COMMANDS,
    *replicas.COMMANDS,
    *dust.COMMANDS,
    *quarantine.COMMANDS,
    *top.COMMANDS,
    *notify.COMMANDS,
):
    command(function)


@command
def pages(
    session: Session,
    *,
    site: Site = None,
    host: Host = None,
    state: Annotated[
        PageState | None, typer.Option(help="Only pages in this state.", show_default=False)
    ] = None,
    class_days: Annotated[
        float | None,
        typer.Option(
            "--class", help="Only pages that change about every so many days.", show_default=False
        ),
    ] = None,
    after: Annotated[int, typer.Option(min=0, help="Start after this page number.")] = 0,
    limit: Limit = 100,
) -> None:
    """List pages, filtered by site, host, state or class of change rates."""
    asked = {
        "site": site,
        "host": host,
        "state": state and state.value,
        "class_days": class_days,
    }
    response = session.client.get("/pages", **asked, after=after, limit=limit)
    session.show(response, functools.partial(tables.pages_table, now=time.time()))


@command
def add(
    session: Session,
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    site: Annotated[
        str | None,
        typer.Option(help="A known site, or a name for a new one.", show_default=False),
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="New site: maximum link depth.")] = 1,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="New site: seconds between requests.", show_default=False),
    ] = None,
    max_pages: Annotated[int, typer.Option(min=1, help="New site: maximum pages.")] = 1000,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="New site: allow private addresses.")
    ] = False,
) -> int:
    """Add URLs as seeds of a known site or of a new site."""
    form: dict[str, object] = {
        "urls": urls,
        "site": site,
        "max_depth": depth,
        "host_delay_s": delay,
        "max_pages": max_pages,
        "allow_private": allow_private,
    }
    added = session.show(session.client.post("/add", form), tables.added_table)
    return EXIT_OK if added.admitted else EXIT_OPERATOR


@command
def remove(session: Session, site: Annotated[str, typer.Argument(metavar="SITE")]) -> None:
    """Remove a site from the crawl; its pages stay in the database."""
    session.show_done(session.client.post("/remove", {"site": site}))


@command
def pause(session: Session, *, site: Site = None, host: Host = None) -> None:
    """Stop new fetches of a site, of a host, or all."""
    session.show_done(session.client.post("/pause", _target(site, host)))


@command
def resume(session: Session, *, site: Site = None, host: Host = None) -> None:
    """Resume fetches after a pause or a drain."""
    session.show_done(session.client.post("/resume", _target(site, host)))


@command
def forgive(session: Session, host: Annotated[str, typer.Argument(metavar="HOST")]) -> None:
    """End the back-off of a host, after its trouble is over."""
    path = f"/hosts/{quote(host, safe='')}/forgive"
    session.show_done(session.client.post(path, {}))


def _target(site: str | None, host: str | None) -> dict[str, object]:
    if site is not None and host is not None:
        raise typer.BadParameter("name a site or a host, not both")
    return {"site": site, "host": host}


@command
def drain(session: Session) -> None:
    """Pause, then wait until running fetches end and all results are committed."""
    session.show_done(session.client.post("/drain", {}, patient=True))


@command
def reload(session: Session) -> None:
    """Reload the config; an invalid config changes nothing."""
    response = session.client.post("/reload", {}, patient=True)
    session.show(response, _reloaded_text)


def _reloaded_text(reloaded: models.Reloaded) -> str:
    return f"reloaded; changed: {', '.join(reloaded.changed) or 'nothing'}"


@command
def shutdown(
    session: Session,
    *,
    now: Annotated[bool, typer.Option("--now", help="Cancel running fetches.")] = False,
) -> None:
    """Stop the daemon when running fetches end; no results are lost."""
    session.show_done(session.client.post("/shutdown", {"now": now}))


@command
def log(
    session: Session,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new visits.")] = False,
    host: Host = None,
    outcome: Annotated[
        Outcome | None, typer.Option(help="Only this outcome.", show_default=False)
    ] = None,
    limit: Limit = 20,
) -> None:
    """Show the latest visits, oldest first; --follow --json prints JSON lines."""
    asked = {"host": host, "outcome": outcome and outcome.value}
    fetch = functools.partial(session.client.get, "/log", **asked)
    body = fetch(limit=limit)
    if session.as_json and not follow:
        print(printable_json(body.decode()))
        return
    if not follow and not read_response(body):
        console().print("no such visits; what the daemon does: crawlctl status")
        return
    with contextlib.suppress(KeyboardInterrupt):
        last = _print_visits(body, as_json=session.as_json) or 0
        while follow:
            time.sleep(FOLLOW_INTERVAL_S)
            body = fetch(after=last, limit=FOLLOW_LIMIT)
            last = _print_visits(body, as_json=session.as_json) or last


def _print_visits(body: bytes, *, as_json: bool) -> int | None:
    """Print visits, one per line, and return the id of the last."""
    out = console()
    visits: list[models.VisitStatus] = read_response(body)
    for visit in visits:
        if as_json:
            print(printable_json(json.dumps(visit, ensure_ascii=False, separators=(",", ":"))))
        else:
            out.print(tables.log_line(visit, iso_text(visit.visited_at)), soft_wrap=True)
    sys.stdout.flush()
    return visits[-1].visit_id if visits else None


def main() -> None:
    """Run `crawlctl`."""
    app(prog_name="crawlctl")


if __name__ == "__main__":
    main()
