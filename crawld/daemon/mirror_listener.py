"""The daemon's web listener: serves the mirror to browsers from the daemon's own file.

It reads through its own connections on their own threads, so that readers of the mirror and visits
never wait for each other.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import structlog
import trio

from crawld.config.values import parse_listen
from crawld.daemon.analysis_memory import OVERDRAFT
from crawld.daemon.daemon import Daemon
from crawld.daemon.supervise import supervise
from crawld.net.server_limits import ServerLimits
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

KEPT_DIVISOR: Final = 4
"""Rendered pages are kept in one part in this many of the memory for replies."""


async def serve_web(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the mirror at the configured address until the daemon drains; return at once without.

    Raises:
        OperatorError: the address is not available.
    """
    web = daemon.config.web
    if web.listen is None:
        task_status.started()
        return
    # Most daemons have no such listener; its templates take a thirtieth of a start.
    from crawld.web.allowed_hosts import listener_hosts
    from crawld.web.app import MirrorApp
    from crawld.web.large_pages import KEPT_BYTES, RENDERING_FACTOR, LargePages
    from crawld.web.look import DASHBOARD_LINK, LINKS, Look
    from crawld.web.mirror import DisplayOptions

    listener = daemon.network.listen_tcp(*parse_listen(web.listen))
    daemon.web_url = listener.url
    log.info("web", url=listener.url, dashboard=web.dashboard)
    shares = daemon.budget.shares
    kept_bytes = min(KEPT_BYTES, shares.replies_bytes // KEPT_DIVISOR)
    sent_bytes = shares.replies_bytes - kept_bytes
    options = DisplayOptions(
        banner=web.banner,
        scripts=web.scripts,
        most_bytes=sent_bytes,
        most_rewritten_bytes=daemon.budget.analyses.largest_bytes // RENDERING_FACTOR,
    )
    limits = ServerLimits(
        max_connections=daemon.files.web,
        max_client_connections=web.max_client_connections,
        max_waiting_bytes=min(web.max_waiting_bytes, sent_bytes),
    )
    hosts = listener_hosts(web.hosts)
    open_database = partial(
        Database.open,
        daemon.database.path,
        read_only=True,
        workers=daemon.start.environment.workers,
    )
    async with await open_database() as database, await open_database() as apart:
        app = MirrorApp(
            database,
            apart,
            daemon.clock.now,
            options,
            _log_failure,
            hosts,
            daemon.analyser.marks,
            LargePages(
                daemon.analyser.memory.held,
                kept_bytes,
                most_bytes=OVERDRAFT * daemon.budget.analyses.size_bytes,
            ),
            look=Look(web.title, LINKS if web.dashboard == "off" else LINKS + DASHBOARD_LINK),
            public_url=lambda: daemon.config.web.public_url,
        )
        with daemon.readers_scope:
            if web.dashboard == "off":
                await listener.serve(app, limits, task_status)
                return
            from crawld.daemon.dashboard.app import DashboardApp

            dashboard = DashboardApp(daemon, app, web.dashboard, hosts)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(supervise, "dashboard", dashboard.run)
                await listener.serve(dashboard, limits, task_status)


def _log_failure(target: str, error: BaseException) -> None:
    log.error("web_failed", target=target[:200], why=str(error))
