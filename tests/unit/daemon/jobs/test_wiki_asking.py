"""Questions to a wiki that fails for some time."""

from itertools import pairwise

import pytest
import trio

from crawld.daemon.jobs.wiki_parts.asking import RETRY_S, ask_pages, ask_patiently, resolve_titles
from crawld.daemon.jobs.wiki_parts.events import MAX_RETRY_S, _retry_s
from crawld.daemon.jobs.wiki_parts.events import RETRY_S as LEAST_S
from crawld.sources.mediawiki_api import LAG_PAUSE_S, ApiResponse, ApiTrouble, TroubleKind
from crawld.sources.mediawiki_members import MemberPage

LAGGED = ApiTrouble(TroubleKind.LAGGED, "7 s behind", 5.0)
CLOSED = ApiTrouble(TroubleKind.CLOSED, "readapidenied")
ANSWER = ApiResponse({"pages": [{"title": "A", "pageid": 1}]})


def answering(*answers):
    """Return a question that gets these answers, then the last one again, and its parameters."""
    asked = []

    async def ask(parameters):
        asked.append(parameters)
        await trio.lowlevel.checkpoint()
        return answers[min(len(asked), len(answers)) - 1]

    return ask, asked


async def test_a_lagging_wiki_is_asked_again_with_growing_pauses(autojump_clock):
    ask, asked = answering(*[LAGGED] * 4, ANSWER)
    began_at = trio.current_time()
    assert await ask_patiently(ask, {}) is ANSWER
    assert len(asked) == 5
    assert trio.current_time() - began_at == 5.0 + 10.0 + 20.0 + 40.0


async def test_a_wiki_that_does_not_answer_is_left_for_the_next_run(autojump_clock):
    ask, asked = answering(LAGGED)
    began_at = trio.current_time()
    assert await ask_patiently(ask, {}) is LAGGED
    assert RETRY_S - LAG_PAUSE_S <= trio.current_time() - began_at <= RETRY_S
    assert len(asked) <= RETRY_S / LAG_PAUSE_S + 4


async def test_a_pause_that_outlasts_the_budget_is_not_waited_for(autojump_clock):
    ask, asked = answering(CLOSED)
    began_at = trio.current_time()
    assert await ask_patiently(ask, {}) is CLOSED
    assert (len(asked), trio.current_time() - began_at) == (1, 0.0)


@pytest.mark.parametrize("asked_s", [90.0, 700.0])
async def test_no_request_comes_before_the_wiki_has_asked_for(autojump_clock, asked_s):
    busy = ApiTrouble(TroubleKind.RATE_LIMITED, "429", asked_s)
    at = []

    async def ask(parameters):
        at.append(trio.current_time())
        return ANSWER if len(at) == 3 else busy

    assert await ask_patiently(ask, {}) is ANSWER
    assert all(later - earlier >= asked_s for earlier, later in pairwise(at))


async def test_a_question_that_never_gets_a_turn_is_held(autojump_clock):
    async def ask(parameters):
        await trio.sleep_forever()

    began_at = trio.current_time()
    response = await ask_patiently(ask, {})
    assert response.trouble is TroubleKind.HELD
    assert trio.current_time() - began_at == RETRY_S


async def test_a_refused_question_is_not_repeated():
    refused = ApiTrouble(TroubleKind.BROKEN, "invalidcategory")
    ask, asked = answering(refused)
    assert await ask_patiently(ask, {}) is refused
    assert len(asked) == 1


async def test_what_a_wiki_leaves_out_is_missing():
    ask, _ = answering(ApiResponse({}))
    found = await resolve_titles(ask, ["A"])
    assert found["A"].outcome == "missing"


async def test_a_state_in_several_responses_is_joined():
    first = {"title": "A", "pageid": 1, "categories": [{"title": "Category:X"}]}
    second = {"title": "A", "pageid": 1, "categories": [{"title": "Category:Y"}]}
    ask, asked = answering(
        ApiResponse({"pages": [first]}, {"clcontinue": "x"}), ApiResponse({"pages": [second]})
    )
    both = frozenset({"Category:X", "Category:Y"})
    assert await ask_pages(ask, sorted(both), titles=["A"]) == [MemberPage("A", 1, False, both)]
    assert asked[1]["clcontinue"] == "x"


def test_pauses_before_waiting_events_are_asked_for_again():
    assert _retry_s(LAGGED, 1) == LEAST_S
    assert LEAST_S < _retry_s(LAGGED, 20) <= MAX_RETRY_S
    assert _retry_s(CLOSED, 3) == 4 * 3_600.0
