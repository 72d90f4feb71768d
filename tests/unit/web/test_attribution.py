"""License and authors of a copy."""

from dataclasses import replace

import pytest

from crawld.sources.mediawiki_site import WikiFacts
from crawld.sources.mediawiki_title import TitleRules
from crawld.web.attribution import license_name, read_attribution


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://creativecommons.org/licenses/by-sa/4.0/", "CC BY-SA 4.0"),
        ("http://creativecommons.org/licenses/by-nc/2.5/deed.de", "CC BY-NC 2.5"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0"),
        ("https://www.gnu.org/copyleft/fdl.html", "GFDL"),
        ("https://foundation.example.org/terms", "Licence"),
    ],
)
def test_license_names(url, name):
    assert license_name(url) == name


def test_a_page_without_attribution():
    found = read_attribution("https://a.org/", "<p>copyright 2026", None)
    assert found == type(found)()


def test_a_relative_license_url_is_resolved():
    found = read_attribution("https://a.org/b", "<link rel='license' href=/l>", 5)
    assert (found.license, found.license_url, found.revision_id) == (
        "Licence",
        "https://a.org/l",
        5,
    )


RULES = TitleRules(
    article_path="/wiki/$1", script="/w/index.php", namespaces={}, names={}, main_page=None
)
WIKI = WikiFacts("MediaWiki 1.45", "https://a.org", RULES, "Our own license", "https://a.org/ours")
PARSOID = """<html prefix="mw: http://mediawiki.org/rdf/"
 about="https://a.org/wiki/Special:Redirect/revision/126"><head>
<meta property="mw:htmlVersion" content="2.8.0"/></head><body>text"""


def test_an_article_of_parsoid_names_revision_authors_and_the_license_of_its_wiki():
    found = read_attribution("https://a.org/wiki/B", PARSOID, None, lambda: WIKI)
    assert found.revision_id == 126
    assert found.history_url == "https://a.org/wiki/B?action=history"
    assert (found.license, found.license_url) == ("Our own license", "https://a.org/ours")


def test_the_license_of_the_page_precedes_that_of_its_wiki():
    asked = []
    page = "<link rel=license href='https://creativecommons.org/licenses/by/4.0/'>"
    found = read_attribution("https://a.org/wiki/B", page, None, lambda: asked.append(1))
    assert (found.license, asked) == ("CC BY 4.0", [])


def test_a_license_without_a_known_name_is_called_as_its_wiki_does():
    page = "<link rel=license href='/ours'>"
    found = read_attribution("https://a.org/wiki/B", page, None, lambda: WIKI)
    assert (found.license, found.license_url) == ("Our own license", "https://a.org/ours")


@pytest.mark.parametrize("told", ["wiki.example.org", "Example Wiki", ""])
def test_the_name_of_a_host_is_not_that_of_a_license(told):
    wiki = replace(WIKI, license=told, license_url="https://a.org/ours")
    page = "<link rel=license href='https://a.org/ours'>"
    assert read_attribution("https://a.org/wiki/B", page, None, lambda: wiki).license == "Licence"
