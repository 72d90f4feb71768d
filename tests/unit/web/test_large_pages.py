"""Large stored pages beside small ones: over real sockets, from a real file."""

from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing

from crawld.daemon.analysis_memory import AnalysisMemory
from crawld.memory import LEAST_BYTES, MemoryBudget, MemoryShares
from crawld.net.http_server import HttpServer
from crawld.net.server_limits import ServerLimits
from crawld.store.engine.database import Database
from crawld.web import large_pages
from crawld.web.allowed_hosts import AllowedHosts
from crawld.web.app import MirrorApp
from crawld.web.large_pages import INLINE_BYTES, LargePages
from crawld.web.mirror import DisplayOptions
from crawld.web.reply import Postponed, Rendered, Reply
from tests.unit.web.conftest import NOW

MIB = 1 << 20
LINKS = '<a href="/a">a link</a> <img src="i.png"> text of a paragraph<p>'
RULE = 'a{background:url("i.png")}'


def page():
    return "<title>t</title>" + LINKS * (5 * MIB // len(LINKS))


def style():
    return RULE * (3 * MIB // len(RULE))


class CountedReads:
    """A database that counts its reads, and holds them while `may_go_on` is not set."""

    def __init__(self, database):
        self.database = database
        self.reads = 0
        self.may_go_on = trio.Event()
        self.may_go_on.set()

    async def read(self, *arguments, **options):
        self.reads += 1
        await self.may_go_on.wait()
        return await self.database.read(*arguments, **options)


class Served:
    def __init__(self, server, port, apart):
        self.server, self.port, self.apart = server, port, apart

    async def get(self, path):
        """Return status, header and body of a response."""
        parts = []
        head = await self.receive(path, parts.append)
        return int(head.split()[1]), head, b"".join(parts)

    async def receive(self, path, take):
        """Hand each part of a body to `take`; return the header."""
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive_some()
            head, _, body = received.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            left = length - len(body)
            take(body)
            while left > 0:
                part = await stream.receive_some()
                left -= len(part)
                take(part)
            return head


@pytest.fixture
async def serve(mirror, tmp_path, nursery):
    """Return a function that serves the mirror."""
    async with AsyncExitStack() as stack:

        async def start(display=None, **limits):
            mirror.connection.wal_checkpoint()
            opened = [
                await stack.enter_async_context(
                    await Database.open(tmp_path / "crawld.db", read_only=True)
                )
                for _ in range(2)
            ]
            apart = CountedReads(opened[1])
            errors = []
            app = MirrorApp(
                opened[0],
                apart,
                lambda: NOW + 1,
                display or DisplayOptions(),
                lambda *each: errors.append(each),
                AllowedHosts(()),
                large=LargePages(**limits),
            )
            server = HttpServer(app, ServerLimits())
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            await nursery.start(server.serve, listener)
            return Served(server, listener.socket.getsockname()[1], apart)

        yield start
        nursery.cancel_scope.cancel()


async def test_small_pages_do_not_wait_for_large_ones(mirror, serve):
    mirror.page("https://example.org/small", "<p>small")
    mirror.page("https://example.org/large", page())
    mirror.page("https://example.org/large.css", style(), kind="text/css")
    mirror.page("https://example.org/other", page() + "<p>other")
    served, order = await serve(), []

    async def get(path, marker):
        status, _, body = await served.get(f"/https/example.org{path}")
        order.append(path)
        assert status == 200
        assert marker in body

    served.apart.may_go_on = trio.Event()
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(get, "/large", b"/https/example.org/i.png")
            nursery.start_soon(get, "/large.css", b"a{background")
            nursery.start_soon(get, "/other", b"<p>other")
            while served.apart.reads < 3:  # noqa: ASYNC110 (state of the application)
                await trio.sleep(0.001)
            for _ in range(20):
                await get("/small", b"small")
            assert order == ["/small"] * 20
            served.apart.may_go_on.set()
    assert sorted(order[20:]) == ["/large", "/large.css", "/other"]
    # Rendered pages are kept: the same again is answered at once.
    before = served.apart.reads
    await get("/large", b"/https/example.org/i.png")
    assert served.apart.reads == before


async def test_many_readers_of_a_large_page_share_one_rendering(mirror, serve):
    mirror.page("https://example.org/large", page())
    served, bodies = await serve(), []

    async def get():
        sizes = []  # fifty bodies would take 600 MB
        await served.receive("/https/example.org/large", lambda part: sizes.append(len(part)))
        bodies.append(sum(sizes))

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(get)
    assert served.apart.reads == 1
    assert len(set(bodies)) == 1
    assert bodies[0] > len(page())


async def test_large_pages_keep_their_conditional_and_partial_responses(mirror, serve):
    mirror.page("https://example.org/large", page())
    served = await serve()
    status, head, body = await served.get("/https/example.org/large")
    assert (status, len(body) > len(page())) == (200, True)
    assert b"date: " in head.lower()
    etag = head.partition(b"etag: ")[2].split()[0].decode()
    request = f"/https/example.org/large HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {etag}\r\nA:"
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        await stream.send_all(f"GET {request} b\r\n\r\n".encode())
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 304 ")
    ranged = "/https/example.org/large HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-9\r\nA:"
    async with await trio.open_tcp_stream("127.0.0.1", served.port) as stream:
        await stream.send_all(f"GET {ranged} b\r\n\r\n".encode())
        assert (await stream.receive_some()).endswith(b"\r\n\r\n" + body[:10])


async def test_differences_and_searches_run_apart(mirror, serve):
    page_id = mirror.page("https://example.org/a", "<p>one " + "x" * INLINE_BYTES)
    mirror.changed(page_id, "<p>two", at=NOW + 1, kind="text/html", title="t")
    served = await serve()
    assert (await served.get("/diff/1..2/https/example.org/a"))[0] == 200
    assert served.apart.reads == 1
    assert (await served.get("/search?q=one"))[0] == 200
    assert served.apart.reads == 2


async def test_too_many_readers_of_large_pages_are_told_to_come_back(monkeypatch):
    monkeypatch.setattr(large_pages, "MAX_WAITING", 2)
    pages, gate, replies = LargePages(), trio.Event(), []

    async def render():
        await gate.wait()
        return Reply(200, rendered=Rendered("e", "text/html", b"body"))

    def finish(rendered):
        return Reply(200, rendered.body)

    async def ask():
        replies.append(await pages.reply(Postponed("e", finish), render))

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await ask()
        assert replies == [None]
        gate.set()
    assert [reply.body for reply in replies[1:]] == [b"", b"body"]
    assert pages.waiting == 0


async def test_rendered_pages_are_kept_up_to_a_limit():
    pages = LargePages(kept_bytes=10)

    async def show(etag, size_bytes):
        async def render():
            return Reply(200, rendered=Rendered(etag, "text/html", bytes(size_bytes)))

        await pages.reply(Postponed(etag, lambda kept: Reply(200, kept.body)), render)
        return [each for each in ("a", "b", "c", "d") if pages.find(each) is not None]

    assert await show("a", 4) == ["a"]
    assert await show("b", 6) == ["a", "b"]
    assert await show("c", 1) == ["b", "c"]
    assert await show("d", 99) == ["b", "c"]


async def test_a_page_too_large_to_keep_goes_to_all_who_wait_for_it(nursery):
    pages, gate, renderings, bodies = LargePages(kept_bytes=1), trio.Event(), [], []

    async def render():
        renderings.append(1)
        await gate.wait()
        return Reply(200, b"body", rendered=Rendered("e", "text/html", b"body"))

    async def ask():
        postponed = Postponed("e", lambda rendered: Reply(200, rendered.body))
        bodies.append((await pages.reply(postponed, render)).body)

    for _ in range(3):
        nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()
    gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert (bodies, renderings) == ([b"body"] * 3, [1])
    assert pages.find("e") is None


async def test_a_page_that_is_too_large_to_be_rewritten_is_shown_as_its_source(mirror, serve):
    mirror.page("https://example.org/large", page())
    mirror.page("https://example.org/small", LINKS)
    served = await serve(DisplayOptions(most_rewritten_bytes=MIB))
    status, head, body = await served.get("/https/example.org/large")
    assert (status, body) == (200, page().encode())
    assert b"content-type: text/plain" in head
    assert served.apart.reads == 1
    assert b"/https/example.org/i.png" in (await served.get("/https/example.org/small"))[2]
    whole = await serve(DisplayOptions())
    assert (await whole.get("/https/example.org/large"))[2] != body


async def test_a_copy_that_is_too_large_to_be_sent_is_not_read(mirror, serve):
    mirror.page("https://example.org/large", page())
    mirror.page("https://example.org/file", "x" * 2 * MIB, kind="application/octet-stream")
    served = await serve(DisplayOptions(most_bytes=MIB))
    for name in ("large", "file"):
        status, _, body = await served.get(f"/https/example.org/{name}")
        assert (status, b"max_memory" in body) == (503, True)
    assert served.apart.reads == 0


async def test_a_large_file_is_read_apart(mirror, serve):
    mirror.page("https://example.org/file", "x" * 2 * MIB, kind="application/octet-stream")
    mirror.page("https://example.org/image", "x" * (MIB // 2), kind="application/octet-stream")
    served = await serve()
    assert len((await served.get("/https/example.org/image"))[2]) == MIB // 2
    assert served.apart.reads == 0
    assert len((await served.get("/https/example.org/file"))[2]) == 2 * MIB
    assert served.apart.reads == 1


async def test_versions_that_are_too_large_are_not_compared(mirror, serve):
    page_id = mirror.page("https://example.org/a", page())
    mirror.changed(page_id, page() + "<p>two", at=NOW + 1, kind="text/html", title="t")
    served = await serve(most_bytes=100 * MIB)
    status, _, body = await served.get("/diff/1..2/https/example.org/a")
    assert (status, b"max_memory" in body, served.apart.reads) == (503, True, 0)


async def test_a_rendering_waits_for_memory(nursery):
    shares = MemoryShares.of(LEAST_BYTES, 1)
    budget = MemoryBudget(shares, max_body_bytes=64 * MIB)
    pages = LargePages(AnalysisMemory(budget).held)
    held = []

    async def render():
        held.append(budget.analyses.used_bytes)
        return Reply(200, rendered=Rendered("e", "text/html", b"body"))

    async def ask(memory_bytes):
        await pages.reply(Postponed("e", lambda _: Reply(200), memory_bytes), render)

    other = budget.analyses.lease()
    await other.grow(shares.analyses_bytes)
    nursery.start_soon(ask, 12 * MIB)
    await trio.testing.wait_all_tasks_blocked()
    assert (held, budget.waiting) == ([], 1)
    other.release()
    await trio.testing.wait_all_tasks_blocked()
    assert held == [12 * MIB]
    assert budget.used_bytes == 0


async def test_a_failed_rendering_lets_the_next_reader_try():
    pages = LargePages()

    async def render():
        raise RuntimeError("a bug")

    for _ in range(2):
        with pytest.raises(RuntimeError):
            await pages.reply(Postponed("e", Reply), render)
    assert pages.waiting == 0


def test_titles_and_differences_are_shown_in_part(mirror):
    mirror.page("https://example.org/a", "<p>x", title="T" * 2_000_000)
    second = "<p>" + "<p>".join(f"new {n} {'y' * 2_000}" for n in range(3_000))
    mirror.page("https://example.org/a", second, at=NOW + 1, title="T" * 2_000_000)
    for target in ("/site/docs", "/versions/https/example.org/a"):
        reply = mirror.get(target)
        assert reply.status == 200
        assert len(reply.body) < 20_000
    reply = mirror.get("/diff/1..2/https/example.org/a")
    assert reply.status == 200
    assert len(reply.body) < 3_000_000
