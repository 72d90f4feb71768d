import pytest

from crawld.sources.mediawiki_site import WikiFacts
from crawld.sources.mediawiki_title import Namespace, TitleRules
from crawld.store.changes import wiki

NOW = 1_780_000_000.0
FACTS = WikiFacts(
    "MediaWiki 1.43",
    "https://example.org",
    TitleRules(
        article_path="/wiki/$1",
        script="/w/index.php",
        namespaces={0: Namespace(0, ""), 6: Namespace(6, "File")},
        names={"file": 6, "image": 6},
    ),
)


@pytest.fixture
def on_wiki(mirror):
    """Return a mirror of a wiki with the pages `C++` and `File:A b.png`."""
    for path in ("C%2B%2B", "File:A_b.png"):
        mirror.page(f"https://example.org/wiki/{path}", "<p>text")
    wiki.record_detection(mirror.connection, 1, 1, NOW, "https://example.org/w/api.php")
    wiki.set_facts(mirror.connection, 1, FACTS.to_json(), NOW)
    return mirror


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("C++", "C%2B%2B"),
        ("c++", "C%2B%2B"),
        ("C%2b%2b", "C%2B%2B"),
        ("image:a b.png", "File:A_b.png"),
        ("_File:a__b.png_", "File:A_b.png"),
    ],
)
def test_other_spellings_of_a_title_lead_to_its_page(on_wiki, header_of, asked, path):
    target = f"/https/example.org/wiki/{asked.replace(' ', '%20')}"
    for prefix in ("", f"/@{NOW:.0f}"):
        reply = on_wiki.get(prefix + target)
        while header_of(reply, "location") != f"{prefix}/https/example.org/wiki/{path}":
            assert reply.status == 301  # its canonical address first
            reply = on_wiki.get(header_of(reply, "location"))
        assert on_wiki.get(header_of(reply, "location")).status == 200


@pytest.mark.parametrize("asked", ["C", "C%2B%2B_", "Nothing", "a%7Cb", "%FF"])
def test_titles_without_a_page_are_missing(on_wiki, header_of, asked):
    reply = on_wiki.get(f"/https/example.org/wiki/{asked}")
    if asked == "C%2B%2B_":
        assert header_of(reply, "location").endswith("C%2B%2B")
    else:
        assert reply.status == 404


def test_another_site_is_left_alone(mirror):
    mirror.page("https://example.org/wiki/C%2B%2B", "<p>text")
    assert mirror.get("/https/example.org/wiki/c++").status == 404
