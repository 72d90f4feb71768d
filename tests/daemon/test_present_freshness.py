"""The freshness in the status of a whole daemon: what is known to be stale is stale."""

import pytest
import trio

from crawld.daemon.hints.source import Hint, Poll
from crawld.daemon.jobs import present_freshness
from crawld.store.changes import fan_out, hint_source
from tests.daemon.control_client import get
from tests.daemon.harness import TIMEOUT_S, make_site, until


@pytest.fixture
async def paused(serve, daemon):
    """A daemon with copies of 21 pages that asks for nothing more, and their URLs."""
    web = await serve(make_site(pages=20))
    running = await daemon(web.url(), schedule={"min_revisit_s": 0.0})
    await until(lambda: len(set(web.targets())) > 20, what="copies of all pages")
    running.set_paused(paused=True)
    await until(lambda: not running.crawl.schedule.on_turn, what="no turn under way")
    await running.crawl.recorder.drain()
    rows = await running.database.read(
        lambda connection: connection.execute(
            "SELECT url FROM page WHERE state = 'visited' AND requisite = 0 ORDER BY page_id"
        ).fetchall()
    )
    return running, [url for (url,) in rows]


async def status_of_site(running):
    """Return the freshness of the site, estimated after this call."""
    asked_at = running.clock.now()
    with trio.fail_after(TIMEOUT_S):
        while True:
            found = (await get(running, "/status")).json()["freshness"]
            if found and (found[0]["at"] or 0.0) > asked_at:
                return found[0]
            await trio.sleep(0.02)


async def source_of(running, kind):
    return await running.database.write(
        hint_source.ensure, 1, 1, kind, "https://a.test/api", running.clock.now()
    )


async def test_reported_pages_count_as_stale_until_they_are_copied(paused, monkeypatch):
    monkeypatch.setattr(present_freshness, "MAX_AGE_S", 0.0)
    monkeypatch.setattr(present_freshness, "REST_FACTOR", 0.0)
    running, urls = paused
    before = await status_of_site(running)
    assert (before["copies"], before["sampled"]) == (len(urls), len(urls))
    assert before["stale"]["reported"] == 0.0
    row, now = await source_of(running, "recent_changes"), running.clock.now()
    edits = Poll(at=now, hints=[Hint(url, now, now) for url in urls[:8]], told_until=now)
    await running.background.hint_poller.accept(row, edits)
    after = await status_of_site(running)
    # How far each is from 1 depends on the time since the visits, not what the reports change.
    assert before["freshness"] > after["freshness"] + 0.2
    share = 1.0 - 8 / len(urls)
    # No visit has judged the source yet: nine of ten hints are taken to be true.
    assert after["low"] <= share <= after["high"] < 0.95
    assert after["modelled"] == pytest.approx(share, abs=0.07)
    assert after["stale"]["reported"] == pytest.approx(8.0, abs=1.0)
    running.set_paused(paused=False)
    await until(
        lambda: (
            not running.database.look_up(
                lambda connection: connection.execute("SELECT count(*) FROM hint").get
            )
        ),
        what="visits of the reported pages",
    )
    later = await status_of_site(running)
    assert later["stale"]["reported"] == 0.0
    assert later["freshness"] > after["freshness"] + 0.2


async def test_pages_of_a_template_count_before_they_are_listed(paused, monkeypatch):
    monkeypatch.setattr(present_freshness, "MAX_AGE_S", 0.0)
    monkeypatch.setattr(present_freshness, "REST_FACTOR", 0.0)
    running, _ = paused
    row, now = await source_of(running, "fan_out"), running.clock.now()
    await running.database.write(fan_out.record, row.hint_source_id, "Template:A", 10, now)
    pending = f'[[["Template:A", {now}]], [], null, 0]'
    await running.database.write(hint_source.set_cursors, [(row.hint_source_id, pending)])
    found = await status_of_site(running)
    assert found["stale"]["fan_out"] == pytest.approx(8.5, abs=1.5)
    assert found["high"] - found["low"] < 1.0
    assert found["modelled"] < 0.7


async def test_a_figure_is_kept_for_a_while(paused, monkeypatch):
    monkeypatch.setattr(present_freshness, "MAX_AGE_S", 3_600.0)
    running, _ = paused
    first = await status_of_site(running)
    second = (await get(running, "/status")).json()["freshness"][0]
    assert second["at"] == first["at"]


async def test_visits_without_a_hint_are_evidence(paused, mirror):
    running, urls = paused
    running.set_paused(paused=False)

    await until(
        lambda: (
            1 in running.state.quiet_visits and running.state.quiet_visits[1].count >= len(urls)
        ),
        what="visits",
    )
    await running.background.present_freshness.store_visits()
    ((stale, exposure_s),) = mirror.rows("SELECT stale, exposure_s FROM quiet_visit")
    assert stale == 0.0
    assert exposure_s > 0.0
