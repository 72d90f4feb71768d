"""Groups of hosts that share limits on connections and bytes per second."""

import trio

from crawld.simweb.fault import body
from crawld.simweb.graph import SiteGraph
from crawld.simweb.site import SimSite
from tests.daemon.harness import until

HOSTS = ("a.test", "b.test", "c.test")


def make_sites(content):
    fault = body(content, content_type="text/html")
    return [
        SimSite((host,), SiteGraph(3, seed=n), faults={"/": fault}) for n, host in enumerate(HOSTS)
    ]


async def test_a_group_limits_the_connections_and_bytes_of_its_hosts(serve, daemon, mirror):
    web = await serve(*make_sites(b"<p>" + b"x" * 50_000))
    seeds = [web.url(f"/{n}", host) for host in HOSTS for n in range(4)]
    groups = [{"hosts": ["*"], "max_connections": 1, "max_bytes_per_s": 400_000}]
    began_s = trio.current_time()
    running = await daemon(*seeds, politeness={"groups": groups})
    visits = running.crawl.visitor.counts
    await until(lambda: sum(visits.values()) >= len(seeds), what="all pages")
    # 12 pages of 50 kB at 400 kB/s in total.
    assert trio.current_time() - began_s >= 12 * 50_000 / 400_000
    assert {row.host for row in web.ledger.rows()} == set(HOSTS)


async def test_a_group_can_set_the_host_delay(serve, daemon):
    web = await serve(*make_sites(b"<p>x"))
    groups = [{"hosts": ["b.test"], "host_delay_s": 7.5}]
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        politeness={"host_delay_s": 2.0, "groups": groups},
    )
    await until(lambda: len(running.state.hosts) == 3)
    delays = {name: host.delay_s() for name, host in running.state.hosts.items()}
    assert delays == {"a.test": 2.0, "b.test": 7.5, "c.test": 2.0}
