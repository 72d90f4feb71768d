"""`crawlctl`: steer a running crawld over its control socket.

Every command prints a table for people, or with `--json` what the daemon said. The three options
that all commands share may stand before the command or behind it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints
from urllib.parse import quote

import typer
from pydantic import TypeAdapter
from rich.console import RenderableType

from crawld.cli import forecast, hints, history, jobs, replicas, retention, tables
from crawld.cli.client import Client, socket_path
from crawld.cli.output import console, with_exit_code
from crawld.core.display import iso_text
from crawld.core.page import Outcome, PageState
from crawld.daemon.api.schemas import status as models
from crawld.errors import EXIT_OK, EXIT_OPERATOR

T = TypeVar("T")

FOLLOW_INTERVAL_S = 0.5
"""How often a log that is followed is asked for more."""

FOLLOW_LIMIT = 1000
"""Visits asked for at a time then."""

Socket = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        help="The control socket. Else: CRAWLD_SOCKET, beside --db, ./crawld.sock.",
        show_default=False,
    ),
]
Db = Annotated[
    Path | None,
    typer.Option("--db", help="The daemon's database.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
GLOBAL_OPTIONS = {"socket": Socket, "db": Db, "json_out": Json}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Steer a running crawld.",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One command on its way: whom to ask and how to answer."""

    client: Client
    as_json: bool

    def show(self, answer: bytes, kind: type[T], render: Callable[[T], RenderableType]) -> T:
        """Print an answer as it came, or as a table; return what it says."""
        value = TypeAdapter(kind).validate_json(answer)
        if self.as_json:
            print(answer.decode())
        else:
            console().print(render(value))
        return value

    def tell(self, answer: bytes) -> None:
        """Print what was done."""
        self.show(answer, models.Done, lambda done: done.done)


@app.callback()
def global_options(
    context: typer.Context,
    *,
    socket: Socket = None,
    db: Db = None,
    json_out: Json = False,
) -> None:
    """Steer a running crawld."""
    context.obj = (socket, db, json_out)


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Make a function a command that is given a `Call`, with the options all commands share."""

    @functools.wraps(function)
    def run(context: typer.Context, **given: object) -> int | None:
        common = [
            given.pop(name) or before
            for name, before in zip(GLOBAL_OPTIONS, context.obj, strict=True)
        ]
        socket, db, json_out = cast("tuple[Path | None, Path | None, bool]", common)
        with Client(socket_path(socket, db)) as client:
            return function(Call(client, json_out), **given)

    _set_signature(run, function)
    ended = with_exit_code(run)
    app.command()(ended)
    return ended


def _set_signature(run: Callable[..., object], function: Callable[..., object]) -> None:
    """Give a command the parameters of its function, and those that all commands share."""
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
    first = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [first, *own, *common]
    signed: Any = run
    signed.__signature__ = inspect.Signature(parameters)
    signed.__annotations__ = {each.name: each.annotation for each in parameters}


Site = Annotated[str | None, typer.Option("--site", help="One site.", show_default=False)]
Host = Annotated[str | None, typer.Option("--host", help="One host.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="The most to show.")]


@command
def status(call: Call) -> None:
    """Show what the daemon is doing."""
    call.show(call.client.get("/status"), models.Status, tables.status_table)


@command
def sites(call: Call) -> None:
    """Show the sites and how far each is."""
    call.show(call.client.get("/sites"), list[models.SiteStatus], tables.sites_table)


@command
def hosts(
    call: Call,
    *,
    after: Annotated[str, typer.Option(help="Begin after this host.")] = "",
    limit: Limit = 100,
) -> None:
    """Show the hosts: pages, politeness, back-off."""
    answer = call.client.get("/hosts", after=after, limit=limit)
    call.show(answer, list[models.HostStatus], tables.hosts_table)


@command
def host(call: Call, name: Annotated[str, typer.Argument(metavar="HOST")]) -> None:
    """Show one host in full: robots.txt, refused URLs."""
    answer = call.client.get(f"/hosts/{quote(name, safe='')}")
    call.show(answer, models.HostDetail, lambda value: tables.host_table(value, time.time()))


history.mount(command)
forecast.mount(command)
jobs.mount(command)
hints.mount(command)
retention.mount(command)
replicas.mount(command)


@command
def pages(
    call: Call,
    *,
    site: Site = None,
    host: Host = None,
    state: Annotated[
        PageState | None, typer.Option(help="In this state.", show_default=False)
    ] = None,
    after: Annotated[int, typer.Option(min=0, help="Begin after this page number.")] = 0,
    limit: Limit = 100,
) -> None:
    """Show pages of a site, a host or a state."""
    word = None if state is None else state.value
    answer = call.client.get("/pages", site=site, host=host, state=word, after=after, limit=limit)
    call.show(answer, list[models.PageStatus], lambda value: tables.pages_table(value, time.time()))


@command
def add(
    call: Call,
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    site: Annotated[
        str | None,
        typer.Option(help="A known site, or the name of the new one.", show_default=False),
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="New site: links followed.")] = 1,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="New site: seconds between two requests.", show_default=False),
    ] = None,
    max_pages: Annotated[int, typer.Option(min=1, help="New site: most pages.")] = 1000,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="New site: allow private addresses.")
    ] = False,
) -> int:
    """Add URLs as seeds of a known site, or as a new site."""
    form: dict[str, object] = {
        "urls": urls,
        "site": site,
        "max_depth": depth,
        "host_delay_s": delay,
        "max_pages": max_pages,
        "allow_private": allow_private,
    }
    added = call.show(call.client.post("/add", form), models.Added, tables.added_table)
    return EXIT_OK if added.admitted else EXIT_OPERATOR


@command
def remove(call: Call, site: Annotated[str, typer.Argument(metavar="SITE")]) -> None:
    """Take a site out of the crawl; its pages stay in the database."""
    call.tell(call.client.post("/remove", {"site": site}))


@command
def pause(call: Call, *, site: Site = None, host: Host = None) -> None:
    """Start no fetch of a site, of a host, or at all."""
    call.tell(call.client.post("/pause", _target(site, host)))


@command
def resume(call: Call, *, site: Site = None, host: Host = None) -> None:
    """Take fetching up again, after a drain too."""
    call.tell(call.client.post("/resume", _target(site, host)))


def _target(site: str | None, host: str | None) -> dict[str, object]:
    if site is not None and host is not None:
        raise typer.BadParameter("name a site or a host, not both")
    return {"site": site, "host": host}


@command
def drain(call: Call) -> None:
    """Pause, and return when nothing is under way and all is in the file."""
    call.tell(call.client.post("/drain", {}, patient=True))


@command
def reload(call: Call) -> None:
    """Read the config again and take it over as a whole, or not at all."""
    answer = call.client.post("/reload", {}, patient=True)
    call.show(
        answer,
        models.Reloaded,
        lambda reloaded: f"reloaded; changed: {', '.join(reloaded.changed) or 'nothing'}",
    )


@command
def shutdown(
    call: Call,
    *,
    now: Annotated[bool, typer.Option("--now", help="Give up the fetches under way.")] = False,
) -> None:
    """End the daemon after the fetches under way; nothing is lost either way."""
    call.tell(call.client.post("/shutdown", {"now": now}))


@command
def log(
    call: Call,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as visits come.")] = False,
    host: Host = None,
    outcome: Annotated[
        Outcome | None, typer.Option(help="With this outcome.", show_default=False)
    ] = None,
    limit: Limit = 20,
) -> None:
    """Show the latest visits, oldest first; followed, JSON is one object a line."""
    ask = functools.partial(
        call.client.get, "/log", host=host, outcome=None if outcome is None else outcome.value
    )
    answer = ask(limit=limit)
    if call.as_json and not follow:
        print(answer.decode())
        return
    with contextlib.suppress(KeyboardInterrupt):
        last = _print_visits(answer, as_json=call.as_json) or 0
        while follow:
            time.sleep(FOLLOW_INTERVAL_S)
            answer = ask(after=last, limit=FOLLOW_LIMIT)
            last = _print_visits(answer, as_json=call.as_json) or last


def _print_visits(answer: bytes, *, as_json: bool) -> int | None:
    """Print visits, one a line, and return the number of the last."""
    out = console()
    visits = TypeAdapter(list[models.VisitStatus]).validate_json(answer)
    for visit in visits:
        if as_json:
            print(visit.model_dump_json())
        else:
            out.print(tables.log_line(visit, iso_text(visit.visited_at)), soft_wrap=True)
    sys.stdout.flush()
    return visits[-1].visit_id if visits else None


def main() -> None:
    """Run `crawlctl`."""
    app(prog_name="crawlctl")


if __name__ == "__main__":
    main()
