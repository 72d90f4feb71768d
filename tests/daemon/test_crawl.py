"""Crawls of a simulated web: copies, limits, traps, redirects, failures, freshness."""

from contextlib import closing

import pytest

from crawld.core.outcome import GONE_RETRY_S
from crawld.daemon.clock import Clock
from crawld.errors import InvalidUrlError
from crawld.simweb import fault
from crawld.simweb.change_process import periodic_process
from crawld.simweb.trap import Trap
from crawld.simweb.truth import freshness_by_fetch_time
from crawld.store.engine.connection import open_connection
from crawld.store.versions import body as bodies
from tests.daemon.harness import SteppedTime, make_site, until

REQUEST_S = 2.0
QUICK = {
    "schedule": {"min_revisit_s": 0.0, "policy": "uniform"},
    "content": {"confirm_pages": 0},
}
"""Pages are visited again at once, in turn, and none is fetched twice to learn its noise."""


def paths(site):
    """Return the paths of all pages of a simulated site."""
    return {site.graph.path(n) for n in range(site.graph.pages)}


def copies_of(mirror):
    """Return (URL, time of the visit, body) of every stored copy."""
    rows = mirror.rows("SELECT url, visited_at, body_id FROM version JOIN page USING (page_id)")
    with closing(open_connection(mirror.db, read_only=True)) as connection:
        return [(url, at, bodies.read(connection, body_id)) for url, at, body_id in rows]


async def test_a_whole_site_is_mirrored_byte_by_byte(serve, mirror):
    site = make_site(pages=120, compress=True)
    web = await serve(site)
    await mirror.run(web.url())
    assert mirror.pages() == dict.fromkeys(paths(site), ("visited", "changed", None))
    copies = copies_of(mirror)
    assert len(copies) == 120
    for url, _, content in copies:
        assert content == site.rendering.html(site.page_of(url), 0, serial=0, at=0.0)
    assert sorted(web.targets()) == sorted([*paths(site), "/robots.txt"])


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_max_depth_limits_the_crawl(serve, mirror, depth):
    site = make_site(pages=100)
    web = await serve(site)
    await mirror.run(web.url(), site={"max_depth": depth})
    reached, frontier = {0}, {0}
    for _ in range(depth):
        frontier = {link for page in frontier for link in site.graph.outlinks(page)} - reached
        reached |= frontier
    assert mirror.pages().keys() == {site.graph.path(page) for page in reached}


async def test_page_limits_bound_the_crawl_and_count_refusals(serve, mirror):
    web = await serve(make_site(pages=100))
    await mirror.run(web.url(), site={"max_pages": 30})
    assert len(mirror.pages()) == 30
    assert mirror.refusals()["site_cap"] >= 70
    await mirror.run(web.url(), site={"max_pages": 1000}, frontier={"max_pages_per_host": 40})
    assert len(mirror.pages()) <= 40


@pytest.mark.parametrize(
    ("trap", "reason"),
    [
        (Trap.CALENDAR, "calendar"),
        (Trap.REPETITION, "repetition"),
        (Trap.DEPTH, "segments"),
    ],
)
async def test_the_crawl_leaves_every_trap(serve, mirror, trap, reason):
    site = make_site(pages=10, traps=(trap,))
    web = await serve(site)
    limits = {"max_segments": 6, "max_calendar_run": 3, "max_calendar_past_years": 1}
    await mirror.run(web.url(), frontier=limits, site={"max_pages": 3000})
    assert paths(site) <= mirror.pages().keys()
    assert mirror.refusals()[reason] > 0
    assert "site_cap" not in mirror.refusals()


async def test_a_page_under_endless_session_ids_is_one_page(serve, mirror):
    site = make_site(pages=5, traps=(Trap.SESSION,))
    web = await serve(site)
    await mirror.run(web.url(), site={"max_pages": 300})
    assert mirror.pages().keys() >= paths(site) | {"/session/0", "/session/1", "/session/2"}
    assert all("sid=" not in target for target in web.targets())


async def test_the_target_of_a_redirect_is_a_new_url_to_admit_or_refuse(serve, mirror):
    a = make_site("a.test", pages=10, robots="User-agent: *\nDisallow: /private\n")
    web = await serve(a, make_site("b.test", pages=3))
    first, second, third, fourth = (a.graph.path(n) for n in (1, 2, 3, 4))
    a.faults = {
        first: fault.redirect_chain(3),
        second: fault.redirect(web.url("/outside", "b.test")),
        third: fault.redirect("/private/place"),
        fourth: fault.redirect_loop(),
    }
    await mirror.run(web.url())
    pages = mirror.pages()
    assert [pages[f"{first}{hop}"][1] for hop in ("", "?hop=1", "?hop=2", "?hop=3")] == [
        "moved",
        "moved",
        "moved",
        "changed",
    ]
    assert pages[second][1] == pages[third][1] == "moved"
    assert pages[fourth] == ("visited", "failed", "bad_redirect")
    assert web.targets("b.test") == []
    assert "/private/place" not in web.targets()
    assert {"host", "robots"} <= mirror.refusals().keys()
    targets = mirror.rows("SELECT redirect_url FROM page WHERE last_outcome = 'moved'")
    assert (web.url("/outside", "b.test"),) in targets


async def test_a_seed_redirected_to_www_adds_that_host_to_the_site(serve, mirror):
    bare, www = make_site("a.test", pages=2), make_site("www.a.test", pages=12)
    web = await serve(bare, www)
    bare.faults = {
        "/": fault.redirect(web.url("/", "www.a.test")),
        "/robots.txt": fault.status(404),
    }
    await mirror.run(web.url())
    visited = mirror.rows(
        "SELECT count(*) FROM page JOIN host USING (host_id) WHERE host = ?", "www.a.test"
    )
    assert visited == [(12,)]


async def test_a_page_that_fails_keeps_its_good_copy(serve, mirror, daemon, wall):
    site = make_site(pages=6)
    web = await serve(site)
    # None of these is trouble of the whole host.
    broken = {
        site.graph.path(2): fault.status(404),
        site.graph.path(3): fault.status(403),
        site.graph.path(5): fault.body(b"\x89PNG\r\n\x1a\n" + bytes(99), content_type="image/png"),
    }
    await mirror.run(web.url())
    copies = "SELECT url, version_id, digest, last_change_at, title FROM page ORDER BY page_id"
    before = mirror.rows(copies)
    site.faults = broken
    wall.shift_s = 7200.0
    await daemon(web.url())
    await until(
        lambda: {mirror.pages()[path][1] for path in broken} == {"failed", "gone", "blocked"}
    )
    assert mirror.rows(copies) == before


async def test_unchanged_pages_are_answered_without_a_body(serve, mirror, daemon):
    site = make_site(pages=5)
    web = await serve(site)
    running = await daemon(web.url(), **QUICK)
    await until(lambda: len(web.ledger) > 30)
    await running.drain()
    statuses = [row.status for row in web.ledger.rows() if row.target != "/robots.txt"]
    assert statuses.count(304) > 0.6 * len(statuses)  # a few requests are unconditional
    assert mirror.rows("SELECT count(*) FROM version") == [(5,)]


async def test_equal_bodies_are_stored_once(serve, mirror):
    site = make_site(
        pages=30, faults={"/wiki/": fault.body(b"<p>the same", content_type="text/html")}
    )
    web = await serve(site)
    await mirror.run(web.url())
    pages = len(mirror.pages())
    assert pages > 5
    assert mirror.rows("SELECT count(*) FROM version") == [(pages,)]
    assert mirror.rows("SELECT count(*) FROM body") == [(2,)]


async def test_discovery_and_revisits_share_the_slots(serve, daemon):
    site = make_site(pages=400)
    web = await serve(site)
    await daemon(web.url(), politeness={"host_delay_s": 0.002}, **QUICK)
    await until(lambda: len(web.ledger) > 300)
    targets = [target for target in web.targets() if target != "/robots.txt"][:300]
    new = len(set(targets))
    assert 0.35 < new / 300 < 0.7  # at first all turns go to new pages


async def test_changes_are_found_and_the_mirror_is_fresh(serve, daemon, mirror):
    wall = SteppedTime(1_780_000_000.0, REQUEST_S)
    mirror.clock = Clock(wall=wall)
    site = make_site(
        pages=12,
        changes=lambda page: periodic_process(240.0 + 16.0 * page, start_at=wall.at),
        start_at=wall.at,
    )
    web = await serve(site, clock=wall.tick)
    running = await daemon(web.url(), **QUICK)
    visited = "SELECT url, max(visited_at) FROM visit JOIN page USING (page_id) GROUP BY page_id"
    await until(lambda: running.crawl.visitor.counts["changed"] > 40)
    await running.drain()
    truth = freshness_by_fetch_time(site, dict(mirror.rows(visited)), wall.at)
    assert truth.copied == 12
    assert truth.freshness > 0.8  # a round takes a tenth of a page's period
    # Every copy is the page as it was at its visit.
    for url, at, content in copies_of(mirror):
        page = site.page_of(url)
        revisions = {site.revision(page, at), site.revision(page, at + REQUEST_S)}
        assert content in {site.rendering.html(page, r, serial=0, at=at) for r in revisions}


async def test_a_jump_of_the_wall_clock_neither_stops_nor_hurries_the_crawl(serve, daemon, wall):
    web = await serve(make_site(pages=60))
    running = await daemon(web.url(), politeness={"host_delay_s": 0.03})
    for jump_s in (86_400.0, -86_400.0, -3600.0, 7200.0):
        requests = len(web.ledger)
        wall.shift_s += jump_s
        await running.crawl.schedule.wake_all()
        await until(lambda requests=requests: len(web.ledger) > requests + 5)
    assert web.ledger.violations(delay_s=0.03) == []


async def test_a_one_off_mirror_retries_failed_pages_and_ends(serve, mirror):
    site = make_site(pages=8)
    flaky, gone = site.graph.path(1), site.graph.path(2)
    site.faults = {flaky: fault.first_requests(1, fault.status(404)), gone: fault.status(404)}
    web = await serve(site)
    await mirror.run(web.url())
    assert mirror.pages()[gone] == ("visited", "gone", None)
    assert web.targets().count(gone) == 1
    retry_at = mirror.rows("SELECT retry_at - last_visit_at FROM page WHERE last_outcome = 'gone'")
    assert set(retry_at) == {(GONE_RETRY_S,)}
    # The next run requests only the pages without a copy.
    before = len(web.ledger)
    await mirror.run(web.url())
    asked = {target for target in web.targets()[before:] if "crawld-" not in target}
    assert asked == {flaky, gone}
    assert mirror.pages()[flaky] == ("visited", "changed", None)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), InvalidUrlError("another bug")])
async def test_a_bug_in_a_visit_ends_only_its_turn(serve, daemon, mirror, error):
    web = await serve(make_site(), make_site("b.test"))
    running = await daemon(web.url(), web.url(host="b.test"), **QUICK)
    await until(lambda: len(mirror.pages()) == 20, what="both sites")
    failed_at = []

    def bug(outcome):
        failed_at.append(len(web.targets("b.test")))
        raise error

    host = running.state.hosts["a.test"]
    running.state.audits[1] = bug
    await until(lambda: failed_at, what="the bug")
    await until(
        lambda: len(web.targets("b.test")) > failed_at[0] + 20, what="visits of the other host"
    )
    assert running.phase == "running"
    assert host.backoff.level == 1
    assert 1 not in running.state.audits
