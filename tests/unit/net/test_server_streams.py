"""Responses that are sent in parts for hours take nothing from other clients of the server."""

from dataclasses import dataclass

import pytest

from tests.unit.net.test_http_server import (
    GET,
    LAST,
    MIB,
    App,
    head_of,
    rest_of,
    status_of,
)
from tests.unit.net.test_http_server import serve as serve

STREAM = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class StreamingApp(App):
    """Answers `/stream` in parts until the client is gone; the second one waits for `gate`."""

    async def __call__(self, scope, receive, send):
        if scope["path"] != "/stream":
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": self.body, "more_body": True})
                await self.gate.wait()
        except OSError as error:
            self.received.append(error)
            raise


@pytest.fixture
def app():
    return StreamingApp()


async def open_stream(served, **more):
    stream = await served.connect(STREAM, **more)
    head = await head_of(stream)
    return stream, head


async def test_streams_are_not_requests_that_are_answered_at_once(serve):
    served = await serve(max_requests=1)
    for _ in range(3):
        assert status_of((await open_stream(served))[1]) == 200
    assert served.server.requests == 0
    assert status_of(await served.ask()) == 200


async def test_beyond_the_limit_of_streams_a_client_is_told_to_retry(serve):
    served = await serve(max_streams=1)
    stream, _ = await open_stream(served)
    refused = await served.ask(STREAM)
    assert status_of(refused) == 503
    assert b"retry-after:" in refused.lower()
    assert status_of(await served.ask()) == 200
    await stream.aclose()
    await served.settle(lambda: len(served.server.clients) == 1)  # not noticed before it sends
    assert status_of(await served.ask(STREAM)) == 503


@pytest.mark.parametrize("limit", ["max_connections", "max_client_connections"])
async def test_a_stream_gives_way_to_another_connection(serve, limit):
    served = await serve(**{limit: 3})
    streams = [(await open_stream(served))[0] for _ in range(2)]
    reader = await served.connect(GET)
    await head_of(reader)
    assert status_of(await served.ask()) == 200
    assert b"0\r\n\r\n" not in await rest_of(streams[0])
    assert len(served.server.clients._streams) == 1
    await reader.send_all(LAST)
    assert (await rest_of(reader)).endswith(b"hello")


async def test_a_stream_whose_client_stalls_is_dropped(serve, app):
    app.body = bytes(8 * MIB)
    app.gate.set()
    served = await serve(stall_s=0.05)
    await served.connect(STREAM, receive_bytes=4096)
    await served.settle(lambda: app.received)
    await served.settle(lambda: not served.server.clients)
    assert not served.server.clients._streams
    assert not served.server.clients.waiting_bytes
