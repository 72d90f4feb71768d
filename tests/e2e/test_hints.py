"""Change hints from a real MediaWiki: the mirror shows what the wiki shows."""

import time
from itertools import pairwise

import pytest

from tests.e2e.daemon_config import (
    crawl_requests,
    query_rows,
    start_daemon,
    wiki_site,
)
from tests.peer.nginx import PRECISION_S
from tests.peer.wiki_dump import EPOCH_AT
from tests.peer.wiki_editor import CopyObserver, WikiEditor, find_differences, measure_copies

DELAY_S = 0.05


@pytest.fixture
def mirror(crawld, mediawiki):
    """Return a function that starts a daemon on the wiki and waits until all pages are mirrored.

    Only hints can be in time for the tests: no page is visited again without one.
    """

    def start(*, delay_s=DELAY_S, api=True, ready=True):
        start_daemon(
            crawld,
            # The second seed is a redirect.
            wiki_site(mediawiki.url(), mediawiki.url("First entry"), api=api),
            politeness={"host_delay_s": delay_s},
            store={"batch_max_age_s": 0.05},
            schedule={"min_revisit_s": 3_600.0},
            jobs={"backfill_every_s": 0.5},
        )
        if ready:
            crawld.wait_until(
                lambda status: (
                    status["pages"]["visited"] >= 32 and not status["pages"]["discovered"]
                )
            )
            crawld.wait_until(
                lambda sources: (
                    {each["kind"] for each in sources if each["poll_count"]} >= {"probe"}
                ),
                "/hints",
            )
        return crawld

    return start


@pytest.fixture
def titles(mediawiki):
    return [page.title for page in mediawiki.pages if page.namespace == 0]


def wait_until_equal(crawld, mediawiki, titles):
    """Wait until the mirror shows what the wiki shows; return the remaining differences."""
    found, compared = {}, titles
    for _ in range(120):
        found = find_differences(mediawiki, crawld.db, compared)
        if not found and compared is titles:
            break
        # All are compared again once those that differed are equal.
        compared = list(found) or titles
        if found:
            crawld.process.exits_within(0.5)
    return found


def test_the_mirror_follows_edits_moves_deletions_and_imports(mirror, mediawiki, titles):
    crawld = mirror()
    editor = WikiEditor(mediawiki, titles[:30], seed=3)
    observer = CopyObserver(crawld.db)
    for _ in range(3):
        edited = {editor.edit().title for _ in range(8)}
        assert wait_until_equal(crawld, mediawiki, sorted(edited)) == {}
    # Moves give copies other URLs: read them before.
    observer.read_new_copies()
    mediawiki.delete(titles[3])
    mediawiki.delete(titles[4])
    mediawiki.move(titles[5], "Moved away")
    mediawiki.move(titles[6], "Gone away", redirect=False)
    editor.import_revision(titles[7], EPOCH_AT - 86_400 * 400)
    editor.import_revision(titles[8], int(time.time()))
    assert wait_until_equal(crawld, mediawiki, titles) == {}
    states = dict(query_rows(crawld, "SELECT url, last_outcome FROM page"))
    assert states[mediawiki.url(titles[3])] == states[mediawiki.url(titles[6])] == "gone"
    mediawiki.undelete(titles[3])
    editor.edit(titles[4])
    mediawiki.move("Gone away", titles[6])
    assert wait_until_equal(crawld, mediawiki, titles) == {}
    observer.read_new_copies()
    urls = {title: mediawiki.url(title) for title in editor.titles}
    figures = measure_copies(
        editor.edits, observer.seen, urls, since=editor.edits[0].at, until=time.time()
    )
    assert figures.uncopied == 0
    sources = {each["kind"]: each for each in crawld.get("/hints")}
    assert sum(each["real_count"] for each in sources.values()) >= 10
    assert all(each["trouble"] is None for each in sources.values())
    times = [row.at for row in crawl_requests(mediawiki)]
    gaps = [later - at for at, later in pairwise(times)]
    assert min(gaps) >= DELAY_S - PRECISION_S


def test_hints_survive_a_kill(mirror, mediawiki, titles):
    crawld = mirror()
    crawld.kill()
    editor = WikiEditor(mediawiki, titles[:30])
    edited = titles[10:14]
    for title in edited:
        editor.edit(title)
    # One poll returns all four hints; they stay outstanding, as a page is fetched every 3 s only.
    mirror(delay_s=3.0, ready=False)
    crawld.wait_until(lambda found: sum(each["outstanding"] for each in found) >= 3, "/hints")
    crawld.kill()
    held = {url for (url,) in query_rows(crawld, "SELECT url FROM hint JOIN page USING (page_id)")}
    edited_urls = {mediawiki.url(title) for title in edited}
    assert held <= edited_urls
    assert len(held) >= 2
    mediawiki.edit(titles[15], editor.text(titles[15], "while nobody listens at all"))
    mirror(ready=False)
    assert wait_until_equal(crawld, mediawiki, titles) == {}
    found = crawld.wait_until(
        lambda found: not sum(each["outstanding"] for each in found), "/hints"
    )
    # A visit may find the fifth edit before its hint arrives.
    assert sum(each["real_count"] for each in found) >= len(edited)
    assert sum(each["false_count"] for each in found) <= 1


def test_an_edited_template_gives_hints_for_its_users(mirror, mediawiki, titles):
    crawld = mirror()
    mediawiki.edit("Template:Entry", "<div>Rewritten box of {{{1}}}</div>")
    mediawiki.run_jobs()
    assert wait_until_equal(crawld, mediawiki, titles) == {}
    fan_out = next(each for each in crawld.get("/hints") if each["kind"] == "fan_out")
    assert fan_out["hint_count"] >= 10
    assert fan_out["real_count"] > 0


def test_the_api_is_not_used_unless_enabled(mirror, mediawiki):
    crawld = mirror(api=False, ready=False)
    crawld.wait_until(lambda status: status["pages"]["visited"] >= 32)
    crawld.post("/jobs/hints/run")
    crawld.wait_until(
        lambda jobs: any(each["name"] == "hints" and not each["running"] for each in jobs), "/jobs"
    )
    assert crawld.get("/hints") == []
    assert not [row for row in crawl_requests(mediawiki) if "/w/api.php" in row.target]


def test_polling_resumes_after_the_api_was_lagged(mirror, mediawiki, titles):
    crawld = mirror()
    with mediawiki.lag(30):
        crawld.wait_until(
            lambda found: any(each["trouble"] == "lagged" for each in found), "/hints"
        )
        WikiEditor(mediawiki, titles[:30]).edit(titles[2])
    assert wait_until_equal(crawld, mediawiki, titles) == {}
    shown = crawld.crawlctl("hints")
    assert shown.returncode == 0
    assert "recent changes" in shown.stdout
