"""The control socket of a universe: an operator's requests reach the application without a socket.

The HTTP server in front of it is left out; its own tests meet real sockets.
"""

from __future__ import annotations

from typing import Any

import trio

from crawld.net.http_server import Application
from crawld.net.listener import DEFAULT_LIMITS
from crawld.net.server_limits import ServerLimits


class MemoryListener:
    """A `Listener` whose clients are calls of `request`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._app: Application | None = None

    async def serve(
        self,
        app: Application,
        limits: ServerLimits = DEFAULT_LIMITS,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept requests until cancelled."""
        del limits
        self._app = app
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._app = None

    async def request(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of an answer; status 0: nothing listens."""
        if self._app is None:
            return 0, b""
        path, _, query = target.partition("?")
        status, answer = 0, bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                answer.extend(message.get("body", b""))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.1"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"content-type", b"application/json")] if body else [],
            "client": None,
            "server": None,
        }
        await self._app(scope, receive, send)
        return status, bytes(answer)
