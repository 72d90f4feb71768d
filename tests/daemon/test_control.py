"""Request bodies at the control socket: unexpected and too long ones."""

import pytest
import trio

from crawld.daemon.api.server import MAX_BODY_BYTES
from tests.daemon.control_client import control_client, get, post
from tests.daemon.harness import make_site, until


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


async def test_a_forgiven_host_is_asked_again_at_its_plain_delay(serve, daemon, mirror):
    web = await serve(make_site(pages=2))
    running = await daemon(web.url(), schedule={"min_revisit_s": 0.0})
    await until(lambda: web.targets())
    host = running.state.hosts["a.test"]
    for _ in range(12):
        host.record_trouble(running.clock.now(), 3_600.0)
        host.record_trouble(running.clock.now(), None)
    host.rest_from(trio.current_time())
    await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
    await running.crawl.recorder.drain()
    before = (await get(running, "/hosts/a.test")).json()
    assert before["backoff_level"] > 10
    assert before["delay_s"] > 1_000.0 > before["base_delay_s"]
    assert before["closed_until"] > running.clock.now() + 3_000.0
    asked = len(web.targets())
    response = await post(running, "/hosts/a.test/forgive")
    assert response.json() == {"done": "a.test is asked again in 0 s or less"}
    await until(lambda: len(web.targets()) > asked + 2, what="requests")
    after = (await get(running, "/hosts/a.test")).json()
    assert (after["backoff_level"], after["closed_until"]) == (0, None)
    assert mirror.rows("SELECT backoff_level, closed_until FROM host") == [(0, None)]
    assert (await post(running, "/hosts/b.test/forgive")).status_code == 404
