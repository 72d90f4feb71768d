"""The history of a page over the control socket, and the retention job."""

import pytest

from crawld.core.content.analysis import read_blocks
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import VolatileRules
from crawld.daemon.jobs.retention import RetentionJob
from crawld.store import visit
from crawld.store.changes import volatile
from tests.daemon.control_client import get
from tests.daemon.page_history import BEGIN, DAY_S, edited_body, visit_record


async def test_history_is_newest_first(edited_page):
    running, _, url = edited_page
    response = (await get(running, "/history", url=url)).json()
    assert [each["visited_at"] for each in response["versions"]] == [
        BEGIN + number * DAY_S for number in (4, 3, 2, 1, 0)
    ]
    assert response["change_count"] == 5
    older = await get(running, "/history", url=url, before=str(BEGIN + 2 * DAY_S), limit=1)
    assert [each["visited_at"] for each in older.json()["versions"]] == [BEGIN + DAY_S]


@pytest.mark.parametrize(
    ("at", "number"),
    [
        (str(BEGIN), 0),
        (str(BEGIN + DAY_S - 1), 0),
        ("2023-11-16", 1),
        ("2023-11-16T22:13:20", 2),
        ("1 day ago", 4),
    ],
)
async def test_a_page_is_returned_as_it_was_at_a_time(edited_page, at, number):
    running, _, url = edited_page
    response = (await get(running, "/page", url=url, at=at)).json()
    assert dict(response["headers"])["X-Edit"] == str(number)
    superseded_at = None if number == 4 else BEGIN + (number + 1) * DAY_S
    assert response["superseded_at"] == superseded_at
    stored = await get(running, "/body", url=url, at=at)
    assert stored.content == edited_body(number)
    by_number = await get(running, "/body", url=url, at=str(response["version_id"]))
    assert by_number.content == edited_body(number)


async def test_without_a_time_the_newest_copy_is_returned(edited_page):
    running, _, url = edited_page
    assert (await get(running, "/page", url=url)).json()["change_count"] == 5
    assert (await get(running, "/body", url=url)).content == edited_body(4)


async def test_a_diff_compares_the_last_two_copies_or_two_given_ones(edited_page):
    running, _, url = edited_page
    response = (await get(running, "/diff", url=url)).json()
    [hunk] = response["hunks"]
    assert [(piece["op"], piece["text"]) for piece in hunk["pieces"]] == [
        ("same", "edit "),
        ("removed", "3"),
        ("added", "4"),
        ("same", " of it"),
    ]
    assert 0 < response["difference"] < 0.1
    response = (await get(running, "/diff", url=url, a=str(BEGIN), b="2023-11-16")).json()
    assert [piece["text"] for piece in response["hunks"][0]["pieces"][1:3]] == ["0", "1"]
    same = await get(running, "/diff", url=url, a=str(BEGIN), b=str(BEGIN))
    assert (same.json()["hunks"], same.json()["difference"]) == ([], 0.0)


async def test_a_diff_ignores_noise_unless_raw(edited_page):
    running, page_id, url = edited_page
    first, second = (read_blocks(edited_body(number), "text/html") for number in (0, 1))
    rules = ReadingPair.of(first, second).learn(VolatileRules(), pair=True)
    await running.database.write(volatile.put_of_page, page_id, rules.to_bytes())
    response = (await get(running, "/diff", url=url)).json()
    assert (response["hunks"], response["difference"], response["noisy_blocks"]) == ([], 0.0, 1)
    raw = (await get(running, "/diff", url=url, raw="true")).json()
    assert [piece["text"] for piece in raw["hunks"][0]["pieces"][1:3]] == ["3", "4"]
    assert (raw["raw"], raw["noisy_blocks"]) == (True, 0)


@pytest.mark.parametrize(
    ("path", "query", "status", "error"),
    [
        ("/history", {"url": "http://a.test/none"}, 404, "not known"),
        ("/history", {"url": "no url"}, 422, "no url"),
        ("/page", {"at": "soon"}, 422, "2 days ago"),
        ("/page", {"at": "9" * 5_000}, 422, "is not a time"),
        ("/page", {"at": "2001-09-10"}, 404, "no copy"),
        ("/body", {"at": "99"}, 404, "no version 99"),
        ("/diff", {"a": "1971-01-01"}, 404, "no copy"),
        ("/diff", {"b": str(BEGIN)}, 404, "no copy before"),
    ],
)
async def test_an_unknown_page_or_copy_is_an_error(edited_page, path, query, status, error):
    running, _, url = edited_page
    response = await get(running, path, **{"url": url, **query})
    assert response.status_code == status
    assert error in response.json()["error"]


async def test_the_retention_job_stores_deltas_and_thins_copies(edited_page):
    running, page_id, url = edited_page
    job = RetentionJob(running.context)
    assert (await job.progress())["waiting"] >= 5
    assert "4 deltas, 2 copies deleted" in await job.run()
    assert "0 deltas, 0 copies deleted" in await job.run()
    progress = await job.progress()
    assert (progress["deltas"], progress["given_up"], progress["waiting"]) == (4, 2, 0)
    response = (await get(running, "/history", url=url)).json()
    assert [each["visited_at"] for each in response["versions"]] == [
        BEGIN + number * DAY_S for number in (4, 3, 0)
    ]
    for number, at in ((0, BEGIN), (0, BEGIN + 2.5 * DAY_S), (3, BEGIN + 3 * DAY_S)):
        assert (await get(running, "/body", url=url, at=str(at))).content == edited_body(number)
    # A new copy is thinned an hour later, not at each run.
    await running.database.write(visit.record, visit_record(page_id, 5))
    assert "1 deltas, 0 copies deleted" in await job.run()
