"""A scripted server of event streams on a real socket."""

import contextlib
import json
import time
from dataclasses import dataclass, field

import trio

from tests.daemon.http_server import listen, next_head


def event(number, path, origin, *, at=None, **more):
    """Return an edit of a page in the format of Wikimedia's streams."""
    fields = {
        "meta": {"domain": "a.test", "dt": stamp(at or time.time())},
        "type": "edit",
        "title": path.rpartition("/")[2],
        "title_url": origin + path,
        "timestamp": int(at or time.time()),
        "wiki": "awiki",
        **more,
    }
    return framed(number, fields)


def canary(number, at=None):
    fields = {"meta": {"domain": "canary", "dt": stamp(at or time.time())}, "type": "edit"}
    return framed(number, fields)


def framed(number, fields):
    return f"event: message\nid: [{number}]\ndata: {json.dumps(fields)}\n\n".encode()


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


@dataclass
class EventServer:
    """A server of events.

    Attributes:
        heads: request lines and headers of every connection, in order.
        script: async functions of a stream, one per connection; the last one is repeated.
    """

    heads: list = field(default_factory=list)
    script: list = field(default_factory=list)
    port: int = 0

    @property
    def url(self):
        return f"http://b.test:{self.port}/stream"

    def last_ids(self):
        """Return the Last-Event-ID of every connection, None where there was none."""
        return [head.get("last-event-id") for head in self.heads]

    async def serve(self, task_status=trio.TASK_STATUS_IGNORED):
        await listen(self, self._talk, task_status)

    async def _talk(self, stream):
        read = await next_head(stream)
        if read is None:
            return
        line, *lines = read[0].split("\r\n")
        if "/robots.txt" in line:
            await stream.send_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        pairs = (each.partition(": ") for each in lines)
        self.heads.append({**{name.lower(): value for name, _, value in pairs}, "": line})
        step = self.script[min(len(self.heads), len(self.script)) - 1]
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await step(stream)


OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n:ok\n\n"


def sending(*pieces, stay=True):
    """Return a step that sends pieces, then stays silent or closes the connection.

    A piece is bytes, or an async function that returns bytes.
    """

    async def step(stream):
        await stream.send_all(OPEN)
        for piece in pieces:
            await stream.send_all(piece if isinstance(piece, bytes) else await piece())
        if stay:
            while await stream.receive_some(1_000):
                pass

    return step


def responding(status, body=b"no", **headers):
    """Return a step that sends a normal HTTP response."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Status\r\nContent-Length: {len(body)}\r\n{lines}\r\n"

    async def step(stream):
        await stream.send_all(head.encode() + body)

    return step
