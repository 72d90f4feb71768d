"""A web server of a few lines per fault, on loopback, and a fetcher that trusts it."""

import ssl
from dataclasses import dataclass, field

import pytest
import trio
import trustme

from crawld.net.fetcher import Fetcher
from crawld.net.resolver import FixedResolver

HOSTS = {"site.test": "127.0.0.1", "other.test": "127.0.0.1", "wrong.test": "127.0.0.1"}


@dataclass
class Site:
    """What the server saw."""

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


def answering(*answers):
    """Return a handler that gives these answers to the requests of a connection, then closes."""

    async def handle(peer):
        for answer in answers:
            if await peer.request() is None:
                return
            await peer.send(answer)

    return handle


@pytest.fixture
def serve(nursery):
    """Return a function that starts a server on a free port: `await serve(handler, tls=None)`."""

    async def start(handler, tls=None):
        site = Site()

        async def connection(stream):
            site.connections += 1
            if tls is not None:
                stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
            try:
                await handler(Peer(stream, site))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            finally:
                await trio.aclose_forcefully(stream)

        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        site.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, connection, listeners)
        return site

    return start


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def client_tls(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
async def fetcher(client_tls):
    fetcher = Fetcher(
        user_agent="crawld/0 (+test@example.org)",
        resolver=FixedResolver(HOSTS),
        ssl_context=client_tls,
    )
    yield fetcher
    await fetcher.aclose()
