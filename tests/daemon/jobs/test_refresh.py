"""The refresh job: pages that were not visited for `max_revisit_s` come first."""

from dataclasses import replace

import pytest

from crawld.core.politeness import DelayRules
from crawld.daemon.jobs.refresh import EVERY_S, IDLE_EVERY_S, RefreshJob
from tests.daemon.harness import make_site, until

LONGEST_S = 7200.0
TURNS = 6


@pytest.fixture
async def rested(serve, daemon, mirror, wall):
    """Return a daemon whose 20 pages were visited an hour ago, 8 of them a day ago."""
    web = await serve(make_site(pages=20))
    running = await daemon(
        web.url(),
        schedule={"policy": "merge", "min_revisit_s": 0.0},
        site={"max_revisit_s": LONGEST_S},
    )
    count = "SELECT count(*) FROM model"
    await until(lambda: mirror.rows(count) == [(20,)], what="models of all pages")
    running.state.set_host_paused(1, "a.test", paused=True)
    await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
    await running.crawl.recorder.drain()
    wall.shift_s += 3600.0
    (queue,) = running.state.hosts["a.test"].pages.values()

    def make_old(connection):
        connection.execute(
            "UPDATE page SET last_visit_at = last_visit_at - 86400 - page_id * 60.0"
            " WHERE page_id <= 8"
        )

    await running.database.write(make_old)
    queue.due_at(running.clock.now())  # ends the rests, as the next turn does
    return running, queue


def taken(running, queue, count):
    return {queue.take(running.clock.now()) for _ in range(count)}


async def test_the_longest_unvisited_pages_come_first_as_many_as_there_are_turns(rested):
    running, queue = rested
    host = running.state.hosts["a.test"]
    host.apply_rules([DelayRules(host_delay_s=EVERY_S / TURNS)])
    job = RefreshJob(running.context)
    assert await job.run() == "6 pages are visited before others"
    assert await job.progress() == {"overdue": 6}
    assert taken(running, queue, TURNS) == {3, 4, 5, 6, 7, 8}


async def test_pages_that_rest_or_wait_already_are_not_called_again(rested):
    running, queue = rested
    job = RefreshJob(running.context)
    assert await job.run() == "8 pages are visited before others"
    assert await job.run() == "0 pages are visited before others"
    assert taken(running, queue, 8) == set(range(1, 9))
    assert await job.run() == "0 pages are visited before others"


async def test_a_site_without_the_key_asks_for_no_visit(rested, mirror):
    running, _ = rested
    start = mirror.make_start("http://a.test/", site={"max_revisit_s": None})
    await running.site_registry.adopt(start.config, start.seeds)
    assert await RefreshJob(running.context).run() == "0 pages are visited before others"


async def test_the_job_looks_seldom_while_no_site_has_a_limit(rested):
    running, _ = rested
    job = RefreshJob(running.context)
    assert job.every_s == EVERY_S
    for site_id, site in list(running.state.sites.items()):
        config = site.config.model_copy(update={"max_revisit_s": None})
        running.state.sites[site_id] = replace(site, config=config)
    assert job.every_s == IDLE_EVERY_S
