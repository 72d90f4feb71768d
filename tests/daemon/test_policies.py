"""Every policy in the daemon: it crawls, revisits, is exchanged, and follows an allocation."""

from collections import Counter

import numpy as np
import pytest
import trio

from crawld.core.change.model import PageModel
from crawld.core.change.refit import blank_records
from crawld.core.politeness import DelayRules, QuietHours
from crawld.core.revisit.allocation import kkt_residual
from crawld.core.revisit.names import NAMES
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.policies_frequency import MergePolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.registry import FACTORIES
from crawld.core.revisit.visit_value import default_scale_model
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue, VisitedPages
from crawld.daemon.jobs.allocate import AllocateJob, AllocationPages, allocate_hosts
from crawld.daemon.schedule.slots import HostSlot
from crawld.store.changes import model
from crawld.workers import THREADS
from tests.daemon.harness import make_site, until

REVISITING = {"min_revisit_s": 0.0}


def pages_of(policy, count=6, **more):
    """Return pages that were all visited, long ago."""
    rested = {"discovery_share": 0.5, "min_revisit_s": 10.0, **more}
    pages = PageQueue(1, 1, policy, **rested)
    pages.load_visited(known(range(1, count + 1)), 1000.0)
    return pages


def known(numbers):
    numbers = np.array(list(numbers), dtype=np.int64)
    return VisitedPages(numbers, np.arange(len(numbers), dtype=np.float64))


def drain(pages, now):
    """Take all pages that may be visited now."""
    taken = []
    while (page := pages.take(now)) is not None:
        taken.append(page)
    return taken


async def first_pages(running):
    """Return the pages of the one host of a daemon, as soon as there are some."""
    hosts = running.state.hosts
    await until(lambda: "a.test" in hosts and hosts["a.test"].pages, what="pages of the host")
    (pages,) = hosts["a.test"].pages.values()
    return pages


@pytest.fixture
def job(daemon, mirror):
    """Return a function that runs a job of a daemon to its end and returns what it said."""

    async def run(running, name):
        last = mirror.rows("SELECT last_finished_at FROM job WHERE name = ?", name)
        running.jobs.run_soon(name)
        sql = "SELECT last_finished_at FROM job WHERE name = ?"
        await until(lambda: mirror.rows(sql, name) not in ([], [(None,)], last), what=name)
        return mirror.rows("SELECT result, detail FROM job WHERE name = ?", name)[0]

    return run


class TestInTheDaemon:
    @pytest.mark.parametrize("policy", NAMES)
    async def test_every_policy_crawls_a_site_and_comes_back(self, serve, daemon, policy):
        web = await serve(make_site(pages=20))
        schedule = {"policy": policy, **REVISITING}
        await daemon(web.url(), schedule=schedule, politeness={"host_delay_s": 0.005})

        def visits():
            return [path for path in web.targets() if path != "/robots.txt"]

        await until(lambda: len(set(visits())) >= 20, what="every page visited")
        first_round = len(visits())
        await until(lambda: len(visits()) >= first_round + 10, what="revisits")

    async def test_the_policy_of_a_site_overrides_that_of_all(self, serve, daemon):
        web = await serve(make_site(pages=5))
        running = await daemon(web.url(), site={"policy": "merge"}, schedule=REVISITING)
        pages = await first_pages(running)
        await until(lambda: len(pages.policy) == 5, what="five pages in the policy")
        assert isinstance(pages.policy, MergePolicy)

    async def test_a_switch_at_run_time_keeps_the_pages(self, serve, daemon, mirror):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule={"policy": "uniform", **REVISITING})
        pages = await first_pages(running)
        await until(lambda: len(pages.policy) == 20, what="all pages in the policy")
        start = mirror.make_start(web.url(), schedule={"policy": "index", **REVISITING})
        await running.site_registry.adopt(start.config, start.seeds)
        await until(lambda: isinstance(pages.policy, IndexPolicy), what="the switch")
        await until(lambda: len(pages.policy) == 20, what="all pages in the new policy")
        visited = len(web.targets())
        await until(lambda: len(web.targets()) >= visited + 40, what="revisits")
        assert len(set(web.targets()[visited:])) >= 10

    async def test_the_allocate_job_stores_a_price_and_says_how_exact_it_is(
        self, serve, daemon, mirror, job
    ):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule={"policy": "merge", **REVISITING})
        count = "SELECT count(*) FROM model"
        await until(lambda: mirror.rows(count) == [(20,)], what="models of all pages")
        result, detail = await job(running, "allocate")
        assert result == "done"
        assert detail.startswith("20 pages, 1 hosts, 100 visits a second, KKT residual ")
        assert float(detail.rsplit(" ", 1)[1]) <= 1e-6
        ((price,),) = mirror.rows("SELECT price FROM host")
        assert price > 0.0


@pytest.fixture
async def merging(serve, daemon, mirror, wall):
    """A daemon that visited 120 pages under MERGE, an hour ago."""
    web = await serve(make_site(pages=120))
    running = await daemon(web.url(), schedule={"policy": "merge", **REVISITING})
    count = "SELECT count(*) FROM model"
    await until(lambda: mirror.rows(count) == [(120,)], what="models of all pages")
    running.state.set_host_paused("a.test", paused=True)
    await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
    await running.crawl.recorder.drain()
    wall.shift_s += 3600.0
    return running


async def give_rate(running, page_ids, rate):
    """Let pages look as if visits an hour from now had found them to change at a rate."""

    def put(connection):
        for page_id in page_ids:
            known = PageModel.from_bytes(model.of_page(connection, page_id))
            known.rate = rate
            model.put(connection, page_id, known.to_bytes())
            connection.execute(
                "UPDATE page SET last_visit_at = last_visit_at + 3600 WHERE page_id = ?", (page_id,)
            )

    await running.database.write(put)


class TestAllocate:
    """Shares the turns of hosts; works hard only where pages have changed."""

    async def test_a_host_keeps_its_price_while_few_of_its_pages_change(self, merging, mirror):
        job = AllocateJob(merging.state, merging.database, merging.clock, workers=THREADS)
        assert (await job.run()).startswith("120 pages, 1 hosts")
        [(price,)] = mirror.rows("SELECT price FROM host")
        (pages,) = merging.state.hosts["a.test"].pages.values()
        before = pages.policy.frequency(1)
        await give_rate(merging, [1, 2], 3e-6)
        assert await job.run() == "1 hosts keep their price"
        assert mirror.rows("SELECT price FROM host") == [(price,)]
        expected = float(revisit_frequency(3e-6, price))
        assert pages.policy.frequency(1) == pytest.approx(expected, rel=1e-3)
        assert pages.policy.frequency(1) != pytest.approx(before, rel=1e-3)
        assert pages.policy.frequency(3) == pytest.approx(before, rel=0.2)
        await give_rate(merging, range(1, 50), 3e-6)
        assert (await job.run()).startswith("120 pages, 1 hosts")
        assert mirror.rows("SELECT price FROM host") != [(price,)]

    async def test_a_refit_another_delay_and_another_policy_make_a_host_new(self, merging, wall):
        job = AllocateJob(merging.state, merging.database, merging.clock, workers=THREADS)
        host = merging.state.hosts["a.test"]
        await job.run()
        assert await job.run() == "1 hosts keep their price"
        job.reset()
        assert (await job.run()).startswith("120 pages, 1 hosts")
        (pages,) = host.pages.values()
        pages.policy_name = "delayed"
        assert (await job.run()).startswith("120 pages, 1 hosts")
        host.backoff = host.backoff.after_trouble(wall(), 1.0, None)
        assert (await job.run()).startswith("120 pages, 1 hosts")

    async def test_policies_hear_of_every_refit(self, serve, daemon, mirror, job):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule=REVISITING)
        count = "SELECT count(*) FROM model"
        await until(lambda: mirror.rows(count) == [(20,)], what="models of all pages")
        pages = await first_pages(running)
        await until(lambda: len(pages.policy) == 20, what="all pages in the policy")
        running.state.set_host_paused("a.test", paused=True)
        await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
        await running.crawl.recorder.drain()
        now = running.clock.now() + 1e6
        before = pages.policy.visit_values([1], now)[0]
        await give_rate(running, [1], 1e-3)
        result, detail = await job(running, "estimate")
        assert (result, detail.startswith("20 models")) == ("done", True)
        await until(
            lambda: pages.policy.visit_values([1], now)[0] != before, what="news of the refit"
        )


class TestSwitch:
    @pytest.mark.parametrize("after", NAMES)
    @pytest.mark.parametrize("before", ["uniform", "delayed", "index"])
    def test_what_is_in_flight_or_rests_is_neither_lost_nor_taken_twice(self, before, after):
        pages = pages_of(before)
        flying, resting = pages.take(1000.0), pages.take(1000.0)
        assert None not in (flying, resting)
        pages.visited(resting, 1000.0, VisitObservation(False))
        pages.policy_name = after
        pages.switch(known(range(1, 7)))
        assert type(pages.policy) is type(FACTORIES[after]())
        assert not pages.switching
        taken = drain(pages, 1001.0)
        assert sorted(taken) == sorted(set(range(1, 7)) - {flying, resting})
        pages.visited(flying, 1001.0, VisitObservation(True))
        again = drain(pages, 1012.0) + drain(pages, 1012.0 + 300.0)
        assert sorted(again) == sorted([flying, resting])

    def test_a_page_first_visited_after_the_file_was_read_comes_along(self):
        pages = pages_of("uniform")
        pages.policy_name = "merge"
        pages.add_new([7])
        assert pages.take(1000.0) == 7
        pages.visited(7, 1000.0, VisitObservation(True))
        pages.mark_recorded(7)
        first = pages.take(1010.0)
        pages.put_back(first)
        pages.switch(known(range(1, 7)))
        assert sorted(drain(pages, 1011.0)) == list(range(1, 8))

    def test_pages_taken_out_meanwhile_stay_out(self):
        pages = pages_of("uniform")
        pages.policy_name = "index"
        pages.drop(3)
        pages.retry(4, 5000.0)
        pages.switch(known(range(1, 7)))
        assert sorted(drain(pages, 1000.0)) == [1, 2, 5, 6]

    def test_importance_comes_along(self):
        pages = pages_of("uniform")
        pages.policy_name = "index"
        six = known(range(1, 7))
        pages.switch(VisitedPages(six.pages, np.full(6, 500.0), np.array([1, 1, 1, 1, 9.0, 1])))
        assert pages.take(90_000.0) == 5


class TestIdle:
    def test_delayed_waits_for_its_instant_and_wakes_after_a_new_allocation(self):
        pages = pages_of("delayed", count=2, min_revisit_s=0.0)
        numbers = np.array([1, 2])
        pages.set_frequencies(numbers, np.array([1e-4, 1e-4]))
        while (page := pages.take(1000.0)) is not None:
            pages.visited(page, 1000.0, VisitObservation(False))
        wanted_at = pages.wanted_at(1000.0)
        assert wanted_at is not None
        assert 1000.0 < wanted_at <= 1300.0
        assert pages.wanted_at(-1e6) == -1e6  # set back by days: asked at once, not after them
        pages.set_frequencies(numbers, np.array([1.0, 1.0]))
        assert pages.wanted_at(1000.0) == 1000.0

    def test_visits_told_after_their_rest_do_not_drive_the_clock_of_index_ahead(self):
        pages = pages_of("index", min_revisit_s=3600.0)
        now = 10_000.0
        for _ in range(50):
            page = pages.take(now)
            if page is not None:
                pages.visited(page, now, VisitObservation(False))
            now += 1000.0
        # One clock for both: a page is worth what its true wait makes it worth.
        worth = pages.policy.visit_values([1], now)
        fresh = IndexPolicy(default_scale_model())
        fresh.load([1], [0.0])
        assert worth[0] <= fresh.visit_values([1], now + 1.0)[0]


@pytest.mark.parametrize("policy", NAMES)
class TestEveryPolicy:
    """Works with what happens to pages and hosts beside visits."""

    def test_new_pages_are_taken_whatever_the_policy_would_rather_have(self, policy):
        pages = pages_of(policy, min_revisit_s=0.0)
        pages.add_new([7, 8])
        assert {7, 8} <= set(drain(pages, 1000.0))

    def test_retired_pages_wait_for_an_instant_of_their_own(self, policy):
        pages = pages_of(policy)
        pages.retry(3, 5000.0)
        assert 3 not in drain(pages, 1000.0)
        # DELAYED is asked again now and then: its next instant may come nearer.
        assert pages.wanted_at(1000.0) == 5000.0 or policy == "delayed"
        assert pages.take(5001.0) == 3
        pages.visited(3, 5001.0, VisitObservation(True))
        assert drain(pages, 5012.0) in ([3], [])
        assert 3 in {*drain(pages, 5012.0 + 400.0), *([3] if 3 in pages.policy else [])}

    def test_a_page_alone_and_no_page_at_all(self, policy):
        assert pages_of(policy, count=0).take(1000.0) is None
        alone = pages_of(policy, count=1, min_revisit_s=0.0)
        taken = []
        for now in range(1000, 11_000, 1000):
            if (page := alone.take(float(now))) is not None:
                taken.append(page)
                alone.visited(page, float(now), VisitObservation(False))
        assert set(taken) == {1}
        assert len(taken) >= 5

    @pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
    def test_a_clock_that_jumps_by_a_day_starves_nobody(self, policy, jump_s):
        pages, now, last = pages_of(policy, count=5), 200_000.0, {}
        pages.set_frequencies(np.arange(1, 6), np.full(5, 1e-3))
        for step in range(1200):
            now += jump_s if step == 100 else 100.0
            page = pages.take(now)
            if page is not None:
                pages.visited(page, now, VisitObservation(False))
                last[page] = step
        # A day is 864 steps: what is visited then, rests until the clock is there again.
        assert sorted(last) == [1, 2, 3, 4, 5]
        assert min(last.values()) > 1000

    @pytest.mark.parametrize("closed", ["quiet hours", "back-off"])
    async def test_a_closed_host_has_no_turn(self, policy, closed):
        clock = Clock()
        host = HostState(1, HostSlot("a.test", trio.current_time()))
        quiet = ((0, 43_000), (43_200, 86_300)) if closed == "quiet hours" else ()
        now = clock.now()
        offset_s = -int(now % 86_400) + 1000  # local time is a thousand seconds past midnight
        host.apply_rules([DelayRules(host_delay_s=1.0, quiet_hours=QuietHours(quiet, offset_s))])
        host.pages[1] = pages_of(policy)
        if closed == "back-off":
            host.troubled(now, 600.0)
        assert host.wanted_at(now, {1}) is not None
        assert host.open_at(clock) > trio.current_time() + 500.0

    def test_a_page_without_importance_waits_for_all_others(self, policy):
        pages = PageQueue(1, 1, policy, discovery_share=0.5, min_revisit_s=0.0)
        numbers, weights = np.arange(1, 5), np.array([0.0, 1.0, 1.0, 1.0])
        pages.load_visited(VisitedPages(numbers, np.full(4, 1e9), weights), 1e9)
        models = blank_records(4)
        models["visits"], models["rate"], models["last_visit_at"] = 9, 1e-5, 1e9
        pages.set_models(numbers, models, default_scale_model())
        web = AllocationPages(
            numbers, np.ones(4, np.int64), np.ones(4, np.int64), models["rate"], weights
        )
        pages.set_frequencies(numbers, allocate_hosts(web, {1: 3600.0}).allocation.frequency)
        taken = Counter()
        for step in range(300):
            now = 1e9 + 1e5 + 3600.0 * step
            if (page := pages.take(now)) is not None:
                pages.visited(page, now, VisitObservation(True))
                taken[page] += 1
        assert min(taken[page] for page in (2, 3, 4)) > 50
        # Round robin and the plain draw are blind on purpose: all others are measured by them.
        assert taken[1] == 0 or policy in ("uniform", "random")


class TestShare:
    def test_the_sums_are_the_turns_of_the_hosts(self):
        random = np.random.default_rng(4)
        host = np.sort(random.integers(1, 9, 4000))
        pages = AllocationPages(
            np.arange(4000),
            host,
            np.ones(4000, np.int64),
            random.lognormal(-14.0, 2.0, 4000),
            random.choice([0.5, 1.0, 3.0], 4000),
        )
        delay_s = {number: 0.5 * number for number in range(1, 9)}
        shared = allocate_hosts(pages, delay_s)
        turns = [1.0 / delay_s[number] for number in shared.hosts.tolist()]
        assert shared.allocation.spent == pytest.approx(turns, rel=1e-6)
        assert shared.residual <= 1e-6
        web = PagesByHost(pages.rate, shared.offsets, np.array(turns), pages.weight)
        assert kkt_residual(web, sum(turns), shared.allocation) == shared.residual

    def test_a_host_without_a_delay_has_a_ceiling_too(self):
        pages = AllocationPages(
            np.array([1, 2]), np.array([5, 5]), np.array([1, 1]), np.full(2, 1e-5), np.ones(2)
        )
        shared = allocate_hosts(pages, {5: 0.0})
        assert shared.allocation.spent == pytest.approx([100.0])
