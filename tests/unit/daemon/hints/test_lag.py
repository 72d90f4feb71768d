"""A wiki whose databases lag for an hour: its API refuses all polls and says when to return."""

import pytest

from crawld.sources.mediawiki_api import LAG_PAUSE_S, ApiTrouble, TroubleKind
from crawld.store.changes import hint_source
from crawld.store.changes.hint_source import PollFailure
from tests.unit.daemon.hints.scripted_wiki import HOUR_S, NOW, edit, reply


@pytest.mark.parametrize("retry_after_s", [5.0, 40.0, 240.0])
async def test_after_an_hour_of_lag_nothing_is_lost(make, retry_after_s):
    world = await make()
    lagged = ApiTrouble(TroubleKind.LAGGED, "maxlag: 9 seconds lagged", retry_after_s)
    row = world.known.sources["recent_changes"]
    before = await world.poll("recent_changes", reply(recentchanges=[edit(1, "Page 1", page=101)]))
    row = row._replace(cursor=before.cursor)
    at, pauses = NOW, []
    while at < NOW + HOUR_S:
        world.client.waiting[:] = [lagged]
        poll = await world.sources["recent_changes"].poll(row)
        at += poll.pause_s
        pauses.append(poll.pause_s)
        failure = PollFailure(at, poll.trouble, poll.detail, poll.requests, at + poll.pause_s)
        await world.database.write(hint_source.record_failure, row.hint_source_id, failure)
        row = await world.database.read(hint_source.get, row.hint_source_id)
        row = row._replace(cursor=before.cursor)
    # Never before the time that it names, and at most a minute after it.
    assert min(pauses) == retry_after_s
    assert max(pauses) == max(retry_after_s, LAG_PAUSE_S)
    assert len(pauses) <= HOUR_S / max(retry_after_s, LAG_PAUSE_S) + 5
    missed = [edit(2, "Page 2", at=NOW - 3_000, page=102), edit(3, "Page 3", at=NOW, page=103)]
    known = edit(1, "Page 1", page=101)
    after = await world.poll(
        "recent_changes", reply(recentchanges=[known, *missed]), cursor=row.cursor
    )
    assert world.hinted_titles(after) == {"Page 2", "Page 3"}
    assert world.client.asked[-1]["rcstart"] <= edit(1, "Page 1")["timestamp"]
    assert after.told_until is not None
