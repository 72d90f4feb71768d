"""A real MediaWiki of which sites mirror parts: titles, renames, categories, exact histories."""

import json
from urllib.parse import urlencode

import pytest

from tests.e2e.daemon_config import crawl_requests, query_rows, site, start_daemon, write_config


@pytest.fixture
def mirror(crawld, mediawiki):
    """Return a function that starts a daemon on the wiki and waits until it listens to changes."""

    def start(**options):
        start_daemon(
            crawld,
            site(mediawiki.url(), name="wiki", api=True, **options),
            store={"batch_max_age_s": 0.02},
            schedule={"min_revisit_s": 3_600.0, "discovery_share": 0.9},
            jobs={"backfill_every_s": 0.5, "poll_share": 1.0, "audit_share": 0.0},
            content={"confirm_pages": 0},
        )
        polled = "SELECT 1 FROM hint_source WHERE kind = 'recent_changes' AND poll_count > 0"
        crawld.wait_until(lambda _: query_rows(crawld, polled))
        return crawld

    return start


def shown_titles(crawld, mediawiki):
    """Return the titles of pages with a copy."""
    rows = query_rows(crawld, "SELECT url FROM page WHERE version_id IS NOT NULL AND requisite = 0")
    return {url.removeprefix(mediawiki.url("")) for (url,) in rows}


def reasons(crawld, title):
    sql = "SELECT reason, via FROM wiki_member WHERE title = ? ORDER BY reason, via"
    return query_rows(crawld, sql, title)


def stored_revisions(crawld, mediawiki, title):
    rows = query_rows(
        crawld,
        "SELECT revision_id FROM change JOIN page USING (page_id)"
        " WHERE url = ? AND source = 'revision' ORDER BY changed_at DESC, revision_id DESC",
        mediawiki.url(title),
    )
    return [number for (number,) in rows]


def copies(crawld, mediawiki, title):
    sql = "SELECT count(*) FROM version JOIN page USING (page_id) WHERE url = ?"
    return query_rows(crawld, sql, mediawiki.url(title))[0][0]


def wait(crawld, condition):
    crawld.wait_until(lambda _: condition())


def test_a_config_is_checked_online(crawld, mediawiki):
    mediawiki.edit("Old name", "#REDIRECT [[Entry 0004]]")
    mediawiki.edit("Entry 0003", "text [[Category:Some]]")
    mediawiki.run_jobs()
    titles = crawld.folder / "titles.txt"
    titles.write_text("# a list\nentry_0001\nOld name\nNo such page\nBad|title\nEntry 0001\n")
    wiki = site(
        mediawiki.url(),
        name="wiki",
        api=True,
        host_delay_s=0.01,
        titles_file="titles.txt",
        wiki_categories=["Some", "None"],
        wiki_prefixes=["Entry 00", "Nothing"],
    )
    path = write_config(crawld, wiki)
    ended = crawld.crawld("check-config", "--online", path)
    assert ended.returncode == 0, ended.stderr
    shown = [line for line in ended.stdout.splitlines() if " wiki: " in line][1:]
    assert shown[0].startswith("online      wiki: MediaWiki 1.")
    assert "1 page, 1 redirect, 1 missing, 1 invalid, 1 duplicate" in shown[0]
    assert [line.removeprefix("warning     wiki: ") for line in shown[1:]] == [
        "'entry_0001' is spelt 'Entry 0001' by the wiki",
        "'Old name' redirects to 'Entry 0004'",
        "'No such page' is missing: the wiki has no such page",
        "'Bad|title' is invalid: a title cannot contain '|'",
        "'Entry 0001' is listed already, as 'entry_0001'",
        "category 'Category:None' has no pages",
        "prefix 'Nothing' has no pages",
    ]
    asked = [row for row in mediawiki.ledger().rows() if "api.php?format=json" in row.target]
    assert len(asked) == 6  # siteinfo, titles, two categories, two prefixes
    with mediawiki.lag(1_000.0):
        ended = crawld.crawld("check-config", "--online", path)
    assert ended.returncode == 2
    assert "lagged" in ended.stdout


def test_listed_titles_are_resolved_and_told_by_name(mirror, mediawiki):
    mediawiki.edit("Old name", "#REDIRECT [[Entry 0004]]")
    listed = ["entry_0001", "Entry 0002", "entry 0002", "Old name", "No such page"]
    crawld = mirror(wiki_titles=[*listed, "Bad|title", "wikipedia:Paris", "Special:Random"])
    whole = {"Main_Page", "Entry_0001", "Entry_0002", "Entry_0004"}
    wait(crawld, lambda: shown_titles(crawld, mediawiki) == whole)
    rows = query_rows(crawld, "SELECT outcome, detail FROM wiki_title ORDER BY position")
    assert [outcome for outcome, _ in rows] == [
        *("page", "page", "duplicate", "redirect", "missing"),
        *("invalid", "interwiki", "invalid"),
    ]
    assert rows[3][1] == "Entry 0004"
    assert reasons(crawld, "Entry 0004") == [("redirect", "Old name")]
    [wiki] = crawld.get("/wikis")
    [part] = wiki["parts"]
    assert part["listed"]["missing"] == 1
    assert part["problems"][0] == "'entry_0001' is spelt 'Entry 0001' by the wiki"
    assert "'Bad|title' is invalid: a title cannot contain '|'" in part["problems"]
    detail = crawld.get("/page?" + urlencode({"url": mediawiki.url("Entry 0004")}))
    assert [each["reason"] for each in detail["memberships"]] == ["by redirect from 'Old name'"]
    leads_to = "SELECT redirect_url FROM page WHERE url = ?"
    wanted = [(mediawiki.url("Entry 0004"),)]
    wait(crawld, lambda: query_rows(crawld, leads_to, mediawiki.url("Old name")) == wanted)
    assert not query_rows(crawld, leads_to, mediawiki.url("No such page"))
    # A missing title enters the part when it is created, and a redirect follows its new target.
    mediawiki.edit("No such page", "now there is")
    mediawiki.edit("Old name", "#REDIRECT [[Entry 0005]]")
    whole |= {"No_such_page", "Entry_0005"}
    wait(crawld, lambda: shown_titles(crawld, mediawiki) == whole)
    wait(crawld, lambda: not reasons(crawld, "Entry 0004"))


def test_renamed_pages_of_a_part_follow_with_one_history(mirror, mediawiki):
    listed = ["Entry 0001", "Entry 0002", "Entry 0003"]
    crawld = mirror(wiki_titles=listed, wiki_prefixes=["Entry 001"])
    whole = {"Main_Page", *(each.replace(" ", "_") for each in listed)}
    whole |= {f"Entry_001{number}" for number in range(10)}
    wait(crawld, lambda: shown_titles(crawld, mediawiki) == whole)
    # With a redirect, without one, out of the prefix into another namespace, and a swap.
    mediawiki.move("Entry 0001", "New name")
    mediawiki.move("Entry 0011", "Help:Outside", redirect=False)
    mediawiki.move("Entry 0002", "Entry 0002 temporary", redirect=False)
    mediawiki.move("Entry 0003", "Entry 0002", redirect=False)
    mediawiki.move("Entry 0002 temporary", "Entry 0003", redirect=False)
    whole = (whole - {"Entry_0001", "Entry_0011"}) | {"New_name", "Help:Outside"}
    wait(crawld, lambda: shown_titles(crawld, mediawiki) == whole)
    wait(crawld, lambda: reasons(crawld, "New name") == [("move", "Entry 0001")])
    assert reasons(crawld, "Help:Outside") == [("move", "Entry 0011")]
    for title in ("New name", "Help:Outside", "Entry 0002", "Entry 0003"):
        wanted = [row["revid"] for row in mediawiki.revisions(title)]
        wait(crawld, lambda t=title, w=wanted: stored_revisions(crawld, mediawiki, t) == w)
        # The first copy came along, and the visit of the new title made the second.
        wait(crawld, lambda t=title: copies(crawld, mediawiki, t) == 2)
    for title in ("Entry 0001", "Entry 0011"):
        assert copies(crawld, mediawiki, title) == 0
    mediawiki.edit("New name", "an edit after the move")
    wait(crawld, lambda: copies(crawld, mediawiki, "New name") == 3)
    crawld.post("/drain")
    report = crawld.crawld("doctor", "--db", crawld.db)
    assert report.returncode == 0, report.stdout


def test_a_renamed_page_leaves_if_configured(mirror, mediawiki):
    crawld = mirror(wiki_titles=["Entry 0001"], wiki_prefixes=["Entry 001"], wiki_moved="leave")
    wait(crawld, lambda: len(shown_titles(crawld, mediawiki)) == 12)
    mediawiki.move("Entry 0001", "New name")
    mediawiki.move("Entry 0011", "Outside")
    mediawiki.move("Entry 0012", "Entry 0013 too")
    wait(crawld, lambda: "Entry_0013_too" in shown_titles(crawld, mediawiki))
    wait(crawld, lambda: reasons(crawld, "Entry 0001") == [("former", "New name"), ("title", "")])
    crawld.post("/jobs/members/run")
    moved = "SELECT last_outcome FROM page WHERE url = ?"
    for title in ("Entry 0001", "Entry 0011"):
        url = mediawiki.url(title)
        wait(crawld, lambda url=url: query_rows(crawld, moved, url) == [("moved",)])
        assert copies(crawld, mediawiki, title) == 1
    assert not {"New_name", "Outside"} & shown_titles(crawld, mediawiki)


def test_categories_are_followed_by_the_hint(mirror, mediawiki):
    mediawiki.edit("Entry 0003", "text [[Category:Some]]")
    mediawiki.edit("Entry 0005", "text [[Category:Some]]")
    mediawiki.run_jobs()
    crawld = mirror(wiki_categories=["Some"])
    wait(crawld, lambda: shown_titles(crawld, mediawiki) >= {"Entry_0003", "Entry_0005"})
    mediawiki.edit("Entry 0005", "no more of it")
    mediawiki.edit("Entry 0006", "text [[Category:Some]]")
    mediawiki.move("Entry 0003", "Moved in it")
    mediawiki.run_jobs()
    wait(crawld, lambda: reasons(crawld, "Entry 0006") == [("category", "Category:Some")])
    wait(crawld, lambda: reasons(crawld, "Moved in it") == [("category", "Category:Some")])
    wait(crawld, lambda: reasons(crawld, "Entry 0005") == [])
    mediawiki.delete("Entry 0006")
    wait(crawld, lambda: reasons(crawld, "Entry 0006") == [])
    mediawiki.undelete("Entry 0006")
    wait(crawld, lambda: reasons(crawld, "Entry 0006") == [("category", "Category:Some")])
    wait(crawld, lambda: query_rows(crawld, "SELECT * FROM wiki_event") == [])
    # A template that puts pages into the category is followed by listing it again.
    mediawiki.edit("Template:Label", "<includeonly>[[Category:Some]]</includeonly>")
    mediawiki.edit("Entry 0009", "text {{Label}}")
    mediawiki.run_jobs()
    wait(crawld, lambda: reasons(crawld, "Entry 0009") == [("category", "Category:Some")])
    mediawiki.edit("Template:Label", "nothing")
    mediawiki.run_jobs()
    wait(crawld, lambda: reasons(crawld, "Entry 0009") == [])


def test_histories_are_those_of_the_wiki_after_deletions_and_merges(mirror, mediawiki):
    titles = ["Entry 0001", "Entry 0002", "Entry 0003", "A later page"]
    mediawiki.edit("A later page", "its first text")
    crawld = mirror(wiki_titles=titles)

    def is_right(title):
        wanted = [row["revid"] for row in mediawiki.revisions(title)]
        return stored_revisions(crawld, mediawiki, title) == wanted

    wait(crawld, lambda: all(map(is_right, titles)))
    some = [row["timestamp"] for row in mediawiki.revisions("Entry 0001")][1:3]
    mediawiki.delete("Entry 0001")
    mediawiki.undelete("Entry 0001", timestamps=some)
    mediawiki.delete("Entry 0002")
    mediawiki.edit("Entry 0002", "another page with the title of a deleted one")
    until = mediawiki.revisions("Entry 0003")[1]["timestamp"]
    mediawiki.merge("Entry 0003", "A later page", until=until)
    assert [len(mediawiki.revisions(title)) for title in titles] == [2, 1, 1, 4]
    wait(crawld, lambda: all(map(is_right, titles)))
    logged = "SELECT kind, count(*) FROM change WHERE source = 'log' GROUP BY kind ORDER BY kind"
    assert query_rows(crawld, logged) == [("deletion", 2), ("restoration", 1)]


def test_members_by_template_come_and_go_with_the_wikis_jobs(mirror, mediawiki):
    for number in range(3):
        mediawiki.edit(f"Entry 000{number}", "text {{Label}}")
        mediawiki.edit(f"Entry 000{number + 4}", "text {{Other label}}")
    mediawiki.edit("Entry 0009", "text [[Category:Some]]")
    mediawiki.edit("Template:Label", "nothing")
    mediawiki.run_jobs()
    crawld = mirror(wiki_categories=["Some"])
    wait(crawld, lambda: "Entry_0009" in shown_titles(crawld, mediawiki))
    wait(crawld, lambda: query_rows(crawld, "SELECT 1 FROM wiki_category"))
    mediawiki.edit("Template:Label", "<includeonly>[[Category:Some]]</includeonly>")
    # The wiki's jobs run later than the poll that reports the edit.
    wait(crawld, lambda: query_rows(crawld, "SELECT * FROM wiki_event") == [])
    mediawiki.run_jobs()
    whole = {"Entry_0009", *(f"Entry_000{number}" for number in range(3))}
    wait(crawld, lambda: whole <= shown_titles(crawld, mediawiki))
    assert len(listings(mediawiki)) == 2  # the first one, and this one
    # As many pages enter as leave: the size of the category stays.
    mediawiki.edit("Template:Other label", "<includeonly>[[Category:Some]]</includeonly>")
    mediawiki.edit("Template:Label", "nothing")
    mediawiki.run_jobs()
    for number in range(3):
        wait(crawld, lambda n=number: reasons(crawld, f"Entry 000{n + 4}"))
        wait(crawld, lambda n=number: reasons(crawld, f"Entry 000{n}") == [])
    assert len(listings(mediawiki)) == 3


def listings(mediawiki):
    """Return the requests for all pages of categories."""
    targets = (row.target for row in crawl_requests(mediawiki))
    return [target for target in targets if "generator=categorymembers" in target]


def test_a_wiki_that_does_not_report_its_categories_is_followed(mirror, mediawiki):
    mediawiki.configure("$wgRCWatchCategoryMembership = false;")
    mediawiki.edit("Entry 0003", "text [[Category:Some]]")
    mediawiki.run_jobs()
    crawld = mirror(wiki_categories=["Some"])
    wait(crawld, lambda: "Entry_0003" in shown_titles(crawld, mediawiki))
    wait(crawld, lambda: query_rows(crawld, "SELECT 1 FROM wiki_category"))
    mediawiki.edit("Entry 0006", "text [[Category:Some]]")
    mediawiki.edit("A new page", "text [[Category:Some]]")
    mediawiki.edit("Entry 0003", "no more of it")
    mediawiki.run_jobs()
    for title in ("Entry 0006", "A new page"):
        wait(crawld, lambda t=title: reasons(crawld, t) == [("category", "Category:Some")])
    wait(crawld, lambda: reasons(crawld, "Entry 0003") == [])


UPGRADE = """
$wgCacheEpoch = '20300101000000';
$wgSitename = 'Upgraded';
$wgExtraNamespaces = [3000 => 'Portal', 3001 => 'Portal_talk'];
"""
"""Every rendering is stale, and there is a new namespace."""


def test_a_part_is_followed_through_an_upgrade_of_its_wiki(mirror, mediawiki):
    def has_portals():
        told = mediawiki.api(action="query", meta="siteinfo", siprop="namespaces")
        return "3000" in told["query"]["namespaces"]

    mediawiki.edit("Entry 0003", "first text [[Category:Some]]")
    mediawiki.run_jobs()
    crawld = mirror(wiki_categories=["Some"])
    wait(crawld, lambda: "Entry_0003" in shown_titles(crawld, mediawiki))
    # The databases lag while they are changed, so that all polls are refused.
    with mediawiki.lag(9):
        mediawiki.configure(UPGRADE)
        wait(crawld, has_portals)
        mediawiki.edit("Entry 0003", "second text [[Category:Some]]")
        mediawiki.edit("Portal:Entries", "of a new namespace [[Category:Some]]")
        mediawiki.run_jobs()
        wait(crawld, lambda: "lagged" in troubles(crawld))
    wait(crawld, lambda: "Portal:Entries" in shown_titles(crawld, mediawiki))
    wait(crawld, lambda: copies(crawld, mediawiki, "Entry 0003") == 2)
    # Only the API was refused, and it said when to return: that is no strike of the host.
    strikes = "SELECT host FROM host WHERE backoff_at IS NOT NULL OR closed_until IS NOT NULL"
    assert query_rows(crawld, strikes) == []


def troubles(crawld):
    """Return the troubles of polls so far."""
    log = (crawld.folder / "crawld-1.err").read_text().splitlines()
    return {row["why"] for row in map(json.loads, log) if row["event"] == "hint_poll_trouble"}
