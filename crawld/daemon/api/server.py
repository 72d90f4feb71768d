"""The control socket: HTTP and JSON over a Unix socket, for `crawlctl`, `curl` and programs.

Only the owner and group of the socket can connect, and every client may send commands: there is no
password. The socket is bound while the database lock is held (see `crawld.net.listener`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import structlog
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawld.daemon.api.parameters import RESPONSES, add_failure_schemas
from crawld.daemon.api.routes import add_routes
from crawld.daemon.daemon import Daemon
from crawld.errors import CrawldError, StoreError

log = structlog.get_logger(__name__)

MAX_INVALID_FIELDS = 100
MAX_NAME_CHARACTERS = 200

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The longest request body: 10,000 long URLs."""


def control_app(daemon: Daemon) -> FastAPI:
    """Return the ASGI application of the control socket."""
    app = _ControlApp(
        title="crawld control socket",
        version=daemon.version,
        docs_url=None,
        redoc_url=None,
    )
    app.state.daemon = daemon
    app.router.routes.extend(control_routes())
    app.add_exception_handler(CrawldError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    return app


@cache
def control_routes() -> list[BaseRoute]:
    """Return the routes of all control sockets of the process: to make them takes 30 ms."""
    router = APIRouter(responses=RESPONSES)
    add_routes(router)
    return router.routes


class _ControlApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Describe the application, with the failures that no route declares as a model."""
        if self.openapi_schema is None:
            add_failure_schemas(super().openapi())
        return super().openapi()


class WholeBodies:
    """Reads the whole body of each request before it is answered.

    A server that answers while its client still sends closes the connection, and the client gets a
    broken pipe instead of the response. A body that is too long is read and dropped.
    """

    def __init__(self, app: ASGIApp) -> None:
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
        "error": f"the request body is longer than {MAX_BODY_BYTES // 2**20} MiB",
        "hint": "add the URLs in several requests, or set seeds_file",
    },
    status_code=413,
)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    known = error if isinstance(error, CrawldError) else CrawldError(str(error))
    status = 503 if isinstance(known, StoreError) else 409
    content = {"error": _text(known.message), "hint": _text(known.hint)}
    return JSONResponse(content, status_code=status)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Name the fields without their values: JSON has no form for some, and some are secrets."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    detail = [
        {
            "loc": [
                part if isinstance(part, int) else _text(part)[:MAX_NAME_CHARACTERS]
                for part in each["loc"]
            ],
            "msg": _text(each["msg"]),
            "type": each["type"],
        }
        for each in found[:MAX_INVALID_FIELDS]
    ]
    content = {"error": "the request is not valid", "hint": "see /openapi.json", "detail": detail}
    return JSONResponse(content, status_code=422)


def _text(value: object) -> str:
    """Return a text that has a UTF-8 form: JSON may contain half a character."""
    return str(value).encode("utf-8", "replace").decode()


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    return JSONResponse({"error": _text(detail), "hint": "see /openapi.json"}, status_code=status)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    log.error("control_failed", path=request.url.path, exc_info=error)
    message, hint = _text(f"{type(error).__name__}: {error}"), "a bug: the daemon's log has more"
    return JSONResponse({"error": message, "hint": hint}, status_code=500)


async def made_application(daemon: Daemon) -> ASGIApp:
    """Return the application of the control socket, with what its first request makes."""
    app = WholeBodies(control_app(daemon))
    await _answer_once(app, "/status")
    daemon.background.present_freshness.forget_question()
    return app


async def _answer_once(app: ASGIApp, path: str) -> None:
    """Let an application answer a request of nobody: what the first request makes is kept."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Message) -> None:
        pass

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET"}
    target = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    await app({**scope, **target, "scheme": "http", "headers": []}, receive, send)
