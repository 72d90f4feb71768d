"""When a request counts as received: at its response header, or at an earlier acknowledgement."""

from contextlib import asynccontextmanager
from socket import SO_RCVBUF, SOL_SOCKET, socketpair

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from crawld.net.arrival import ARRIVAL_MARGIN_S, LATE_S, ArrivalWatch, all_arrived
from crawld.net.exchange import DEFAULT_LIMITS, FetchRequest
from crawld.net.network import Connection, SystemNetwork
from crawld.net.progress import Progress
from tests.unit.daemon.fake_hosts import on_autojump_clock
from tests.unit.net.h2_frames import HELLO, OK_HEADERS, answering_h2
from tests.unit.net.scripted_server import OK, answering, anywhere

BUFFER_BYTES = 4096
LARGE_BYTES = 12_000
"""A request that does not fit into the receive buffer, which the kernel doubles, but leaves the
program: of what was not sent, trio lets the kernel hold 16 KiB."""

# --- the rule, on a mock clock -------------------------------------------------------------------


class Exchange:
    """A request under way: what its socket tells at each observation, and when it was asked."""

    def __init__(self, *tells):
        self.progress = Progress(DEFAULT_LIMITS)
        self.progress.note_sending()
        self.sent_at = trio.current_time()
        self.tells = list(tells)
        self.observed_after = []

    def check(self):
        self.observed_after.append(trio.current_time() - self.sent_at)
        return self.tells.pop(0)

    @property
    def arrived_after(self):
        at = self.progress.arrived_at
        return None if at is None else at - self.sent_at

    async def answer(self, after_s):
        await trio.sleep(after_s)
        self.progress.note_header(200, ())


@asynccontextmanager
async def watching():
    watch = ArrivalWatch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.testing.wait_all_tasks_blocked()
        yield watch
        nursery.cancel_scope.cancel()


@on_autojump_clock
async def test_a_response_within_the_margin_costs_no_system_call():
    async with watching() as watch:
        exchanges = [Exchange() for _ in range(3)]
        for each in exchanges:
            watch.watch(each.progress, each.check)
            await each.answer(ARRIVAL_MARGIN_S / 2)
        await trio.sleep(10.0)
    assert [each.observed_after for each in exchanges] == [[], [], []]
    assert [each.arrived_after for each in exchanges] == [None, None, None]


@on_autojump_clock
async def test_an_acknowledged_request_has_arrived_once_the_margin_is_over():
    async with watching() as watch:
        exchange = Exchange(True)
        watch.watch(exchange.progress, exchange.check)
        await exchange.answer(0.4)
    assert exchange.observed_after == [pytest.approx(ARRIVAL_MARGIN_S)]
    assert exchange.arrived_after == exchange.observed_after[0]


@on_autojump_clock
async def test_what_is_not_acknowledged_is_observed_at_growing_intervals():
    async with watching() as watch:
        slow, fast = Exchange(*[False] * 6, True), Exchange(True)
        watch.watch(slow.progress, slow.check)
        await trio.sleep(0.4)
        fast.sent_at = trio.current_time()
        watch.watch(fast.progress, fast.check)  # due before the next observation of the other
        await slow.answer(20.0)
    margins = [after_s / ARRIVAL_MARGIN_S for after_s in slow.observed_after]
    assert margins == pytest.approx([1.5**n for n in range(7)])
    assert slow.arrived_after == slow.observed_after[-1]
    assert fast.observed_after == [pytest.approx(ARRIVAL_MARGIN_S)]


@on_autojump_clock
async def test_an_unknown_state_leaves_the_time_to_the_header():
    async with watching() as watch:
        exchange = Exchange(False, None)
        watch.watch(exchange.progress, exchange.check)
        await exchange.answer(5.0)
    assert len(exchange.observed_after) == 2
    assert exchange.arrived_after is None


@on_autojump_clock
async def test_without_its_task_a_watch_observes_nothing():
    watch, exchange = ArrivalWatch(), Exchange()
    watch.watch(exchange.progress, exchange.check)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await exchange.answer(5.0)
        nursery.cancel_scope.cancel()
    assert exchange.observed_after == []


def test_a_late_observation_does_not_count():
    clock = trio.testing.MockClock()

    async def run():
        watch, exchange = ArrivalWatch(), Exchange(True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            await trio.testing.wait_all_tasks_blocked()
            watch.watch(exchange.progress, exchange.check)
            clock.jump(ARRIVAL_MARGIN_S + 2 * LATE_S)  # the loop stood still
            await trio.testing.wait_all_tasks_blocked()
            assert exchange.observed_after == []
            clock.jump(ARRIVAL_MARGIN_S)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert exchange.arrived_after == pytest.approx(2 * ARRIVAL_MARGIN_S + 2 * LATE_S)

    trio.run(run, clock=clock)


requests = st.tuples(
    st.floats(0.0, 1.0),  # when it is sent
    st.floats(0.0, 3.0),  # after how long the peer acknowledges it
    st.floats(0.0, 3.0),  # after how long the response header is complete
)


@given(plans=st.lists(requests, max_size=8))
@on_autojump_clock
async def test_no_request_counts_before_it_was_acknowledged_or_answered(plans):
    counted = []

    async def send(watch, sent_after, acknowledged_after, answered_after):
        await trio.sleep(sent_after)
        exchange = Exchange()
        exchange.check = lambda: trio.current_time() - exchange.sent_at >= acknowledged_after
        watch.watch(exchange.progress, exchange.check)
        await trio.sleep(answered_after)
        after_s = exchange.progress.note_header(200, ()) - exchange.sent_at
        counted.append((after_s, acknowledged_after, answered_after))

    async with watching() as watch, trio.open_nursery() as nursery:
        for plan in plans:
            nursery.start_soon(send, watch, *plan)
    assert len(counted) == len(plans)
    for after_s, acknowledged_after, answered_after in counted:
        earliest = min(answered_after, max(acknowledged_after, ARRIVAL_MARGIN_S))
        latest = min(answered_after, max(1.5 * acknowledged_after, ARRIVAL_MARGIN_S))
        assert earliest - 1e-6 <= after_s <= latest + 1e-6


# --- real sockets --------------------------------------------------------------------------------


class ObservedNetwork(SystemNetwork):
    """The system's network; records what each connection's socket tells.

    Attributes:
        told: per connection the results of its observations.
        arrived: set when a socket tells for the first time that everything arrived.
        waits: set when one has told four times that something did not.
    """

    def __init__(self):
        super().__init__()
        self.told = []
        self.arrived = trio.Event()
        self.waits = trio.Event()

    async def connect(self, address, port):
        connection = await super().connect(address, port)
        told = []
        self.told.append(told)

        def check():
            told.append(connection.all_arrived())
            if told[-1]:
                self.arrived.set()
            elif told.count(False) == 4:
                self.waits.set()
            return told[-1]

        return Connection(connection.stream, connection.is_readable, check)


@pytest.fixture
def network():
    return ObservedNetwork()


@pytest.fixture
async def watched(make_fetcher, network, nursery):
    """Return a function that makes a fetcher whose arrivals are observed."""

    async def make(**options):
        fetcher = make_fetcher(network=network, **options)
        nursery.start_soon(fetcher.arrivals.run)
        await trio.testing.wait_all_tasks_blocked()
        return fetcher

    return make


class Held:
    """A peer that answers when its client has seen a request arrive; `answered_at`: when it did."""

    def __init__(self, network, answered_at, peer):
        self.network, self.answered_at = network, answered_at
        self.stream, self.site, self.request = peer.stream, peer.site, peer.request

    async def send(self, data):
        await self.network.arrived.wait()
        self.answered_at.append(trio.current_time())
        await self.stream.send_all(data)


def held(handler, network, answered_at):
    """Return a handler whose answers are held back until the client has seen a request arrive."""

    async def handle(peer):
        await handler(Held(network, answered_at, peer))

    return handle


@pytest.mark.parametrize(
    ("version", "scheme"), [("HTTP/1.1", "http"), ("HTTP/1.1", "https"), ("HTTP/2", "https")]
)
async def test_a_request_to_a_slow_server_counts_before_its_response(
    serve, watched, network, server_tls, version, scheme
):
    answered_at, http2 = [], version == "HTTP/2"
    tls = server_tls("site.test") if scheme == "https" else None
    if http2:
        tls.set_alpn_protocols(["h2"])
    handler = answering_h2(OK_HEADERS, HELLO) if http2 else answering(OK)
    site = await serve(held(handler, network, answered_at), tls)
    fetcher = await watched(http2=http2)
    url = site.url(scheme=scheme)
    got = await fetcher.fetch(FetchRequest(url=url, permits_private=anywhere))
    assert got.http_version == version
    assert got.sent_at + ARRIVAL_MARGIN_S <= got.arrived_at <= answered_at[0]


async def test_each_request_of_a_connection_is_observed(serve, watched, network):
    answered_at = []
    site = await serve(held(answering(OK, OK), network, answered_at))
    fetcher = await watched()
    for answers in (1, 2):
        network.arrived = trio.Event()
        got = await fetcher.fetch(FetchRequest(url=site.url(), permits_private=anywhere))
        assert got.sent_at + ARRIVAL_MARGIN_S <= got.arrived_at <= answered_at[-1]
        assert len(answered_at) == answers
    assert len(network.told) == site.connections == 1


async def test_a_request_that_the_peer_does_not_take_counts_from_its_response(
    watched, network, nursery
):
    read_at = []
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    listener.socket.setsockopt(SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES)
    port = listener.socket.getsockname()[1]

    async def handle(stream):
        async with stream:
            await network.waits.wait()
            read_at.append(trio.current_time())
            received = b""
            while not received.endswith(b"\r\n\r\n"):
                received += await stream.receive_some(1 << 20)
            await stream.send_all(OK)

    nursery.start_soon(trio.serve_listeners, handle, [listener])
    fetcher = await watched()
    large = ("X-Large", "x" * LARGE_BYTES)
    got = await fetcher.fetch(
        FetchRequest(url=f"http://site.test:{port}/", headers=(large,), permits_private=anywhere)
    )
    assert network.told[0][:4] == [False] * 4
    assert got.arrived_at >= read_at[0]


async def test_a_request_through_a_proxy_counts_from_its_response(serve, watched, network):
    answered_at, asked = [], trio.Event()
    handle = held(answering(OK), network, answered_at)

    async def pass_on(peer):
        await peer.request()
        asked.set()
        await network.arrived.wait()
        answered_at.append(trio.current_time())
        await peer.send(OK)

    proxy, direct = await serve(pass_on), await serve(handle)
    fetcher, got = await watched(), {}

    async def fetch(name, proxy_url=None):
        request = FetchRequest(url=direct.url(name), permits_private=anywhere, proxy=proxy_url)
        got[name] = await fetcher.fetch(request)

    async with trio.open_nursery() as fetches:
        fetches.start_soon(fetch, "/far", f"http://127.0.0.1:{proxy.port}")
        await asked.wait()
        fetches.start_soon(fetch, "/near")
    assert got["/near"].arrived_at <= min(answered_at) <= got["/far"].arrived_at
    assert network.told == [[], [True]]


def test_a_closed_socket_tells_nothing():
    ends = socketpair()
    for end in ends:
        end.close()
    assert all_arrived(ends[0].fileno)() is None
