"""What becomes of the titles that an operator lists."""

from dataclasses import replace

import pytest

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_listed import (
    ListedTitle,
    TitleAnswer,
    TitleOutcome,
    read_resolved,
    resolve_query,
    sort_titles,
)
from tests.unit.sources.test_mediawiki_scope import RULES

WIKI = replace(RULES, interwiki=frozenset({"fr"}))


@pytest.mark.parametrize(
    ("written", "outcome", "detail"),
    [
        ("Bad|title", "invalid", "a title cannot contain '|'"),
        ("a[b", "invalid", "a title cannot contain '['"),
        ("", "invalid", "it is empty"),
        ("Help:", "invalid", "it has a namespace and no name"),
        ("Special:Random", "invalid", "a special page has no history and is not mirrored"),
        ("x" * 256, "invalid", "it is longer than 255 bytes"),
        ("fr:Paris", "interwiki", "fr: names another wiki"),
        (" :FR: Paris", "interwiki", "fr: names another wiki"),
    ],
)
def test_titles_that_no_page_can_have(written, outcome, detail):
    [found] = sort_titles([written], WIKI)
    assert found == ListedTitle(written, None, outcome, detail)
    assert repr(written) in found.problem


def test_duplicates_are_found_after_normalisation():
    found = list(sort_titles(["help:a", "Help:A", "H: a_", "B", "B"], WIKI))
    assert [each.outcome for each in found] == [
        *("unresolved", "duplicate", "duplicate", "unresolved", "duplicate")
    ]
    assert found[2].problem == "'H: a_' is listed already, as 'help:a'"


def test_the_answer_about_titles():
    titles = ["a", "Old", "Double", "Gone", "Odd", "Away", "Far", "Left out"]
    response = ApiResponse(
        {
            "normalized": [{"from": "a", "to": "A"}],
            "redirects": [
                {"from": "Old", "to": "New"},
                {"from": "Double", "to": "Old"},
                {"from": "Away", "to": "fr:X"},
            ],
            "interwiki": [{"title": "fr:X"}, {"title": "Far"}],
            "pages": [
                {"title": "A", "pageid": 1},
                {"title": "New", "pageid": 2},
                {"title": "Gone", "missing": True},
                {"title": "Odd", "invalid": True, "invalidreason": "because"},
            ],
        }
    )
    assert resolve_query(titles[:2])["titles"] == "a|Old"
    found = read_resolved(response, titles)
    assert found == {
        "a": TitleAnswer("A", TitleOutcome.PAGE),
        "Old": TitleAnswer("Old", TitleOutcome.REDIRECT, "New", ("New",)),
        "Double": TitleAnswer("Double", TitleOutcome.REDIRECT, "New", ("Old", "New")),
        "Gone": TitleAnswer("Gone", TitleOutcome.MISSING),
        "Odd": TitleAnswer("Odd", TitleOutcome.INVALID, "because"),
        "Away": TitleAnswer("Away", TitleOutcome.REDIRECT, "fr:X"),
        "Far": TitleAnswer("Far", TitleOutcome.INTERWIKI, "the wiki says so"),
    }


def test_redirects_in_a_circle_end():
    rows = [{"from": "A", "to": "B"}, {"from": "B", "to": "A"}]
    found = read_resolved(ApiResponse({"redirects": rows}), ["A"])
    assert found["A"].outcome is TitleOutcome.REDIRECT


def test_problems_are_told_by_name():
    page = ListedTitle("zürich", "Zürich", TitleOutcome.PAGE)
    assert page.problem == "'zürich' is spelt 'Zürich' by the wiki"
    assert page._replace(written="Zürich").problem is None
    missing = ListedTitle("a", "A", TitleOutcome.MISSING)
    assert missing.problem == ("'a' (the wiki spells it 'A') is missing: the wiki has no such page")
    redirect = ListedTitle("Old", "Old", TitleOutcome.REDIRECT, "New")
    assert redirect.problem == "'Old' redirects to 'New'"
