"""Which URLs of a wiki belong to a site."""

from dataclasses import replace

import pytest

from crawld.sources.mediawiki_scope import TitleScope, normalize_prefixes
from crawld.sources.mediawiki_title import Namespace, TitleRules

NAMES = {0: "", 1: "Talk", 4: "Wiki", 10: "Template", 12: "Help", 13: "Help talk", 14: "Category"}
RULES = TitleRules(
    article_path="/wiki/$1",
    script="/w/index.php",
    namespaces={number: Namespace(number, name) for number, name in NAMES.items()},
    names={name.lower(): number for number, name in NAMES.items() if name}
    | {"special": -1, "h": 12},
    main_page=None,
)
WHOLE = TitleScope(RULES)
SCOPED = TitleScope(
    RULES, scoped=True, prefixes=("Help:Inst", "List of "), members=frozenset({"Zürich", "Help:A"})
)


def url(target):
    return f"http://w.test{target}"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/wiki/Zürich".replace("ü", "%C3%BC"), None),
        ("/wiki/Help:A", None),
        ("/w/index.php?title=Help:A", None),
        ("/logo.png", None),
        ("/wiki/Special:Random", "wiki_view"),
        ("/wiki/Help:A?action=history", "wiki_view"),
        ("/w/index.php?title=Help:A&action=edit", "wiki_view"),
        ("/w/index.php?title=Help:A&oldid=7", "wiki_view"),
        ("/w/index.php?curid=7", "wiki_view"),
        ("/w/index.php", "wiki_view"),
        ("/w/api.php?action=query", "wiki_view"),
        ("/w/load.php?modules=site", "wiki_view"),
        ("/wiki/A%5Bb", "wiki_view"),
        ("/wiki/Talk:A", "wiki_talk"),
        ("/wiki/Help_talk:A", "wiki_talk"),
    ],
)
def test_scope_of_a_whole_wiki(target, reason):
    assert WHOLE.refusal(url(target)) == reason


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("Talk:Named", None),
        ("Talk:Categorised", "wiki_talk"),
        ("Help_talk:Install", None),
        ("Help_talk:Other", "wiki_talk"),
        ("Talk:Help", "wiki_talk"),
    ],
)
def test_discussions_that_are_named_belong(title, reason):
    members = frozenset({"Talk:Named", "Talk:Categorised"})
    scope = replace(
        SCOPED,
        members=members,
        named_talk=frozenset({"Talk:Named"}),
        prefixes=("Help talk:Inst", "Talk"),
    )
    assert scope.refusal(url(f"/wiki/{title}")) == reason


def test_discussions_belong_if_wanted():
    assert replace(WHOLE, talk=True).refusal(url("/wiki/Talk:A")) is None


@pytest.mark.parametrize(
    ("title", "is_in"),
    [
        ("Talk:Zürich", True),
        ("Talk:List of lists", True),
        ("Help talk:A", True),
        ("Help talk:Inst", True),
        ("Talk:Zurich", False),
        ("Help talk:B", False),
        ("Wiki talk:Zürich", False),
    ],
)
def test_discussions_belong_to_a_part_with_their_pages(title, is_in):
    assert replace(SCOPED, talk=True).has(title) == is_in
    assert not SCOPED.has(title)


def test_titles_have_their_discussions():
    titles = ["Zürich", "Help:A", "Talk:B", "Template:C", "Category:D"]
    assert SCOPED.with_talk(titles) == titles
    # Two of the namespaces have no discussions here.
    wanted = [*titles, "Talk:Zürich", "Help talk:A"]
    assert replace(SCOPED, talk=True).with_talk(titles) == wanted
    assert RULES.subject_of("Talk:Zürich") == "Zürich"
    assert RULES.subject_of("Help talk:A") == "Help:A"
    assert RULES.subject_of("Help:A") is RULES.subject_of("Special:Talk") is None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/wiki/Z%C3%BCrich", None),
        ("/wiki/z%C3%BCrich", None),  # the first letter becomes upper case
        ("/w/index.php?title=z%C3%BCrich", None),
        ("/wiki/Help:A", None),
        ("/wiki/H:a", None),
        ("/wiki/Help:Install_it", None),
        ("/wiki/List_of_lists", None),
        ("/wiki/Listing", "wiki_part"),
        ("/wiki/Help:B", "wiki_part"),
        ("/logo.png", "wiki_part"),
        ("/wiki/Help_talk:A", "wiki_talk"),
        ("/wiki/Z%C3%BCrich?action=raw", "wiki_view"),
    ],
)
def test_scope_of_a_part(target, reason):
    assert SCOPED.refusal(url(target)) == reason


def test_prefixes_as_the_wiki_spells_them():
    written = ["help:inst", "list_of_", "List of ", "help:", "Category:", "[[", "ab"]
    spelt = ("Help:Inst", "List of ", "List of ", "Help:", "Category:", "Ab")
    assert normalize_prefixes(written, RULES) == spelt
