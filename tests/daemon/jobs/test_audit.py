"""Audits of a whole daemon on a simulated web that knows which copies are fresh."""

import gc
import random
from dataclasses import replace

import pytest

from crawld.config.model import Config, JobsConfig
from crawld.core.audit import AuditResult, wilson_interval
from crawld.core.revisit.policies import VisitObservation
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.jobs.audit import AuditJob
from crawld.daemon.jobs.present_freshness import PresentFreshness
from crawld.simweb.change_process import poisson_process
from crawld.simweb.truth import freshness_by_fetch_time
from tests.daemon.harness import SteppedTime, make_site, until

SEEN = VisitObservation(changed=False)


def audits(mirror):
    """Return (fresh, stale, unknown, expected) over all days."""
    (row,) = mirror.rows("SELECT sum(fresh), sum(stale), sum(unknown), sum(expected) FROM audit")
    return tuple(value or 0 for value in row)


@pytest.fixture
def auditing(nursery):
    """Return a function that starts audits of a daemon, as often as its hosts allow."""

    def start(running, share=1.0):
        config = Config(jobs=JobsConfig(audit_share=share))
        context = replace(running.context, rng=random.Random(1), config=lambda: config)
        job = AuditJob(context, PresentFreshness(context), least_delay_s=0.02)
        nursery.start_soon(job.run)

    return start


async def test_the_estimate_matches_the_true_freshness(serve, daemon, mirror, auditing):
    wall = SteppedTime(1_780_000_000.0, 1.0)
    mirror.clock = Clock(wall=wall)
    changes = [
        poisson_process(35.0 + 25.0 * page, start_at=wall.at, seed=page) for page in range(12)
    ]
    site = make_site(pages=12, changes=lambda page: changes[page], start_at=wall.at)
    web = await serve(site, clock=wall.tick)
    politeness, schedule = {"host_delay_s": 0.02}, {"min_revisit_s": 0.0}
    auditing(await daemon(web.url(), politeness=politeness, schedule=schedule), share=0.5)
    await until(lambda: sum(audits(mirror)[:2]) >= 1, what="first audit")
    truth = []
    while sum(audits(mirror)[:2]) < 120:
        rows = mirror.rows("SELECT url, last_visit_at FROM page WHERE state = 'visited'")
        truth.append(freshness_by_fetch_time(site, dict(rows), wall.at).freshness)
        sampled_at = wall.at
        await until(lambda at=sampled_at: wall.at >= at + 3.0, what="three requests")
    fresh, stale, unknown, expected = audits(mirror)
    low, high = wilson_interval(fresh, fresh + stale, level=0.9999)
    assert low - 0.05 < sum(truth) / len(truth) < high + 0.05
    assert 0.1 < low < high < 1.0
    assert 0.0 < expected < fresh + stale
    assert unknown == 0


async def test_a_run_keeps_the_sum_of_its_audits_not_each(serve, daemon, mirror, auditing):
    web = await serve(make_site(pages=5))
    running = await daemon(web.url(), politeness={"host_delay_s": 0.02})
    await until(lambda: running.crawl.visitor.counts["changed"] == 5, what="visits")
    running.state.set_host_paused(1, "a.test", paused=True)
    auditing(running)
    await until(lambda: audits(mirror)[2] >= 30, what="audits")
    assert sum(isinstance(each, AuditResult) for each in gc.get_objects()) < 15


async def test_without_an_audit_share_nothing_is_audited(serve, daemon, mirror):
    web = await serve(make_site(pages=5))
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts["changed"] == 5, what="visits")
    assert audits(mirror) == (0, 0, 0, 0)
    # Nothing changes here: five pages, robots.txt, no page twice.
    assert len(web.ledger.requests("a.test")) == 6


async def test_an_unreachable_site_counts_as_unknown(serve, daemon, mirror, auditing):
    web = await serve(make_site(pages=5))
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts["changed"] == 5, what="visits")
    running.state.set_host_paused(1, "a.test", paused=True)
    auditing(running)
    await until(lambda: audits(mirror)[2] > 3, what="audits that told nothing")


def pages_of(visited=(), **more):
    """Return a page queue with some pages in the policy."""
    pages = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=100.0)
    for page in visited:
        pages.add_new([page])
        assert pages.take(0.0) == page
        pages.mark_recorded(page)
        pages.visited(page, 0.0, SEEN)
    return pages


@pytest.mark.parametrize("now", [1.0, 1_000.0])
def test_a_drawn_page_is_visited_next_and_once(now):
    pages = pages_of([1, 2, 3])
    if now > 100.0:
        assert pages.take(now) == 1  # rested ones are in the policy now
        pages.visited(1, now, SEEN)
    pages.visit_until(3, now + 30.0)
    pages.visit_until(3, now)
    assert pages.wanted_at(now) == now
    assert pages.take(now) == 3
    pages.visit_until(3, now)  # in flight: this visit will do
    pages.visited(3, now, SEEN)
    later = now + 1_000.0
    assert sorted(pages.take(later) for _ in range(3)) == [1, 2, 3]
    assert pages.take(later) is None


def test_a_page_that_waits_after_a_failure_can_be_drawn():
    pages = pages_of([1])
    pages.load_retry(2, 5_000.0)
    pages.visit_until(2, 40.0)
    assert pages.take(10.0) == 2
    pages.retry(2, 9_000.0)
    assert pages.take(6_000.0) == 1
    assert pages.take(6_000.0) is None


def test_an_unknown_page_is_not_visited():
    pages = pages_of([1])
    pages.visit_until(7, 40.0)
    assert pages.take(1.0) is None
