"""Runs a daemon in this process beside something that watches it and shows what it sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from crawld.daemon.app import Daemon, Start, run_daemon


async def attend(start: Start, watch: Callable[[Daemon], Awaitable[None]]) -> Daemon:
    """Run a daemon until it is shut down; `watch` runs from its start and is cancelled at its end.

    The daemon itself takes SIGINT and SIGTERM: the first drains, the second ends at once.

    Returns:
        The daemon that has ended, for its counts.

    Raises:
        OperatorError: the file or the config cannot be used.
    """
    async with trio.open_nursery() as nursery:
        watching = trio.CancelScope()

        async def run(task_status: trio.TaskStatus[Daemon]) -> None:
            await run_daemon(start, task_status)
            watching.cancel()

        daemon: Daemon = await nursery.start(run)
        with watching:
            await watch(daemon)
    return daemon
