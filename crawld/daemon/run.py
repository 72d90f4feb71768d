"""Start a daemon: open its file, and run it with its control socket and its web listener."""

from __future__ import annotations

import structlog
import trio

from crawld.daemon.api.control_socket import serve_control
from crawld.daemon.daemon import Daemon, Watch
from crawld.daemon.daemon_parts import DAEMON_PARTS
from crawld.daemon.freeze_watch import Evidence, evidence_path
from crawld.daemon.mirror_listener import serve_web
from crawld.daemon.process import keep_heap_memory, switch_threads_often
from crawld.daemon.start import Start
from crawld.marks import MarksFile, marks_path
from crawld.plugin_host.builtin import BUILT_IN
from crawld.plugin_host.in_use import use_plugins
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)


async def _watch_nothing(_: Daemon) -> None:
    return


async def run_daemon(
    start: Start,
    watch: Watch = _watch_nothing,
    task_status: trio.TaskStatus[Daemon] = trio.TASK_STATUS_IGNORED,
) -> Daemon:
    """Open the file and run a daemon on it until it is shut down.

    SIGINT and SIGTERM shut it down: the first drains, the second ends at once.

    Args:
        watch: a task that runs beside the daemon.

    Returns:
        The daemon after its end, for its counts.

    Raises:
        OperatorError: the file or the config cannot be used.
    """
    keep_heap_memory()
    switch_threads_often()
    path = start.config.daemon.db
    plugins = use_plugins(start.config, {**BUILT_IN, **DAEMON_PARTS})
    fresh = not path.exists()
    async with await Database.open(
        path,
        batch_max_age_s=start.config.store.batch_max_age_s,
        workers=start.environment.workers,
        lock=start.lock,
        lock_held_s=start.lock_held_s,
    ) as database:
        if database.warning:
            log.warning("database_filesystem", why=database.warning)
        for step in database.migrated:
            log.info("migration", step=step)
        marks = MarksFile.open(marks_path(path))
        evidence = Evidence(evidence_path(path)) if start.own_process else None
        daemon = Daemon(start, database, marks, evidence, plugins, fresh=fresh)
        await daemon.run((serve_control, serve_web), watch, task_status)
        marks.close()
        if evidence is not None:
            evidence.close()
    return daemon
