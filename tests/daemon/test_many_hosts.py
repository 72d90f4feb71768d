"""Thousands of hosts and dozens of sites: no long step on the event loop, and few transactions."""

from contextlib import asynccontextmanager

import pytest
import trio

from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.daemon.frontier import domain_hosts
from crawld.daemon.frontier.admission import DOMAIN_FULL, Referrer
from crawld.daemon.pacing import PART_ITEMS, SLICE_PARTS
from tests.daemon.harness import make_site, until, until_done

HOSTS = 2_000
MOST_AT_ONCE = SLICE_PARTS * PART_ITEMS
SITES = 40


@pytest.fixture
async def many_hosts(serve, daemon):
    """A daemon at rest that knows many hosts without pages."""
    web = await serve(make_site(pages=1))
    running = await daemon(web.url(), schedule={"min_revisit_s": 10_000.0})
    await until(lambda: "/" in web.targets())
    await until_done(running, 1.0)
    for number in range(HOSTS):
        running.state.enter_host(10 + number, f"host{number}.test")
    return running


@asynccontextmanager
async def counted_runs():
    """Yield a list that another task makes longer each time it runs."""
    runs = []

    async def run():
        while True:
            runs.append(True)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield runs
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("step", ["set_sites", "wake_all", "is_done"])
async def test_other_tasks_run_while_all_hosts_are_looked_at(many_hosts, step):
    running = many_hosts
    steps = {
        "set_sites": lambda: running.state.set_sites(list(running.state.sites.values())),
        "wake_all": running.crawl.schedule.wake_all,
        "is_done": lambda: running.crawl.is_done(1.0),
    }
    async with counted_runs() as runs:
        await steps[step]()
        assert len(runs) >= HOSTS // MOST_AT_ONCE // 2  # tasks run in random order


async def test_a_host_that_is_not_idle_is_looked_at_first(many_hosts, monkeypatch):
    crawl = many_hosts.crawl
    await until_done(many_hosts, 1.0)
    looked_at, is_idle = [], crawl._is_idle

    def observed(host, latest, within_s):
        looked_at.append(host)
        idle = is_idle(host, latest, within_s)
        return idle and (host is None or host.slot.host != f"host{HOSTS - 1}.test")

    monkeypatch.setattr(crawl, "_is_idle", observed)
    assert not await crawl.is_done(1.0)
    assert len(looked_at) > HOSTS
    looked_at.clear()
    assert not await crawl.is_done(1.0)
    assert [host.slot.host for host in looked_at] == [f"host{HOSTS - 1}.test"]


async def test_a_crawl_whose_hosts_are_woken_meanwhile_is_not_done(many_hosts, monkeypatch):
    crawl = many_hosts.crawl
    is_idle = crawl._is_idle

    def woken(host, latest, within_s):
        if host is not None:
            crawl.schedule.wake(host.slot)
        return is_idle(host, latest, within_s)

    monkeypatch.setattr(crawl, "_is_idle", woken)
    assert not await crawl.is_done(1.0)


async def test_a_host_that_is_loaded_later_waits_as_those_of_the_start_do(many_hosts):
    known_hosts = many_hosts.state.known_hosts
    known_hosts.first_at = trio.current_time() + 900.0
    host = many_hosts.state.enter_host(10 + HOSTS, "late.test")
    assert host.slot.next_at == known_hosts.first_at


async def test_many_sites_are_adopted_in_few_transactions(paused_daemon, mirror, monkeypatch):
    running = await paused_daemon("http://a.test/")
    await until(lambda: running.site_registry.seeded)
    sites = [
        {"name": f"s{n}", "seeds": [f"http://h{n}.test/"], "hosts": [f"h{n}.test"]}
        for n in range(SITES)
    ]
    config = running.config.model_copy(
        update={"sites": Config.model_validate({"site": sites}).sites}
    )
    writes, write = [], running.database.write

    async def counted(fn, *arguments, **options):
        writes.append(fn.__name__)
        return await write(fn, *arguments, **options)

    monkeypatch.setattr(running.database, "write", counted)
    await running.site_registry.adopt(config, check_config(config)[1])
    await running.site_registry.add_seeds()
    assert [name for name in writes if name in ("adopt", "discover")] == ["adopt", "discover"]
    active = [site.name for site in running.state.sites.values()]
    assert active == [f"s{n}" for n in range(SITES)]
    stored = mirror.rows("SELECT name, definition IS NOT NULL FROM site ORDER BY site_id")
    assert stored[0][1] == 0
    assert stored[1:] == [(name, 1) for name in active]
    assert len(mirror.rows("SELECT 1 FROM page WHERE seed")) == SITES + 1


async def test_the_known_hosts_of_a_domain_are_counted(many_hosts, monkeypatch):
    monkeypatch.setattr(domain_hosts, "MAX_HOSTS_PER_DOMAIN", 3)
    state = many_hosts.state
    for number in range(3):
        state.enter_host(10 + HOSTS + number, f"{number}.domain.test")
    (site,) = state.sites.values()
    state.sites[site.site_id] = site = site.with_host("new.domain.test").with_host("2.domain.test")
    urls = ["http://new.domain.test/", "http://2.domain.test/"]
    admitted = await state.admit(site, urls, Referrer(None, 1))
    assert [each.url for each in admitted.found] == urls[1:]
    assert [each.reason for each in admitted.refusals] == [DOMAIN_FULL]
