"""The control socket and what a client may send it, wanted or not."""

import pytest

from crawld.daemon.api.server import MAX_BODY_BYTES
from tests.daemon.control_client import control_client
from tests.daemon.harness import make_site


@pytest.fixture
async def client(serve, daemon):
    """A client of a daemon that rests."""
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    async with control_client(running) as opened:
        yield opened


async def in_pieces(size_bytes):
    """Yield a body whose length is not announced."""
    for _ in range(size_bytes // 65_536):
        yield bytes(65_536)


@pytest.mark.parametrize("path", ["/drain", "/jobs/audit/run", "/nothing"])
async def test_a_body_that_nobody_wants_is_taken_and_left(client, path):
    for content in (bytes(MAX_BODY_BYTES), in_pieces(MAX_BODY_BYTES)):
        answer = await client.post(path, content=content)
        assert answer.status_code == (404 if path == "/nothing" else 200)
    assert (await client.get("/status")).status_code == 200


@pytest.mark.parametrize("path", ["/add", "/nothing"])
async def test_a_body_that_is_too_long_is_refused(client, path):
    for content in (bytes(2 * MAX_BODY_BYTES), in_pieces(2 * MAX_BODY_BYTES)):
        answer = await client.post(path, content=content)
        assert answer.status_code == 413
        assert "4 MiB" in answer.json()["error"]
    assert (await client.get("/status")).status_code == 200
