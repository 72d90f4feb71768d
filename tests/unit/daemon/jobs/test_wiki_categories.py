"""Checks of the categories that parts of wikis follow: what they cost, and when the next comes."""

import math
from types import SimpleNamespace

import pytest
import trio

from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_shared import Urgency
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.jobs.wiki_parts.asking import SHARED_WAIT_S, AskOnce
from crawld.daemon.jobs.wiki_parts.categories import (
    CHECKS_S,
    EVENTS_LOOK_S,
    LISTING_WAIT_S,
    REST_FACTOR,
    WikiCategoriesJob,
)
from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_scope import TitleScope
from crawld.store.changes import wiki_event
from crawld.store.changes.wiki import WikiRow, WikiSite
from tests.unit.daemon.fake_hosts import NoSharedRates, on_autojump_clock

NAME = "Category:Rivers"
ROW = WikiRow(
    *(1, 1, "http://wiki.test", 1, 0.0, "http://wiki.test/w/api.php", None, None, 0, 0),
    *(None, None, 0, None, (WikiSite(1, 0.0),)),
)
SIZES = ApiResponse({"pages": [{"title": NAME, "categoryinfo": {"pages": 3, "files": 0}}]})


class Job(WikiCategoriesJob):
    """A job without a file: the sizes of `differing` categories differ from what the part has."""

    def __init__(self, differing=(), delay_s=1.0):
        followed = frozenset({NAME, *differing})
        part = TitleScope(None, scoped=True, has_categories=True, followed=followed)
        state = SimpleNamespace(
            hosts={"wiki.test": SimpleNamespace(delay_s=lambda: delay_s)},
            sites={1: SimpleNamespace(trusts=lambda url, source: True)},
            wiki_scope=SimpleNamespace(parts_of=lambda row: {1: part}),
            rates=NoSharedRates(),
        )
        context = CrawlContext(state, self, Clock(), None, None, None, Config)
        super().__init__(context, self, list_again=lambda: None)
        self.differing = list(differing)
        self.asked = []
        self.urgencies = []
        self.events_until = -math.inf
        self.compared_at = []

    async def ask(self, api, parameters, *, due, patience_s, urgency, waits_s=0.0):
        self.urgencies.append(urgency)
        self.asked.append((trio.current_time(), "titles" in parameters, waits_s))
        await trio.sleep(5.0)  # for the poll that takes it along, or for edited pages
        return SIZES

    async def read(self, function, *_):
        if function is wiki_event.count:
            return int(trio.current_time() < self.events_until)
        return [ROW]

    async def _differing(self, row, parts, sizes):
        self.compared_at.append(trio.current_time())
        return self.differing

    async def _list(self, row, parts, category, count, ask):
        await ask({"gcmtitle": category})


@on_autojump_clock
async def test_sizes_wait_for_a_poll_and_a_category_that_differs_for_the_next_one():
    job = Job(["Category:Rivers"])
    await job.run()
    assert [each[1:] for each in job.asked] == [(True, SHARED_WAIT_S), (False, LISTING_WAIT_S)]
    # The wiki reports the edit of a template: polls take them along before what is only doubted,
    # and after what may explain a difference.
    assert set(job.urgencies) == {Urgency.CAUSED}
    assert Urgency.REPORTED < Urgency.CAUSED < Urgency.DOUBTED


@pytest.mark.parametrize(("applied_s", "waits_s"), [(0.0, 5.0), (9.0, 9.0), (60.0, 15.0)])
@on_autojump_clock
async def test_a_check_waits_for_reported_events_for_a_limited_time(applied_s, waits_s):
    job, began_at = Job(), trio.current_time()
    job.events_until = began_at + applied_s
    await job.run()
    assert [at - began_at for at in job.compared_at] == [pytest.approx(waits_s, abs=EVENTS_LOOK_S)]


@pytest.mark.parametrize(("differing", "requests"), [((), 1), (("A", "B", "C"), 4)])
@on_autojump_clock
async def test_a_check_rests_for_the_turns_of_its_requests_from_its_beginning(differing, requests):
    job = Job(differing, delay_s=2.0)
    began_at = trio.current_time()
    await job.run()
    doubted_at = trio.current_time()
    job.doubt(1)
    job.asked.clear()
    while not job.asked:
        await trio.sleep(job.every_s)
        await job.run()
    expected = max(began_at + REST_FACTOR * requests * 2.0, doubted_at + CHECKS_S[0])
    assert job.asked[0][0] == pytest.approx(expected, abs=0.01)


@on_autojump_clock
async def test_checks_after_many_edits_of_templates_are_few_but_each_edit_has_early_ones():
    job = Job()
    job._has_run = True
    for _ in range(20):  # one in 45 s
        edited_at = trio.current_time()
        job.doubt(1)
        early = [check.at - edited_at for check in job._due[1]]
        assert sum(6.0 <= pause_s <= 10.0 for pause_s in early) == 1
        assert sum(14.0 <= pause_s <= 18.0 for pause_s in early) == 1
        assert sum(22.0 <= pause_s <= 26.0 for pause_s in early) == 1
        while job.every_s < 45.0 - (trio.current_time() - edited_at):
            await trio.sleep(job.every_s)
            await job.run()
        await trio.sleep(edited_at + 45.0 - trio.current_time())
        assert any(check.at - edited_at > 60.0 for check in job._due[1])
    assert len(job.asked) <= 3.2 * 20


@on_autojump_clock
async def test_edits_of_templates_that_do_not_end_put_no_check_off_and_the_last_has_its_own():
    job, delays_s = Job(delay_s=0.1), []
    job._has_run = True
    for second in range(0, 90, 3):
        job.doubt(1)
        await trio.sleep(3.0)
        if job.every_s == 0.0:
            await job.run()
            delays_s.append(second)
    assert len(delays_s) >= 5
    left = [check.at - trio.current_time() for check in job._due[1]]
    assert max(left) > 80.0


@on_autojump_clock
async def test_few_checks_wait_and_both_the_first_and_the_last_are_among_them():
    job, began_at = Job(), trio.current_time()
    for _ in range(60):  # while the wiki does not answer
        job.doubt(1)
        await trio.sleep(1.0)
    waiting = [check.at for check in job._due[1]]
    assert len(waiting) == 2 * len(CHECKS_S)
    assert waiting[0] - began_at == CHECKS_S[0]
    assert waiting[-1] - trio.current_time() > 80.0


async def test_a_request_that_was_answered_before_is_not_sent_again():
    async def answer(parameters):
        return SIZES

    ask = AskOnce(answer)
    for query in ({"a": 1}, {"a": 2}, {"a": 1}):
        await ask(query)
    assert ask.sent == 2
