"""Questions about events of wikis: what is reported while one waits does not wait for it."""

import itertools
from types import SimpleNamespace

import pytest
import trio

from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.jobs.wiki_parts.asking import SHARED_WAIT_S
from crawld.daemon.jobs.wiki_parts.events import RENEWED_FOR_S, WikiEventsJob
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, TroubleKind
from crawld.sources.mediawiki_scope import TitleScope
from crawld.sources.mediawiki_title import Namespace, TitleRules
from crawld.store.changes import wiki_event
from crawld.store.changes.wiki import WikiRow, WikiSite
from crawld.store.changes.wiki_event import StoredEvent, WikiEvent
from tests.unit.daemon.fake_hosts import on_autojump_clock

ROW = WikiRow(
    *(1, 1, "http://wiki.test", 1, 0.0, "http://wiki.test/w/api.php", None, None, 0, 0),
    *(None, None, 0, None, (WikiSite(1, 0.0),)),
)
RULES = TitleRules(
    article_path="/wiki/$1",
    script="/w/index.php",
    namespaces={0: Namespace(0, ""), 10: Namespace(10, "Template")},
    names={"template": 10},
)
CATEGORY = TitleScope(
    RULES,
    scoped=True,
    members=frozenset({"X"}),
    has_categories=True,
    followed=frozenset({"Category:A"}),
)


class Job(WikiEventsJob):
    """A job without a file; the wiki answers a question `answers_in_s` after it was first asked."""

    def __init__(self, *titles, answers_in_s, closed=False):
        state = SimpleNamespace(
            sites={1: SimpleNamespace(trusts=lambda url, source: True)},
            wiki_scope=SimpleNamespace(parts_of=lambda row: {1: CATEGORY}),
        )
        self.began_at = trio.current_time()
        self.answers_at = self.began_at + answers_in_s
        self.stored, self.doubts, self.asked, self.renamed = [], [], [], []
        self.closed, self.numbers = closed, itertools.count(1)
        self.pages, self.judged = [], []
        self.answers_again_in_s = 0.0
        context = CrawlContext(state, self, Clock(), None, None, None, Config)
        super().__init__(context, self, list_again=lambda: None, doubt=self.doubts.append)
        nothing = trio.lowlevel.checkpoint
        self._members = SimpleNamespace(settle=nothing, refresh=nothing)
        self.report(*(WikiEvent("page", title, 1.0) for title in titles))

    def report(self, *events):
        self.stored += [StoredEvent(next(self.numbers), event) for event in events]
        self.note_reports()

    async def ask(self, api, parameters, *, waits_s, unless, due, patience_s, urgency):
        named = parameters.get("titles") or parameters["pageids"]
        self.asked.append((self.now_s, named, waits_s))
        self.answers_at = max(self.answers_at, trio.current_time() + self.answers_again_in_s)
        with trio.move_on_at(self.answers_at):
            await (trio.Event() if unless is None else unless).wait()
        if self.closed or (unless is not None and unless.is_set()):
            return ApiTrouble(TroubleKind.HELD, "it was not sent")
        return ApiResponse({"pages": self.pages})

    @property
    def now_s(self):
        return trio.current_time() - self.began_at

    async def read(self, function, *_):
        return list(self.stored) if function is wiki_event.list_events else [ROW]

    async def write(self, function, numbers):
        assert function is wiki_event.remove
        self.stored = [each for each in self.stored if each.wiki_event_id not in numbers]

    async def _rename(self, row, site_id, scope, events):
        self.renamed += [(self.now_s, event.title) for event in events]

    async def _set_categories(self, row, site_id, scope, pages, categories):
        return []

    async def _set_pages(self, row, site_id, scope, pages, followed):
        self.judged += [page.title for page in pages]
        return []


def move(title):
    return WikiEvent("move", title, 2.0, f"New {title}")


@on_autojump_clock
async def test_a_move_does_not_wait_for_the_answer_to_a_question():
    job = Job("A", "Template:B", answers_in_s=6.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run)
        await trio.sleep(4.0)
        job.report(move("X"), WikiEvent("page", "C", 2.0, page_number=7))
    assert job.renamed == [(4.0, "X")]
    assert job.asked == [(0.0, "A", SHARED_WAIT_S), (4.0, "A|C", SHARED_WAIT_S - 4.0)]
    assert (job.now_s, job.stored) == (6.0, [])
    assert job.doubts == [1]


@on_autojump_clock
async def test_a_question_is_asked_anew_for_a_limited_time():
    job = Job("A", answers_in_s=100.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run)
        for number in range(4):
            await trio.sleep(4.0)
            job.report(move(f"X{number}"))
    times = [at for at, _, _ in job.asked]
    assert times[:4] == [0.0, 4.0, 8.0, 12.0]
    assert times[3] - 4.0 < RENEWED_FOR_S < times[3]
    assert [at for at, _ in job.renamed] == [4.0, 8.0, 12.0, 100.0]


@on_autojump_clock
async def test_a_move_that_is_reported_before_an_answer_comes_before_the_next_question():
    job = Job("B", answers_in_s=2.0 * RENEWED_FOR_S)
    job.answers_again_in_s = 5.0
    job.report(WikiEvent("category", "Category:A", 1.0, page_number=7))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run)
        for title, pause_s in (("X", RENEWED_FOR_S + 1.0), ("Y", 5.0)):
            await trio.sleep(pause_s)
            job.report(move(title))  # for X the question is asked anew, for Y not any more
    answered_at = 2.0 * RENEWED_FOR_S
    assert [named for _, named, _ in job.asked] == ["7", "7", "B"]
    assert job.renamed == [(RENEWED_FOR_S + 1.0, "X"), (answered_at, "Y")]
    assert (job.now_s, job.stored) == (answered_at + 5.0, [])


@pytest.mark.parametrize("reports", [0, 1])
@on_autojump_clock
async def test_a_wiki_that_may_not_be_asked_is_asked_again_later(reports):
    job = Job("A", answers_in_s=1.0, closed=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run)
        await trio.sleep(0.5)
        job.report(*[move("X")] * reports)
    assert [each.event.title for each in job.stored] == ["A"]
    assert job.every_s > 0.0


@pytest.mark.parametrize(
    ("number", "redirect", "judged"),
    [(5, False, ["X"]), (5, True, ["X"]), (35, True, []), (35, False, ["X"])],
)
@on_autojump_clock
async def test_a_page_that_was_moved_meanwhile_waits_for_its_rename(number, redirect, judged):
    job = Job(answers_in_s=1.0)
    job.pages = [{"pageid": number, "title": "X", "redirect": redirect}]
    job.report(WikiEvent("page", "X", 1.0, page_number=5))
    await job.run()
    assert (job.judged, job.stored) == (judged, [])


@on_autojump_clock
async def test_a_title_reported_without_a_page_is_judged():
    job = Job("X", answers_in_s=1.0)
    job.pages = [{"pageid": 35, "title": "X", "redirect": True}]
    job.report(WikiEvent("page", "Y", 1.0, page_number=5))
    await job.run()
    assert job.judged == ["X"]
