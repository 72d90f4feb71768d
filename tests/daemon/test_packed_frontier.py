"""A frontier that is packed: crawls, caps, restarts, and what operators see of packed pages."""

from contextlib import closing
from functools import partial

import apsw
import pytest

from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.url import url_hash
from crawld.daemon import start
from crawld.daemon.jobs.canonical_urls import CanonicalUrlsJob
from crawld.store import doctor
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, packed, packed_list, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing
from crawld.store.versions import canonical_urls
from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site, paused_at_start, run_job, until

PACKING = Packing(file_pages=5)
CAPS = Caps(packing=Packing(file_pages=0))


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """Return how many packed pages became rows, at each time."""
    made = []
    settings = partial(start.CrawlSettings, packing=PACKING)
    monkeypatch.setattr(start, "CrawlSettings", settings)
    insert = packed.insert

    def count(*arguments):
        made.append(arguments[3].url)
        return insert(*arguments)

    monkeypatch.setattr(packed, "insert", count)
    return made


def packed_urls(mirror):
    with closing(open_connection(mirror.db, read_only=True)) as connection:
        return [page.url for page in packed_list.list_packed(connection, after=0, limit=9_999)]


async def test_a_packed_site_is_visited_whole_and_each_page_once(serve, mirror, made):
    site = make_site(pages=300)
    web = await serve(site)
    await mirror.run(web.url())
    paths = {site.graph.path(n) for n in range(300)}
    assert mirror.pages() == dict.fromkeys(paths, ("visited", "changed", None))
    assert sorted(web.targets()) == sorted([*paths, "/robots.txt"])
    assert len(made) > 100
    assert packed_urls(mirror) == []
    assert doctor.examine(mirror.db).findings == ()


async def test_the_cap_of_a_host_counts_packed_pages(serve, mirror):
    web = await serve(make_site(pages=300))
    await mirror.run(web.url(), frontier={"max_pages_per_host": 60})
    assert len(mirror.pages()) == 60
    assert mirror.refusals()["host_cap"] > 0
    assert doctor.examine(mirror.db).findings == ()


async def test_a_start_goes_on_with_packed_pages(serve, mirror):
    site = make_site(pages=40)
    web = await serve(site)
    await mirror.run(web.url(), site={"max_depth": 0})
    with closing(open_connection(mirror.db)) as connection:
        # Nothing but packed pages waits: the start must find them.
        urls = [web.url(site.graph.path(n)) for n in range(1, 40)]
        found = [Discovery.of(url, site_id=1, at=1e9, depth=1) for url in urls]
        frontier.discover(connection, found, CAPS)
        verdicts.settle_all(connection, CAPS)
    assert sorted(packed_urls(mirror)) == sorted(urls)
    await mirror.run(web.url(), site={"max_depth": 1})
    assert packed_urls(mirror) == []
    assert mirror.pages() == dict.fromkeys(
        {site.graph.path(n) for n in range(40)}, ("visited", "changed", None)
    )


@pytest.fixture
async def waiting(serve, daemon, mirror):
    """A paused daemon whose host has its seed, four rows, and twenty packed pages.

    A visit of the seed under way would add its links, and may make rows of packed pages.
    """
    web = await serve(make_site(pages=2))
    with paused_at_start():
        running = await daemon(web.url())
    found = [Discovery.of(web.url(f"/w{n}"), site_id=1, at=1e9, depth=3) for n in range(24)]
    await running.database.write(frontier.discover, found[:4])
    await running.database.write(frontier.discover, found, CAPS)
    await until(lambda: packed_urls(mirror), what="verdicts")
    assert len(packed_urls(mirror)) == 20
    return running, web


async def test_operators_see_packed_pages(waiting):
    running, web = waiting
    url = web.url("/w10")
    why = (await get(running, "/why", url=url)).json()
    assert (why["page"]["state"], why["page"]["depth"]) == ("discovered", 3)
    assert why["page"]["discovered_at"] == 1e9
    assert (await get(running, "/page", url=url)).json()["url"] == url
    listed, after = [], 0
    while part := (await get(running, "/pages", after=after, limit=7)).json():
        listed += [each["url"] for each in part]
        after = part[-1]["page_id"]
    known = sorted([web.url(), *(web.url(f"/w{n}") for n in range(24))])
    assert sorted(listed) == known
    by_host = (await get(running, "/pages", host="a.test", state="discovered", limit=999)).json()
    assert sorted(each["url"] for each in by_host) == known
    assert (await get(running, "/pages", state="visited")).json() == []


async def test_a_purged_packed_page_is_gone_and_stays_away(waiting, mirror):
    running, web = waiting
    url = web.url("/w10")
    before = mirror.rows("SELECT page_count FROM host WHERE host = 'a.test'")[0][0]
    await post(running, "/purge", urls=[url])
    assert url not in packed_urls(mirror)
    assert (await get(running, "/page", url=url)).status_code == 404
    found = [Discovery.of(url, site_id=1, at=1e9, depth=3)]
    assert await running.database.write(frontier.discover, found, CAPS) == []
    assert (await running.database.write(verdicts.settle_all, CAPS)).new == []
    assert mirror.rows("SELECT page_count FROM host WHERE host = 'a.test'") == [(before - 1,)]


async def test_the_job_for_canonical_urls_renames_packed_pages(waiting, mirror):
    running, web = waiting
    found = [
        Discovery.of(web.url(f"/w{n}?utm_id=4"), site_id=1, at=1e9, depth=3) for n in range(20, 30)
    ]
    await running.database.write(frontier.discover, found, CAPS)
    await running.database.write(verdicts.settle_all, CAPS)
    assert any("utm_id" in url for url in packed_urls(mirror))
    delete = "DELETE FROM meta WHERE key = ?"
    await running.database.write(apsw.Connection.execute, delete, (canonical_urls.RULES,))
    row = await run_job(running, CanonicalUrlsJob.name)
    assert row.result == "done"
    # Of those that are packed twice now, one is dropped when its turn comes.
    assert set(packed_urls(mirror)) == {web.url(f"/w{n}") for n in range(4, 30)}


async def test_the_pages_of_a_file_of_an_older_version_are_converted_at_the_start(
    serve, mirror, made
):
    web = await serve(make_site(pages=2))
    await mirror.run(web.url())
    url = web.url("/w1")
    with closing(open_connection(mirror.db)) as connection:
        frontier.discover(connection, [Discovery.of(url, site_id=1, at=1e9, depth=1)], CAPS)
        verdicts.settle_all(connection, CAPS)
        connection.execute(
            "INSERT INTO packed_key (host_id, url_hash, site_id, depth) VALUES (1, ?, 1, 1)",
            (url_hash(url),),
        )
        connection.execute("DELETE FROM seen_chunk")
    await mirror.run(web.url())
    assert made == [url]
    assert "/w1" in mirror.pages()
    assert mirror.rows("SELECT count(*) FROM packed_key") == [(0,)]


async def test_packed_pages_follow_rules_of_duplicate_urls(serve, daemon, mirror):
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    running.set_paused(paused=True)
    targets = [f"/w{n % 8}" + f"?zid={n}" * (n >= 8) for n in range(24)]
    found = [Discovery.of(web.url(each), site_id=1, at=1e9, depth=3) for each in targets]
    await running.database.write(frontier.discover, found, CAPS)
    new = (await running.database.write(verdicts.settle_all, CAPS)).new
    assert len(packed_urls(mirror)) == 24
    await run_job(running, "dust")  # it sets the rules, and does not run again soon
    rules = HostRules([DustRule(Rewrite(RewriteForm.DROP, "zid"), "")])
    running.state.admission.dust.set({web.url("/").rstrip("/"): rules})
    await running.state.enter_all(new)
    running.set_paused(paused=False)
    await until(lambda: {f"/w{n}" for n in range(8)} <= set(web.targets()), what="the pages")
    # The visit of the first page, of the site itself, may pack its links last.
    await until(lambda: packed_urls(mirror) == [], what="rows of all pages")
    assert not [each for each in web.targets() if "zid" in each]
    assert {each for each in mirror.pages() if each.startswith("/w")} >= set(targets[:8])
    assert not [each for each in mirror.pages() if "zid" in each]
    assert doctor.examine(mirror.db).findings == ()
