"""The control socket: HTTP and JSON over a Unix socket, for `crawlctl`, `curl` and programs.

The socket is bound here, not by the server: under a umask that leaves it to owner and group alone
from its first instant, and only after the database lock is held, so that a stale socket of a dead
daemon may be replaced and a living one is never stolen. Who may connect may command; nobody else
can (there is no password).
"""

from __future__ import annotations

import grp
import logging
import os
import socket
import stat
from functools import partial
from pathlib import Path
from typing import cast

import structlog
import trio
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from hypercorn.config import Config as ServerConfig
from hypercorn.trio import serve
from hypercorn.typing import ASGIFramework
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawld.daemon.api.routes import routes
from crawld.daemon.daemon import Daemon
from crawld.errors import CrawldError, OperatorError, StoreError

log = structlog.get_logger(__name__)

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The longest request body: 10,000 long URLs."""

GRACE_S = 1.0
"""How long an answer may still take when the daemon ends."""


def control_app(daemon: Daemon) -> FastAPI:
    """Return the ASGI application of the control socket."""
    app = FastAPI(
        title="crawld control socket",
        version=daemon.version,
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(routes(daemon))
    app.add_exception_handler(CrawldError, _refused)
    app.add_exception_handler(HTTPException, _no_such_thing)
    app.add_exception_handler(Exception, _failed)
    return app


class WholeBodies:
    """Takes the body of each request whole before it is answered, whether it is wanted or not.

    A server that answers while its client still sends closes the connection, and the client finds
    a broken pipe instead of the answer. Of a body that is too long nothing is kept.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Take the application that answers."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, size_bytes, more = bytearray(), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            piece = message.get("body", b"")
            size_bytes += len(piece)
            if size_bytes <= MAX_BODY_BYTES:
                body += piece
            more = message.get("more_body", False)
        if size_bytes > MAX_BODY_BYTES:
            await _TOO_LONG(scope, receive, send)
            return
        pending = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def taken() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, taken, send)


_TOO_LONG = JSONResponse(
    {
        "error": f"a request may have {MAX_BODY_BYTES // 2**20} MiB",
        "hint": "add the URLs in parts, or let seeds_file name a file of them",
    },
    status_code=413,
)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    known = error if isinstance(error, CrawldError) else CrawldError(str(error))
    status = 503 if isinstance(known, StoreError) else 409
    return JSONResponse({"error": known.message, "hint": known.hint}, status_code=status)


async def _no_such_thing(_request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    return JSONResponse({"error": detail, "hint": "see /openapi.json"}, status_code=status)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    log.error("control_failed", path=request.url.path, exc_info=error)
    said = {"error": f"{type(error).__name__}: {error}", "hint": "a bug: the daemon's log has more"}
    return JSONResponse(said, status_code=500)


async def serve_control(
    daemon: Daemon, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the control socket until cancelled; the socket's file goes with it.

    Raises:
        OperatorError: the socket cannot be made where it should be.
    """
    path = daemon.socket_path
    listening = bind_socket(path, daemon.config.daemon.socket_group)
    config = ServerConfig()
    config.bind = [f"fd://{listening.detach()}"]
    config.graceful_timeout = GRACE_S
    config.h11_max_incomplete_size = 64 * 1024
    config.include_server_header = False
    config.errorlog = _quiet_logger()
    config.accesslog = None
    try:
        async with trio.open_nursery() as nursery:
            app = cast("ASGIFramework", WholeBodies(control_app(daemon)))
            await nursery.start(partial(serve, app, config, mode="asgi"))
            task_status.started()
    finally:
        path.unlink(missing_ok=True)


def _quiet_logger() -> logging.Logger:
    # Junk on the socket is the client's affair; the server's own words would fill the log.
    logger = logging.getLogger("crawld.control.server")
    logger.setLevel(logging.CRITICAL)
    return logger


def bind_socket(path: Path, group: str | None) -> socket.socket:
    """Return a listening Unix socket that only owner and group can connect to.

    Args:
        path: where; a stale socket there is replaced, anything else is not.
        group: who may use it besides the owner; None: the process's own group.

    Raises:
        OperatorError: something else is there, the directory is missing, or the group is unknown.
    """
    _clear(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        listening.bind(str(path))
        if group is not None:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
        listening.listen(64)
    except (OSError, KeyError) as error:
        listening.close()
        raise OperatorError(
            f"the control socket {path} cannot be made: {error}",
            hint="set [daemon] socket to a path in a directory that you own",
        ) from error
    finally:
        os.umask(before)
    return listening


def _clear(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OperatorError(f"the control socket {path} cannot be made: {error}") from error
    if not stat.S_ISSOCK(status.st_mode):
        raise OperatorError(
            f"{path} is there and is no socket", hint="move it away or set [daemon] socket"
        )
    if status.st_uid != os.geteuid():
        raise OperatorError(
            f"the socket {path} belongs to another user (uid {status.st_uid})",
            hint="remove it as that user, or set [daemon] socket",
        )
    # We hold the database, so whoever left this socket is dead; but it may serve another file.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise OperatorError(
        f"another daemon answers on {path}", hint="set [daemon] socket, or stop the other one"
    )
