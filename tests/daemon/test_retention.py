"""Pins, purges and quotas over the control socket."""

from dataclasses import replace

import pytest

from crawld.core.page import Outcome, PageState
from crawld.daemon.jobs.retention import RetentionJob
from crawld.store import visit
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from crawld.store.mirror import events
from crawld.store.mirror.selection import Reason, select_copy
from crawld.store.visit import VisitRecord
from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site, until_first_retention
from tests.daemon.page_history import BEGIN, DAY_S, visit_record


async def selected_copy(running, page_id):
    """Return the copy that the mirror shows of a page nine days after `BEGIN`."""
    return await running.database.read(select_copy, page_id, BEGIN + 9 * DAY_S)


async def test_a_copy_is_pinned_and_released(edited_page):
    running, page_id, url = edited_page
    newest = (await selected_copy(running, page_id)).version_id
    response = await post(running, "/pin", url=url, at=str(BEGIN + 1.5 * DAY_S))
    assert response.status_code == 200, response.text
    [row] = (await get(running, "/pins")).json()
    assert (row["url"], row["visited_at"]) == (url, BEGIN + DAY_S)
    assert (await selected_copy(running, page_id)).reason is Reason.PINNED
    assert (await selected_copy(running, page_id)).version_id == row["version_id"]
    assert (await post(running, "/pin", url=url, release=True)).status_code == 200
    assert (await selected_copy(running, page_id)).version_id == newest
    assert (await get(running, "/pins")).json() == []


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"at": "1971-01-01"}, 404, "no copy then"),
        ({"at": "soon"}, 422, "2 days ago"),
        ({"release": True}, 409, "not held"),
        ({"url": "http://a.test/none"}, 404, "not known"),
    ],
)
async def test_an_impossible_pin_is_refused(edited_page, form, status, error):
    running, _, url = edited_page
    response = await post(running, "/pin", **{"url": url, **form})
    assert response.status_code == status
    assert error in response.json()["error"]


async def test_a_page_is_purged_while_the_daemon_runs(edited_page):
    running, page_id, url = edited_page
    purged = await post(running, "/purge", urls=[url], reason="asked")
    assert purged.status_code == 200, purged.text
    report = purged.json()
    assert report["pages"] == [
        {"url": url, "known": True, "versions": 5, "bodies": 5, "same_at": []}
    ]
    assert report["erased"]
    assert (await get(running, "/page", url=url)).status_code == 404
    files = running.database.path.parent.glob("m.db*")
    assert not any(b"edit 3 of it" in each.read_bytes() for each in files)
    assert await selected_copy(running, page_id) is None
    assert (await get(running, "/page", url=url)).status_code == 404
    added = await post(running, "/add", urls=[url], site="s")
    assert (added.json()["admitted"], added.json()["refused"][0]["reason"]) == (0, "purged")
    assert (await get(running, "/page", url=url)).status_code == 404
    released = await post(running, "/purge", urls=[url], release=True)
    assert released.status_code == 200
    await post(running, "/add", urls=[url], site="s")
    assert (await get(running, "/page", url=url)).json()["visit_count"] == 0
    released_twice = await post(running, "/purge", urls=[url], release=True)
    assert (released_twice.status_code, "not kept out" in released_twice.text) == (409, True)


async def test_retention_shows_what_a_quota_will_delete(edited_page):
    running, _, url = edited_page
    site = next(iter(running.state.sites.values()))
    limited = replace(
        site, config=site.config.model_copy(update={"max_bytes": 1, "keep_versions": None})
    )
    await running.state.set_sites([limited])
    [of_file, of_site] = (await get(running, "/retention")).json()
    assert (of_file["site"], of_file["max_bytes"]) == (None, None)
    assert not any(each["goes"] for each in of_file["holdings"])
    by_kind = {each["kind"]: (each["copies"], each["goes"]) for each in of_site["holdings"]}
    assert by_kind["superseded"] == (4, True)
    await RetentionJob(running.context).run()
    [_, of_site] = (await get(running, "/retention")).json()
    assert of_site["holdings"][0]["copies"] == 0
    versions = (await get(running, "/history", url=url)).json()["versions"]
    assert len(versions) == 1


async def test_the_newest_events_are_kept(edited_page):
    running, _, _ = edited_page
    listed = (await running.database.read(events.list_after, 0)).events
    assert [each.kind for each in listed] == ["new", *["changed"] * 4]
    config = running.context.config()
    store = config.store.model_copy(update={"keep_events": 2})
    kept = replace(running.context, config=lambda: config.model_copy(update={"store": store}))
    await RetentionJob(kept).run()
    left = (await running.database.read(events.list_after, 0)).events
    assert [each.event_id for each in left] == [each.event_id for each in listed[-2:]]


async def test_a_limit_that_may_be_exceeded_is_work(edited_page):
    running, page_id, _ = edited_page
    config, limits = running.context.config(), {}

    def limited():
        return config.model_copy(update={"store": config.store.model_copy(update=limits)})

    job = RetentionJob(replace(running.context, config=limited))
    assert job.has_work()
    await job.run()
    assert not job.has_work()
    await running.database.write(visit.record, visit_record(page_id, 5))
    assert not job.has_work()  # one body more stays whole for an hour
    limits["max_bytes"] = 10**9
    assert job.has_work()
    await job.run()
    assert not job.has_work()
    await running.database.write(visit.record, visit_record(page_id, 6))
    assert job.has_work()
    await job.run()
    limits["keep_events"] = 2
    assert job.has_work()
    await job.run()
    assert not job.has_work()
    await running.database.write(visit.record, visit_record(page_id, 7))
    assert job.has_work()


async def test_old_visits_that_repeat_others_are_deleted_once_an_hour(serve, paused_daemon, mirror):
    web = await serve(make_site(pages=2))
    running = await paused_daemon(web.url(), store={"keep_visit_days": 30.0})
    await until_first_retention(mirror)
    discovery = Discovery.of(web.url("/page"), site_id=1, at=BEGIN, depth=1)
    [page] = await running.database.write(frontier.discover, [discovery])
    edits = visit_record(page.page_id, 0), visit_record(page.page_id, 20)
    now = running.context.clock.now()
    looks = [BEGIN + day * DAY_S for day in range(1, 20)]
    looks += [now + (day + 0.5) * DAY_S for day in range(-60, 0)]
    for visited_at in looks:
        look = VisitRecord(
            page_id=page.page_id,
            visited_at=visited_at,
            outcome=Outcome.NOT_MODIFIED,
            state=PageState.VISITED,
        )
        await running.database.write(visit.record, look)
    for edit in edits:
        await running.database.write(visit.record, edit)
    job = RetentionJob(running.context)
    assert "46 visits deleted" in await job.run()
    assert (await job.progress())["visits"] == 46
    left = mirror.rows("SELECT visited_at FROM visit ORDER BY visited_at")
    assert [at for (at,) in left[:5]] == [
        BEGIN,
        BEGIN + DAY_S,
        BEGIN + 19 * DAY_S,
        BEGIN + 20 * DAY_S,
        now - 59.5 * DAY_S,
    ]
    assert [at for (at,) in left[5:]] == looks[-30:]
    assert "visits" not in await job.run()
