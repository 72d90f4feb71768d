"""`/why` and `crawld why` name the cause that decides, for a running daemon and for its file."""

import json
from dataclasses import replace

import pytest
import trio

from crawld.cli import offline_why
from crawld.cli.why import why_text
from crawld.config.load import load
from crawld.core.page import PageState
from crawld.core.replica.agreement import PageVerdict
from crawld.daemon.api.schemas.why import Why
from crawld.daemon.run import run_daemon
from crawld.daemon.schedule import connectivity
from crawld.simweb import fault
from crawld.store.changes import wiki_member
from crawld.store.changes.wiki_member import Part
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import removal, server
from crawld.store.frontier.removal import RemovalReport
from crawld.store.replica import replica, twin
from crawld.store.replica.twin import TwinRow
from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site, until, until_done
from tests.daemon.jobs.conftest import history
from tests.daemon.jobs.conftest import wiki_of as wiki_of
from tests.daemon.jobs.test_wiki_parts import quiet
from tests.daemon.test_quarantine import leave_mark

PATHS = (
    *("/ok", "/private/x", "/lost", "/old", "/busy", "/film", "/out/a", "/deep"),
    "/a/b/a/b/a/b/a/b/a/b",
)
HOME = "<title>Home</title>" + "".join(f'<p><a href="{path}">{path}</a>' for path in PATHS)
ROBOTS = "User-agent: *\nCrawl-delay: 0\n# not this\nDisallow: /private/\nAllow: /private/ok\n"


def html(text):
    return fault.body(text.encode(), content_type="text/html")


FAULTS = {
    "/": html(HOME),
    "/ok": html("<title>Fine</title><p>All is well here."),
    "/lost": fault.status(404),
    "/old": fault.redirect("/ok", status=301),
    "/film": fault.body(b"film", content_type="video/mp4"),
    "/deep": html("<p>deep <a href=/deeper>deeper</a>"),
    "/robots.txt": fault.body(ROBOTS.encode(), content_type="text/plain"),
}


@pytest.fixture
def site():
    return make_site(pages=1, faults=dict(FAULTS))


@pytest.fixture
async def started(serve, daemon, site):
    """Return a function that starts a daemon, and returns it and its web when it is at rest."""

    async def start(settle=True, **more):
        web = await serve(site)
        keys = {
            "exclude": ["glob:/never/*", "prefix:/out/"],
            "max_depth": 1,
            **more.pop("site", {}),
        }
        running = await daemon(web.url(), site=keys, **more)
        if settle:
            await until_done(running, 1.0)
            await running.crawl.recorder.drain()
        return running, web

    return start


async def why(running, url):
    """Return the answer of the daemon; its text fits 80 columns."""
    response = await get(running, "/why", url=url)
    assert response.status_code == 200, response.text
    found = response.json()
    assert_fits(found)
    return found


async def why_offline(mirror, url, capsys, config=None):
    """Return the answer of the file alone, by the command."""
    capsys.readouterr()

    def run():
        return offline_why.why(mirror.db, url, config, as_json=True)

    assert await trio.to_thread.run_sync(run) == 0
    out = capsys.readouterr().out  # the daemon logs there, too
    found, _ = json.JSONDecoder().raw_decode(out[out.index('{\n  "given"') :])
    assert_fits(found)
    return found


def assert_fits(found):
    """Only a URL or a path that is longer than a line may exceed 80 columns."""
    lines = why_text(Why.model_validate(found)).splitlines()
    long = [line for line in lines if len(line) > 80]
    assert [line for line in long if len(line.removeprefix("  by").split()) > 1] == []


def causes(found):
    return [each["cause"] for each in found["causes"]]


@pytest.mark.parametrize(
    ("path", "cause", "words"),
    [
        ("/private/x", "robots", 'line 4: "Disallow: /private/"'),
        ("/out/a", "scope", 'excludes it by the rule "prefix:/out/"'),
        ("/a/b/a/b/a/b/a/b/a/b", "trap", "repeats itself"),
        ("/lost", "retry", "did not find it (1 time in a row)"),
        ("/film", "retry", "media type that the site does not store (not accepted: video/mp4)"),
        ("/old", "redirect", "/ok; ask about that URL"),
        ("/ok", "rests", "rests for 1 h 00 min after a visit"),
        ("/new", "unknown", "Site s would take it"),
        ("/private/new", "robots", 'line 4: "Disallow: /private/"'),
    ],
)
async def test_the_first_cause_is_named_online_and_offline(
    started, mirror, capsys, path, cause, words
):
    running, web = await started()
    found = await why(running, web.url(path))
    assert causes(found)[0] == cause
    assert words in found["causes"][0]["text"]
    assert words in found["answer"]
    assert ("would take it" in str(found["causes"])) == (path == "/new")
    offline = await why_offline(mirror, web.url(path), capsys)
    assert (offline["causes"][0]["cause"], offline["live"]) == (cause, False)
    assert words in offline["answer"]
    assert (offline["page"] is None) == (found["page"] is None)


async def test_a_url_out_of_every_site_or_malformed_is_told_what_to_do(started):
    running, _ = await started()
    found = await why(running, "http://other.test/x")
    assert (causes(found)[0], found["next_visit_at"]) == ("no_site", None)
    assert "Sites: s." in found["answer"]
    assert "crawlctl add URL" in found["causes"][0]["remedy"]
    for text, fix in [
        ("docs.example.org/a b", "did you mean https://docs.example.org/a%20b?"),
        ("ftp://a.test/", "looks like https://example.org/page"),
        ("http://u:pw@a.test/", "remove them"),
    ]:
        response = await get(running, "/why", url=text)
        assert response.status_code == 422
        assert fix in response.json()["error"]
        assert "pw" not in response.json()["error"]


async def test_the_canonical_form_and_the_rule_of_the_scope_are_told(started):
    running, web = await started(site={"include": ["regex:/$", "regex:/o"]})
    given = web.url("/x/%2e%2e/%6fk#part").replace("http:", "HTTP:")
    found = await why(running, given)
    assert (found["given"], found["url"]) == (given, web.url("/ok"))
    assert (found["site"]["refusal"], found["site"]["rule"]) == (None, "regex:/o")
    text = why_text(Why.model_validate(found))
    assert f"{web.url('/ok')}\n(the canonical form of" in text
    assert 'admitted by "regex:/o"' in text
    out = await why(running, web.url("/deep"))
    assert causes(out)[0] == "scope"
    assert "matches none of the include rules of site s" in out["answer"]


async def test_a_cap_is_named_and_the_last_link_that_it_refused(started, mirror):
    running, web = await started(site={"max_pages": 7, "max_depth": 2})
    found = await why(running, web.url("/deeper"))
    assert causes(found)[:2] == ["cap", "unknown"]
    assert "Site s has its 7 pages (max_pages)." in found["answer"]
    # The last link that the cap refused is known by name.
    [(example,)] = mirror.rows("SELECT example FROM refusal WHERE reason = 'site_cap'")
    texts = [each["text"] for each in (await why(running, example))["causes"]]
    assert any("as many pages as max_pages allows" in text for text in texts)


async def test_a_page_beyond_the_depth_or_the_include_rules_says_so(started, mirror, capsys):
    running, web = await started(site={"max_depth": 0})
    assert "follows 0 (max_depth)" in (await why(running, web.url("/ok")))["answer"]
    # The scope became narrower: the page is known, and not visited any more.
    site = running.state.sites[1]
    narrow = replace(site, scope=replace(site.scope, hosts=frozenset({"b.test"})))
    running.state.sites[1] = narrow
    assert "makes it a seed" not in (await why(running, web.url()))["answer"]
    assert causes(await why(running, web.url()))[0] == "rests"  # it is a seed


async def test_a_page_not_modified_has_its_history_in_words(started, mirror, capsys):
    running, web = await started(
        schedule={"min_revisit_s": 0.0}, settle=False, site={"max_depth": 0}
    )
    await until(lambda: mirror.rows("SELECT 1 FROM page WHERE visit_count >= 4"), what="visits")
    running.set_paused(paused=True)
    await running.drain()
    await post(running, "/resume")
    found = await why(running, web.url())
    texts = {each["text"] for each in found["page"]["visits"][:3]}
    assert texts <= {
        "not modified, says the server (status 304)",
        "fetched, nothing had changed (status 200)",
    }
    assert "never seen to change, in" in found["page"]["change"]


async def test_a_host_that_asks_for_time_is_named_with_its_time(started, site, mirror, capsys):
    site.faults["/ok"] = fault.busy(503, retry_after_s=7_200)
    running, web = await started()
    found = await why(running, web.url("/ok"))
    assert causes(found)[:2] == ["host_closed", "retry"]
    assert "a.test asked for no requests (Retry-After)" in found["answer"]
    assert found["causes"][0]["remedy"] == "crawlctl forgive a.test"
    until_s = found["next_visit_at"] - found["at"]
    assert 7_000 < until_s <= 7_200
    assert "overloaded or under maintenance (status 503)" in found["causes"][1]["text"]
    # Other pages of the host wait with it.
    assert causes(await why(running, web.url("/old")))[0] == "host_closed"
    offline = await why_offline(mirror, web.url("/ok"), capsys)
    assert causes(offline)[:2] == ["host_closed", "retry"]
    assert offline["next_visit_at"] == pytest.approx(found["next_visit_at"], abs=2.0)


async def test_what_is_paused_is_named_and_how_to_resume_it(started, mirror, capsys):
    running, web = await started()
    url = web.url("/ok")

    async def first():
        found = await why(running, url)
        assert found["next_visit_at"] is None
        assert found["next_visit_text"] == "none while this lasts"
        return found["causes"][0]["cause"], found["causes"][0]["remedy"]

    await post(running, "/pause", host="a.test")
    assert await first() == ("host_paused", "crawlctl resume --host a.test")
    offline = await why_offline(mirror, url, capsys)
    assert causes(offline)[0] == "host_paused"
    await post(running, "/pause", site="s")
    assert await first() == ("site_paused", "crawlctl resume --site s")
    assert causes(await why_offline(mirror, url, capsys))[:2] == ["site_paused", "host_paused"]
    running.crawl.schedule.pause(connectivity.PAUSE)
    assert (await first())[0] == "network_down"
    running.crawl.schedule.pause("disk_room")
    assert (await first())[0] == "disk"
    await post(running, "/pause")
    assert await first() == ("everything_paused", "crawlctl resume")
    # None of them hides what keeps the page out for good.
    assert causes(await why(running, web.url("/private/x")))[0] == "robots"


async def test_a_replica_names_the_host_that_is_visited_instead(started, mirror, capsys):
    running, web = await started()
    own = await running.database.read(server.by_name, "a.test")
    now = running.clock.now()
    kept = await running.database.write(host_rows.ensure, "b.test", now)
    put = (replica.put_replica, own.server_id, kept, "pruned", "equal texts")
    await running.database.write(*put, now=now, look_at=now + 9.0)
    [(page_id,)] = mirror.rows("SELECT page_id FROM page WHERE url = ?", web.url("/ok"))
    await running.database.write(page_rows.set_state, page_id, PageState.SUSPENDED)
    for found in (
        await why(running, web.url("/ok")),
        await why_offline(mirror, web.url("/ok"), capsys),
    ):
        assert causes(found)[0] == "replica"
        assert "It rests, and b.test is visited instead." in found["answer"]
        assert found["host"]["replica_of"] == "b.test"
        words = f"{own.name} is a replica of b.test, which is kept (equal texts)"
        assert words in found["host"]["replica_text"]
    detail = (await get(running, "/hosts/a.test")).json()
    assert (detail["replica"]["canonical_host"], detail["replica"]["resting"]) == ("b.test", 1)
    assert (await get(running, "/hosts/b.test")).json()["replicas"] == [own.name]
    page = (await get(running, "/page", url=web.url("/ok"))).json()
    assert page["next_visit_why"].startswith("it has the text of another host")


async def test_a_page_of_a_replica_that_does_not_rest_says_why(started, mirror):
    running, web = await started()
    own, now = await running.database.read(server.by_name, "a.test"), running.clock.now()
    write = running.database.write
    kept = await write(host_rows.ensure, "b.test", now)
    put = (replica.put_replica, own.server_id, kept, "pruned", "equal texts")
    await write(*put, now=now, look_at=now + 9.0)
    numbers = dict(mirror.rows("SELECT url, page_id FROM page"))

    async def compared(path, verdict, visit_at=None):
        page_id = numbers[web.url(path)]
        times = (None, now, now, None, visit_at)
        await write(twin.put, [TwinRow(page_id, own.server_id, page_id, verdict, *times)])
        return page_id

    await compared("/ok", PageVerdict.DIFFERS)
    found = await why(running, web.url("/ok"))
    assert causes(found)[0] != "replica"
    told = f"Its text was another than that of {web.url('/ok')}, "
    assert told in found["host"]["replica_text"]
    # A page that was never visited is deferred, and comes once.
    page_id = await compared("/lost", PageVerdict.DEFERRED, now + 9_000.0)
    await write(page_rows.set_state, page_id, PageState.SUSPENDED)
    found = await why(running, web.url("/lost"))
    assert (causes(found)[0], found["causes"][0]["until"]) == ("replica", now + 9_000.0)
    assert "the pages around it have the text of b.test" in found["answer"]
    page = (await get(running, "/page", url=web.url("/lost"))).json()
    assert page["next_visit_at"] == now + 9_000.0


async def test_a_redirect_out_of_the_mirror_says_that_its_target_is_none(started, site):
    site.faults["/old"] = fault.redirect("http://c.test/", status=301)
    running, web = await started()
    found = await why(running, web.url("/old"))
    assert causes(found)[0] == "redirect"
    assert "redirects to http://c.test/, which is no page of the mirror" in found["answer"]
    assert causes(await why(running, "http://c.test/"))[0] == "no_site"


async def test_a_purged_url_is_told_with_the_operators_reason(started):
    running, web = await started()
    await post(running, "/purge", urls=[web.url("/ok")], reason="a complaint")
    found = await why(running, web.url("/ok"))
    assert causes(found)[0] == "purged"
    assert "Reason: a complaint." in found["answer"]
    assert found["causes"][0]["remedy"] == "crawlctl purge --release URL"


async def test_a_page_that_was_removed_or_reported_changed_says_by_whom(started, mirror, capsys):
    running, web = await started(site={"deleted_pages": "withhold"})
    host_id = running.state.hosts["a.test"].host_id
    [(page_id, key)] = mirror.rows(
        "SELECT page_id, url_hash FROM page WHERE url = ?", web.url("/ok")
    )
    now = running.clock.now()
    report = RemovalReport(key, "deletion", now + 5.0, now + 6.0)
    await running.database.write(removal.report, host_id, [report])
    found = await why(running, web.url("/ok"))
    assert causes(found)[0] == "removed"
    assert "Its wiki reports that it was deleted" in found["answer"]
    assert "withheld from readers" in found["page"]["copy_text"]
    await running.database.write(page_rows.set_state, page_id, PageState.GONE)
    for found in (
        await why(running, web.url("/ok")),
        await why_offline(mirror, web.url("/ok"), capsys),
    ):
        assert causes(found)[0] == "gone"
        assert "Its wiki reports that it was deleted" in found["answer"]


async def test_a_page_that_waits_for_its_first_visit_tells_its_place(started, mirror, capsys):
    running, web = await started(settle=False, politeness={"host_delay_s": 3_600.0})
    await until(lambda: running.site_registry.seeded)
    paths = ("/ok", "/lost", "/old", "/film", "/deep")
    await post(running, "/add", urls=[web.url(path) for path in paths], site="s")
    # The first request is for robots.txt; the next one is an hour later.
    await until(lambda: web.targets() and not running.crawl.schedule.on_turn)
    found = await why(running, web.url("/deep"))
    assert causes(found) == ["never_visited", "host_delay"]
    assert "5 pages are before it in the queue" in found["answer"]
    assert "One request every 1 h 00 min makes that about 5 h 00 min or more" in found["answer"]
    assert 4 * 3_600 < found["next_visit_at"] - found["at"] <= 5 * 3_600
    offline = await why_offline(mirror, web.url("/deep"), capsys)
    assert "5 pages are before it in the queue" in offline["answer"]
    assert "the defaults" in offline["not_known"][-1]


async def test_an_unreadable_robots_txt_is_named(started, site, mirror, capsys):
    site.faults["/robots.txt"] = fault.status(500)
    running, web = await started(settle=False)
    await until(lambda: running.crawl.robots.closed_until(web.url("")) > 0)
    await until(lambda: mirror.rows("SELECT 1 FROM origin WHERE robots_verdict = 'closed'"))
    found = await why(running, web.url())
    assert causes(found)[0] == "robots_unreachable"
    assert "/robots.txt could not be read (status 500)" in found["answer"]
    assert found["next_visit_at"] > found["at"] + 30.0
    assert causes(await why_offline(mirror, web.url(), capsys))[0] == "robots_unreachable"


async def test_a_page_in_quarantine_says_that_it_is_not_analysed(serve, mirror, daemon, capsys):
    web = await serve(make_site(pages=5))
    leave_mark(mirror, web.url())
    running = await daemon(web.url())
    await until(lambda: mirror.rows("SELECT 1 FROM version"))
    for found in (await why(running, web.url()), await why_offline(mirror, web.url(), capsys)):
        assert causes(found)[0] == "quarantined"
        assert "stored, but not analysed" in found["answer"]
        assert "crawlctl quarantine release" in found["causes"][0]["remedy"]


async def test_a_page_of_a_removed_site_says_so(started, serve, mirror, capsys):
    running, web = await started()
    added = await post(running, "/add", urls=[web.url("/other", "b.test")], site="more")
    assert added.status_code == 200, added.text
    await post(running, "/remove", site="more")
    for found in (
        await why(running, web.url("/other", "b.test")),
        await why_offline(mirror, web.url("/other", "b.test"), capsys),
    ):
        assert causes(found)[0] == "site_removed"
        assert "Its site more is no longer configured" in found["answer"]


async def test_a_title_tells_why_it_is_in_its_part_and_that_it_left(
    wiki_of, daemon, mirror, capsys
):
    wiki = await wiki_of({title: history(1) for title in ("Start", "One", "Two")}, faults=[quiet])
    running = await daemon(
        wiki.url(),
        site={"api": True, "wiki_titles": ["One", "Two"]},
        jobs={"backfill_every_s": 0.05, "poll_share": 1e-3, "audit_share": 0.0},
    )
    visited = "SELECT count(*) FROM page WHERE state = 'visited'"
    await until(lambda: mirror.rows(visited) == [(3,)])
    found = await why(running, wiki.url("One"))
    assert found["part"] == {"title": "One", "reasons": ["by its title"]}
    assert causes(found)[0] == "rests"
    never = await why(running, wiki.url("Three"))
    assert causes(never)[0] == "wiki_part"
    assert '"Three" is not in the part of the wiki' in never["answer"]
    talk = await why(running, wiki.url("Start?action=history"))
    assert "view of a wiki page" in talk["answer"]
    [(wiki_id,)] = mirror.rows("SELECT wiki_id FROM wiki")
    await running.database.write(wiki_member.remove, Part(1, wiki_id), [("Two", "title", "")])
    for left in (
        await why(running, wiki.url("Two")),
        await why_offline(mirror, wiki.url("Two"), capsys),
    ):
        assert causes(left)[0] == "wiki_part"
        assert '"Two" has left the part of the wiki that site s covers' in left["answer"]
        assert left["part"]["reasons"] == []


async def test_a_discussion_belongs_to_the_part_of_what_it_discusses(
    wiki_of, daemon, mirror, capsys
):
    wiki = await wiki_of({title: history(1) for title in ("Start", "One")}, faults=[quiet])
    running = await daemon(
        wiki.url(),
        site={"api": True, "wiki_titles": ["One"], "wiki_talk": True},
        jobs={"backfill_every_s": 0.05, "poll_share": 1e-3, "audit_share": 0.0},
    )
    await until(lambda: mirror.rows("SELECT 1 FROM wiki_member"))
    for found in (
        await why(running, wiki.url("Talk:One")),
        await why_offline(mirror, wiki.url("Talk:One"), capsys),
    ):
        assert "wiki_part" not in causes(found)
        assert found["part"] == {"title": "Talk:One", "reasons": ["discusses 'One'"]}
    other = await why(running, wiki.url("Talk:Two"))
    assert causes(other)[0] == "wiki_part"
    assert other["part"]["reasons"] == []


async def test_the_line_of_the_rule_in_the_config_is_named(
    serve, nursery, mirror, site, tmp_path, capsys
):
    web = await serve(site)
    config = tmp_path / "crawld.toml"
    config.write_text(
        f"""
[daemon]
db = "{mirror.db}"
contact = "test@example.org"
[dns.hosts]
"a.test" = ["127.0.0.1"]
[store]
min_free_bytes = 0
[politeness]
host_delay_s = 0.0

[[site]]
name = "s"
seeds = ["{web.url()}"]
exclude = [
  "glob:/never/*",
  "prefix:/out/",
]
allow_private = true
"""
    )
    loaded = load(config)
    start = mirror.make_start(web.url())
    start = replace(start, config=loaded.config, seeds=loaded.seeds, config_path=config, once=False)
    running = await nursery.start(run_daemon, start)
    await until(lambda: mirror.rows("SELECT 1 FROM page WHERE state = 'visited'"))
    found = await why(running, web.url("/out/a"))
    assert found["causes"][0]["place"] == {"file": str(config), "line": 17}
    assert f"{config}:17" in why_text(Why.model_validate(found))
    offline = await why_offline(mirror, web.url("/out/a"), capsys, config)
    assert offline["causes"][0]["place"] == {"file": str(config), "line": 17}
    assert not any("the defaults" in each for each in offline["not_known"])
    assert (await why(running, web.url()))["site"]["place"]["line"] == 12
    # A file that was edited since does not name a line with another rule.
    config.write_text(config.read_text().replace("prefix:/out/", "prefix:/else/"))
    assert (await why(running, web.url("/out/a")))["causes"][0]["place"]["line"] == 12
