"""How many pages use the templates of a wiki: what is asked, when, and what is kept."""

import pytest

from crawld.daemon.hints.source import HELD, Poll
from crawld.daemon.hints.template_survey import RETRY_S, SURVEY_S
from crawld.daemon.hints.wiki_source import LOOK_S
from crawld.sources.mediawiki_api import ApiTrouble, TroubleKind
from crawld.sources.mediawiki_usage import USAGE_LISTS
from crawld.store.changes import template_use
from crawld.store.changes.template_use import Survey
from tests.unit.daemon.hints.scripted_wiki import NOW, reply


def used(value, title):
    return reply(querypage={"results": [{"value": value, "title": title}]})


async def test_a_wiki_is_asked_once_a_day_how_many_pages_use_its_templates(make):
    world = await make(60)
    number = world.known.sources["fan_out"].hint_source_id
    poll = await world.poll("fan_out", used("46", "Template:T"), used("4", "File:F.png"))
    assert (poll.requests, poll.wait_s, len(poll.pages)) == (2, SURVEY_S, 0)
    assert [query["qppage"] for query in world.client.asked] == list(USAGE_LISTS)
    await world.database.write(poll.also_write)
    known = await world.database.read(template_use.get, number)
    assert known == (NOW, 0, {"Template:T": 46, "File:F.png": 4})
    again = await world.poll("fan_out")
    assert (again.requests, again.wait_s) == (0, SURVEY_S)
    old = Survey(NOW - SURVEY_S - 1.0, 0, {})
    await world.database.write(lambda c: template_use.put(c, hint_source_id=number, survey=old))
    assert (await world.poll("fan_out", used("47", "Template:T"), used("4", "A"))).requests == 2


async def test_a_wiki_that_does_not_tell_is_asked_again_in_an_hour(make):
    world = await make(60)
    refused = {"error": {"code": "unknown_qppage", "info": "no"}}
    poll = await world.poll("fan_out", refused, refused)
    # It is no trouble of the source, which lists the pages of edited templates.
    assert isinstance(poll, Poll)
    assert (poll.requests, poll.wait_s) == (2, RETRY_S)
    held = ApiTrouble(TroubleKind.HELD, "later", retry_after_s=9.0)
    assert (await world.poll("fan_out", held)).trouble == HELD


@pytest.mark.parametrize("due_s", [-1.0, 20.0])
async def test_pages_that_were_visited_too_early_are_reported_again(make, due_s):
    world = await make(60)
    number, (page_id, *_) = world.known.sources["fan_out"].hint_source_id, world.pages.values()

    def put_off(connection):
        values = (page_id, number, NOW + due_s, NOW + due_s, NOW - 40.0, 1)
        connection.execute("INSERT INTO hint VALUES (?, ?, ?, ?, ?, ?)", values)

    await world.database.write(put_off)
    poll = await world.poll("fan_out", used("46", "Template:T"), used("4", "File:F.png"))
    if due_s < 0.0:
        assert [page.page_id for page in poll.pages] == [page_id]
        assert (poll.requests, poll.wait_s) == (0, LOOK_S)
    else:
        assert (len(poll.pages), poll.wait_s) == (0, due_s + 1.0)
