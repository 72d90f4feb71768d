"""A page that names thousands of hosts: their lookups stop nobody else's crawl."""

import pytest

from crawld.daemon.schedule.connectivity import PAUSE
from crawld.net import resolver
from tests.daemon.harness import until
from tests.daemon.http_server import listen, next_head
from tests.daemon.name_server import NXDOMAIN, SERVFAIL, NameServer

HOSTS = 150
PAGES = 40


class CrowdServer:
    """www.wiki.test has `PAGES` pages; each names hosts, `HOSTS` in all. Every host answers.

    Attributes:
        asked: (host, path) of each request, in order.
    """

    def __init__(self, domain):
        self.domain = domain
        self.asked = []

    async def serve(self, task_status):
        """Serve until cancelled."""
        await listen(self, self._talk, task_status)

    async def _talk(self, stream):
        rest = b""
        async with stream:
            while (received := await next_head(stream, rest)) is not None:
                head, rest = received
                path = head.split()[1]
                host = head.lower().partition("\r\nhost: ")[2].split()[0].partition(":")[0]
                self.asked.append((host, path))
                body = self._page(path) if host == "www.wiki.test" else b"hello"
                status = "404 Not Found" if path == "/robots.txt" else "200 OK"
                await stream.send_all(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )

    def _page(self, path):
        if path != "/":
            return b"<p>page"
        links = [f"http://h{n}.{self.domain(n)}:{self.port}/" for n in range(HOSTS)]
        links += [f"/p{n}" for n in range(PAGES)]
        return "".join(f'<a href="{link}">x</a>' for link in links).encode()

    def pages(self, host="www.wiki.test"):
        """Return the paths asked at a host, without robots.txt."""
        return [path for asked, path in self.asked if asked == host and path != "/robots.txt"]


class Pauses:
    """Collects the reasons for which a schedule is paused."""

    def __init__(self, schedule):
        self.reasons = []
        self._pause = schedule.pause
        schedule.pause = self

    def __call__(self, reason):
        self.reasons.append(reason)
        self._pause(reason)


@pytest.fixture
def crawl_crowd(nursery, daemon):
    """Return a function that crawls a crowd of hosts whose names a policy answers."""

    async def start(policy, domain=lambda n: "wiki.test", **tables):
        def decide(name):
            return 0.0 if name == "www.wiki.test" else policy(name)

        names = await nursery.start(NameServer(decide).serve)
        web = await nursery.start(CrowdServer(domain).serve)
        domains = {domain(n) for n in range(HOSTS)} | {"www.wiki.test"}
        site = {"hosts": sorted(domains), "subdomains": True}
        running = await daemon(
            f"http://www.wiki.test:{web.port}/",
            site=site,
            dns={"nameservers": ["127.0.0.1"], "nameserver_port": names.port, "hosts": {}},
            **tables,
        )
        return web, names, Pauses(running.crawl.schedule)

    return start


@pytest.mark.parametrize("domain", [lambda n: "wiki.test", lambda n: f"d{n}.test"])
@pytest.mark.parametrize("policy", [SERVFAIL, NXDOMAIN, None])
async def test_names_that_cannot_be_found_delay_nobody(crawl_crowd, monkeypatch, policy, domain):
    if policy is None:
        # The one host that is found must be looked up within this time on a busy machine, too.
        monkeypatch.setattr(resolver, "LOOKUP_S", 1.0)
    web, names, pauses = await crawl_crowd(
        lambda name: policy,
        domain,
        politeness={"host_delay_s": 0.02, "address_delay_s": 0.0},
        daemon={"max_in_flight": 8},
    )
    await until(lambda: len(web.pages()) == PAGES + 1)
    most = HOSTS if policy is not None else 40
    await until(lambda: len(names.names) > most, what="the lookups of the other hosts")
    assert PAUSE not in pauses.reasons
    assert set(web.asked) == {("www.wiki.test", path) for _, path in web.asked}


async def test_fresh_hosts_are_looked_up_at_their_own_pace(crawl_crowd):
    web, names, pauses = await crawl_crowd(
        lambda name: 0.01,
        lambda n: f"d{n}.test",
        politeness={"host_delay_s": 0.02, "address_delay_s": 0.0},
        daemon={"max_in_flight": 4},
    )
    await until(lambda: len({host for host, _ in web.asked}) == HOSTS + 1)
    assert names.most_at_once <= 32
    assert pauses.reasons == []
