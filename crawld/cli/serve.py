"""`crawld serve` and `crawld index`: the web mirror and its full-text search index."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import trio
from pydantic import TypeAdapter, ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crawld.cli.console import console
from crawld.cli.logs import configure_logs
from crawld.cli.output import json_text, printable, require_database
from crawld.config.values import HostPattern, parse_listen
from crawld.core.display import count_text
from crawld.daemon.process import raise_file_limit, switch_threads_often, tune_collector
from crawld.errors import EXIT_OK, OperatorError
from crawld.net.network import SystemNetwork
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock
from crawld.store.versions import search_index
from crawld.web.allowed_hosts import AllowedHosts, listener_hosts
from crawld.web.app import MirrorApp
from crawld.web.look import Look
from crawld.web.mirror import DisplayOptions

_HOSTS: Final = TypeAdapter(tuple[HostPattern, ...])


def serve(
    db: Path,
    listen: str,
    display: DisplayOptions,
    *,
    hosts: Sequence[str] = (),
    title: str = "",
    as_json: bool = False,
) -> int:
    """Serve a mirror until Ctrl-C; return the exit code.

    `hosts` are host names to accept requests for, besides the default ones. `title` is the name of
    the mirror; empty: it is named after its sites.

    Raises:
        OperatorError: the database cannot be read, or the address is not available.
    """
    try:
        host, port = parse_listen(listen)
    except ValueError as error:
        raise OperatorError(f"--listen {listen} {error}") from None
    try:
        patterns = _HOSTS.validate_python(tuple(hosts))
    except ValidationError as error:
        raise OperatorError(
            f"--host {error.errors()[0]['input']} must be a host name",
            hint='examples: mirror.example.org, "*.example.org", "*" for any',
        ) from None
    # Without this, structlog's own default shows the local variables of each frame of a bug.
    configure_logs(style="auto", level=lambda: "info")
    trio.run(_serve, db, (host, port), display, listener_hosts(patterns), Look(title), as_json)
    return EXIT_OK


async def _serve(
    db: Path,
    listen: tuple[str, int],
    display: DisplayOptions,
    names: AllowedHosts,
    look: Look,
    as_json: bool,
) -> None:
    raise_file_limit()
    switch_threads_often()  # pages are rewritten on threads beside the event loop
    tune_collector()  # a full collection while a page of 80,000 links is rewritten takes 0.2 s
    async with (
        await Database.open(db, read_only=True) as database,
        await Database.open(db, read_only=True) as apart,
        trio.open_nursery() as nursery,
    ):
        listener = SystemNetwork().listen_tcp(*listen)
        app = MirrorApp(database, apart, time.time, display, _print_error, names, look=look)
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await nursery.start(listener.serve, app)
            shown = {"url": listener.url, "db": str(db)}
            print(json_text(shown) if as_json else listener.url, flush=True)
            await anext(aiter(signals))
            nursery.cancel_scope.cancel()


def _print_error(target: str, error: BaseException) -> None:
    print(f"error: {printable(f'{target[:200]}: {error}')}", file=sys.stderr, flush=True)


def index(db: Path, *, rebuild: bool) -> int:
    """Update the full-text index of a database; return the exit code.

    Raises:
        StoreError: the database is missing, in use or cannot be written.
    """
    require_database(db)
    with DatabaseLock.acquire(db):
        migrate.require_current(db)
        with closing(open_connection(db)) as connection:
            if rebuild:
                with connection:
                    search_index.rebuild(connection)
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            with Progress(*columns, TimeRemainingColumn(), console=console(stderr=True)) as bar:
                total = search_index.count_pending(connection)
                task = bar.add_task("index", total=total)
                pages = 0
                while (work := search_index.plan(connection)) is not None:
                    with connection:
                        search_index.apply(connection, work)
                    pages += len(work.entries)
                    bar.update(task, completed=total - search_index.count_pending(connection))
            connection.wal_checkpoint(mode=3)
    print(f"{db}: {count_text(pages)} pages indexed")
    return EXIT_OK
