"""Revisit policies in the daemon: crawls, revisits, switches, allocations."""

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.revisit.host_allocation import allocate_hosts, frequency_at_price
from crawld.core.revisit.names import NAMES
from crawld.core.revisit.policies_frequency import MergePolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.daemon.jobs import allocate
from crawld.daemon.jobs.allocate import AllocateJob
from crawld.lab.allocating import RepeatedAllocation
from crawld.store.changes import model
from tests.daemon.harness import make_site, run_job, until

REVISITING = {"min_revisit_s": 0.0}


async def first_queue(running):
    """Wait for the page queue of the only host of a daemon; return it."""
    hosts = running.state.hosts
    await until(
        lambda: "a.test" in hosts and hosts["a.test"].pages, what="a page queue of the host"
    )
    (queue,) = hosts["a.test"].pages.values()
    return queue


class TestInTheDaemon:
    @pytest.mark.parametrize("policy", NAMES)
    async def test_every_policy_crawls_and_revisits_a_site(self, serve, daemon, policy):
        web = await serve(make_site(pages=20))
        schedule = {"policy": policy, **REVISITING}
        await daemon(web.url(), schedule=schedule, politeness={"host_delay_s": 0.005})

        def visits():
            return [path for path in web.targets() if path != "/robots.txt"]

        await until(lambda: len(set(visits())) >= 20, what="every page visited")
        first_round = len(visits())
        await until(lambda: len(visits()) >= first_round + 10, what="revisits")

    async def test_a_site_overrides_the_default_policy(self, serve, daemon):
        web = await serve(make_site(pages=5))
        running = await daemon(web.url(), site={"policy": "merge"}, schedule=REVISITING)
        queue = await first_queue(running)
        await until(lambda: len(queue.policy) == 5, what="five pages in the policy")
        assert isinstance(queue.policy, MergePolicy)

    async def test_a_switch_at_run_time_keeps_the_pages(self, serve, daemon, mirror):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule={"policy": "uniform", **REVISITING})
        queue = await first_queue(running)
        await until(lambda: len(queue.policy) == 20, what="all pages in the policy")
        start = mirror.make_start(web.url(), schedule={"policy": "index", **REVISITING})
        await running.site_registry.adopt(start.config, start.seeds)
        await until(lambda: isinstance(queue.policy, IndexPolicy), what="the switch")
        await until(lambda: len(queue.policy) == 20, what="all pages in the new policy")
        visited = len(web.targets())
        await until(lambda: len(web.targets()) >= visited + 40, what="revisits")
        assert len(set(web.targets()[visited:])) >= 10

    async def test_known_pages_are_weighed_again_when_the_weights_change(
        self, serve, daemon, mirror, tmp_path
    ):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule={"policy": "index", **REVISITING})
        queue = await first_queue(running)
        await until(lambda: len(queue.policy) == 20, what="all pages in the policy")
        assert not running.background._allocate.has_work()  # nobody follows frequencies
        [(url, page_id)] = mirror.rows("SELECT url, page_id FROM page ORDER BY page_id LIMIT 1")
        views = tmp_path / "views.txt"
        views.write_text(f"{url} 30\nhttps://a.test/other 10\n")

        async def apply(**site):
            start = mirror.make_start(web.url(), site=site, schedule={"policy": "index"})
            await running.site_registry.adopt(start.config, start.seeds)
            await running.site_registry.add_seeds()
            weights = dict(mirror.rows("SELECT page_id, importance FROM page"))
            return weights.pop(page_id), set(weights.values())

        assert await apply() == (1.0, {1.0})
        assert await apply(views_file=views) == (1.5, {0.5})
        doubled = [{"pattern": "glob:*", "importance": 2.0}]
        assert await apply(views_file=views, weights=doubled) == (3.0, {1.0})
        read = mirror.rows("SELECT importance_rules FROM site")
        assert await apply(views_file=views, weights=doubled) == (3.0, {1.0})
        assert mirror.rows("SELECT importance_rules FROM site") == read
        assert await apply() == (1.0, {1.0})

    async def test_the_allocate_job_stores_a_price_and_reports_its_residual(
        self, serve, daemon, mirror
    ):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule={"policy": "merge", **REVISITING})
        count = "SELECT count(*) FROM model"
        await until(lambda: mirror.rows(count) == [(20,)], what="models of all pages")
        *_, result, detail = await run_job(running, "allocate")
        assert result == "done"
        assert running.background._allocate.has_work()
        assert detail.startswith("20 pages, 1 hosts, 100 visits a second, KKT residual ")
        assert float(detail.rsplit(" ", 1)[1]) <= 1e-6
        ((price,),) = mirror.rows("SELECT price FROM host")
        assert price > 0.0


@pytest.fixture
async def merge_daemon(serve, daemon, mirror, wall):
    """A daemon that visited 120 pages with the policy `merge` an hour ago."""
    web = await serve(make_site(pages=120))
    running = await daemon(web.url(), schedule={"policy": "merge", **REVISITING})
    count = "SELECT count(*) FROM model"
    await until(lambda: mirror.rows(count) == [(120,)], what="models of all pages")
    running.state.set_host_paused(1, "a.test", paused=True)
    await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
    await running.crawl.recorder.drain()
    wall.shift_s += 3600.0
    return running


async def set_rate(running, page_ids, rate):
    """Store a change rate of pages and move their last visit an hour ahead, as a visit does."""

    def put(connection):
        for page_id in page_ids:
            changed = PageModel.from_bytes(model.of_page(connection, page_id))
            changed.rate = rate
            model.put(connection, page_id, changed.to_bytes())
            connection.execute(
                "UPDATE page SET last_visit_at = last_visit_at + 3600 WHERE page_id = ?", (page_id,)
            )

    await running.database.write(put)


def bursty_models(pages):
    """Return models of pages whose changes come in bursts of hours, with very different pauses."""
    random, models = np.random.default_rng(6), []
    for mean_s in random.lognormal(13.0, 1.5, pages).tolist():
        gaps = np.where(random.random(80) < 0.6, 3600.0 * random.random(80) + 1.0, 0.0)
        gaps += np.where(gaps > 0, 0.0, random.exponential(mean_s, 80))
        at = np.cumsum(gaps) - gaps.sum() + 1e9
        models.append(PageModel())
        models[-1].observe_changes(at.tolist(), 1e9 + 3600.0)
    return models


async def store_models(running, models):
    def put(connection):
        for page_id, each in enumerate(models, start=1):
            model.put(connection, page_id, each.to_bytes())

    await running.database.write(put)


async def test_hosts_are_allocated_in_groups_with_the_same_prices(
    serve, daemon, mirror, monkeypatch
):
    hosts = ["a.test", "b.test", "c.test"]
    web = await serve(*(make_site(host, pages=10 + n) for n, host in enumerate(hosts)))
    seeds = [web.url("/", host) for host in hosts]
    running = await daemon(*seeds, schedule={"policy": "merge", **REVISITING})
    await until(lambda: mirror.rows("SELECT count(*) FROM model") == [(33,)], what="all models")
    await running.drain()
    job, prices, sizes = AllocateJob(running.context), [], []

    def measured(pages, *more):
        sizes.append(len(pages.page))
        return allocate_hosts(pages, *more)

    monkeypatch.setattr(allocate, "allocate_hosts", measured)
    for at_once in (1_000, 11, 1):
        monkeypatch.setattr(allocate, "PAGES_AT_ONCE", at_once)
        job.reset()
        detail = await job.run()
        assert detail.startswith("33 pages, 3 hosts, 300 visits a second")
        prices.append(mirror.rows("SELECT price FROM host ORDER BY host_id"))
    assert sizes == [33, 21, 12, 10, 11, 12]  # of whole hosts
    assert prices[1] == prices[2] == prices[0]


class TestAllocate:
    """The allocate job computes a new price only for hosts whose pages or rules changed."""

    async def test_a_host_keeps_its_price_while_few_of_its_pages_change(self, merge_daemon, mirror):
        job = AllocateJob(merge_daemon.context)
        assert (await job.run()).startswith("120 pages, 1 hosts")
        [(price,)] = mirror.rows("SELECT price FROM host")
        (queue,) = merge_daemon.state.hosts["a.test"].pages.values()
        before = queue.policy.frequency(1)
        await set_rate(merge_daemon, [1, 2], 3e-6)
        assert await job.run() == "1 hosts keep their price"
        assert mirror.rows("SELECT price FROM host") == [(price,)]
        records = records_of([await merge_daemon.database.read(model.of_page, 1)])
        expected = frequency_at_price(records, price, np.ones(1), 0.0, follows=True)
        assert queue.policy.frequency(1) == pytest.approx(expected[0], rel=1e-3)
        assert queue.policy.frequency(1) != pytest.approx(before, rel=1e-3)
        assert queue.policy.frequency(3) == pytest.approx(before, rel=0.2)
        await set_rate(merge_daemon, range(1, 50), 3e-6)
        assert (await job.run()).startswith("120 pages, 1 hosts")
        assert mirror.rows("SELECT price FROM host") != [(price,)]

    async def test_pages_get_the_frequencies_of_the_laboratory(self, merge_daemon):
        (queue,) = merge_daemon.state.hosts["a.test"].pages.values()
        queue.due_at(merge_daemon.clock.now())  # the pages that rest enter the policy
        models = bursty_models(120)
        await store_models(merge_daemon, models)
        assert (await AllocateJob(merge_daemon.context).run()).startswith("120 pages, 1 hosts")
        slot_s = merge_daemon.state.hosts["a.test"].delay_s()
        simulated = MergePolicy()
        simulated.load(np.arange(120))
        RepeatedAllocation(simulated, models, slot_s).run_until(0.0)
        for page in range(120):
            expected = simulated.frequency(page)
            assert queue.policy.frequency(page + 1) == pytest.approx(expected, rel=1e-3)

    async def test_a_refit_a_new_policy_and_a_new_delay_need_a_new_price(self, merge_daemon, wall):
        job = AllocateJob(merge_daemon.context)
        host = merge_daemon.state.hosts["a.test"]
        await job.run()
        assert await job.run() == "1 hosts keep their price"
        job.reset()
        assert (await job.run()).startswith("120 pages, 1 hosts")
        (queue,) = host.pages.values()
        queue.policy_name = "delayed"
        assert (await job.run()).startswith("120 pages, 1 hosts")
        host.backoff = host.backoff.after_trouble(wall(), 1.0, None)
        assert (await job.run()).startswith("120 pages, 1 hosts")

    async def test_a_refit_reaches_the_policies(self, serve, daemon, mirror):
        web = await serve(make_site(pages=20))
        running = await daemon(web.url(), schedule=REVISITING)
        count = "SELECT count(*) FROM model"
        await until(lambda: mirror.rows(count) == [(20,)], what="models of all pages")
        queue = await first_queue(running)
        await until(lambda: len(queue.policy) == 20, what="all pages in the policy")
        running.state.set_host_paused(1, "a.test", paused=True)
        await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
        await running.crawl.recorder.drain()
        now = running.clock.now() + 1e6
        before = queue.policy.visit_values([1], now)[0]
        await set_rate(running, [1], 1e-3)
        *_, result, detail = await run_job(running, "estimate")
        assert (result, detail.startswith("20 models")) == ("done", True)
        await until(
            lambda: queue.policy.visit_values([1], now)[0] != before, what="new visit values"
        )
