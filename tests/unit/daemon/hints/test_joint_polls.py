"""A poll of the recent changes lists the users of the next edited template too."""

import pytest

from crawld.daemon.clock import Clock
from crawld.daemon.hints.wikis import RecentChangesSource
from crawld.sources.mediawiki_api import ApiTrouble, TroubleKind
from crawld.sources.mediawiki_changes import ChangesCursor, PendingTemplates
from tests.unit.daemon.hints.scripted_wiki import NOW, edit, reply


def set_cursor(connection, number, cursor):
    connection.execute(
        "UPDATE hint_source SET cursor = ? WHERE hint_source_id = ?", (cursor, number)
    )


@pytest.fixture
async def listing_world(make):
    """Return a wiki whose edited templates wait, and what polls report for their source."""
    world = await make(60)
    number = world.known.sources["fan_out"].hint_source_id
    reported = []

    async def accept(row, poll):
        assert row.hint_source_id == number
        reported.append(poll)
        await world.database.write(set_cursor, number, poll.cursor)

    pending = PendingTemplates((("Template:A", NOW - 30), ("Template:B", NOW - 20)))
    await world.database.write(set_cursor, number, pending.to_json())
    world.sources["recent_changes"] = RecentChangesSource(
        world.known, world.database, world.client, Clock(wall=lambda: NOW), accept=accept
    )
    return world, reported


async def test_a_poll_takes_the_listing_of_an_edited_template_along(listing_world):
    world, reported = listing_world
    users = [{"title": "Page 3"}, {"title": "Page 4"}]
    edited = edit(1, "Template:C", NOW - 10, space=10)
    poll = await world.poll("recent_changes", reply(recentchanges=[edited], embeddedin=users))
    [query] = world.client.asked
    assert query["list"] == "recentchanges|logevents|embeddedin"
    assert query["eititle"] == "Template:A"
    assert world.hinted_titles(reported[0]) == {"Page 3", "Page 4"}
    [(_, text)] = poll.cursor_updates
    waiting = [title for title, _ in PendingTemplates.from_json(text).templates]
    assert waiting == ["Template:B", "Template:C"]  # the listing was stored before


async def test_each_part_of_a_poll_continues_alone(listing_world):
    world, reported = listing_world
    cursor = {"rccontinue": "1|2", "eicontinue": "10|9", "continue": "-||logevents"}
    poll = await world.poll("recent_changes", reply(cursor=cursor, embeddedin=[]))
    own = {"rccontinue": "1|2", "continue": "-||logevents"}
    assert ChangesCursor.from_json(poll.cursor).continuation == own
    rest = PendingTemplates.from_json(reported[0].cursor)
    assert rest.continuation == {"eicontinue": "10|9", "continue": "-||logevents"}
    poll = await world.poll("recent_changes", reply(recentchanges=[]), cursor=poll.cursor)
    assert "eititle" not in world.client.asked[-1]


async def test_a_listing_that_the_wiki_refuses_does_not_fail_the_poll(listing_world):
    world, reported = listing_world
    refused = ApiTrouble(TroubleKind.BROKEN, "invalidtitle")
    poll = await world.poll("recent_changes", refused, reply(recentchanges=[edit(2, "Page 1")]))
    assert world.hinted_titles(poll) == {"Page 1"}
    assert "eititle" not in world.client.asked[-1]
    assert reported == []
