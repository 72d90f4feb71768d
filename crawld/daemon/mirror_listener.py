"""The daemon's web listener: the mirror in a browser, from the file that the daemon writes.

It reads through connections of its own, on their own threads, so that a reader of the mirror never
waits for a visit, nor a visit for a reader.
"""

from __future__ import annotations

import structlog
import trio

from crawld.config.values import parse_listen
from crawld.daemon.daemon import Daemon
from crawld.store.engine.database import Database
from crawld.web.allowed_hosts import listener_hosts
from crawld.web.app import MirrorApp
from crawld.web.mirror import DisplayOptions

log = structlog.get_logger(__name__)


async def serve_web(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the mirror where the config says until cancelled; at once done where it says nothing.

    Raises:
        OperatorError: the address cannot be had.
    """
    web = daemon.config.web
    if web.listen is None:
        task_status.started()
        return
    listener = daemon.network.listen_tcp(*parse_listen(web.listen))
    log.info("web", url=listener.url)
    look = DisplayOptions(banner=web.banner, scripts=web.scripts)
    async with await Database.open(daemon.database.path, read_only=True) as database:
        app = MirrorApp(database, daemon.clock.now, look, _complain, listener_hosts(web.hosts))
        await listener.serve(app, task_status)


def _complain(target: str, error: BaseException) -> None:
    log.error("web_failed", target=target[:200], why=str(error))
