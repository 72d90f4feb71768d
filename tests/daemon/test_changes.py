"""Changes over the control socket."""

import pytest

from crawld.core.event import event_urn
from crawld.store.mirror import events
from tests.daemon.control_client import get
from tests.daemon.page_history import BEGIN, DAY_S


async def listed(running, **asked):
    response = await get(running, "/changes", **asked)
    assert response.status_code == 200, response.text
    return response.json()


async def test_changes_are_listed_newest_first(edited_page):
    running, _, url = edited_page
    found = await listed(running)
    assert [each["kind"] for each in found["events"]] == [*["changed"] * 4, "new"]
    assert [each["at"] for each in found["events"]] == [
        BEGIN + day * DAY_S for day in (4, 3, 2, 1, 0)
    ]
    assert found["ended"]
    newest = found["events"][0]
    mirror_id = await running.database.read(events.mirror_id)
    assert newest["id"] == event_urn(mirror_id, newest["event_id"])
    assert (newest["url"], newest["site"]) == (url, "s")
    assert newest["version_id"] > newest["before_id"]
    first = await listed(running, limit=2)
    rest = await listed(running, before=first["last_id"])
    assert first["events"] + rest["events"] == found["events"]


async def test_changes_after_an_event_or_a_time_are_oldest_first(edited_page):
    running, _, _ = edited_page
    whole = (await listed(running, after=0))["events"]
    assert [each["at"] for each in whole] == [BEGIN + day * DAY_S for day in range(5)]
    later = await listed(running, after=whole[2]["event_id"])
    assert later["events"] == whole[3:]
    again = await listed(running, after=later["last_id"])
    assert (again["events"], again["last_id"], again["ended"]) == ([], later["last_id"], True)
    since = await listed(running, since=str(BEGIN + 3 * DAY_S))
    assert since["events"] == whole[3:]
    assert (await listed(running, since="1 hour ago"))["events"] == []


async def test_changes_are_filtered(edited_page):
    running, _, url = edited_page
    assert len((await listed(running, kind="new,gone"))["events"]) == 1
    assert len((await listed(running, url=url, site="s"))["events"]) == 5
    assert (await listed(running, url="http://a.test/none"))["events"] == []
    assert (await listed(running, size=1.0))["events"] == []


@pytest.mark.parametrize(
    ("asked", "status", "error"),
    [
        ({"site": "none"}, 404, "site none is not known"),
        ({"kind": "edited"}, 422, "new, changed, moved, gone, back"),
        ({"since": "soon"}, 422, "2 days ago"),
        ({"url": "no url"}, 422, ""),
        ({"after": 1, "before": 2}, 422, "cannot be combined"),
        ({"size": 101}, 422, ""),
    ],
)
async def test_a_question_that_means_nothing_is_refused(edited_page, asked, status, error):
    running, _, _ = edited_page
    response = await get(running, "/changes", **asked)
    assert response.status_code == status
    assert error in response.text
