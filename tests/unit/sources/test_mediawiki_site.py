import json

import pytest

from crawld.core.content import html
from crawld.sources.mediawiki_site import WikiFacts, find_api, moved_api_url, read_siteinfo

URL = "https://wiki.test/wiki/A"
MEDIAWIKI = '<meta name="generator" content="MediaWiki 1.39.17"/>'


def siteinfo(**general):
    """Return a response of MediaWiki 1.39, shortened."""
    return {
        "general": {
            "generator": "MediaWiki 1.39.17",
            "case": "first-letter",
            "articlepath": "/wiki/$1",
            "scriptpath": "/w",
            "script": "/w/index.php",
            "server": "https://wiki.test",
            "mainpage": "Main Page",
            "mainpageisdomainroot": False,
            **general,
        },
        "namespaces": {
            "-1": {"id": -1, "case": "first-letter", "name": "Spezial", "canonical": "Special"},
            "0": {"id": 0, "case": "first-letter", "name": "", "content": True},
            "1": {"id": 1, "case": "case-sensitive", "name": "Diskussion", "canonical": "Talk"},
        },
        "namespacealiases": [{"id": 1, "alias": "D"}],
        "interwikimap": [{"prefix": "wikt", "url": "https://en.wiktionary.test/$1"}],
    }


def edit_uri(address):
    return f'<link rel="EditURI" href="{address}">'


@pytest.mark.parametrize(
    ("head", "api_url"),
    [
        (edit_uri("//wiki.test/w/api.php?action=rsd"), "https://wiki.test/w/api.php"),
        (edit_uri("https://other.test/api.php?action=rsd"), "https://other.test/api.php"),
        (MEDIAWIKI + '<script src="/x/load.php?a=b"></script>', "https://wiki.test/x/api.php"),
        (MEDIAWIKI + '<a href="/x/index.php?title=A&action=edit">', "https://wiki.test/x/api.php"),
        (MEDIAWIKI + '<script src="/load.php5?a=b"></script>', "https://wiki.test/api.php5"),
        (MEDIAWIKI + '<script src="https://cdn.test/w/load.php?a"></script>', None),
        (MEDIAWIKI, None),
        (
            '<link rel="stylesheet" href="/x/load.php?modules=mediawiki.skinning.content.parsoid">',
            "https://wiki.test/x/api.php",
        ),
        (
            '<meta name="generator" content="WordPress 6.4">'
            + edit_uri("https://wiki.test/xmlrpc.php?rsd"),
            None,
        ),
        ('<a href="/w/index.php?title=A">no wiki says so</a>', None),
        ("", None),
        (edit_uri("http://[bad/api.php?action=rsd"), None),
        (edit_uri("ftp://wiki.test/api.php?action=rsd"), None),
    ],
)
def test_the_api_is_found_from_a_page(head, api_url):
    page = html.parse(f"<html><head>{head}</head><body>text</body></html>")
    assert find_api(page, URL) == api_url


def test_siteinfo_has_the_title_rules():
    facts = read_siteinfo(siteinfo())
    assert facts.generator == "MediaWiki 1.39.17"
    assert facts.titles.title_of("https://wiki.test/wiki/d:x") == "Diskussion:x"
    assert facts.titles.title_of("https://wiki.test/wiki/talk:x") == "Diskussion:x"
    assert facts.titles.title_of("https://wiki.test/wiki/special:X") is None
    assert facts.titles.title_of("https://wiki.test/wiki/wikt:x") is None
    assert facts.titles.title_of("https://wiki.test/") is None


def test_paths_with_a_server_or_non_ascii_letters():
    facts = read_siteinfo(siteinfo(articlepath="//wiki.test/вики/$1", mainpageisdomainroot=True))
    url = facts.titles.url_of("A b", "https://wiki.test")
    assert url == "https://wiki.test/%D0%B2%D0%B8%D0%BA%D0%B8/A_b"
    assert facts.titles.title_of(url) == "A b"
    assert facts.titles.title_of("https://wiki.test/") == "Main Page"


def test_format_version_1_is_read_too():
    query = siteinfo(mainpageisdomainroot="")
    query["namespaces"] = {
        "0": {"id": 0, "case": "first-letter", "*": ""},
        "2": {"id": 2, "case": "first-letter", "*": "Benutzer", "canonical": "User"},
    }
    query["namespacealiases"] = [{"id": 2, "*": "B"}]
    titles = read_siteinfo(query).titles
    assert titles.title_of("https://wiki.test/wiki/b:x") == "Benutzer:X"
    assert titles.main_page == "Main Page"


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"general": []},
        {"general": {"generator": "DokuWiki"}},
        siteinfo(articlepath=None),
        siteinfo(articlepath="/wiki/"),
        siteinfo(script=7),
        siteinfo() | {"namespaces": {}},
        siteinfo() | {"namespaces": "none"},
        siteinfo() | {"namespaces": {"0": {"id": "0"}}},
    ],
)
def test_other_responses_are_refused(query):
    with pytest.raises(ValueError, match=r"."):
        read_siteinfo(query)


@pytest.mark.parametrize("number", ["1", [], {"a": 1}, None])
def test_namespaces_without_a_number_are_left_out(number):
    query = siteinfo()
    query["namespaces"]["1"] = {"id": number, "name": "Talk", "canonical": "Talk"}
    query["namespacealiases"] = [{"id": number, "alias": "T"}, {"id": 0, "alias": ["x"]}]
    titles = read_siteinfo(query).titles
    assert titles.title_of("https://wiki.test/wiki/Talk:x") == "Talk:x"
    assert titles.title_of("https://wiki.test/wiki/T:x") == "T:x"


def test_facts_survive_storage():
    facts = read_siteinfo(siteinfo(mainpageisdomainroot=True))
    assert WikiFacts.from_json(facts.to_json()) == facts
    assert json.loads(facts.to_json())["article_path"] == "/wiki/$1"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://wiki.test/w/api.php?action=query", "https://wiki.test/w/api.php"),
        ("/other/api.php", "http://wiki.test/other/api.php"),
        ("/w/api.php?again", None),
        ("https://wiki.test/login", None),
        ("http://[", None),
    ],
)
def test_moved_api_urls(location, target):
    assert moved_api_url("http://wiki.test/w/api.php", location) == target


@pytest.mark.parametrize(
    ("rights", "known"),
    [
        (
            {"url": "https://creativecommons.org/licenses/by-sa/4.0/deed.de", "text": "CC BY-SA"},
            ("CC BY-SA", "https://creativecommons.org/licenses/by-sa/4.0/deed.de"),
        ),
        ({"url": "/wiki/Rights", "text": ""}, ("", "https://wiki.test/wiki/Rights")),
        ({"url": "", "text": "x" * 1_000}, ("x" * 100, "")),
        ({"url": "javascript:alert(1)", "text": "evil"}, ("evil", "")),
        ({"url": 5, "text": None}, ("", "")),
        ([], ("", "")),
        (None, ("", "")),
    ],
)
def test_the_license_of_the_wiki(rights, known):
    facts = read_siteinfo({**siteinfo(), "rightsinfo": rights})
    assert (facts.license, facts.license_url) == known
    assert WikiFacts.from_json(facts.to_json()) == facts


@pytest.mark.parametrize(
    ("statistics", "articles"),
    [
        ({"pages": 140, "articles": 109}, 109),
        ({"articles": -3}, 0),
        ({"articles": "x"}, 0),
        ([], 0),
    ],
)
def test_the_number_of_articles_is_kept(statistics, articles):
    facts = read_siteinfo({**siteinfo(), "statistics": statistics})
    assert facts.articles == WikiFacts.from_json(facts.to_json()).articles == articles
