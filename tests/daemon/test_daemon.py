"""Shutdown of the daemon, and bugs behind the control socket."""

import httpx
import trio
from structlog.testing import capture_logs

from crawld.daemon.api.server import control_app
from crawld.daemon.run import run_daemon
from crawld.simweb import fault
from tests.daemon.harness import TIMEOUT_S, make_site, until


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
    site = make_site("a.test", faults={"/": fault.hang_mid_body()})
    web = await serve(site)
    running = await daemon(web.url())
    await until(lambda: "/" in web.targets("a.test"))
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
