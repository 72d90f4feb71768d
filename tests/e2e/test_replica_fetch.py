"""Replicas as capacity: a host and its copy over real sockets, each at its own address.

The ledger of the simulated web shows which host got which requests and when; the database shows
which visits were fetched from a replica.
"""

from itertools import pairwise

import pytest

from crawld.daemon.clock import Clock
from crawld.daemon.run import run_daemon
from crawld.simweb.change_process import STATIC, FixedChanges
from crawld.simweb.graph import SiteGraph
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite
from tests.daemon.harness import Mirror, ShiftedTime, Web, until

DAY_S = 86_400.0
DELAY_S = 0.04
PAGES = 24
KEPT, COPY = "a.test", "www.a.test"


class ReplicaSetup:
    """A host, its copy, and a daemon that has found the copy and confirmed that it is fresh."""

    def __init__(self, web, copy, mirror, daemon, wall):
        self.web, self.copy, self.mirror = web, copy, mirror
        self.daemon, self.wall = daemon, wall

    async def settle(self):
        crawl = self.daemon.crawl
        await until(lambda: self.daemon.site_registry.seeded and crawl.is_done(1.0), what="rest")
        await crawl.recorder.drain()

    async def run_job(self, name):
        before = self._finished(name)
        self.daemon.jobs.run_soon(name)
        await until(lambda: self._finished(name) > before, what=name)

    def _finished(self, name):
        return dict(self.mirror.rows("SELECT name, last_finished_at FROM job")).get(name) or 0.0

    async def run_day(self):
        """Let a day pass with a visit of every page; return the number of requests per host."""
        before = self.page_requests()
        self.wall.shift_s += DAY_S
        self.daemon.crawl.schedule.wake_all()
        await self.settle()
        return {host: count - before[host] for host, count in self.page_requests().items()}

    async def sample_once(self):
        self.wall.shift_s += 120.0
        await self.run_job("analyse")
        await self.run_job("replicas")
        await self.settle()

    def page_requests(self):
        return {
            host: sum(target != "/robots.txt" for target in self.web.targets(host))
            for host in (KEPT, COPY)
        }

    def visits_at_copy(self):
        """Return the host of each visit that was fetched from the copy."""
        return [
            host
            for (host,) in self.mirror.rows(
                "SELECT host FROM visit JOIN page USING (page_id) JOIN host USING (host_id)"
                " WHERE detail = ?",
                f"replica {COPY}",
            )
        ]

    def lease_rows(self):
        return self.mirror.rows("SELECT status, sampled, agreed, lag_s FROM replica")


@pytest.fixture
def start_setup(nursery, tmp_path):
    async def start(*, use_replicas, copy_changes=None, page_changes=None):
        wall = ShiftedTime()
        began = wall()
        graph = SiteGraph(PAGES, seed=1)
        changes = [lambda page: page_changes(began) if page_changes else STATIC, None]
        changes[1] = (lambda page: copy_changes(began)) if copy_changes else changes[0]
        sites = [
            SimSite((KEPT,), graph, changes=changes[0]),
            SimSite((COPY,), graph, changes=changes[1]),
        ]
        simweb = SimWeb(sites, clock=wall, any_loopback=True)
        web = Web(simweb, (await nursery.start(simweb.serve)).port)
        mirror = Mirror(tmp_path / f"{use_replicas}.db", clock=Clock(wall=wall))
        started = mirror.make_start(
            web.url(host=KEPT),
            web.url(host=COPY),
            once=False,
            site={"use_replicas": use_replicas},
            dns={"hosts": {KEPT: ["127.0.0.1"], COPY: ["127.0.0.2"]}},
            politeness={"host_delay_s": DELAY_S},
            replicas={"sample_every_s": 3_600.0, "prefer": [KEPT]},
            schedule={"min_revisit_s": 3_600.0},
        )
        daemon = await nursery.start(run_daemon, started)
        daemon.set_paused(paused=True)
        # The first runs of the jobs, due at the start, must not see half of the pages.
        own = "SELECT 1 FROM job WHERE name IN ('analyse', 'replicas') AND last_finished_at > 0"
        await until(lambda: len(mirror.rows(own)) == 2, what="the first runs of the jobs")
        daemon.set_paused(paused=False)
        made = ReplicaSetup(web, sites[1], mirror, daemon, wall)
        await made.settle()
        await made.sample_once()
        await made.run_day()
        # A page is sampled, visited and compared.
        await made.sample_once()
        await made.sample_once()
        return made

    return start


async def test_an_idle_replica_takes_over_visits_within_every_delay(start_setup):
    alone, helped = await start_setup(use_replicas=False), await start_setup(use_replicas=True)
    without, shared = await alone.run_day(), await helped.run_day()
    assert alone.visits_at_copy() == []
    assert without == {KEPT: PAGES, COPY: 0}
    # The same pages cost the host fewer fetches, each with its delay.
    assert sum(shared.values()) == PAGES
    assert shared[COPY] >= PAGES // 4
    assert helped.visits_at_copy() == [KEPT] * shared[COPY]
    for _ in range(2):
        more = await helped.run_day()
        assert sum(more.values()) == PAGES
    # No page is fetched from the copy twice in a row.
    rows = helped.mirror.rows(
        "SELECT page_id, detail FROM visit JOIN page USING (page_id) JOIN host USING (host_id)"
        " WHERE host = ? ORDER BY page_id, visited_at",
        KEPT,
    )
    for (page, detail), (after, next_detail) in pairwise(rows):
        assert page != after or not (detail == next_detail == f"replica {COPY}")
    for each in (alone, helped):
        assert each.web.ledger.violations(delay_s=DELAY_S) == []
        assert each.web.ledger.violations(delay_s=DELAY_S, by="address") == []


async def test_changes_fetched_from_the_replica_become_versions_of_the_page(start_setup):
    w = await start_setup(
        use_replicas=True, page_changes=lambda began: FixedChanges([began + 2 * DAY_S])
    )
    await w.run_day()
    rows = w.mirror.rows(
        "SELECT outcome, version_id FROM visit WHERE detail = ?", f"replica {COPY}"
    )
    assert len(rows) >= PAGES // 4
    assert all(outcome == "changed" and version for outcome, version in rows)
    await w.run_day()
    # Later fetches from the host agree: the lease stays.
    assert w.lease_rows() == [("pruned", 8, 8, 0.0)] or w.lease_rows()[0][1] > 8


async def test_a_lagging_replica_loses_its_lease(start_setup):
    w = await start_setup(
        use_replicas=True,
        page_changes=lambda began: FixedChanges([began + 2 * DAY_S + 3 * 3_600.0]),
        copy_changes=lambda began: STATIC,
    )
    assert w.lease_rows()[0][1] > 0
    for _ in range(3):
        await w.run_day()
    # The copy showed an old text; it still did when it was fetched again.
    assert w.lease_rows() == [("pruned", 0, 0, None)]
    before = w.page_requests()[COPY]
    await w.run_day()
    assert w.page_requests()[COPY] == before
    # The stored versions are those of the host.
    kept = w.mirror.rows(
        "SELECT page.change_count FROM page JOIN host USING (host_id) WHERE host = ?", KEPT
    )
    assert kept == [(2,)] * PAGES


async def test_the_replicas_robots_txt_is_obeyed(start_setup):
    w = await start_setup(use_replicas=True)
    await w.run_day()
    before, visits_at_copy = len(w.web.targets(COPY)), len(w.visits_at_copy())
    barred = tuple(f"/wiki/{letter}" for letter in "ABCDEFGHIJKL")
    w.copy.robots = "User-agent: *\n" + "".join(f"Disallow: {each}\n" for each in barred)
    for _ in range(3):
        await w.run_day()
    asked = w.web.targets(COPY)[before:]
    assert [target for target in asked if target.startswith(barred)] == []
    assert len(w.visits_at_copy()) > visits_at_copy
