"""Shutdown of the daemon, and bugs behind the control socket."""

import httpx
import pytest
import trio
from structlog.testing import capture_logs

from crawld.daemon.api.server import control_app
from crawld.daemon.run import run_daemon
from crawld.errors import StoreError
from crawld.simweb import fault
from crawld.store.engine import meta
from tests.daemon.control_client import get
from tests.daemon.harness import TIMEOUT_S, make_site, paused_at_start, until


async def test_a_watcher_ends_before_the_file_closes(mirror):
    reads = 0

    async def watch(daemon):
        nonlocal reads
        while True:  # never idle: its next read would meet the closed file
            await daemon.database.read(lambda connection: connection.total_changes())
            reads += 1
            daemon.shutdown()

    with trio.fail_after(TIMEOUT_S):
        daemon = await run_daemon(mirror.make_start("http://a.test/", once=False), watch)
    assert daemon.phase == "stopping"
    assert reads


async def test_a_response_that_does_not_end_holds_no_shutdown(serve, daemon, monkeypatch):
    monkeypatch.setattr("crawld.daemon.daemon.DRAIN_S", 0.1)
    site = make_site("a.test")
    page = site.graph.path(1)  # not "/", which is the prefix of robots.txt, too
    site.faults = {page: fault.hang_mid_body()}
    web = await serve(site)
    running = await daemon(web.url(page))
    await until(lambda: page in web.targets("a.test"))
    with trio.fail_after(10.0):  # less than the time without data that ends a fetch
        running.shutdown()
        await until(lambda: running.phase == "stopping")


async def test_a_signal_during_the_end_does_not_begin_it_again(mirror):
    phases = []

    async def watch(daemon):
        daemon.shutdown()
        try:
            await trio.sleep_forever()
        finally:
            phases.append(daemon.phase)
            daemon.stop_now()
            phases.append(daemon.phase)

    with trio.fail_after(TIMEOUT_S):
        await run_daemon(mirror.make_start("http://a.test/", once=False), watch)
    assert phases == ["stopping", "stopping"]


async def test_a_daemon_whose_file_cannot_be_written_answers_until_it_is_told_to_end_at_once(
    mirror, nursery
):
    # A one-off mirror runs no jobs: the only write is that below.
    with paused_at_start():
        running = await nursery.start(run_daemon, mirror.make_start("http://a.test/"))
    await until(lambda: running.site_registry.seeded)
    database, lost = running.database, trio.Event()
    await database.on_writer(lambda connection: connection.execute("PRAGMA max_page_count = 1"))

    async def write():
        with pytest.raises(StoreError):
            await database.write(meta.put, "large", "x" * 100_000)
        lost.set()

    nursery.start_soon(write)
    try:
        await until(lambda: database.stalled, what="the stall")
        running.shutdown()
        await until(lambda: running.phase == "stopping", what="the end of the turns")
        for _ in range(10):
            assert (await get(running, "/status")).json()["phase"] == "stopping"
        running.stop_now()
        with trio.fail_after(TIMEOUT_S):
            await lost.wait()
    finally:
        database.give_up()


async def test_a_bug_behind_the_socket_is_reported_and_logged(daemon):
    async def bug() -> None:
        raise RuntimeError("a bug")

    app = control_app(await daemon("http://a.test/"))
    app.add_api_route("/bug", bug)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://crawld") as client:
        with capture_logs() as logged:
            response = await client.get("/bug")
    assert response.status_code == 500
    assert response.json()["error"] == "RuntimeError: a bug"
    assert [line["path"] for line in logged if line["event"] == "control_failed"] == ["/bug"]
