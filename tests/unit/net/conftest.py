"""A scripted server and a fetcher that trusts it."""

import functools
import ssl

import pytest
import trio
import trustme

from crawld.net.fetcher import Fetcher
from crawld.net.resolver import FixedResolver
from tests.parsers import use_parser
from tests.unit.net.scripted_server import HOSTS, Peer, Site


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


@pytest.fixture(scope="session")
def client_tls(authority):
    """The context of all fetchers, as in a daemon; the authorities of the system take 0.03 s."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture(scope="session")
def issued(authority):
    """Return a function that returns the certificate of a host, the same one for all tests."""
    return functools.cache(authority.issue_cert)


@pytest.fixture
def server_tls(issued):
    """Return a function that makes the TLS context of a server: `server_tls("site.test")`."""

    def make(*names, **fields):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued(*names, **fields).configure_cert(context)
        return context

    return make


@pytest.fixture(params=["h11", "llhttp"])
async def make_fetcher(request, client_tls, monkeypatch):
    """Return a function that makes a fetcher that knows the addresses of these hosts."""
    use_parser(request.param, monkeypatch)
    made = []

    def make(hosts=HOSTS, **options):
        given = {"resolver": FixedResolver(hosts), "ssl_context": client_tls, **options}
        made.append(Fetcher(user_agent="crawld/0 (+test@example.org)", **given))
        return made[-1]

    yield make
    for fetcher in made:
        await fetcher.aclose()


@pytest.fixture
def fetcher(make_fetcher):
    return make_fetcher()
