"""`crawld run -c FILE`: the daemon as a service."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import structlog
import trio

import crawld.daemon.background  # noqa: F401 (imported on demand, but here it is needed at once)
from crawld.cli.early_lock import EarlyLock
from crawld.cli.logs import configure_logs
from crawld.config.load import LoadedConfig, load
from crawld.daemon.daemon import Daemon
from crawld.daemon.process import end_process
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.errors import EXIT_OK

log = structlog.get_logger(__name__)


def run(path: Path, socket: Path | None = None, early: EarlyLock | None = None) -> NoReturn:
    """Run the daemon of a config until it is shut down, and end the process.

    Args:
        path: the config.
        socket: path of the control socket; None: as configured.
        early: the lock of its database, if it is taken already; released when this ends.

    Raises:
        OperatorError: the config is invalid or the database cannot be used.
    """
    try:
        _run_config(path, socket, early)
    finally:
        if early is not None:
            early.lock.release()
    end_process(EXIT_OK)


def _run_config(path: Path, socket: Path | None, early: EarlyLock | None) -> None:
    loaded = load(path)
    style = loaded.config.daemon.log_format
    configure_logs(style=style, level=lambda: loaded.config.daemon.log_level)
    for warning in loaded.warnings:
        log.warning("config", warning=warning)
    trio.run(_run, path, loaded, socket, early)


async def _run(
    path: Path, loaded: LoadedConfig, socket: Path | None, early: EarlyLock | None
) -> None:
    async def watch(daemon: Daemon) -> None:
        # read the level from the current config, which a reload replaces
        configure_logs(
            style=loaded.config.daemon.log_format, level=lambda: daemon.config.daemon.log_level
        )
        await trio.sleep_forever()

    start = Start(
        config=loaded.config,
        seeds=loaded.seeds,
        config_path=path,
        socket=socket,
        own_process=True,
        lock=None if early is None else early.lock,
        lock_held_s=0.0 if early is None else early.held_s(),
    )
    await run_daemon(start, watch)
