"""Several sites of one real MediaWiki: its API is asked once for all of them."""

import time
from collections import Counter
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest

from crawld.sources.mediawiki_changes import PendingTemplates, ProbeProgress
from crawld.store.engine.connection import open_connection
from tests.e2e.daemon_config import crawl_requests, query_rows, site, start_daemon, write_config

PARTS = {
    "category": {"wiki_categories": ["Some"]},
    "titles": {"wiki_titles": ["Entry 0015", "Entry 0016"]},
    "prefix": {"wiki_prefixes": ["Entry 000"]},
}
WANTED = {
    "category": {"Entry_0012", "Entry_0013", "Main_Page"},
    "titles": {"Entry_0015", "Entry_0016"},
    "prefix": {f"Entry_000{number}" for number in range(10)},
}
SETTINGS = {
    "politeness": {"host_delay_s": 0.02},
    "store": {"batch_max_age_s": 0.02},
    "schedule": {"min_revisit_s": 3_600.0},
    "jobs": {"backfill_every_s": 0.5, "poll_share": 1.0, "min_poll_s": 0.2, "audit_share": 0.0},
}


@pytest.fixture
def wiki(mediawiki):
    """A wiki with two entries in a category."""
    for number in (12, 13):
        mediawiki.edit(f"Entry 00{number}", "text [[Category:Some]]")
    mediawiki.run_jobs()
    return mediawiki


def sites_of(wiki, *names):
    """Return sites with the same seed, each with another part of the wiki."""
    return [site(wiki.url(), name=name, api=True, **PARTS[name]) for name in names]


def visited_titles(crawld, name):
    """Return the titles of a site's visited pages, as in their URLs."""
    rows = query_rows(
        crawld,
        "SELECT url FROM page JOIN site USING (site_id) WHERE state = 'visited' AND name = ?",
        name,
    )
    return {url.partition("/wiki/")[2] for (url,) in rows}


def is_filled(crawld, *names):
    return all(visited_titles(crawld, name) == WANTED[name] for name in names)


INFO = "info|categories"


def api_queries(wiki):
    """Return the parameters of crawld's API requests."""
    rows = [row for row in crawl_requests(wiki) if "/w/api.php" in row.target]
    found = [parse_qs(urlsplit(row.target).query) for row in rows]
    return [{key: values[0] for key, values in each.items()} for each in found]


def api_kinds(wiki):
    """Count crawld's API requests by what they ask for."""
    return Counter(
        each.get("meta") or each.get("list") or each.get("prop") for each in api_queries(wiki)
    )


def visits_of(crawld, wiki, title):
    sql = "SELECT visit_count FROM page WHERE url = ?"
    return query_rows(crawld, sql, wiki.url(title))[0][0]


def test_three_sites_of_one_wiki_are_filled_and_share_its_sources(crawld, wiki):
    start_daemon(crawld, *sites_of(wiki, *PARTS), **SETTINGS)
    crawld.wait_until(lambda _: is_filled(crawld, *PARTS))
    [shared] = crawld.get("/wikis")
    assert shared["sites"] == list(PARTS)
    sources = crawld.get("/hints")
    assert sorted(each["kind"] for each in sources) == ["fan_out", "probe", "recent_changes"]
    assert all(each["sites"] == list(PARTS) for each in sources)
    # One edit for each site; a single poll reports all of them.
    edited = ("Entry 0012", "Entry 0015", "Entry 0001")
    before = {title: visits_of(crawld, wiki, title) for title in edited}
    for title in edited:
        wiki.edit(title, f"another text of {title} [[Category:Some]]")
    crawld.wait_until(
        lambda _: all(visits_of(crawld, wiki, title) > before[title] for title in edited)
    )
    assert api_kinds(wiki)["siteinfo"] == 1
    # Whether a new page belongs to a part is asked once for all of them.
    wiki.edit("Entry 0009 and more", "a new page of a part")
    crawld.wait_until(lambda _: "Entry_0009_and_more" in visited_titles(crawld, "prefix"))
    asked = [each for each in api_queries(wiki) if each.get("prop", "") in ("info", INFO)]
    named = [each.get("titles", "") for each in asked]
    assert [each for each in named if "and more" in each] == ["Entry 0009 and more"]


def source(crawld, kind="recent_changes"):
    return next(each for each in crawld.get("/hints") if each["kind"] == kind)


def test_sites_join_and_leave_a_wiki_with_its_cursor(crawld, wiki):
    start_daemon(crawld, *sites_of(wiki, "category", "titles"), **SETTINGS)
    crawld.wait_until(lambda _: is_filled(crawld, "category", "titles"))
    crawld.wait_until(lambda found: any(each["told_until"] for each in found), "/hints")
    before = source(crawld)
    # One site leaves with its block, one because it no longer permits the API; one joins.
    write_config(crawld, *sites_of(wiki, "category", "prefix"), **SETTINGS)
    crawld.post("/reload")
    crawld.wait_until(lambda _: is_filled(crawld, "prefix"))
    assert source(crawld)["sites"] == ["category", "prefix"]
    write_config(crawld, *sites_of(wiki, "titles", "prefix"), **SETTINGS)
    crawld.post("/reload")
    crawld.wait_until(lambda found: found[0]["sites"] == ["titles", "prefix"], "/hints")
    now = source(crawld)
    assert now["hint_source_id"] == before["hint_source_id"]
    assert now["told_until"] >= before["told_until"]
    count = visits_of(crawld, wiki, "Entry 0016")
    wiki.edit("Entry 0016", "another text")
    crawld.wait_until(lambda _: visits_of(crawld, wiki, "Entry 0016") > count)
    assert api_kinds(wiki)["siteinfo"] == 1
    [row] = query_rows(crawld, "SELECT count(*) FROM hint_source")
    assert row == (3,)


def owner(crawld, wiki, title):
    """Return the site of a page, None if the page is not known."""
    sql = "SELECT name FROM page JOIN site USING (site_id) WHERE url = ?"
    rows = query_rows(crawld, sql, wiki.url(title))
    return rows[0][0] if rows else None


def shares(crawld):
    return {each["name"]: each["pages_shared"] for each in crawld.get("/sites")}


def test_a_page_that_leaves_one_part_belongs_to_the_other_that_names_it(crawld, wiki):
    category, titles = sites_of(wiki, "category", "titles")
    titles["wiki_titles"] = [*titles["wiki_titles"], "Entry 0012", "Entry 0013"]
    start_daemon(crawld, category, titles, **SETTINGS)
    crawld.wait_until(lambda _: is_filled(crawld, "category", "titles"))
    crawld.wait_until(lambda _: shares(crawld) == {"category": 0, "titles": 2})
    listed = {each["url"] for each in crawld.get("/pages?site=titles")}
    assert listed == {wiki.url(title) for title in titles["wiki_titles"]}
    # One leaves the category, the other its site.
    wiki.edit("Entry 0012", "a text without a category")
    wiki.run_jobs()
    crawld.wait_until(lambda _: owner(crawld, wiki, "Entry 0012") == "titles")
    assert owner(crawld, wiki, "Entry 0013") == "category"
    assert shares(crawld) == {"category": 0, "titles": 1}
    write_config(crawld, titles, **SETTINGS)
    crawld.post("/reload")
    crawld.wait_until(lambda _: owner(crawld, wiki, "Entry 0013") == "titles")
    crawld.wait_until(lambda _: shares(crawld) == {"titles": 0})
    count = visits_of(crawld, wiki, "Entry 0013")
    wiki.edit("Entry 0013", "another text")
    crawld.wait_until(lambda _: visits_of(crawld, wiki, "Entry 0013") > count)
    crawld.post("/drain")
    report = crawld.crawld("doctor", "--db", crawld.db)
    assert report.returncode == 0, report.stdout


def kill_with_work(crawld, cursors):
    """Kill the daemon, and let its sources sleep for a day with work in their cursors."""
    crawld.kill()
    now = time.time()
    with closing(open_connection(crawld.db)) as connection:
        connection.execute("UPDATE hint_source SET next_poll_at = ?", (now + 86_400.0,))
        for kind, cursor in cursors.items():
            connection.execute("UPDATE hint_source SET cursor = ? WHERE kind = ?", (cursor, kind))
        connection.execute(
            "UPDATE job SET last_finished_at = ?1 - 1, last_started_at = ?1 WHERE name = 'members'",
            (now,),
        )


def test_a_kill_delays_nothing_that_waits(crawld, wiki):
    sites = sites_of(wiki, "prefix", "titles")
    start_daemon(crawld, *sites, **SETTINGS)
    crawld.wait_until(lambda _: is_filled(crawld, "titles"))
    crawld.wait_until(lambda _: WANTED["prefix"] <= visited_titles(crawld, "prefix"))
    crawld.wait_until(lambda _: source(crawld)["poll_count"] > 0)
    before = {each["kind"]: each for each in crawld.get("/hints")}
    visits = visits_of(crawld, wiki, "Entry 0015")
    now = time.time()
    templates = PendingTemplates(templates=(("Template:Entry", now),))
    urgent = ProbeProgress(urgent=True, titles=5)
    kill_with_work(crawld, {"fan_out": templates.to_json(), "probe": urgent.to_json()})
    wiki.edit("Entry 0015", "an edit while the daemon is down")
    start_daemon(crawld, *sites, **SETTINGS)
    began = time.time()
    crawld.wait_until(
        lambda found: all(
            each["poll_count"] > before[each["kind"]]["poll_count"]
            for each in found
            if each["kind"] != "fan_out"  # a poll of the recent changes may take it along
        ),
        "/hints",
    )
    crawld.wait_until(
        lambda _: not PendingTemplates.from_json(source(crawld, "fan_out")["cursor"]).templates
    )
    crawld.wait_until(lambda _: visits_of(crawld, wiki, "Entry 0015") > visits)
    crawld.wait_until(
        lambda jobs: any(
            job["name"] == "members" and job["last_finished_at"] >= began for job in jobs
        ),
        "/jobs",
    )
    crawld.wait_until(
        lambda _: not ProbeProgress.from_json(source(crawld, "probe")["cursor"]).urgent
    )
