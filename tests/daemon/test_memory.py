"""A daemon with little memory: everything is mirrored, large pages one after the other."""

import gzip

import pytest
import trio

from crawld.daemon.api.routes import status_of
from crawld.daemon.run import run_daemon
from crawld.memory import MIB
from tests.daemon.harness import TIMEOUT_S, until
from tests.daemon.http_server import listen, next_head

LARGE_BYTES = 6 * MIB
LARGE, SMALL = 8, 4


class PageServer:
    """Serves `/large/N` and `/small/N` on every loopback address: hosts do not share one."""

    def __init__(self):
        self.port = 0
        self.large = gzip.compress(self.page(LARGE_BYTES))

    def page(self, size_bytes):
        text = b"<p>lorem ipsum <a href='/small/1'>dolor</a> sit amet\n"
        return text * (size_bytes // len(text))

    def body(self, path):
        """Return the header lines and the body of a path."""
        if path.startswith("/large/"):
            return b"Content-Encoding: gzip\r\n", self.large
        return b"", self.page(2000)

    async def serve(self, task_status):
        await listen(self, self._talk, task_status, host="0.0.0.0")

    async def _talk(self, stream):
        while (request := await next_head(stream)) is not None:
            path = request[0].split()[1]
            if path == "/robots.txt":
                await stream.send_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            lines, body = self.body(path)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n"
            await stream.send_all(head % (lines, len(body)) + body)


@pytest.fixture
async def server(nursery):
    return await nursery.start(PageServer().serve)


def hosts():
    return [f"h{number}.test" for number in range(LARGE + SMALL)]


def seeds(server):
    """Return a large page of each of the first hosts, a small page of each other host."""
    kinds = ["large"] * LARGE + ["small"] * SMALL
    return [
        f"http://{host}:{server.port}/{kind}/1" for host, kind in zip(hosts(), kinds, strict=True)
    ]


def tables(**daemon):
    addresses = {host: [f"127.0.0.{n + 1}"] for n, host in enumerate(hosts())}
    return {"daemon": {"max_memory": "64 MiB", **daemon}, "dns": {"hosts": addresses}}


@pytest.fixture
def all_addresses(monkeypatch):
    """Let the server accept connections on every loopback address."""


async def test_every_large_page_is_mirrored_in_little_memory(mirror, server):
    start = mirror.make_start(*seeds(server), **tables())
    most = 0
    daemons = []

    async def watch(daemon):
        nonlocal most
        daemons.append(daemon)
        while True:
            most = max(most, daemon.budget.used_bytes)
            await trio.sleep(0.001)

    with trio.fail_after(TIMEOUT_S):
        await run_daemon(start, watch)
    outcomes = {path: row[1] for path, row in mirror.pages().items()}
    assert set(outcomes.values()) == {"changed"}
    stored = mirror.rows("SELECT url FROM page WHERE version_id IS NOT NULL")
    assert {url for (url,) in stored} >= set(seeds(server))
    budget = daemons[0].budget
    assert LARGE_BYTES <= most <= budget.shares.bodies_bytes + budget.shares.analyses_bytes
    assert budget.used_bytes == budget.waiting == 0


async def test_small_pages_pass_while_large_ones_wait(mirror, server, daemon):
    running = await daemon(*seeds(server), **tables())
    held = []
    running.set_paused(paused=True)
    await until(lambda: not running.crawl.schedule.on_turn, what="the end of the turns")
    for pool in (running.budget.bodies, running.budget.analyses):
        pool.trimmed(pool.stale_bytes)
        while pool.room_bytes:
            held.append(pool.lease())
            await held[-1].grow(pool.room_bytes)
    running.set_paused(paused=False)

    def copies(kind):
        like = f"%/{kind}/1"
        return mirror.rows(
            "SELECT count(*) FROM page WHERE version_id IS NOT NULL AND url LIKE ?", like
        )[0][0]

    await until(lambda: copies("small") == SMALL, what="copies of all small pages")
    await until(lambda: running.budget.waiting == LARGE, what="large pages that wait")
    status = await status_of(running)
    assert (status.memory.limit_bytes, status.memory.waiting) == (64 * MIB, LARGE)
    assert status.memory.used_bytes >= 20 * MIB
    held.clear()
    await until(lambda: copies("large") == LARGE, what="copies of all large pages")


async def test_a_copy_that_waits_for_its_commit_holds_its_stored_size(mirror, server, daemon):
    running = await daemon(seeds(server)[0], **tables())
    recorder, budget = running.crawl.recorder, running.budget
    held_bytes = []
    commit = recorder._commit

    async def observed(batch):
        await running.crawl.schedule.wait_idle()
        held_bytes.append(budget.bodies.used_bytes)
        return await commit(batch)

    recorder._commit = observed
    await until(lambda: mirror.rows("SELECT 1 FROM version"), what="a copy")
    assert 0 < max(held_bytes) < LARGE_BYTES // 2
