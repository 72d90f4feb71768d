"""Limits of requests and bytes per second over all hosts, sites and groups."""

import math

import pytest
import trio

from crawld.core.politeness import DAY_S
from crawld.core.turn_order import Lane
from crawld.daemon.api.forecast import _sites_on_hosts
from crawld.daemon.api.status_view import status_of
from crawld.daemon.crawl.shared_rates import META_KEY
from crawld.daemon.run import run_daemon
from crawld.daemon.schedule.slots import Ticket
from crawld.simweb.fault import body
from crawld.simweb.graph import SiteGraph
from crawld.simweb.site import SimSite
from crawld.store.engine import meta
from tests.daemon.harness import run_job, until

HOSTS = ("a.test", "b.test", "c.test")


def make_sites(pages=6, **more):
    return [SimSite((host,), SiteGraph(pages, seed=n), **more) for n, host in enumerate(HOSTS)]


def turn_starts(running, hosts=HOSTS):
    """Return when the turns that sent a request began, by trio's clock."""
    spans = running.crawl.schedule.recent.by_host(hosts, 4_096)
    return sorted(span.began_at for each in spans.values() for span in each)


def most_in_a_window(times, length_s):
    return max(sum(start <= each < start + length_s for each in times) for start in times)


def assert_evenly_spaced(times, interval_s):
    for slots in range(1, 8):
        assert most_in_a_window(times, slots * interval_s - 1e-6) <= slots + 1


async def test_all_requests_of_all_hosts_share_the_total_rate(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        schedule={"max_requests_per_s": 12.0, "min_revisit_s": 0.05},
        site={"requisites": True},
    )
    await until(lambda: len(list(web.ledger.rows())) >= 36, what="36 requests")
    running.crawl.schedule.pause("test")
    await running.crawl.schedule.wait_idle()
    times = turn_starts(running)
    assert len(times) == len(
        list(web.ledger.rows())
    )  # robots.txt, probes and requisites have turns too
    assert_evenly_spaced(times, 1.0 / 12.0)
    assert {row.host for row in web.ledger.rows()} == set(HOSTS)


async def test_a_site_and_a_group_have_rates_of_their_own(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        web.url("/", "a.test"),
        schedule={"min_revisit_s": 0.05},
        site={"max_requests_per_s": 5.0},
        beside=[{"name": "t", "seeds": [web.url("/", host) for host in ("b.test", "c.test")]}],
        politeness={"groups": [{"hosts": ["c.test"], "max_requests_per_s": 4.0}]},
    )
    await until(lambda: len(turn_starts(running, ["c.test"])) >= 8, what="requests to c.test")
    await until(lambda: len(turn_starts(running, ["a.test"])) >= 8, what="requests to a.test")
    running.crawl.schedule.pause("test")
    await running.crawl.schedule.wait_idle()
    assert_evenly_spaced(turn_starts(running, ["a.test"]), 0.2)
    assert_evenly_spaced(turn_starts(running, ["c.test"]), 0.25)
    assert len(turn_starts(running, ["b.test"])) > len(turn_starts(running, ["c.test"]))


async def test_received_bytes_delay_the_next_request_of_any_host(serve, daemon):
    page = body(b"<p>" + b"x" * 40_000, content_type="text/html")
    web = await serve(*make_sites(faults={"/": page}))
    seeds = [web.url(f"/{n}", host) for host in HOSTS for n in range(3)]
    running = await daemon(*seeds, schedule={"max_bytes_per_s": 200_000})
    visits = running.crawl.visitor.counts
    await until(lambda: sum(visits.values()) >= 9, what="all pages")
    times = turn_starts(running)
    # The last page is not paid for, and the first ones began before their size was known.
    assert times[-1] - times[0] >= 7 * 40_000 / 200_000


async def test_a_reload_of_the_limits_counts_at_once(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        schedule={"max_requests_per_s": 1.0 / 86_400.0},
    )
    await until(lambda: len(turn_starts(running)) == 1, what="the request of the first day")
    config = running.config.model_copy(
        update={"schedule": running.config.schedule.model_copy(update={"max_requests_per_s": None})}
    )
    await running.site_registry.adopt(config, running.start.seeds)
    await until(lambda: sum(running.crawl.visitor.counts.values()) >= 18, what="all pages")
    assert all(not host.slot.gates for host in running.state.hosts.values())


async def test_a_long_wait_survives_a_restart(serve, mirror, wall):
    web = await serve(*make_sites())
    seeds = [web.url("/", host) for host in HOSTS]

    async def opens_in_s(*, after_requests):
        """Return how long the total rate is closed when a daemon ends, and its stored waits."""
        found = []

        async def watch(running):
            sent = len(list(web.ledger.rows()))
            if after_requests:
                await until(lambda: len(list(web.ledger.rows())) >= sent + after_requests)
                await running.drain()
            gate = running.state.rates.gates["[schedule]"]
            found.append(gate.next_at - trio.current_time())
            found.append(await running.database.read(meta.get, META_KEY))
            running.shutdown()

        rate = {"max_requests_per_s": 1.0 / DAY_S}
        await run_daemon(mirror.make_start(*seeds, once=False, schedule=rate), watch=watch)
        return found

    waits_s, stored = await opens_in_s(after_requests=1)
    assert DAY_S / 2 - 60.0 <= waits_s <= DAY_S
    assert "[schedule]" in stored
    again_s, _ = await opens_in_s(after_requests=0)
    assert again_s == pytest.approx(waits_s, abs=60.0)
    wall.shift_s = -40.0 * DAY_S  # the clock was wrong, and is set back
    back_s, _ = await opens_in_s(after_requests=0)
    assert back_s == pytest.approx(waits_s, abs=60.0)
    wall.shift_s = 40.0 * DAY_S  # the clock was wrong, or the machine was off
    later_s, _ = await opens_in_s(after_requests=0)
    assert later_s <= 60.0


async def test_the_status_tells_when_the_rate_is_what_limits(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        schedule={"max_requests_per_s": 1.0 / DAY_S},
        site={"max_bytes_per_s": 10**9},
    )
    rates = running.state.rates
    gate = rates.gates["[schedule]"]
    await until(lambda: rates.waiting_for(gate) == 3 and turn_starts(running), what="all waiting")
    whole, site = (await status_of(running)).rate_limits
    assert (whole.name, whole.waiting) == ("[schedule]", 3)
    assert whole.max_requests_per_s == pytest.approx(1.0 / DAY_S)
    assert whole.max_bytes_per_s is None
    assert whole.opens_in_s > 40_000.0
    assert (site.name, site.max_bytes_per_s, site.max_requests_per_s) == ("site s", 10**9, None)
    assert site.waiting == 0  # not what limits


async def test_budgets_and_the_forecast_plan_with_the_turns_that_the_rate_leaves(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        politeness={"host_delay_s": 0.01},
        schedule={"max_requests_per_s": 3.0},
    )
    await until(lambda: len(running.state.hosts) == 3, what="three hosts")
    hosts = list(running.state.hosts.values())
    await until(lambda: all(host.pages for host in hosts), what="pages on all hosts")
    running.state.rates._counted_at = -math.inf
    for host, share in zip(hosts, (0.5, 1.0, 1.5), strict=True):
        host.slot.share = share
    turns = [running.state.rates.turn_every_s(host) for host in hosts]
    assert turns == pytest.approx([2.0, 1.0, 2.0 / 3.0])
    assert sum(1.0 / each for each in turns) == pytest.approx(3.0)
    delays = [place.delay_s for place in _sites_on_hosts(running, None)]
    assert sorted(delays) == pytest.approx(sorted(turns))


async def test_the_allocation_divides_the_rate_by_its_price(serve, daemon):
    web = await serve(*make_sites())
    running = await daemon(
        *(web.url("/", host) for host in HOSTS),
        schedule={"max_requests_per_s": 50.0, "min_revisit_s": 0.0},
    )
    await until(lambda: sum(running.crawl.visitor.counts.values()) >= 60, what="60 visits")
    row = await run_job(running, "allocate")
    assert row.result == "done"
    shares = [host.slot.share for host in running.state.hosts.values()]
    assert sum(shares) == pytest.approx(3.0, rel=1e-3)
    assert "50 visits a second" in row.detail
    assert running.background._allocate.has_work()


async def test_a_one_off_mirror_ends_when_all_pages_had_their_turns(serve, mirror):
    web = await serve(*make_sites(4))
    await mirror.run(*(web.url("/", host) for host in HOSTS), schedule={"max_requests_per_s": 20.0})
    assert mirror.rows("SELECT state, count(*) FROM page GROUP BY state") == [("visited", 12)]


async def test_lanes_of_hosts_follow_what_they_wait_for(serve, paused_daemon):
    web = await serve(*make_sites(4))
    running = await paused_daemon(*(web.url("/", host) for host in HOSTS))
    await until(lambda: len(running.state.hosts) == 3, what="three hosts")
    state, host = running.state, running.state.hosts["a.test"]
    await until(lambda: host.pages and host.lane(state.active) is Lane.NEW, what="new pages")
    for patience_s, lane in ((5.0, Lane.NEW), (0.0, Lane.DUE)):
        host.slot.tickets.append(Ticket(patience_s))
        assert host.lane(state.active) is lane
    host.slot.tickets.clear()
    for queue in host.queues():
        queue.ahead.more = False
        while queue.take(running.clock.now()) is not None:
            pass
    assert host.lane(state.active) is Lane.REVISIT
