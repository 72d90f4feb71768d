"""`/why` names what a page waits for: hints, back-off, quotas, quiet hours, requisites' rests."""

from crawld.core.politeness import DAY_S
from crawld.simweb import fault
from tests.daemon.harness import make_site, until, until_done
from tests.daemon.test_why import causes, html, site, started, why, why_offline

__all__ = ["site", "started"]  # fixtures

NOON_S = DAY_S / 2


async def test_a_reported_change_names_its_source(started, mirror, capsys):
    running, web = await started()
    now = running.clock.now()
    host_id = running.state.hosts["a.test"].host_id

    def report(connection):
        connection.execute(
            "INSERT INTO hint_source (hint_source_id, site_id, host_id, kind, url, found_at)"
            " VALUES (7, 1, ?, 'sitemap', 'http://a.test/sitemap.xml', ?)",
            (host_id, now),
        )
        connection.execute(
            "INSERT INTO hint (page_id, hint_source_id, first_at, last_at, heard_at, told)"
            " SELECT page_id, 7, ?1, ?1, ?1, 1 FROM page WHERE url = ?2",
            (now, web.url("/ok")),
        )

    await running.database.write(report)
    for found in (
        await why(running, web.url("/ok")),
        await why_offline(mirror, web.url("/ok"), capsys),
    ):
        assert causes(found)[:2] == ["hinted", "queued"]
        assert "A source (sitemap) reported a change" in found["answer"]
        assert found["page"]["hints"] == [{"source": "sitemap", "at": now}]


async def test_a_host_after_trouble_tells_its_delay_and_how_to_end_it(started):
    running, web = await started()
    host = running.state.hosts["a.test"]
    for _ in range(5):
        host.record_trouble(running.clock.now(), None)
    found = await why(running, web.url("/ok"))
    backoff = next(each for each in found["causes"] if each["cause"] == "host_backoff")
    assert "a.test gets one request every 32 s instead of every 0 ms" in backoff["text"]
    assert backoff["remedy"] == "crawlctl forgive a.test"
    assert found["host"]["backoff_level"] == 5


async def test_a_used_up_quota_is_named_with_its_size(started, mirror, capsys):
    running, web = await started(site={"monthly_bytes": 400}, settle=False)
    await until(lambda: mirror.rows("SELECT 1 FROM traffic WHERE received_bytes >= 400"))
    for found in (await why(running, web.url()), await why_offline(mirror, web.url(), capsys)):
        assert causes(found)[0] == "site_quota"
        assert "has used up its 400 B of this month" in found["answer"]
        assert found["next_visit_at"] is None


async def test_quiet_hours_are_named_with_their_end(wall, started):
    wall.shift_s = NOON_S - wall() % DAY_S
    keys = {"quiet_hours": ("11:00-14:00",)}
    running, web = await started(site=keys, settle=False)
    await until(lambda: running.site_registry.seeded)
    found = await why(running, web.url())
    assert causes(found)[0] == "quiet_hours"
    assert "quiet hours, until " in found["answer"]
    assert "14:00 UTC" in found["answer"]
    assert 1.9 * 3_600 < found["next_visit_at"] - found["at"] <= 2 * 3_600


async def test_a_file_that_pages_need_rests_by_its_age(serve, daemon):
    home = html('<link rel="stylesheet" href="/a.css"><p>text')
    style = fault.body(b"p { color: red }", content_type="text/css")
    web = await serve(make_site(pages=1, faults={"/": home, "/a.css": style}))
    running = await daemon(web.url(), site={"requisites": True})
    await until_done(running, 1.0)
    await running.crawl.recorder.drain()
    found = await why(running, web.url("/a.css"))
    assert causes(found) == ["rests", "queued"]
    assert "rest for half of their age" in found["answer"]
    assert found["page"]["requisite"] is True
    assert found["next_visit_at"] - found["at"] > 0.9 * DAY_S
