"""`crawld demo`: a small changing site on loopback and its mirror, in one process.

The site knows when each of its pages changed, so the demo can show the true freshness of the
mirror.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from rich.live import Live

from crawld.cli.console import console
from crawld.cli.demo_view import (
    DemoState,
    demo_summary,
    demo_view,
    intro_text,
    progress_line,
    summary_text,
)
from crawld.cli.logs import configure_logs, log_above
from crawld.cli.output import json_text
from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.daemon.daemon import Daemon
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import EXIT_OK, OperatorError
from crawld.simweb.demo import make_demo_site
from crawld.simweb.server import ServerAddress, SimWeb
from crawld.store.engine.database import Database

HOST_DELAY_S = 0.05
"""Short, since the only host is local and a person is watching."""

MIN_REVISIT_S = 2.0

REDRAW_S = 0.5
REPORT_S = 3.0
"""Time between two lines of progress without a terminal."""


def demo(*, db: Path | None, seconds: float | None, seed: int, as_json: bool) -> int:
    """Serve the site and mirror it for a time or until interrupted; return the exit code.

    `db` is a new file to keep the mirror in; None: a temporary file. `seed` selects the site.

    Raises:
        OperatorError: the file exists, which would contain the mirror of another site.
    """
    if db is not None and db.exists():
        raise OperatorError(
            f"{db} exists, and every demo has a new site", hint="give a new file with --db"
        )
    level = _log_level(live=sys.stderr.isatty())
    configure_logs(style="console", level=lambda: level)
    with TemporaryDirectory(prefix="crawld-") as directory:
        state, daemon = trio.run(_demo, db or Path(directory) / "demo.db", seconds, seed)
    summary = demo_summary(state, daemon)
    print(json_text(summary) if as_json else summary_text(summary))
    return EXIT_OK


async def _demo(db: Path, seconds: float | None, seed: int) -> tuple[DemoState, Daemon]:
    site = make_demo_site(seed, time.time)
    async with trio.open_nursery() as nursery:
        listening: ServerAddress = await nursery.start(SimWeb([site]).serve)
        state = DemoState(site, listening.url())
        config = demo_config(db, state.url)
        _, seeds = check_config(config)

        async def watch(daemon: Daemon) -> None:
            async with trio.open_nursery() as watching:
                if seconds is not None:
                    watching.start_soon(_shut_down_after, daemon, seconds)
                await _watch(daemon, state)

        daemon = await run_daemon(Start(config=config, seeds=seeds), watch)
        nursery.cancel_scope.cancel()
    async with await Database.open(db, read_only=True) as database:
        await state.update(database)
    return state, daemon


def demo_config(db: Path, url: str) -> Config:
    """Return the config of the demo's mirror."""
    site = {"name": "demo", "seeds": [url], "allow_private_hosts": ["127.0.0.1"]}
    return Config.model_validate(
        {
            "daemon": {"db": db},
            "web": {"listen": "127.0.0.1:0", "title": "crawld demo"},
            "politeness": {"host_delay_s": HOST_DELAY_S},
            "schedule": {"min_revisit_s": MIN_REVISIT_S},
            "store": {"min_free_bytes": 16 * 1024 * 1024},
            "site": [site],
        }
    )


def _log_level(*, live: bool) -> str:
    """Return from which level on the log is shown: no warning of a busy machine moves the view."""
    return "error" if live else "warning"


async def _shut_down_after(daemon: Daemon, seconds: float) -> None:
    await trio.sleep(seconds)
    daemon.shutdown()


async def _watch(daemon: Daemon, state: DemoState) -> None:
    if not sys.stderr.isatty():
        print(intro_text(state, daemon), file=sys.stderr, flush=True)
        while True:
            await trio.sleep(REPORT_S)
            await state.update(daemon.database)
            print(progress_line(state, daemon), file=sys.stderr, flush=True)
    out = console(stderr=True)
    with Live(console=out, auto_refresh=False) as live:
        log_above(out, level=_log_level(live=True))
        while True:
            await state.update(daemon.database)
            live.update(demo_view(state, daemon, lines=out.height), refresh=True)
            await trio.sleep(REDRAW_S)
