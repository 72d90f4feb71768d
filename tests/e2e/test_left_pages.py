"""Readers of a part of a real MediaWiki: pages that leave it, redirects out of it, discussions."""

import contextlib
import urllib.error
import urllib.request

import pytest

from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.peer.crawld_process import with_serve

LEFT = "no longer in the mirrored part"


@pytest.fixture
def mirror(crawld, mediawiki):
    """Return a function that starts a daemon on parts of the wiki, and one that reads a page."""
    listeners = []

    def read(title):
        """Return status and text of the mirrored page."""
        path = "/" + mediawiki.url(title).replace("://", "/", 1)
        try:
            with urllib.request.urlopen(listeners[0].removesuffix("/") + path) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def start(*parts):
        start_daemon(
            crawld,
            *(
                site(mediawiki.url(), name=f"part{number}", api=True, **part)
                for number, part in enumerate(parts)
            ),
            politeness={"host_delay_s": 0.02},
            store={"batch_max_age_s": 0.02},
            schedule={"min_revisit_s": 3_600.0, "discovery_share": 0.9},
            jobs={
                "backfill_every_s": 0.5,
                "poll_share": 1.0,
                "min_poll_s": 0.2,
                "audit_share": 0.0,
            },
            content={"confirm_pages": 0},
        )
        listeners.append(ended.enter_context(with_serve(crawld)))
        polled = "SELECT 1 FROM hint_source WHERE kind = 'recent_changes' AND poll_count > 0"
        crawld.wait_until(lambda _: query_rows(crawld, polled))
        return crawld

    with contextlib.ExitStack() as ended:
        yield start, read


def wait(crawld, condition):
    crawld.wait_until(lambda _: condition())


def is_current(seen, text):
    """Whether a reader sees a page with a text, unmarked."""
    status, body = seen
    return status == 200 and text in body and "<b style" not in body


def test_a_page_that_leaves_its_category_is_marked_until_it_is_back(mirror, mediawiki):
    start, read = mirror
    for title in ("Entry 0003", "Entry 0005"):
        mediawiki.edit(title, "first text [[Category:Some]]")
    mediawiki.run_jobs()
    crawld = start({"wiki_categories": ["Some"]})
    wait(crawld, lambda: is_current(read("Entry 0003"), "first text"))
    wait(crawld, lambda: is_current(read("Entry 0005"), "first text"))
    mediawiki.edit("Entry 0003", "second text, of no category")
    mediawiki.run_jobs()
    wait(crawld, lambda: LEFT in read("Entry 0003")[1])
    assert read("Entry 0003")[0] == 200
    mediawiki.edit("Entry 0003", "third text [[Category:Some]]")
    mediawiki.run_jobs()
    wait(crawld, lambda: LEFT not in read("Entry 0003")[1])
    # The mark lasts until the page was visited again: a stale copy is never shown as current.
    assert is_current(read("Entry 0003"), "third text")
    assert is_current(read("Entry 0005"), "first text")


def test_the_old_target_of_a_listed_redirect_is_marked(mirror, mediawiki):
    start, read = mirror
    mediawiki.edit("Other name", "#REDIRECT [[Entry 0004]]")
    crawld = start({"wiki_titles": ["Other name"]}, {"wiki_titles": ["Entry 0009"]})
    wait(crawld, lambda: is_current(read("Other name"), "Entry 0004"))
    wait(crawld, lambda: is_current(read("Entry 0009"), "Entry 0009"))
    mediawiki.edit("Other name", "#REDIRECT [[Entry 0005]]")
    wait(crawld, lambda: LEFT in read("Entry 0004")[1])
    wait(crawld, lambda: is_current(read("Other name"), "Entry 0005"))
    # The other site has the page in its own part.
    mediawiki.edit("Other name", "#REDIRECT [[Entry 0009]]")
    wait(crawld, lambda: LEFT in read("Entry 0005")[1])
    mediawiki.edit("Other name", "#REDIRECT [[Entry 0004]]")
    wait(crawld, lambda: is_current(read("Entry 0004"), "Entry 0004"))
    assert is_current(read("Entry 0009"), "Entry 0009")


@pytest.mark.parametrize("kept", ["mark", "withhold"])
def test_a_redirect_out_of_the_part_says_where_it_leads(mirror, mediawiki, kept):
    start, read = mirror
    crawld = start({"wiki_prefixes": ["Entry 001"], "wiki_moved": "leave", "deleted_pages": kept})
    wait(crawld, lambda: is_current(read("Entry 0011"), "Entry 0011"))
    mediawiki.move("Entry 0011", "Outside")
    status = {"mark": 200, "withhold": 410}[kept]
    text = "the original redirects to"
    wait(crawld, lambda: text in read("Entry 0011")[1].replace("The", "the"))
    assert read("Entry 0011")[0] == status


def test_discussions_of_a_part_are_found_by_their_titles(mirror, mediawiki):
    start, read = mirror
    mediawiki.edit("Entry 0003", "in it [[Category:Some]]")
    for title in ("Entry 0003", "Entry 0004", "Entry 0005", "Entry 0011"):
        mediawiki.edit(f"Talk:{title}", f"words about {title}")
    mediawiki.run_jobs()
    crawld = start(
        {"wiki_titles": ["Entry 0004"]},
        {"wiki_categories": ["Some"], "wiki_talk": True},
        {"wiki_titles": ["Entry 0005"], "wiki_talk": True},
        {"wiki_prefixes": ["Entry 001"], "wiki_talk": True},
    )
    for title in ("Entry 0003", "Entry 0005", "Entry 0011"):
        wait(crawld, lambda t=title: is_current(read(f"Talk:{t}"), f"words about {t}"))
    mediawiki.edit("Talk:Entry 0012", "words about Entry 0012")
    wait(crawld, lambda: is_current(read("Talk:Entry 0012"), "words about Entry 0012"))
    # A page that enters a part brings its discussion along, and takes it out again.
    mediawiki.edit("Entry 0004", "in it [[Category:Some]]")
    mediawiki.run_jobs()
    wait(crawld, lambda: is_current(read("Talk:Entry 0004"), "words about Entry 0004"))
    mediawiki.edit("Entry 0003", "out of it")
    mediawiki.run_jobs()
    wait(crawld, lambda: LEFT in read("Talk:Entry 0003")[1])
    mediawiki.move("Entry 0012", "Entry 0012 new")
    mediawiki.move("Talk:Entry 0012", "Talk:Entry 0012 new")
    wait(crawld, lambda: is_current(read("Talk:Entry 0012 new"), "words about Entry 0012"))
    known = "SELECT 1 FROM page WHERE url = ? AND version_id IS NOT NULL"
    assert query_rows(crawld, known, mediawiki.url("Talk:Entry 0012 new")) == [(1,)]
