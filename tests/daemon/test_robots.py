"""robots.txt in a crawl: redirects, errors, caching for a day, changed rules."""

import pytest
import trio

from crawld.core.robots import ROBOTS_MAX_AGE_S, Robots
from crawld.core.robots_rules import MAX_GLOBS
from crawld.daemon.fetch.robots_cache import RETRY_FIRST_S, RETRY_MAX_S
from crawld.simweb import fault
from crawld.simweb.message import build_response
from tests.daemon.control_client import get
from tests.daemon.harness import TIMEOUT_S, make_site, until

ROBOTS = "/robots.txt"
CLOSED_S = 3600.0


async def test_a_redirect_to_a_host_of_the_same_address_is_followed(serve, mirror):
    # As example.org and www.example.org do.
    a = make_site("a.test")
    b = make_site("b.test", robots="User-agent: *\nDisallow: /wiki/\n")
    web = await serve(a, b)
    a.faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "b.test"))}
    await mirror.run(web.url())
    assert web.targets("b.test") == [ROBOTS]
    assert web.targets("a.test") == [ROBOTS, "/"]
    assert mirror.refusals()["robots"] > 0


PRIVATE_A = {"allow_private": False, "allow_private_hosts": ["a.test"]}


async def test_a_redirect_does_not_lead_into_the_private_network(serve, daemon):
    a, b = make_site("a.test"), make_site("b.test")
    web = await serve(a, b)
    a.faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "b.test"))}
    running = await daemon(web.url(), site=PRIVATE_A)
    await until(lambda: running.crawl.robots.closed_until(web.url("")) > 0)
    assert web.targets("b.test") == []
    assert web.targets("a.test") == [ROBOTS]


async def test_robots_txt_of_a_requisite_needs_the_permission_of_the_requisite(serve, daemon):
    # Any page can name a host of the operator's network as the place of its image.
    a, b = make_site("a.test", pages=1), make_site("b.test")
    web = await serve(a, b)
    image = f'<p>text<img src="{web.url("/x.png", "b.test")}">'.encode()
    a.faults = {"/": lambda request, handler: build_response(request, 200, image)}
    wanted = {"requisites": True, "requisite_hosts": ["*"]}
    running = await daemon(web.url(), site={**wanted, "allow_private": True})
    await until(lambda: running.crawl.robots.closed_until(web.url("", "b.test")) > 0)
    assert web.targets("a.test") == [ROBOTS, "/"]
    assert web.targets("b.test") == []


async def test_redirects_keep_the_delays_of_host_and_address(serve, mirror):
    a, b, c = (make_site(host, pages=3) for host in ("a.test", "b.test", "c.test"))
    web = await serve(a, b, c)
    a.faults = {ROBOTS: fault.redirect(web.url("/moved.txt"))}
    b.faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "c.test"))}
    seeds = [web.url(host=host) for host in ("a.test", "b.test", "c.test")]
    await mirror.run(*seeds, politeness={"host_delay_s": 0.1, "address_delay_s": 0.03})
    assert {state for state, *_ in mirror.pages().values()} == {"visited"}
    assert len(web.ledger) == 9 + 3 + 2
    assert web.ledger.violations(delay_s=0.1) == []
    assert web.ledger.violations(delay_s=0.03, by="address") == []


async def test_a_redirect_to_itself_waits_its_delay_each_time(serve, daemon):
    site = make_site(faults={ROBOTS: fault.redirect(ROBOTS)})
    web = await serve(site)
    await daemon(web.url(), politeness={"host_delay_s": 0.1})
    await until(lambda: len(web.ledger) == 6)
    assert web.ledger.violations(delay_s=0.1) == []


async def test_endless_redirects_close_the_host_and_hold_no_turn(serve, daemon):
    sites = {host: make_site(host, pages=3) for host in ("a.test", "b.test")}
    web = await serve(*sites.values())
    sites["a.test"].faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "b.test"))}
    sites["b.test"].faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "a.test"))}
    running = await daemon(web.url(), web.url(host="b.test"), daemon={"max_in_flight": 1})
    await until(lambda: len(web.ledger) == 12)  # each one requested once and redirected five times
    hosts = [running.state.hosts[host] for host in sites]
    now = trio.current_time()
    await until(lambda: all(now < host.shut_until < now + 2 * RETRY_FIRST_S for host in hosts))
    assert {row.target for row in web.ledger.rows()} == {ROBOTS}


async def close_host(web, mirror):
    """Run a daemon that stores a Retry-After of b.test; return its end (Unix seconds)."""
    await mirror.run(web.url(host="b.test"))
    ((closed_until, level),) = mirror.rows(
        "SELECT closed_until, backoff_level FROM host WHERE host = 'b.test'"
    )
    assert level == 0
    return closed_until


async def test_a_retry_after_delays_redirected_robots_requests_but_not_shutdown(
    serve, mirror, nursery, daemon
):
    a, b = make_site("a.test"), make_site("b.test")
    web = await serve(a, b)
    a.faults = {ROBOTS: fault.redirect(web.url(ROBOTS, "b.test"))}
    b.faults = {"/": fault.busy(503, retry_after_s=CLOSED_S), ROBOTS: fault.status(404)}
    await close_host(web, mirror)
    requests = len(web.ledger)
    running = await daemon(web.url())
    await until(lambda: len(web.ledger) == requests + 1)
    host = running.state.hosts["b.test"]
    await until(lambda: host.slot.tickets)
    with trio.fail_after(TIMEOUT_S):
        await running.drain()  # a task that waits for a turn is not under way
        running.set_paused(paused=False)
        running.shutdown()
        await until(lambda: running.phase == "stopping")
    assert web.targets("b.test") == [ROBOTS, "/"]
    assert web.targets("a.test") == [ROBOTS]


async def test_a_retry_after_of_robots_txt_is_stored(serve, mirror):
    b = make_site("b.test", faults={ROBOTS: fault.busy(429, retry_after_s=CLOSED_S)})
    web = await serve(b)
    closed_until = await close_host(web, mirror)
    (row,) = web.ledger.rows()
    assert closed_until == pytest.approx(row.at + CLOSED_S, abs=60)
    await mirror.run(web.url(host="b.test"))  # sends no request
    assert len(web.ledger) == 1


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_an_origin_whose_robots_txt_fails_is_closed(serve, daemon, status):
    web = await serve(make_site(faults={ROBOTS: fault.status(status)}))
    running = await daemon(web.url())
    await until(lambda: running.state.hosts and len(web.ledger) == 1)
    host = running.state.hosts["a.test"]
    await until(lambda: host.shut_until > trio.current_time() + RETRY_FIRST_S / 2)
    assert running.crawl.wanted_at(host.slot) == host.shut_until
    assert web.targets() == [ROBOTS]


async def test_the_wait_between_robots_requests_doubles_and_ends_with_a_success(serve, daemon):
    site = make_site(faults={ROBOTS: fault.status(500)})
    web = await serve(site)
    running = await daemon(web.url())
    robots, origin = running.crawl.robots, web.url("")
    await until(lambda: robots.closed_until(origin) > 0)
    (active,), host = running.state.sites.values(), running.state.hosts["a.test"]

    async def wait_turn(url):
        await trio.lowlevel.checkpoint()

    async def closed_s():
        await robots.fetch(origin, host, active, wait_turn, active.permits_private, lambda _: False)
        # Less the time since the response.
        return pytest.approx(max(0.0, robots.closed_until(origin) - trio.current_time()), rel=0.2)

    waits = [await closed_s() for _ in range(12)]
    assert waits[:3] == [2 * RETRY_FIRST_S, 4 * RETRY_FIRST_S, 8 * RETRY_FIRST_S]
    assert waits[-1] == RETRY_MAX_S
    site.faults = {}
    assert await closed_s() == 0
    site.faults = {ROBOTS: fault.status(500)}
    assert await closed_s() == RETRY_FIRST_S


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_an_origin_without_robots_txt_is_open(serve, mirror, status):
    web = await serve(make_site(pages=5, faults={ROBOTS: fault.status(status)}))
    await mirror.run(web.url())
    assert len(web.targets()) == 6
    assert mirror.rows("SELECT robots_verdict FROM origin") == [("open",)]


async def test_robots_txt_is_fetched_once_a_day_also_across_restarts(serve, mirror, wall):
    web = await serve(make_site(pages=3, robots="User-agent: *\nDisallow: /nothing\n"))
    await mirror.run(web.url())
    await mirror.run(web.url(), web.url("/wiki/none"))
    assert web.targets().count(ROBOTS) == 1
    wall.shift_s = ROBOTS_MAX_AGE_S + 1.0
    await mirror.run(web.url(), web.url("/wiki/other"))
    assert web.targets().count(ROBOTS) == 2
    # A copy with a time in the future is not used for longer than a day.
    wall.shift_s = 0.0
    await mirror.run(web.url(), web.url("/wiki/third"))
    assert web.targets().count(ROBOTS) == 3


async def test_excluded_pages_are_visited_when_the_rules_permit_them(serve, daemon, mirror, wall):
    site = make_site(pages=6, robots="User-agent: *\nDisallow: /wiki/\n")
    web = await serve(site)
    excluded = site.graph.path(3)
    running = await daemon(web.url(), web.url(excluded))
    await until(lambda: mirror.pages().get(excluded, ("",))[0] == "excluded")
    assert web.targets() == [ROBOTS, "/"]
    site.robots = "User-agent: *\nAllow: /\n"
    wall.shift_s = ROBOTS_MAX_AGE_S + 1.0
    await running.crawl.schedule.wake_all()
    await until(lambda: mirror.pages()[excluded][:2] == ("visited", "changed"))


async def test_rules_of_one_origin_do_not_stop_another_of_the_same_host(serve, daemon, mirror):
    site = make_site(pages=4)
    web, closed = await serve(site), await serve(make_site(faults={ROBOTS: fault.status(500)}))
    seeds = [closed.url("/first"), *(web.url(site.graph.path(n)) for n in range(4))]
    running = await daemon(*seeds)
    await until(lambda: running.crawl.visitor.counts["changed"] == 4)
    assert closed.targets() == [ROBOTS]


async def test_the_rules_of_a_host_are_counted(serve, daemon):
    rules = "".join(f"Disallow: /x/*n{number}=\n" for number in range(MAX_GLOBS + 3))
    web = await serve(make_site(pages=3, robots=f"User-agent: *\nAllow: /w\n{rules}"))
    running = await daemon(web.url())
    await until(lambda: len(web.ledger) == 4)
    (robots,) = (await get(running, "/hosts/a.test")).json()["robots"]
    assert (robots["rules"], robots["rules_ignored"]) == (MAX_GLOBS + 1, 3)
    assert not running.crawl.robots.in_memory(robots["origin"]).allowed(web.url("/x/1"))


async def test_large_rules_leave_memory(serve, daemon, monkeypatch):
    rules = "User-agent: *\n" + "".join(f"Disallow: /{number}\n" for number in range(500))
    names = ("a.test", "b.test", "c.test")
    web = await serve(*(make_site(name, pages=3, robots=rules) for name in names))
    running = await daemon(*(web.url(host=name) for name in names))
    size_bytes = Robots.parse(rules.encode(), "crawld").size_bytes
    monkeypatch.setattr(running.crawl.robots, "_max_bytes", int(2.5 * size_bytes))
    await until(lambda: len(web.ledger) == 12)
    held = [running.crawl.robots.in_memory(web.url("", name)) for name in names]
    assert sum(each is not None for each in held) == 2


@pytest.mark.parametrize(("count", "is_kept"), [(5, True), (2_000, False)])
async def test_large_rules_that_nobody_asks_for_leave_memory(serve, daemon, count, is_kept):
    rules = "User-agent: *\n" + "".join(f"Disallow: /page-{n:04}\n" for n in range(count))
    web = await serve(make_site(pages=3, robots=rules))
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts["changed"] == 3)
    robots, origin = running.crawl.robots, web.url("")
    running.state.hosts["a.test"].paused = True  # no turn asks for the rules
    robots.sweep()
    assert robots.in_memory(origin) is not None
    robots.sweep()
    assert (robots.in_memory(origin) is not None) == is_kept
    found = await robots.fresh(origin)  # from the file
    assert found is not None
    assert not found.allowed(web.url("/page-0001"))
    robots.sweep()
    assert robots.in_memory(origin) is not None
