"""Pages of a real MediaWiki in the form of its REST interface, read through the mirror."""

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.e2e.daemon_config import query_rows, start_daemon, wiki_site
from tests.peer.crawld_process import with_serve

NOT_CONTENT = ("regex:/wiki/(Special|Template|Entries|User|Help)(_talk)?:", "regex:[?]")


@pytest.fixture
def mirrored(crawld, mediawiki, cleanup):
    """Mirror the wiki in Parsoid's form; return a function that reads a page as readers do."""
    start_daemon(
        crawld,
        wiki_site(mediawiki.url(), exclude=NOT_CONTENT, page_source="parsoid", api=True),
        politeness={"host_delay_s": 0.02},
        schedule={"min_revisit_s": 0.5},
        jobs={"backfill_every_s": 0.2},
        content={"confirm_pages": 0},
    )
    crawld.wait_until(lambda _: query_rows(crawld, "SELECT 1 FROM wiki WHERE facts IS NOT NULL"))
    base = cleanup.enter_context(with_serve(crawld)).rstrip("/")

    def read(title):
        path = mediawiki.url(title).replace("://", "/", 1)
        try:
            with urlopen(f"{base}/{path}", timeout=120) as response:
                return response.read().decode()
        except HTTPError as error:
            error.read()
            return ""

    return read


def test_articles_come_from_parsoid_and_lists_keep_the_skin(crawld, mediawiki, mirrored):
    article, other = (page.title for page in mediawiki.pages[:2])
    mediawiki.edit("Elsewhere", f"#REDIRECT [[{other}]]")
    mediawiki.edit("Category:Things", f"A list of things, beside [[{article}]].")
    mediawiki.edit(article, f"About [[{other}]], see [[Elsewhere]]. [[Category:Things]]")
    mediawiki.edit(mediawiki.pages[2].title, "See [[:Category:Things]].")

    def shows(title, *words):
        text = mirrored(title)
        return all(word in text for word in words)

    crawld.wait_until(lambda _: shows(article, "mw:htmlVersion", "About", "action=history"))
    text = mirrored(article)
    assert "<script" not in text.partition("</head>")[2]
    assert f"/{mediawiki.url(other).replace('://', '/', 1)}" in text
    crawld.wait_until(
        lambda _: query_rows(
            crawld,
            "SELECT 1 FROM page WHERE url = ? AND redirect_url = ?",
            mediawiki.url("Elsewhere"),
            mediawiki.url(other),
        )
    )
    # A category's list of members is not in its text.
    crawld.wait_until(lambda _: shows("Category:Things", "Pages in category", article))
    assert "mw:htmlVersion" not in mirrored("Category:Things")
    mediawiki.edit(article, "A new text with enough words to be a change of the article.")
    crawld.wait_until(lambda _: shows(article, "A new text with enough words", "mw:htmlVersion"))
    asked = [row.target for row in mediawiki.ledger().rows() if "/rest.php/" in row.target]
    assert asked
    assert not [target for target in asked if "Category" in target]
