"""The Parsoid and mobile forms of a wiki page."""

from dataclasses import replace

import pytest

from crawld.sources.mediawiki_rest import mobile_url, parsoid_revision, parsoid_url, redirect_of
from crawld.sources.mediawiki_title import Namespace, TitleRules

SPACES = {0: "", 1: "Talk", 4: "Project", 6: "File", 8: "MediaWiki", 14: "Category"}
RULES = TitleRules(
    article_path="/wiki/$1",
    script="/w/index.php",
    namespaces={number: Namespace(number, name) for number, name in SPACES.items()},
    names={"special": -1, **{name.lower(): n for n, name in SPACES.items() if name}},
    main_page=None,
)
SITE = "https://wiki.test"
REST = f"{SITE}/w/rest.php/v1/page"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/wiki/Physics", "Physics"),
        ("/wiki/AC/DC", "AC%2FDC"),
        ("/wiki/C%2B%2B_(language)", "C%2B%2B_%28language%29"),
        ("/wiki/Talk:Caf%C3%A9", "Talk%3ACaf%C3%A9"),
        ("/wiki/100%25", "100%25"),
        ("/w/index.php?title=Physics", "Physics"),
    ],
)
def test_a_title_has_one_path_segment(path, name):
    assert parsoid_url(SITE + path, RULES) == f"{REST}/{name}/html"


@pytest.mark.parametrize(
    "path",
    [
        "/wiki/Category:Physics",
        "/wiki/File:A.png",
        "/wiki/MediaWiki:Common.css",
        "/wiki/Special:All",
    ],
)
def test_lists_images_and_messages_keep_the_skin(path):
    assert parsoid_url(SITE + path, RULES) is None


def test_other_urls_have_no_other_form():
    for url in (f"{SITE}/about.html", f"{SITE}/w/index.php?title=A&oldid=3"):
        assert parsoid_url(url, RULES) is None
        assert mobile_url(url, RULES) is None


def test_the_mobile_view_is_asked_by_a_parameter():
    assert mobile_url(f"{SITE}/wiki/A", RULES) == f"{SITE}/wiki/A?useformat=mobile"
    found = mobile_url(f"{SITE}/w/index.php?title=A", RULES)
    assert found == f"{SITE}/w/index.php?title=A&useformat=mobile"


OLD = b'<html><head><title>R</title></head><body><link rel="mw:PageProp/redirect" href="./AC/DC"/>'


@pytest.mark.parametrize(
    ("status", "location", "body", "target"),
    [
        (307, f"{REST}/AC%2FDC/html", b"", "/wiki/AC/DC"),
        (307, "/w/rest.php/v1/page/Caf%C3%A9/html?redirect=no", b"", "/wiki/Caf%C3%A9"),
        (301, "../Talk%3Aa/html", b"", "/wiki/Talk:A"),
        (302, "/login", b"", "/login"),
        (200, None, OLD, "/wiki/AC/DC"),
    ],
)
def test_a_redirect_leads_to_the_page_of_its_target(status, location, body, target):
    found = redirect_of(f"{SITE}/wiki/R", RULES, status, location, body)
    assert found == SITE + target


@pytest.mark.parametrize(
    ("status", "location", "body"),
    [
        (200, None, b"<p>mw:PageProp/redirect"),
        (200, None, b'<link rel="stylesheet" href="x"><p>"mw:PageProp/redirect"'),
        (200, "/elsewhere", b"<p>text"),
        (404, None, OLD),
        (307, None, b""),
        (307, "http://[", b""),
        (307, f"{REST}/%3Cbad%3E/html", b""),
        (200, None, b'<link rel="mw:PageProp/redirect">'),
        (200, None, b'<link rel="mw:PageProp/redirect" href="http://[">'),
    ],
)
def test_what_is_no_redirect(status, location, body):
    assert redirect_of(f"{SITE}/wiki/R", RULES, status, location, body) is None


def test_a_wiki_with_paths_too_long_for_a_url_has_no_redirects():
    path = f"/{'a' * 9_000}"
    rules = replace(RULES, article_path=f"{path}/$1")
    assert redirect_of(f"{SITE}/w/index.php?title=R", rules, 200, None, OLD) is None
    rules = replace(RULES, script=f"{path}/index.php")
    assert redirect_of(f"{SITE}/wiki/R", rules, 307, "../A/html", b"") is None


@pytest.mark.parametrize(
    ("body", "revision_id"),
    [
        (b'<html prefix="dc:" about="https://x.test/wiki/Special:Redirect/revision/126">', 126),
        (
            b'<html about="https://x.test/a/revision/7"><p about="/revision/8">',
            7,
        ),
        (b'<html about="/revision/0">', None),
        (b'<html about="/revision/">', None),
        (b'<html about="/revision/12x">', None),
        (b'<html about="/revision/' + b"9" * 19 + b'">', None),
        (b"<html><p>/revision/5", None),
        (b"", None),
    ],
)
def test_the_revision_stands_in_the_first_element(body, revision_id):
    assert parsoid_revision(body) == revision_id


def test_a_page_of_quotes_has_no_revision():
    assert parsoid_revision(b'about="' * 1_000_000) is None
