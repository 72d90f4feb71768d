"""A real receiver of webhooks, which keeps what it gets and answers as it is told."""

import json
from dataclasses import dataclass, field

import trio

from tests.daemon.http_server import listen, next_head


@dataclass
class Receiver:
    """The requests that came, in order.

    Attributes:
        status: of each answer; None: it never answers.
        location: of a redirect.
        retry_after: header of each answer; empty: none.
    """

    status: int | None = 200
    location: str = ""
    retry_after: str = ""
    heads: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    port: int = 0

    async def run(self, task_status):
        await listen(self, self.talk, task_status)

    async def talk(self, stream):
        found = await next_head(stream)
        if found is None:
            return
        head, body = found
        length = int(self.header(head, "content-length"))
        while len(body) < length:
            body += await stream.receive_some(65_536)
        self.heads.append(head)
        self.bodies.append(body)
        if self.status is None:
            await trio.sleep_forever()
        lines = f"Location: {self.location}\r\n" if self.location else ""
        lines += f"Retry-After: {self.retry_after}\r\n" if self.retry_after else ""
        answer = f"HTTP/1.1 {self.status} Said\r\nContent-Length: 0\r\n{lines}\r\n"
        await stream.send_all(answer.encode())

    def url(self, path="/hook", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    @property
    def messages(self):
        """The bodies, parsed."""
        return [json.loads(body) for body in self.bodies]

    @property
    def keys(self):
        """The key of each request."""
        return [self.header(head, "idempotency-key") for head in self.heads]

    @property
    def events(self):
        """The numbers of the events of all messages, in order."""
        return [event["event_id"] for each in self.messages for event in each["events"]]

    @staticmethod
    def header(head, name):
        [value] = [
            line.partition(":")[2].strip()
            for line in head.splitlines()[1:]
            if line.lower().startswith(f"{name}:")
        ]
        return value
