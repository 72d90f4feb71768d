"""A test web server: documents by path, replaceable at run time, with ETags and a request log."""

import contextlib
import hashlib
from dataclasses import dataclass, field

import trio

from tests.daemon.http_server import listen, next_head


@dataclass
class DocumentServer:
    """A server of documents.

    Attributes:
        documents: (status, headers, body) by path.
        asked: (path, response status) of every request.
        conditional: whether to answer conditional requests with 304.
    """

    documents: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    conditional: bool = True
    port: int = 0

    def put(self, path, body, status=200, **headers):
        """Serve a document at a path; `{origin}` in the body stands for the server's origin."""
        raw = body.replace("{origin}", self.origin).encode() if isinstance(body, str) else body
        lines = {name.replace("_", "-"): value for name, value in headers.items()}
        self.documents[path] = (status, lines, raw)

    @property
    def origin(self):
        return f"http://a.test:{self.port}"

    def count(self, path, status=None):
        """Return how often a path was requested."""
        return sum(each == path and status in (None, sent) for each, sent in self.asked)

    async def serve(self, task_status=trio.TASK_STATUS_IGNORED):
        await listen(self, self._talk, task_status)

    async def _talk(self, stream):
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            rest = b""
            while (read := await next_head(stream, rest)) is not None:
                head, rest = read
                await stream.send_all(self._answer(head))

    def _answer(self, head):
        line, *fields = head.split("\r\n")
        path = line.split(" ")[1]
        sent = {name.lower(): value for name, _, value in (each.partition(": ") for each in fields)}
        status, headers, body = self.documents.get(path, (404, {}, b"not here"))
        etag = f'"{hashlib.sha1(body).hexdigest()}"'
        if self.conditional and status == 200 and sent.get("if-none-match") == etag:
            status, body = 304, b""
        self.asked.append((path, status))
        given = {"Content-Type": "text/html", "ETag": etag, **headers, "Content-Length": len(body)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode() + body
