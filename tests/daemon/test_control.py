"""Request bodies at the control socket: unexpected and too long ones."""

import pytest

from crawld.daemon.api.server import MAX_BODY_BYTES
from tests.daemon.control_client import control_client
from tests.daemon.harness import make_site


@pytest.fixture
async def client(serve, daemon):
    """A client of the control socket of a daemon."""
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    async with control_client(running) as opened:
        yield opened


async def in_pieces(size_bytes):
    """Yield a body in pieces, so that the request states no length."""
    for _ in range(size_bytes // 65_536):
        yield bytes(65_536)


@pytest.mark.parametrize("path", ["/drain", "/jobs/audit/run", "/nothing"])
async def test_an_unexpected_body_is_read_and_ignored(client, path):
    for content in (bytes(MAX_BODY_BYTES), in_pieces(MAX_BODY_BYTES)):
        response = await client.post(path, content=content)
        assert response.status_code == (404 if path == "/nothing" else 200)
    assert (await client.get("/status")).status_code == 200


@pytest.mark.parametrize("path", ["/add", "/nothing"])
async def test_a_too_long_body_is_refused(client, path):
    for content in (bytes(2 * MAX_BODY_BYTES), in_pieces(2 * MAX_BODY_BYTES)):
        response = await client.post(path, content=content)
        assert response.status_code == 413
        assert "4 MiB" in response.json()["error"]
    assert (await client.get("/status")).status_code == 200
