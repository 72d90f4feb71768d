"""Sites on metered lines: through a proxy, and so many bytes a month."""

from functools import partial

import pytest
import trio

from crawld.daemon.fetch.metered_fetcher import month_of
from crawld.net.proxy import proxy_address
from tests.daemon.harness import make_site, until
from tests.daemon.hints.event_server import EventServer, canary, sending
from tests.daemon.hints.test_documents import sources

DAY_S = 86_400.0


class Proxy:
    """An HTTP proxy that knows what it was asked for."""

    def __init__(self, port):
        self.port = port
        self.asked = []
        self.answered_bytes = 0
        self.refuses = False

    async def handle(self, stream):
        async with stream:
            head = bytes(await stream.receive_some(65_536))
            if self.refuses:
                self.asked.append(head.split(b"\r\n", 1)[0].decode())
                await stream.send_all(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
            elif head:
                await self.pass_on(stream, head)

    async def pass_on(self, stream, head):
        """Pass requests on, each of which comes in one piece."""
        port = int(head.split()[1].split(b"/")[2].rpartition(b":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as onward:
            await onward.send_all(self.told(head))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pump, stream, onward, nursery.cancel_scope, self.told)
                nursery.start_soon(pump, onward, stream, nursery.cancel_scope, self.counted)

    def counted(self, piece):
        """Note a piece of an answer, and return it as it is."""
        self.answered_bytes += len(piece)
        return piece

    def told(self, head):
        """Return a request as the server is told it: a path instead of the whole URL."""
        line = head.split(b"\r\n", 1)[0].decode()
        self.asked.append(line)
        target = line.split()[1]
        return head.replace(target.encode(), b"/" + target.split("/", 3)[3].encode(), 1)


async def pump(source, sink, scope, change=bytes):
    try:
        async for piece in source:
            await sink.send_all(change(piece))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


@pytest.fixture
async def proxy(nursery):
    server = Proxy(0)
    listeners = await nursery.start(partial(trio.serve_tcp, server.handle, 0, host="127.0.0.1"))
    server.port = listeners[0].socket.getsockname()[1]
    return server


@pytest.fixture
async def event_server(nursery):
    """A server of events."""
    server = EventServer()
    await nursery.start(server.serve)
    return server


async def test_every_request_of_a_site_goes_through_its_proxy(serve, mirror, proxy):
    web = await serve(make_site(pages=4))
    await mirror.run(web.url(), site={"proxy": f"http://127.0.0.1:{proxy.port}"})
    assert [state for state, *_ in mirror.pages().values()] == ["visited"] * 4
    lines = [line.split()[:2] for line in proxy.asked]
    assert [method for method, _ in lines] == ["GET"] * len(lines)
    assert lines[0][1] == web.url("/robots.txt")
    assert len(web.targets()) == 5


@pytest.mark.parametrize("host", ["127.0.0.1", "c.test"])
async def test_the_fence_holds_in_front_of_a_proxy(serve, daemon, mirror, proxy, host):
    web = await serve(make_site(host))
    proxied = {"proxy": f"http://127.0.0.1:{proxy.port}", "allow_private": False}
    running = await daemon(web.url(host=host), site=proxied)
    origin = web.url("", host)
    await until(lambda: running.crawl.robots.closed_until(origin) > 0, what="a closed origin")
    assert proxy.asked == []
    assert web.targets(host) == []
    assert mirror.rows("SELECT 1 FROM visit") == []


async def test_a_proxy_that_refuses_is_no_fault_of_the_host(serve, daemon, mirror, proxy):
    proxy.refuses = True
    web = await serve(make_site(pages=4))
    await daemon(web.url(), site={"proxy": f"http://127.0.0.1:{proxy.port}"})
    await until(lambda: proxy.asked)
    assert web.targets() == []


@pytest.mark.parametrize("url", ["ftp://a:1", "http://u@a:1", "http://a:1/x", "https://a:1"])
def test_what_is_no_proxy(url):
    with pytest.raises(ValueError, match="http"):
        proxy_address(url)


async def test_a_site_rests_when_its_month_is_used_up(serve, daemon, mirror, wall):
    web = await serve(make_site(pages=30))
    running = await daemon(web.url(), site={"monthly_bytes": 20_000})
    site = next(iter(running.state.sites.values()))
    await until(
        lambda: running.state.traffic.is_over_quota(site), what="the end of the month's bytes"
    )
    await running.drain()
    asked = len(web.targets())
    running.set_paused(paused=False)
    assert asked < 30
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert 20_000 <= counted == running.state.traffic.of(site.site_id)
    assert running.crawl.wanted_at(running.state.hosts["a.test"].slot) is None
    # Another month, and it goes on.
    wall.shift_s += 32 * DAY_S
    running.site_registry.update_quiet_hours()
    await until(lambda: len(web.targets()) > asked, what="the next month")


async def test_all_that_came_counts_robots_too(serve, mirror, proxy):
    web = await serve(make_site(pages=4))
    site = {"proxy": f"http://127.0.0.1:{proxy.port}", "monthly_bytes": 10_000_000}
    await mirror.run(web.url(), site=site)
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert counted == proxy.answered_bytes


async def test_a_stream_ends_with_the_month(event_server, serve, daemon, mirror):
    web = await serve(make_site(pages=1))

    async def endless():
        return b"".join(canary(number) for number in range(2_000))

    event_server.script = [sending(endless)]
    site = {"event_stream": event_server.url, "monthly_bytes": 100_000}
    running = await daemon(web.url(), site=site)
    active = next(iter(running.state.sites.values()))
    await until(
        lambda: running.state.traffic.is_over_quota(active), what="the end of the month's bytes"
    )
    await until(lambda: sources(mirror).get("event_stream", (None,) * 4)[3], what="its end")
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert counted == running.state.traffic.of(active.site_id) >= 100_000
    assert len(event_server.heads) == 1


def test_months_are_those_of_the_calendar():
    assert month_of(0.0) == 12 * 1970
    assert month_of(31 * DAY_S - 1) == 12 * 1970
    assert month_of(31 * DAY_S) == 12 * 1970 + 1
