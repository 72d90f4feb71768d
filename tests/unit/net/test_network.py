"""The network seam: a fetch that opens no socket."""

import errno
from contextlib import aclosing

import trio
import trio.testing

from crawld.core.page import Failure
from crawld.net.exchange import FetchRequest
from crawld.net.fetcher import Fetcher
from crawld.net.network import Connection
from crawld.net.outage import network_evidence
from crawld.net.resolver import CachedResolver, FixedResolver
from tests.unit.net.scripted_server import anywhere


class MemoryNetwork:
    """Connects to one server in memory, which sends the same response to every request."""

    def __init__(self, nursery, response):
        self.nursery = nursery
        self.response = response
        self.connected_to = []

    async def look_up(self, host):
        return ("192.0.2.1",), 60.0

    async def connect(self, address, port):
        self.connected_to.append((address, port))
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self._serve, theirs)
        return Connection(ours, lambda: False)

    async def _serve(self, stream):
        while await stream.receive_some():
            await stream.send_all(self.response)


async def test_a_fetch_goes_through_the_given_network(nursery, autojump_clock):
    network = MemoryNetwork(nursery, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    resolver = CachedResolver(network)
    nursery.start_soon(resolver.run)
    fetcher = Fetcher(user_agent="crawld", resolver=resolver, network=network)
    for _ in range(2):
        request = FetchRequest(url="http://site.test:8080/", permits_private=anywhere)
        got = await fetcher.fetch(request)
        assert (got.status, got.body, got.address) == (200, b"hello", "192.0.2.1")
    assert network.connected_to == [("192.0.2.1", 8080)]
    await fetcher.aclose()


class FewFiles(MemoryNetwork):
    """A network in which connecting fails without open files, so many times."""

    def __init__(self, nursery, response, failures):
        super().__init__(nursery, response)
        self.failures = failures

    async def connect(self, address, port):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return await super().connect(address, port)


async def fetch_with_few_files(nursery, failures):
    network = FewFiles(nursery, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", failures)
    resolver = FixedResolver({"site.test": ["192.0.2.1", "192.0.2.2"]})
    async with aclosing(
        Fetcher(user_agent="crawld", resolver=resolver, network=network)
    ) as fetcher:
        return await fetcher.fetch(FetchRequest(url="http://site.test/", permits_private=anywhere))


async def test_a_fetch_waits_for_a_free_file(nursery, autojump_clock):
    assert (await fetch_with_few_files(nursery, 5)).status == 200


async def test_a_lack_of_files_is_neither_our_networks_nor_the_hosts_fault(nursery, autojump_clock):
    result = await fetch_with_few_files(nursery, 1_000)
    assert (result.failure, result.local_fault) == (Failure.TIMEOUT, False)
    assert result.detail == "too many open files"
    assert network_evidence(result) is None
