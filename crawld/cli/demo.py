"""`crawld demo`: a small site on loopback that keeps changing, and its mirror, in one process.

The site knows when each of its pages changed, so the view can say what no other mirror can: how
much of the copy is truly current.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from rich.live import Live

from crawld.cli.demo_view import (
    DemoState,
    demo_summary,
    demo_view,
    intro_text,
    progress_line,
    summary_text,
)
from crawld.cli.logs import configure_logs
from crawld.cli.output import console, json_text
from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.daemon.daemon import Daemon, Start
from crawld.daemon.run import run_daemon
from crawld.errors import EXIT_OK, OperatorError
from crawld.simweb.demo import make_demo_site
from crawld.simweb.server import ServerAddress, SimWeb
from crawld.store.engine.database import Database

HOST_DELAY_S = 0.05
"""Short, for the only host asked is our own and somebody watches."""

MIN_REVISIT_S = 2.0

REDRAW_S = 0.5
REPORT_S = 3.0
"""How often a line is printed where there is no terminal."""


def demo(*, db: Path | None, seconds: float | None, seed: int, as_json: bool) -> int:
    """Serve the site and mirror it until interrupted; return the exit code.

    Args:
        db: a new file to keep the mirror in; None throws it away at the end.
        seconds: end after so many seconds; None goes on until interrupted.
        seed: another seed gives another site.
        as_json: print the summary as JSON.

    Raises:
        OperatorError: the file exists: its mirror would be of another site, gone by now.
    """
    if db is not None and db.exists():
        raise OperatorError(
            f"{db} exists, and every demo is a site of its own", hint="name a new file with --db"
        )
    configure_logs(style="console", level=lambda: "warning")
    with TemporaryDirectory(prefix="crawld-demo-") as folder:
        show, daemon = trio.run(_demo, db or Path(folder) / "demo.db", seconds, seed)
    summary = demo_summary(show, daemon)
    print(json_text(summary) if as_json else summary_text(summary))
    return EXIT_OK


async def _demo(db: Path, seconds: float | None, seed: int) -> tuple[DemoState, Daemon]:
    site = make_demo_site(seed, time.time)
    async with trio.open_nursery() as nursery:
        listening: ServerAddress = await nursery.start(SimWeb([site]).serve)
        show = DemoState(site, listening.url())
        config = demo_config(db, show.url)
        _, seeds = check_config(config)

        async def watch(daemon: Daemon) -> None:
            async with trio.open_nursery() as watching:
                if seconds is not None:
                    watching.start_soon(_shut_down_after, daemon, seconds)
                await _watch(daemon, show)

        daemon = await run_daemon(Start(config=config, seeds=seeds), watch)
        nursery.cancel_scope.cancel()
    async with await Database.open(db, read_only=True) as database:
        await show.look(database)
    return show, daemon


def demo_config(db: Path, url: str) -> Config:
    """Return the config of the demo's mirror."""
    site = {"name": "demo", "seeds": [url], "allow_private_hosts": ["127.0.0.1"]}
    return Config.model_validate(
        {
            "daemon": {"db": db},
            "politeness": {"host_delay_s": HOST_DELAY_S},
            "schedule": {"min_revisit_s": MIN_REVISIT_S},
            "store": {"min_free_bytes": 16 * 1024 * 1024},
            "site": [site],
        }
    )


async def _shut_down_after(daemon: Daemon, seconds: float) -> None:
    await trio.sleep(seconds)
    daemon.shutdown()


async def _watch(daemon: Daemon, show: DemoState) -> None:
    if not sys.stderr.isatty():
        print(intro_text(show, daemon), file=sys.stderr, flush=True)
        while True:
            await trio.sleep(REPORT_S)
            await show.look(daemon.database)
            print(progress_line(show, daemon), file=sys.stderr, flush=True)
    with Live(console=console(stderr=True), auto_refresh=False) as live:
        while True:
            await show.look(daemon.database)
            live.update(demo_view(show, daemon), refresh=True)
            await trio.sleep(REDRAW_S)
