"""A scripted web server on loopback: each test sends its faults in a few lines."""

from dataclasses import dataclass, field

import trio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"
HOSTS = {"site.test": "127.0.0.1", "other.test": "127.0.0.1", "wrong.test": "127.0.0.1"}


def anywhere(host):
    """Permit every host to have a private address, as loopback is."""
    return True


@dataclass
class Site:
    """What the server received."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    def url(self, path="/", host="site.test", scheme="http"):
        return f"{scheme}://{host}:{self.port}{path}"


class Peer:
    """One accepted connection."""

    def __init__(self, stream, site):
        self.stream = stream
        self.site = site

    async def request(self):
        """Return the next request's header, or None at the end of the connection."""
        received = b""
        while b"\r\n\r\n" not in received:
            data = await self.stream.receive_some(65536)
            if not data:
                return None
            received += data
        self.site.requests.append(received)
        return received

    async def send(self, data):
        await self.stream.send_all(data)

    def reset(self):
        """Close with RST instead of FIN."""
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self.stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
        self.stream.socket.close()


def response(body=b"", *lines, status=b"200 OK"):
    """Return a response as bytes."""
    head = b"\r\n".join((b"HTTP/1.1 " + status, *lines, b"Content-Length: %d" % len(body)))
    return head + b"\r\n\r\n" + body


def answering(*answers, flood=b"", holds=False):
    """Return a handler that sends these responses to a connection's requests, then closes.

    Before that it sends `flood` again and again, or `holds` the connection.
    """

    async def handle(peer):
        for answer in answers:
            if await peer.request() is None:
                return
            await peer.send(answer)
        while flood:
            await peer.send(flood)
        if holds:
            await trio.sleep_forever()

    return handle
