"""Questions to a wiki go along with the next poll of its recent changes."""

import math
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
import trio

from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api, ApiClient
from crawld.daemon.crawl.api_shared import Urgency, WaitingQuestion
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.waiting import wait_any
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, TroubleKind
from crawld.sources.mediawiki_changes import ChangesCursor, changes_query
from crawld.sources.mediawiki_history import history_query
from crawld.sources.mediawiki_members import pages_query
from tests.unit.daemon.fake_hosts import NoSharedRates, on_autojump_clock

API = Api((1,), "https://wiki.test/w/api.php")
CHANGES = changes_query(ChangesCursor(at=1_780_000_000.0), 1_780_000_000.0)
QUESTION = pages_query(["Category:A"], titles=["X", "Y"])
PAGES = [{"title": "X", "pageid": 1}]
WALK = {"generator": "categorymembers", "gcmtitle": "Category:A", "prop": "info"}


class Client(ApiClient):
    """A client that records its requests and gets scripted responses."""

    def __init__(self, responses, *, urgent=True, stale=False, poll_at=-math.inf):
        self.urgent = urgent
        self.host = SimpleNamespace(
            slot=None, poll_at=poll_at, has_unshown=lambda active: stale, hinted_at=0.0
        )
        crawl = SimpleNamespace(is_urgent=lambda slot: self.urgent)
        super().__init__(CrawlContext(None, None, Clock(), None, None, None, Config), crawl, None)
        self._state = SimpleNamespace(active={1}, rates=NoSharedRates())
        self.responses = responses
        self.asked = []

    async def _ask_now(self, api, host, site, url):
        self.asked.append(parse_qs(url.partition("?")[2]))
        return self.responses.pop(0)

    async def poll(self):
        return await self._send(API, self.host, None, CHANGES, takes_along=True)

    async def question(self, query=QUESTION, urgency=Urgency.DOUBTED, *, waits_s=10.0):
        question = WaitingQuestion(query, urgency, trio.current_time())
        await self._wait_shared(API, self.host, question, waits_s, trio.Event())
        return question.response


async def ask_beside(client, polls):
    """Return the response to a question that waits while the recent changes are polled."""
    found = []

    async def ask():
        found.append((await client.question(), trio.current_time()))

    polled = []
    began_at = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        for _ in range(polls):
            await trio.sleep(4.0)
            polled.append(await client.poll())
    [(response, at)] = found
    return response, at - began_at, polled


@on_autojump_clock
async def test_a_question_and_a_poll_take_one_request():
    rows = {"recentchanges": [], "logevents": [], "pages": PAGES}
    cursor = {"rccontinue": "1|2", "continue": "-||info"}
    client = Client([ApiResponse(rows, cursor, served_at=5.0), ApiResponse({}, None)])
    response, waited_s, polled = await ask_beside(client, 2)
    assert response.query["pages"] == PAGES
    assert response.cursor is None
    assert waited_s == 4.0
    assert polled[0].cursor == cursor
    assert client.asked[0]["list"] == ["recentchanges|logevents"]
    assert client.asked[0]["titles"] == ["X|Y"]
    assert "titles" not in client.asked[1]


@on_autojump_clock
async def test_a_question_whose_response_is_not_complete_is_asked_alone():
    cursor = {"zzcontinue": "3", "continue": "||"}
    client = Client([ApiResponse({"pages": PAGES}, cursor)])
    response, waited_s, polled = await ask_beside(client, 1)
    assert (response, waited_s) == (None, 4.0)
    assert polled[0].cursor is None


@on_autojump_clock
async def test_a_question_gets_its_own_cursor():
    cursor = {"clcontinue": "3", "rccontinue": "1|2", "continue": "||info"}
    client = Client([ApiResponse({"pages": PAGES}, cursor)])
    response, _, polled = await ask_beside(client, 1)
    assert response.cursor == {"clcontinue": "3", "continue": "||info"}
    assert polled[0].cursor == {"rccontinue": "1|2", "continue": "||info"}


class BusyHost:
    """A host whose copies are known to be stale."""

    hinted_at = 0.0
    slot = SimpleNamespace(host="wiki.test", next_at=0.0)

    def delay_s(self):
        return 1.0

    def has_stale(self, active):
        return True


@on_autojump_clock
async def test_histories_go_along_with_polls_while_copies_are_stale():
    pages = [[{"title": "X", "pageid": number}] for number in (1, 2, 3)]
    client = Client([ApiResponse({"pages": rows}, None) for rows in pages])
    client._asked_at["wiki.test"] = trio.current_time()
    client._crawl.wanted_at = lambda slot: None
    found = []

    async def read():
        for number in range(3):
            query = history_query(number + 1, None)
            question = WaitingQuestion(query, Urgency.UNMISSED, trio.current_time())
            await client._wait_turn(API, BusyHost(), question)
            found.append(question.response)

    began_at = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for _ in range(3):
            await trio.sleep(5.0)
            await client.poll()
    assert trio.current_time() - began_at == 15.0
    assert [each.query["pages"] for each in found] == pages
    assert [asked["pageids"] for asked in client.asked] == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize(
    ("trouble", "repeated"), [(TroubleKind.TOO_MANY, True), (TroubleKind.UNAVAILABLE, False)]
)
@on_autojump_clock
async def test_a_question_does_not_fail_a_poll(trouble, repeated):
    failed = ApiTrouble(trouble, "no")
    client = Client([failed])
    response, _, polled = await ask_beside(client, 1)
    assert response is None
    assert polled == [None if repeated else failed]  # None: it is sent again without a question


@on_autojump_clock
async def test_without_a_poll_a_question_waits_for_a_limited_time():
    began_at = trio.current_time()
    assert await Client([]).question() is None
    assert trio.current_time() - began_at == 10.0


@on_autojump_clock
async def test_a_question_waits_only_while_edited_pages_do():
    began_at = trio.current_time()
    assert await Client([], urgent=False).question() is None
    assert trio.current_time() == began_at
    client = Client([ApiResponse({}, None)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.question)
        await trio.sleep(3.5)
        client.urgent = False
        await trio.sleep(2.0)
        await client.poll()
    assert "titles" not in client.asked[0]


@pytest.mark.parametrize(
    ("stale", "poll_in_s", "waited_s"),
    [(True, 4.0, 4.0), (True, 11.0, 0.0), (True, -math.inf, 0.0), (False, 4.0, 0.0)],
)
@on_autojump_clock
async def test_a_question_waits_for_a_poll_while_copies_are_stale(stale, poll_in_s, waited_s):
    began_at = trio.current_time()
    answers = [ApiResponse({"pages": PAGES}, None)]
    client = Client(answers, urgent=False, stale=stale, poll_at=began_at + poll_in_s)
    response, at, _ = await ask_beside(client, 1)
    assert at == waited_s
    assert (response is not None) == (waited_s > 0.0)


@on_autojump_clock
async def test_a_question_waits_for_a_poll_that_is_under_way():
    client = Client([ApiResponse({"pages": PAGES}, None)], urgent=False, stale=True)
    client.host.poll_at = trio.current_time() - 0.5
    response, waited_s, _ = await ask_beside(client, 1)
    assert (response is not None, waited_s) == (True, 4.0)


@on_autojump_clock
async def test_a_poll_takes_all_questions_along_that_can_be_asked_together():
    pages = [{"title": title, "pageid": 1} for title in ("X", "Z", "New")]
    client = Client([ApiResponse({"pages": pages}, None)])
    found = []

    async def ask(title):
        query = pages_query(["Category:A"], titles=[title])
        found.append((title, (await client.question(query)).query["pages"]))

    async with trio.open_nursery() as nursery:
        for title in ("X", "New"):
            nursery.start_soon(ask, title)
        await trio.sleep(1.0)
        await client.poll()
    assert sorted(found) == [("New", pages[2:]), ("X", pages[:1])]
    assert sorted(client.asked[0]["titles"][0].split("|")) == ["New", "X"]


@on_autojump_clock
async def test_questions_that_a_poll_took_along_in_vain_are_all_asked_alone():
    client = Client([ApiResponse({"pages": PAGES}, {"zzcontinue": "3", "continue": "||"})])
    found = []

    async def ask(title):
        found.append(await client.question(pages_query(["Category:A"], titles=[title])))

    async with trio.open_nursery() as nursery:
        for title in ("X", "Y"):
            nursery.start_soon(ask, title)
        await trio.sleep(1.0)
        await client.poll()
    assert found == [None, None]


@on_autojump_clock
async def test_a_poll_takes_no_more_questions_along_than_a_request_may_be_long():
    client = Client([ApiResponse({"pages": PAGES}, None) for _ in range(2)])
    long_titles = [[f"{number} {'x' * 3_000}"] for number in range(2)]
    async with trio.open_nursery() as nursery:
        for titles in long_titles:
            nursery.start_soon(client.question, pages_query(["Category:A"], titles=titles))
        for _ in range(2):
            await trio.sleep(1.0)
            await client.poll()
    assert sorted(each["titles"] for each in client.asked) == long_titles


@on_autojump_clock
async def test_questions_about_reports_go_along_first_and_histories_last():
    client = Client([ApiResponse({"pages": PAGES}, None) for _ in range(3)])
    history = WaitingQuestion(history_query(7, None), Urgency.UNMISSED, trio.current_time())
    client._questions.put(API.url, history)
    reported = pages_query(["Category:A"], titles=["New"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.question, WALK)
        await trio.sleep(0.5)
        nursery.start_soon(client.question, reported, Urgency.REPORTED)
        for _ in range(3):
            await trio.sleep(0.5)
            await client.poll()
    asked = [each.get("titles") or each.get("pageids", ["walk"]) for each in client.asked]
    assert asked == [["New"], ["walk"], ["7"]]


class LendingClient(Client):
    """A client whose questions get a turn of their own `turn_at`, seconds from now."""

    def __init__(self, responses, *, turn_in_s, answers_in_s=0.0):
        super().__init__(responses)
        self.answers_in_s = answers_in_s
        self.turn_at = trio.current_time() + turn_in_s
        self.lent = []
        self._crawl.schedule = self
        self._crawl.fetcher = None
        self._crawl.robots = SimpleNamespace(fresh=self._robots)
        self._state.ensure_host = self._ensure

    async def _ask_now(self, api, host, site, url):
        await trio.sleep(self.answers_in_s)
        return await super()._ask_now(api, host, site, url)

    async def _ensure(self, name, rules_of):
        return self.host

    async def _robots(self, origin):
        return SimpleNamespace(names_agent=False)

    def _held(self, api, host):
        return None

    def _site(self, api):
        return SimpleNamespace()

    @asynccontextmanager
    async def borrow(self, slot, *, first, patience_s, unless):
        with trio.move_on_at(self.turn_at):
            await wait_any(*unless)
        holds = not any(event.is_set() for event in unless)
        self.lent.append(holds)
        yield holds


async def ask_while_polled(client, *, polls=1, withdrawn_in_s=None, **how):
    """Return the response to a question that is due, and when it came; polls come from 4 s on."""
    found, began_at = [], trio.current_time()

    async def withdraw():
        await trio.sleep(withdrawn_in_s)
        how["unless"].set()

    async def ask():
        response = await client.ask(API, QUESTION, due=True, patience_s=8.0, **how)
        found.append((response, trio.current_time() - began_at))

    async with trio.open_nursery() as nursery:
        if withdrawn_in_s is not None:
            how["unless"] = trio.Event()
            nursery.start_soon(withdraw)
        nursery.start_soon(ask)
        await trio.sleep(4.0)
        for _ in range(polls):
            await client.poll()
            await trio.sleep(1.0)
    return found[0]


@pytest.mark.parametrize(
    ("waits_s", "turn_in_s", "came_s", "requests"),
    [(0.0, 6.0, 4.0, 1), (0.0, 2.0, 2.0, 2), (None, 6.0, 6.0, 2)],
)
@on_autojump_clock
async def test_a_question_that_waits_for_its_own_turn_goes_along_with_a_poll_before_it(
    waits_s, turn_in_s, came_s, requests
):
    answer = ApiResponse({"pages": PAGES}, None)
    client = LendingClient([answer, answer], turn_in_s=turn_in_s)
    response, at = await ask_while_polled(client, waits_s=waits_s)
    assert (response.query["pages"], at) == (PAGES, came_s)
    assert len(client.asked) == requests
    assert "list" in client.asked[0] or requests == 2
    assert client.lent == [requests == 2]
    assert not client._questions._waiting[API.url]


@on_autojump_clock
async def test_a_question_that_a_poll_took_along_in_vain_is_asked_alone_once():
    cursor = {"zzcontinue": "3", "continue": "||"}
    found = [ApiResponse({"pages": PAGES}, each) for each in (cursor, None, None)]
    client = LendingClient(found, turn_in_s=6.0)
    response, at = await ask_while_polled(client, polls=2, waits_s=0.0)
    assert (response.query["pages"], at) == (PAGES, 6.0)
    assert [each.get("titles") for each in client.asked] == [["X|Y"], None, ["X|Y"]]
    assert client.lent == [False, True]


@on_autojump_clock
async def test_a_question_whose_turn_comes_while_a_poll_has_it_waits_for_the_poll():
    client = LendingClient([ApiResponse({"pages": PAGES}, None)], turn_in_s=5.0, answers_in_s=3.0)
    response, at = await ask_while_polled(client, waits_s=0.0)
    assert (response.query["pages"], at) == (PAGES, 7.0)
    assert len(client.asked) == 1


@pytest.mark.parametrize(
    ("waits_s", "withdrawn_in_s", "answers_in_s", "came_s"),
    [(8.0, 2.5, 0.0, 2.5), (0.0, 2.5, 0.0, 2.5), (8.0, 5.0, 3.0, 7.0), (0.0, 5.0, 3.0, 7.0)],
)
@on_autojump_clock
async def test_a_question_that_is_withdrawn_costs_no_request_unless_a_poll_has_it(
    waits_s, withdrawn_in_s, answers_in_s, came_s
):
    client = LendingClient(
        [ApiResponse({"pages": PAGES}, None)], turn_in_s=50.0, answers_in_s=answers_in_s
    )
    response, at = await ask_while_polled(client, waits_s=waits_s, withdrawn_in_s=withdrawn_in_s)
    assert at == came_s
    assert isinstance(response, ApiResponse) == (answers_in_s > 0.0)
    [poll] = client.asked
    assert ("titles" in poll) == (answers_in_s > 0.0)
    assert not any(client.lent)


@on_autojump_clock
async def test_a_question_that_waits_for_its_own_turn_keeps_its_place():
    client = LendingClient([ApiResponse({"pages": PAGES}, None)] * 2, turn_in_s=50.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(client.ask, API, QUESTION, due=True, waits_s=2.0))
        await trio.sleep(1.0)
        nursery.start_soon(partial(client.ask, API, WALK, due=True, waits_s=8.0))
        await trio.sleep(2.0)
        for _ in range(2):
            await client.poll()
            await trio.sleep(1.0)
    assert [each.get("titles") for each in client.asked] == [["X|Y"], None]
    assert "generator" in client.asked[1]
