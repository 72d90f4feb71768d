"""Sites with a proxy or a monthly quota of bytes."""

from functools import partial

import pytest
import trio

from crawld.daemon.fetch.metered_fetcher import month_of
from tests.daemon.harness import make_site, until
from tests.daemon.hints.event_server import EventServer, canary, sending
from tests.daemon.hints.test_documents import sources

DAY_S = 86_400.0


class Proxy:
    """An HTTP proxy that records request lines and counts the bytes of responses."""

    def __init__(self, port):
        self.port = port
        self.request_lines = []
        self.response_bytes = 0
        self.refuses = False

    async def handle(self, stream):
        async with stream:
            head = bytes(await stream.receive_some(65_536))
            if self.refuses:
                self.request_lines.append(head.split(b"\r\n", 1)[0].decode())
                await stream.send_all(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                )
            elif head:
                await self.forward(stream, head)

    async def forward(self, stream, head):
        """Forward requests (each arrives in one piece) and their responses."""
        port = int(head.split()[1].split(b"/")[2].rpartition(b":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as server:
            await server.send_all(self.origin_form(head))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pump, stream, server, nursery.cancel_scope, self.origin_form)
                nursery.start_soon(pump, server, stream, nursery.cancel_scope, self.count)

    def count(self, piece):
        """Count a piece of a response; return it as it is."""
        self.response_bytes += len(piece)
        return piece

    def origin_form(self, head):
        """Record a request; return it in origin form, with a path instead of the whole URL."""
        line = head.split(b"\r\n", 1)[0].decode()
        self.request_lines.append(line)
        target = line.split()[1]
        return head.replace(target.encode(), b"/" + target.split("/", 3)[3].encode(), 1)


async def pump(source, sink, scope, change):
    """Copy a stream through `change` until it ends, then cancel the scope."""
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
    """A server of an event stream."""
    server = EventServer()
    await nursery.start(server.serve)
    return server


async def test_every_request_of_a_site_goes_through_its_proxy(serve, mirror, proxy):
    web = await serve(make_site(pages=4))
    await mirror.run(web.url(), site={"proxy": f"http://127.0.0.1:{proxy.port}"})
    assert [state for state, *_ in mirror.pages().values()] == ["visited"] * 4
    lines = [line.split()[:2] for line in proxy.request_lines]
    assert [method for method, _ in lines] == ["GET"] * len(lines)
    assert lines[0][1] == web.url("/robots.txt")
    assert len(web.targets()) == 5


@pytest.mark.parametrize("host", ["127.0.0.1", "c.test"])
async def test_private_addresses_are_refused_also_through_a_proxy(
    serve, daemon, mirror, proxy, host
):
    web = await serve(make_site(host))
    proxied = {"proxy": f"http://127.0.0.1:{proxy.port}", "allow_private": False}
    running = await daemon(web.url(host=host), site=proxied)
    origin = web.url("", host)
    await until(lambda: running.crawl.robots.closed_until(origin) > 0, what="a closed origin")
    assert proxy.request_lines == []
    assert web.targets(host) == []
    assert mirror.rows("SELECT 1 FROM visit") == []


async def test_a_proxy_that_refuses_sends_nothing_to_the_host(serve, daemon, mirror, proxy):
    proxy.refuses = True
    web = await serve(make_site(pages=4))
    await daemon(web.url(), site={"proxy": f"http://127.0.0.1:{proxy.port}"})
    await until(lambda: proxy.request_lines)
    assert web.targets() == []


async def test_a_site_over_its_monthly_quota_waits_for_the_next_month(serve, daemon, mirror, wall):
    web = await serve(make_site(pages=30))
    running = await daemon(web.url(), site={"monthly_bytes": 20_000})
    site = next(iter(running.state.sites.values()))
    await until(lambda: running.state.traffic.is_over_quota(site), what="the monthly quota")
    await running.drain()
    requests = len(web.targets())
    running.set_paused(paused=False)
    assert requests < 30
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert 20_000 <= counted == running.state.traffic.of(site.site_id)
    assert running.crawl.wanted_at(running.state.hosts["a.test"].slot) is None
    # The crawl goes on in the next month.
    wall.shift_s += 32 * DAY_S
    await running.site_registry.update_times()
    await until(lambda: len(web.targets()) > requests, what="the next month")


async def test_a_day_judges_urls_anew_and_an_hour_none(serve, daemon, wall):
    web = await serve(make_site(pages=4))
    running = await daemon(web.url())
    judged = running.state.admission._recent
    wall.shift_s += DAY_S - running.clock.now() % DAY_S - 60.0
    await running.site_registry.update_times()
    before = running.state.admission._recent
    wall.shift_s += 30.0
    await running.site_registry.update_times()
    assert running.state.admission._recent is before
    wall.shift_s += 60.0
    await running.site_registry.update_times()
    assert running.state.admission._recent not in (judged, before)


async def test_every_received_byte_counts_towards_the_quota(serve, mirror, proxy):
    web = await serve(make_site(pages=4))
    site = {"proxy": f"http://127.0.0.1:{proxy.port}", "monthly_bytes": 10_000_000}
    await mirror.run(web.url(), site=site)
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert counted == proxy.response_bytes


async def test_an_event_stream_ends_when_the_monthly_quota_is_used_up(
    event_server, serve, daemon, mirror
):
    web = await serve(make_site(pages=1))

    async def endless():
        return b"".join(canary(number) for number in range(2_000))

    event_server.script = [sending(endless)]
    site = {"event_stream": event_server.url, "monthly_bytes": 100_000}
    running = await daemon(web.url(), site=site)
    active = next(iter(running.state.sites.values()))
    await until(lambda: running.state.traffic.is_over_quota(active), what="the monthly quota")
    await until(
        lambda: sources(mirror).get("event_stream", (None,) * 4)[3], what="the end of the stream"
    )
    [[counted]] = mirror.rows("SELECT received_bytes FROM traffic")
    assert counted == running.state.traffic.of(active.site_id) >= 100_000
    assert len(event_server.heads) == 1


def test_months_are_calendar_months():
    assert month_of(0.0) == 12 * 1970
    assert month_of(31 * DAY_S - 1) == 12 * 1970
    assert month_of(31 * DAY_S) == 12 * 1970 + 1
    # A wrong clock ends no turn.
    assert month_of(1e15) == 12 * 9999 + 11
    assert month_of(-1e15) == 12 * 1970
