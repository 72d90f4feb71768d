"""The HTTP server of the listeners: hostile and slow clients cost little and stop nobody else."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
import trio

from crawld.net.http_server import HttpServer
from crawld.net.server_limits import Clients, ServerLimits, client_key

MIB = 1 << 20
LIMITS = ServerLimits(patience_s=1e6, idle_s=60.0, header_s=60.0, stall_s=60.0)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@dataclass
class App:
    """Answers with `body`, as soon as `gate` is open; counts requests."""

    body: bytes = b"hello"
    requests: int = 0
    received: list = field(default_factory=list)
    gate: trio.Event = field(default_factory=trio.Event)

    async def __call__(self, scope, receive, send):
        self.requests += 1
        path = scope["path"]
        if path == "/gate":
            await self.gate.wait()
        if path == "/bug":
            raise RuntimeError("a bug")
        if path == "/read":
            while (message := await receive())["type"] == "http.request":
                self.received.append(message["body"])
                if not message["more_body"]:
                    break
        lines = [(b"content-length", b"%d" % len(self.body))]
        if path == "/parts":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for part in (self.body[:2], self.body[2:]):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": lines})
        await send({"type": "http.response.body", "body": b"" if path == "/head" else self.body})


class Served:
    """A server under test."""

    def __init__(self, server, port):
        self.server, self.port = server, port
        self.streams = []

    async def connect(self, sent=b"", *, source="127.0.0.1", receive_bytes=None):
        socket = trio.socket.socket()
        if receive_bytes is not None:
            socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, receive_bytes)
        await socket.bind((source, 0))
        await socket.connect(("127.0.0.1", self.port))
        stream = trio.SocketStream(socket)
        self.streams.append(stream)
        await stream.send_all(sent)
        return stream

    async def ask(self, sent=LAST, **more):
        """Send a request and return all that comes until the connection ends."""
        async with await self.connect(sent, **more) as stream:
            return await rest_of(stream)

    async def settle(self, condition):
        with trio.fail_after(30):
            while not condition():  # noqa: ASYNC110 (state of the server, without an event)
                await trio.sleep(0.002)


async def rest_of(stream):
    received = b""
    try:
        async for data in stream:
            received += data
    except trio.BrokenResourceError:
        pass  # the server closed while we sent
    return received


async def head_of(stream):
    received = b""
    while b"\r\n\r\n" not in received:
        data = await stream.receive_some()
        assert data, received
        received += data
    return received


@pytest.fixture
def app():
    return App()


@pytest.fixture
async def serve(nursery, app):
    """Return a function that serves the application with some limits."""

    running = []

    async def start(**limits):
        server = HttpServer(app, replace(LIMITS, **limits))
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(server.serve, listener)
        running.append(Served(server, listener.socket.getsockname()[1]))
        return running[-1]

    yield start
    for served in running:
        for stream in served.streams:
            await trio.aclose_forcefully(stream)


def status_of(response):
    return int(response.split(b" ", 2)[1]) if response else None


# --- requests and responses --------------------------------------------------------------------


async def test_requests_of_one_connection_are_answered_in_order(serve, app):
    served = await serve()
    response = await served.ask(GET + b"GET /parts HTTP/1.1\r\nHost: x\r\n\r\n" + LAST)
    assert response.count(b"HTTP/1.1 200 ") == app.requests == 3
    assert b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n" in response
    assert response.endswith(b"hello")


async def test_head_has_a_length_and_no_body(serve):
    served = await serve()
    response = await served.ask(b"HEAD /head HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"content-length: 5" in response.lower()
    assert response.endswith(b"\r\n\r\n")


async def test_a_large_body_arrives_whole(serve, app):
    app.body = bytes(range(256)) * 20_000
    served = await serve(max_waiting_bytes=1)
    assert (await served.ask()).endswith(b"\r\n\r\n" + app.body)
    assert served.server.clients.waiting_bytes == 0


async def test_a_request_body_is_read_if_the_application_wants_it(serve, app):
    served = await serve()
    post = (
        b"POST /read HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody"
    )
    response = await served.ask(post + LAST)
    assert response.count(b"HTTP/1.1 200 ") == 2
    assert b"".join(app.received) == b"body"


async def test_a_body_that_nobody_reads_is_skipped(serve, app):
    served = await serve()
    response = await served.ask(
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" + LAST
    )
    assert response.count(b"HTTP/1.1 200 ") == app.requests == 2


async def test_a_half_closed_client_gets_its_response(serve):
    served = await serve()
    async with await served.connect(GET) as stream:
        await stream.send_eof()
        assert (await rest_of(stream)).endswith(b"hello")


async def test_a_bug_costs_one_response(serve):
    served = await serve()
    assert status_of(await served.ask(b"GET /bug HTTP/1.1\r\nHost: x\r\n\r\n")) == 500
    assert status_of(await served.ask()) == 200


async def test_no_way_leads_to_http2_without_tls(serve, app):
    served = await serve()
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
    assert status_of(await served.ask(preface)) == 505
    upgrade = (
        b"Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"
    )
    response = await served.ask(b"GET / HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 200 ")
    assert app.requests == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000, 431),
        (b"GET /" + b"a" * 100_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:b\r\n" * 500 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 18 + b"\r\n\r\n", 413),
        (b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         + (b"4000\r\n" + bytes(0x4000) + b"\r\n") * 9, 413),
        (b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
    ],
)  # fmt: skip
async def test_a_hostile_request_is_refused_and_the_next_client_served(serve, request_, status):
    served = await serve()
    assert status_of(await served.ask(request_)) == status
    assert status_of(await served.ask()) == 200


async def test_an_endless_body_ends_with_the_connection(serve, app):
    served = await serve()
    chunk = b"4000\r\n" + bytes(0x4000) + b"\r\n"
    async with await served.connect(
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    ) as stream:
        assert status_of(await head_of(stream)) == 200  # before the body
        with suppress(trio.BrokenResourceError), trio.fail_after(30):
            while True:
                await stream.send_all(chunk)
    assert app.requests == 1


# --- slow clients ------------------------------------------------------------------------------


async def test_a_header_sent_byte_by_byte_ends_with_its_time(serve, app):
    served = await serve(header_s=0.2)

    async with await served.connect() as stream:
        with suppress(trio.BrokenResourceError), trio.fail_after(30):
            while True:
                await stream.send_all(b"a")
                await trio.sleep(0.01)
    assert app.requests == 0


async def test_a_pipelined_header_ends_with_its_time_too(serve, app):
    served = await serve(header_s=0.2)
    async with await served.connect(GET + b"GET /slow") as stream:
        with trio.fail_after(30):
            assert (await rest_of(stream)).endswith(b"hello")
    assert app.requests == 1


async def test_a_body_that_does_not_come_ends_with_its_time(serve, app):
    served = await serve(body_s=0.05)
    post = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo"
    with trio.fail_after(30):
        assert await served.ask(post) == b""
    assert app.requests == 1


async def test_idle_connections_are_closed(serve, app):
    served = await serve(idle_s=0.05)
    assert await served.ask(b"") == b""
    assert (await served.ask(GET)).endswith(b"hello")  # without Connection: close
    assert app.requests == 1


async def test_a_client_that_does_not_read_is_cut(serve, app):
    app.body = bytes(8 * MIB)
    served = await serve(stall_s=0.1)
    async with await served.connect(LAST, receive_bytes=4096) as stream:
        await served.settle(lambda: app.requests == 1)
        await served.settle(lambda: len(served.server.clients) == 0)
        assert served.server.clients.waiting_bytes == 0
        assert len(await rest_of(stream)) < len(app.body)


async def test_a_server_stops_although_a_client_does_not_read(app):
    app.body = bytes(8 * MIB)
    server = HttpServer(app, LIMITS)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    served = Served(server, listener.socket.getsockname()[1])
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, listener)
            async with await served.connect(LAST, receive_bytes=4096):
                await served.settle(lambda: server.clients.waiting_bytes)
                nursery.cancel_scope.cancel()
    assert len(server.clients) == 0


async def test_ten_thousand_pipelined_requests_are_not_read_ahead(serve, app):
    app.body = bytes(60_000)
    served = await serve()
    async with await served.connect(receive_bytes=4096) as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, GET * 10_000)
        await served.settle(lambda: app.requests)
        assert status_of(await served.ask()) == 200
        before = app.requests
        assert before < 300  # what the buffers of the two sockets hold
        nursery.cancel_scope.cancel()


# --- limits ------------------------------------------------------------------------------------


async def test_beyond_the_limit_of_connections_a_client_is_told_to_retry(serve, app):
    served = await serve(max_connections=3)
    streams = [await served.connect() for _ in range(3)]
    await served.settle(lambda: len(served.server.clients) == 3)
    response = await served.ask()
    assert status_of(response) == 503
    assert b"retry-after:" in response.lower()
    assert app.requests == 0
    for stream in streams:
        await stream.send_all(LAST)
        assert (await rest_of(stream)).endswith(b"hello")
    assert status_of(await served.ask()) == 200


async def test_a_full_server_closes_who_keeps_it_waiting_longest(serve):
    served = await serve(max_connections=3, patience_s=0.0)
    streams = []
    for _ in range(3):
        streams.append(await served.connect())
        await served.settle(lambda: len(served.server.clients) == len(streams))
    await streams[0].send_all(GET)
    await head_of(streams[0])  # waits since now; the others since before
    assert status_of(await served.ask()) == 200
    assert await rest_of(streams[1]) == b""
    for stream in (streams[0], streams[2]):
        await stream.send_all(LAST)
        assert (await rest_of(stream)).endswith(b"hello")


async def test_one_client_does_not_take_all_connections(serve):
    served = await serve(max_client_connections=2)
    streams = [await served.connect(source="127.0.0.2") for _ in range(2)]
    await served.settle(lambda: len(served.server.clients) == 2)
    assert status_of(await served.ask(source="127.0.0.2")) == 503
    assert status_of(await served.ask(source="127.0.0.3")) == 200
    await streams[0].aclose()
    await served.settle(lambda: len(served.server.clients) == 1)
    assert status_of(await served.ask(source="127.0.0.2")) == 200


async def test_more_requests_than_the_application_may_answer_at_once_are_refused(serve, app):
    served = await serve(max_requests=2)
    held = [await served.connect(b"GET /gate HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(2)]
    await served.settle(lambda: app.requests == 2)
    assert status_of(await served.ask()) == 503
    app.gate.set()
    for stream in held:
        await head_of(stream)
    assert status_of(await served.ask()) == 200


async def test_bodies_for_slow_readers_are_limited_and_counted_once(serve, app):
    app.body = bytes(8 * MIB)
    served = await serve(max_waiting_bytes=12 * MIB)
    clients = served.server.clients
    for number in range(20):  # all get the same object
        await served.connect(GET, receive_bytes=4096)
        await served.settle(lambda number=number: app.requests == number + 1)
    assert clients.waiting_bytes == 8 * MIB
    app.body = bytearray(app.body).replace(b"\0", b"\1", 1)  # another page
    app.body = bytes(app.body)
    response = await served.ask()
    assert status_of(response) == 503
    app.body = b"small"
    assert (await served.ask()).endswith(b"small")


async def test_a_slow_reader_gives_way_to_a_new_one(serve, app):
    app.body = bytes(8 * MIB)
    served = await serve(max_waiting_bytes=12 * MIB, patience_s=0.0)
    slow = await served.connect(GET, receive_bytes=4096)
    await served.settle(lambda: served.server.clients.waiting_bytes)
    app.body = b"\1" * (8 * MIB)
    assert (await served.ask()).endswith(app.body)
    assert len(await rest_of(slow)) < 8 * MIB


async def test_a_flood_of_refused_clients_is_bounded(serve):
    served = await serve(max_connections=1)
    first = await served.connect()
    await served.settle(lambda: len(served.server.clients) == 1)
    refused = [await served.connect() for _ in range(100)]
    responses = [await rest_of(stream) for stream in refused]
    assert {status_of(response) for response in responses} <= {503, None}
    await first.send_all(LAST)
    assert (await rest_of(first)).endswith(b"hello")


def test_a_network_of_ipv6_is_one_client():
    keys = [client_key(f"2001:db8:1:2::{number}") for number in range(3)]
    assert len(set(keys)) == 1
    assert client_key("2001:db8:1:3::1") not in keys
    assert client_key("::ffff:192.0.2.1") != client_key("::ffff:192.0.2.2")


class Connection:
    client = "a"
    closed = False

    def close(self):
        self.closed = True


async def test_only_who_is_sent_a_body_gives_way_to_a_body():
    clients = Clients(ServerLimits(patience_s=0.0, max_waiting_bytes=100))
    idle, slow, new = Connection(), Connection(), Connection()
    for each in (idle, slow, new):
        assert clients.admit(each)
    assert clients.hold(slow, bytes(200_000))
    clients.start_waiting(idle)
    clients.start_waiting(slow)
    assert clients.hold(new, b"a" * 200_000)
    assert (idle.closed, slow.closed, len(clients)) == (False, True, 2)


async def test_counts_return_to_zero():
    clients = Clients(ServerLimits(max_connections=2, patience_s=0.0, max_waiting_bytes=100))
    one, two, three = Connection(), Connection(), Connection()
    body = bytes(200_000)
    assert clients.admit(one)
    assert clients.admit(two)
    assert clients.hold(one, body)  # alone, it always has room
    assert clients.hold(two, body)
    assert clients.waiting_bytes == len(body)
    assert not clients.admit(three)  # both are being served
    clients.start_waiting(one)
    assert clients.admit(three)
    assert one.closed
    clients.remove(one)
    assert clients.waiting_bytes == len(body)
    clients.remove(two)
    clients.remove(three)
    assert (len(clients), clients.waiting_bytes) == (0, 0)
