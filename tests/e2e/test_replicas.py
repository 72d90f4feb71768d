"""A web with three replicas among ten hosts, mirrored with and without pruning.

Both runs use the same simulated web, real sockets and a real database; the web's ledger counts the
requests.
"""

import pytest

from crawld.daemon.clock import Clock
from crawld.daemon.run import run_daemon
from crawld.simweb.change_process import poisson_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite
from crawld.store.replica import pages, replica
from tests.daemon.harness import Mirror, ShiftedTime, Web, until

DAY_S = 86_400.0
PAGES = 12
ROUNDS = 3
ORIGINALS = [f"s{number}.test" for number in range(7)]
COPIES = [f"www.{name}" for name in ORIGINALS[:3]]


@pytest.fixture
def serve(nursery):
    async def start(*sites, **more):
        simweb = SimWeb(sites, **more)
        return Web(simweb, (await nursery.start(simweb.serve)).port)

    return start


def sites(start_at):
    """Return seven sites that change every two days on average; three have a copy."""

    def changes(seed):
        return lambda page: poisson_process(2 * DAY_S, start_at=start_at, seed=100 * seed + page)

    return [
        SimSite(
            (name, f"www.{name}") if number < 3 else (name,),
            SiteGraph(PAGES, seed=number),
            changes=changes(number),
            start_at=start_at,
        )
        for number, name in enumerate(ORIGINALS)
    ]


async def mirrored(nursery, serve, folder, *, prune):
    """Mirror the web for some days; return the daemon, the web and the page requests per host."""
    wall = ShiftedTime()
    web = await serve(*sites(wall() - 30 * DAY_S), clock=wall)
    hosts = [*ORIGINALS, *COPIES]
    made = Mirror(folder / f"{prune}.db", clock=Clock(wall=wall))
    start = made.make_start(
        *(web.url(host=host) for host in hosts),
        once=False,
        dns={"hosts": {host: ["127.0.0.1"] for host in hosts}},
        # Within these days, no page is sampled.
        replicas={"prune": prune, "first_sample_s": 30 * DAY_S, "sample_every_s": 30 * DAY_S},
        jobs={"audit_share": 0.0},
    )
    daemon = await nursery.start(run_daemon, start)
    daemon.set_paused(paused=True)
    # The first runs of the jobs, due at the start, must not see half of the pages.
    own = "SELECT 1 FROM job WHERE name IN ('analyse', 'replicas') AND last_finished_at > 0"
    await until(lambda: len(made.rows(own)) == 2, what="the first runs of the jobs")
    daemon.set_paused(paused=False)
    crawl = daemon.crawl

    async def settle():
        await until(lambda: daemon.site_registry.seeded and crawl.is_done(1.0), what="rest")
        await crawl.recorder.drain()

    async def run(name):
        states = {state.job.name: state for state in await daemon.jobs.states()}
        before = states[name].last.last_finished_at
        daemon.jobs.run_soon(name)
        await until(
            lambda: dict(made.rows("SELECT name, last_finished_at FROM job"))[name] > before,
            what=name,
        )

    await settle()
    for _ in range(ROUNDS):
        wall.shift_s += 120.0
        await run("analyse")
        await run("replicas")
        wall.shift_s += DAY_S
        crawl.schedule.wake_all()
        await settle()
    asked = {host: sum(target != "/robots.txt" for target in web.targets(host)) for host in hosts}
    return daemon, made, web, asked


async def test_pruning_saves_requests_and_loses_no_page(nursery, serve, tmp_path):
    _, plain, _, without = await mirrored(nursery, serve, tmp_path, prune=False)
    daemon, pruned, _, asked = await mirrored(nursery, serve, tmp_path, prune=True)

    # Three of ten hosts are suspended after their first visit; the others are visited as before.
    assert sum(without[host] for host in COPIES) >= 3 * PAGES * ROUNDS
    assert sum(asked[host] for host in COPIES) == 3 * PAGES
    assert sum(asked[host] for host in ORIGINALS) >= 7 * PAGES * ROUNDS
    saved = 1 - sum(asked.values()) / sum(without.values())
    assert saved > 0.2

    # Every page of every host still has a copy: its own, or that of the canonical host.
    names = {url.split("/", 3)[2:][0] for (url,) in pruned.rows("SELECT url FROM page")}
    assert len(names) == 10
    shown = 0
    for url, state in pruned.rows("SELECT url, state FROM page WHERE requisite = 0"):
        there = await daemon.database.read(pages.canonical_url, url)
        assert (there is not None) == (state == "suspended")
        shown += 1
        if there is not None:
            assert pruned.rows("SELECT version_id FROM page WHERE url = ?", there) != [(None,)]
    assert shown == len(plain.rows("SELECT url FROM page WHERE requisite = 0"))
    rows = await daemon.database.read(replica.list_replicas)
    assert {row.host: row.canonical_host for row in rows} == dict(
        zip(COPIES, ORIGINALS, strict=False)
    )
