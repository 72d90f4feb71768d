"""Opens the control socket beside the crawl.

The application takes a quarter of the time of a start, and the first request needs none of it: it
is imported on a thread while turns are served.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from crawld.daemon.daemon import Daemon, ListenerTask


async def serve_control(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the control socket until cancelled; see `server.serve_control`.

    Raises:
        OperatorError: the socket cannot be created.
    """
    serve = await daemon.start.environment.workers.run(_import_server)
    await serve(daemon, task_status)


def _import_server() -> ListenerTask:
    # The collector would look at the growing heap again and again; `serve_control` tunes it.
    gc.disable()
    try:
        from crawld.daemon.api.server import serve_control as serve
    finally:
        gc.enable()
    return serve
