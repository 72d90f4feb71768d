"""A real MediaWiki: hints from its sitemap and feed, and partial mirrors by its API."""

import math
import time

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.peer.mediawiki import ROBOTS


@pytest.fixture
def mirror(crawld, mediawiki):
    """Return a function that starts a daemon on the wiki."""

    def start(**options):
        start_daemon(
            crawld,
            site(mediawiki.url(), name="wiki", **options),
            store={"batch_max_age_s": 0.02},
            schedule={"min_revisit_s": 5.0, "discovery_share": 0.9},
            jobs={"backfill_every_s": 0.5, "poll_share": 1.0, "audit_share": 0.0},
        )
        return crawld

    return start


def wait_for(crawld, condition):
    """Wait until a condition on the database holds."""
    crawld.wait_until(lambda _: condition())


def visited_titles(crawld):
    """Return the titles of the visited pages, as in their URLs."""
    rows = query_rows(crawld, "SELECT url FROM page WHERE state = 'visited' AND requisite = 0")
    return {url.partition("/wiki/")[2] for (url,) in rows}


def last_visit_at(crawld, title):
    """Return the time of a page's last visit; infinity if it was never visited."""
    rows = query_rows(crawld, "SELECT last_visit_at FROM page WHERE url LIKE ?", f"%/wiki/{title}")
    return rows[0][0] if rows and rows[0][0] else math.inf


def hint_counts(crawld, kind):
    """Return the numbers of hints and of confirmed hints of a kind of source."""
    rows = query_rows(crawld, "SELECT hint_count, real_count FROM hint_source WHERE kind = ?", kind)
    return rows[0] if rows else (0, 0)


NO_LINKS = {"max_depth": 1, "exclude": ["regex:[?]", "prefix:/w/"]}


def test_the_sitemap_is_found_and_gives_hints(mirror, mediawiki):
    mediawiki.write_sitemap()
    mediawiki.set_robots(f"{ROBOTS}Sitemap: {mediawiki.origin}/sitemap/sitemap-index-wiki.xml\n")
    crawld = mirror(**NO_LINKS)
    wanted = {"Entry_0000", "Entry_0007"}
    wait_for(crawld, lambda: wanted <= visited_titles(crawld))
    mediawiki.edit("Entry 0007", "quite another text of some length")
    mediawiki.write_sitemap()
    crawld.post("/jobs/hints/run")
    wait_for(crawld, lambda: hint_counts(crawld, "sitemap")[0] >= 1)
    wait_for(crawld, lambda: hint_counts(crawld, "sitemap")[1] >= 1)


def test_the_feed_gives_hints(mirror, mediawiki):
    # The API, which would report the edit first, stays disabled; robots.txt allows the feed.
    mediawiki.set_robots("User-agent: *\nAllow: /\n")
    feed = f"{mediawiki.origin}/w/api.php?action=feedrecentchanges&feedformat=atom&limit=50"
    crawld = mirror(feeds=[feed], **NO_LINKS)
    edited_at = [0.0]

    def is_reported():
        if hint_counts(crawld, "feed")[1] >= 1:
            return True
        visited_at = last_visit_at(crawld, "Entry_0000")
        # Feeds have a resolution of one second: no edit may fall into the second of the visit.
        if edited_at[0] + 1.0 < visited_at < time.time() - 1.0:
            # The page was visited before the feed told of its last edit: it is edited again.
            edited_at[0] = time.time()
            mediawiki.edit("Entry 0000", f"another text of {edited_at[0]}")
            crawld.post("/jobs/hints/run")
        return False

    wait_for(crawld, is_reported)


def test_wiki_prefixes_and_titles_limit_the_mirror(mirror, mediawiki):
    crawld = mirror(api=True, wiki_prefixes=["entry 000"], wiki_titles=["entry_0015"])
    part = {f"Entry_000{number}" for number in range(10)} | {"Entry_0015"}
    wait_for(crawld, lambda: part <= visited_titles(crawld))
    mediawiki.edit("Entry 0009 and more", "a new page of the part")
    mediawiki.edit("Entry 0099", "a new page of none")
    wait_for(crawld, lambda: "Entry_0009_and_more" in visited_titles(crawld))
    assert visited_titles(crawld) == part | {"Main_Page", "Entry_0009_and_more"}
    refused = dict(query_rows(crawld, "SELECT reason, refused FROM refusal"))
    assert refused["wiki_part"] > 0


def test_wiki_categories_limit_the_mirror(mirror, mediawiki):
    for number in (3, 5):
        mediawiki.edit(f"Entry 000{number}", "text [[Category:Some]]")
    mediawiki.edit("Category:Below", "[[Category:Some]]")
    mediawiki.edit("Entry 0008", "text [[Category:Below]]")
    mediawiki.run_jobs()
    crawld = mirror(api=True, wiki_categories=["Some"], wiki_category_depth=1)
    wanted = {"Main_Page", "Entry_0003", "Entry_0005", "Entry_0008"}
    wait_for(crawld, lambda: wanted <= visited_titles(crawld))
    # The recent changes report who enters or leaves a category: no job is run by hand.
    polled = "SELECT count(*) FROM hint_source WHERE kind = 'recent_changes' AND poll_count > 1"
    wait_for(crawld, lambda: query_rows(crawld, polled) == [(1,)])
    mediawiki.edit("Entry 0005", "no more of it")
    mediawiki.edit("A new page", "text [[Category:Below]]")
    mediawiki.run_jobs()
    listed = "SELECT title FROM wiki_member WHERE title IN ('Entry 0005', 'A new page')"
    wait_for(crawld, lambda: query_rows(crawld, listed) == [("A new page",)])
    wait_for(crawld, lambda: visited_titles(crawld) == wanted | {"A_new_page"})
