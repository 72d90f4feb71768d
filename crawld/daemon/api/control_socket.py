"""Opens the control socket beside the crawl.

The application takes a quarter of the time of a start, and the first request of the crawl needs
none of it: it is imported on a thread while turns are served. A one-off mirror, which is rarely
asked anything, makes it for its first client; so does a daemon inside another program.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from crawld.daemon.daemon import MAX_CONTROL_CONNECTIONS
from crawld.daemon.process import tune_collector
from crawld.net.server_limits import ServerLimits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from crawld.daemon.daemon import Daemon

LIMITS = ServerLimits(
    max_client_connections=MAX_CONTROL_CONNECTIONS, max_body_bytes=64 * 1024 * 1024
)


async def serve_control(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the control socket until cancelled, then delete the socket's file.

    In a daemon all that takes long, and holds the event loop, comes before the socket exists:
    making the application, and what its first request makes.

    Raises:
        OperatorError: the socket cannot be created.
    """
    app = _OnDemand(daemon)
    if daemon.start.own_process and not daemon.start.once:
        await app.make()
    tune_collector()
    await trio.lowlevel.checkpoint()  # the meter has noticed it when the next pass begins
    daemon.stall_meter.forget()
    group = daemon.config.daemon.socket_group
    listener = daemon.network.listen_unix(daemon.socket_path, group)
    limits = replace(LIMITS, max_connections=daemon.files.control)
    await listener.serve(app, limits, task_status)


class _OnDemand:
    """The application, made when the first client asks."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._app: ASGIApp | None = None
        self._making = trio.Lock()

    async def make(self) -> ASGIApp:
        """Make the application; return it."""
        async with self._making:
            if self._app is None:
                make = await self._daemon.start.environment.workers.run(_import_server)
                self._app = await make(self._daemon)
            return self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app or await self.make()
        await app(scope, receive, send)


def _import_server() -> Callable[[Daemon], Awaitable[ASGIApp]]:
    # The collector would look at the growing heap again and again; `serve_control` tunes it.
    gc.disable()
    try:
        import crawld.daemon.background  # noqa: F401 (a one-off mirror has not needed it before)
        from crawld.daemon.api.server import made_application
    finally:
        gc.enable()
    return made_application
