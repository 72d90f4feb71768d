"""Nobody waits at the control socket for what a start does once."""

import gc
from dataclasses import replace

import pytest
import trio
from pydantic import TypeAdapter

from crawld.daemon import run
from crawld.daemon.api import server
from crawld.daemon.process import COLLECTOR_THRESHOLDS
from crawld.daemon.stall_meter import StallMeter
from crawld.net.network import SystemNetwork
from tests.daemon.control_client import get
from tests.daemon.harness import TIMEOUT_S, make_site, paused_at_start, until


async def test_the_socket_appears_after_the_long_steps_of_a_start(mirror, nursery, monkeypatch):
    steps, listen = [], SystemNetwork.listen_unix
    make_app, answer = server.control_app, server._answer_once

    def control_app(running):
        steps.append("application")
        return make_app(running)

    async def answer_once(app, path):
        await answer(app, path)
        steps.append(path)

    def listen_unix(*arguments):
        steps.append("socket")
        assert gc.get_threshold() == COLLECTOR_THRESHOLDS
        return listen(*arguments)

    monkeypatch.setattr(StallMeter, "forget", lambda _: steps.append("stalls are forgotten"))
    monkeypatch.setattr(server, "control_app", control_app)
    monkeypatch.setattr(server, "_answer_once", answer_once)
    monkeypatch.setattr(SystemNetwork, "listen_unix", staticmethod(listen_unix))
    start = replace(mirror.make_start("http://a.test/", once=False), own_process=True)
    running = await nursery.start(run.run_daemon, start)
    assert steps == ["application", "/status", "stalls are forgotten", "socket"]
    assert (await get(running, "/status")).status_code == 200


@pytest.mark.parametrize(
    "kind", [{"once": True, "own_process": True}, {"once": False}], ids=["once", "in a program"]
)
async def test_where_clients_are_rare_the_first_makes_the_application(
    mirror, nursery, monkeypatch, kind
):
    made, make_app = [], server.control_app

    def control_app(running):
        made.append(running)
        return make_app(running)

    monkeypatch.setattr(server, "control_app", control_app)
    with paused_at_start():
        start = replace(mirror.make_start("http://a.test/"), **kind)
        running = await nursery.start(run.run_daemon, start)
    assert made == []
    statuses = []

    async def ask():
        statuses.append((await get(running, "/status")).status_code)

    async with trio.open_nursery() as clients:
        clients.start_soon(ask)
        clients.start_soon(ask)
    assert (statuses, made) == ([200, 200], [running])


async def test_the_request_of_nobody_is_answered(daemon):
    """A first request that fails would make nothing."""
    running = await daemon("http://a.test/")
    app, sent = server.control_app(running), []

    async def observed(scope, receive, send):
        async def keep(message):
            sent.append(message)
            await send(message)

        await app(scope, receive, keep)

    await server._answer_once(observed, "/status")
    assert sent[0]["status"] == 200


async def test_validators_are_made_once_and_none_of_failures(daemon, monkeypatch):
    made = []
    make = TypeAdapter.__init__

    def counted(self, *arguments, **options):
        made.append(arguments)
        make(self, *arguments, **options)

    running = await daemon("http://a.test/")
    monkeypatch.setattr(TypeAdapter, "__init__", counted)
    app = server.control_app(running)
    await server._answer_once(app, "/status")
    at_start = len(made)
    described = app.openapi()
    operations = [each for path in described["paths"].values() for each in path.values()]
    # Each route declares seven failures; included routers would make all others twice.
    assert at_start < 3.5 * len(operations), at_start
    schemas = described["components"]["schemas"]
    assert schemas["Problem"]["required"] == ["error"]
    assert schemas["InvalidRequest"]["properties"].keys() == {"error", "hint", "detail"}
    assert "InvalidField" in schemas
    for operation in operations:
        for status in ("400", "404", "409", "413", "422", "500", "503"):
            name = "InvalidRequest" if status == "422" else "Problem"
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": f"#/components/schemas/{name}"}


async def test_the_first_turns_do_not_wait_for_the_socket(daemon, serve, monkeypatch):
    serve_control, began = run.serve_control, []

    async def serve_after_a_request(running, task_status):
        await until(lambda: running.crawl.schedule.lateness.count, what="a first request")
        began.append(running.phase)
        await serve_control(running, task_status)

    monkeypatch.setattr(run, "serve_control", serve_after_a_request)
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    assert began == ["starting"]
    assert (await get(running, "/status")).json()["phase"] == "running"


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_shutdown_before_the_socket_is_there_ends_the_daemon(mirror, monkeypatch, obeys):
    async def serve_never(running, task_status):
        running.shutdown()
        with running.readers_scope:  # as the web listener, which ends when the daemon drains
            await trio.sleep_forever()
        if obeys:
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(run, "serve_control", serve_never)
    with trio.fail_after(TIMEOUT_S):
        ended = await run.run_daemon(mirror.make_start("http://a.test/", once=False))
    assert ended.phase == "stopping"
