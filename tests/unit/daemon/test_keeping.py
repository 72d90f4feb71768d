"""What is held, taken down and given up, over the control socket."""

import pytest

from crawld.store.served import Reason, served

from .past import BEGIN, DAY_S, ask, tell


async def shown(running, page_id):
    return await running.database.read(served, page_id, BEGIN + 9 * DAY_S)


async def test_a_page_is_held_and_let_go(past):
    running, page_id, url = past
    newest = (await shown(running, page_id)).version_id
    held = await tell(running, "/pin", url=url, at=str(BEGIN + 1.5 * DAY_S))
    assert held.status_code == 200, held.text
    [row] = (await ask(running, "/pins")).json()
    assert (row["url"], row["visited_at"]) == (url, BEGIN + DAY_S)
    assert (await shown(running, page_id)).reason is Reason.PINNED
    assert (await shown(running, page_id)).version_id == row["version_id"]
    assert (await tell(running, "/pin", url=url, release=True)).status_code == 200
    assert (await shown(running, page_id)).version_id == newest
    assert (await ask(running, "/pins")).json() == []


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"at": "1971-01-01"}, 404, "no copy then"),
        ({"at": "soon"}, 422, "2 days ago"),
        ({"release": True}, 409, "not held"),
        ({"url": "http://a.test/none"}, 404, "not known"),
    ],
)
async def test_what_cannot_be_held_is_said(past, form, status, said):
    running, _, url = past
    answer = await tell(running, "/pin", **{"url": url, **form})
    assert answer.status_code == status
    assert said in answer.json()["error"]
