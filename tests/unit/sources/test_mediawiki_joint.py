"""Two queries in one request, and their responses apart."""

import pytest

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_changes import ChangesCursor, changes_query, oldest_query
from crawld.sources.mediawiki_history import history_query, titles_query
from crawld.sources.mediawiki_joint import is_whole, join_queries, part_of
from crawld.sources.mediawiki_members import count_query, pages_query

CHANGES = changes_query(ChangesCursor(at=1_780_000_000.0), 1_780_000_000.0)
PAGES = pages_query(["Category:A", "Category:B"], titles=["X", "Y"])
WALK = {"generator": "categorymembers", "gcmtitle": "Category:A", "prop": "info"}


def test_a_joined_query_has_the_parameters_of_both():
    joined = join_queries(CHANGES, PAGES)
    assert joined == {**CHANGES, **PAGES}
    assert joined["list"] == "recentchanges|logevents"
    assert joined["prop"] == "info|categories"


def test_modules_of_the_same_kind_are_joined():
    users = {"list": "embeddedin", "eititle": "Template:T", "eilimit": "max"}
    assert join_queries(CHANGES, users)["list"] == "recentchanges|logevents|embeddedin"


def test_a_category_is_listed_beside_changes_and_continues_alone():
    assert join_queries(CHANGES, WALK) == {**CHANGES, **WALK}
    cursor = {"rccontinue": "1|2", "gcmcontinue": "page|3", "continue": "gcmcontinue||"}
    response = ApiResponse({"pages": []}, cursor)
    assert is_whole(response, CHANGES, WALK)
    assert part_of(response, WALK).cursor == {"gcmcontinue": "page|3", "continue": "gcmcontinue||"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PAGES, titles_query(["Z"])),
        (PAGES, titles_query(["X", "Y"])),
        (PAGES, pages_query(["Category:A"], titles=["Z"])),
        (
            pages_query([], titles=map(str, range(30))),
            pages_query([], titles=map(str, range(30, 60))),
        ),
        (pages_query([], titles=["X"]), pages_query([], numbers=[7])),
        (history_query(7, None), history_query(8, None)),
        (history_query(7, None), pages_query([], numbers=[7, 8])),
        (PAGES, history_query(7, None)),
        ({**CHANGES, "rccontinue": "1|2", "continue": "-||"}, PAGES),
        (CHANGES, {**PAGES, "clcontinue": "3", "continue": "||info"}),
        (PAGES, WALK),
        (WALK, {**WALK, "gcmtitle": "Category:B"}),
        (CHANGES, {**WALK, "gcmcontinue": "3", "continue": "gcmcontinue||"}),
        (CHANGES, oldest_query()),
    ],
)
def test_queries_that_contradict_each_other_or_continue_stay_apart(first, second):
    assert join_queries(first, second) is None


def test_queries_about_pages_name_all_of_them_once():
    sizes = count_query(["Category:A", "X"])
    assert join_queries(PAGES, sizes) == {
        **PAGES,
        "prop": "info|categories|categoryinfo",
        "titles": "X|Y|Category:A",
    }
    assert join_queries(titles_query(["X"]), titles_query(["Y"])) == titles_query(["X", "Y"])
    joined = join_queries(pages_query([], numbers=[7]), pages_query([], numbers=[8]))
    assert joined == pages_query([], numbers=[7, 8])
    joined = join_queries(history_query(7, None), pages_query([], numbers=[7]))
    assert joined == {
        **history_query(7, None),
        "inprop": "talkid",
        "pageids": "7",
        "prop": joined["prop"],
    }
    assert set(joined["prop"].split("|")) == {"info", "revisions"}


def titles_of(query, rows):
    """Return the titles that a query gets of the rows of a joint response."""
    return [row["title"] for row in part_of(ApiResponse(rows, None), query).query["pages"]]


def test_each_query_gets_the_rows_of_the_pages_that_it_names():
    rows = {"pages": [{"title": title, "pageid": i} for i, title in enumerate("XYZ", 1)]}
    assert titles_of(PAGES, rows) == ["X", "Y"]
    assert titles_of(pages_query([], numbers=[3, 1]), rows) == ["X", "Z"]
    assert titles_of(WALK, rows) == ["X", "Y", "Z"]


def test_each_query_gets_the_pages_that_its_titles_stand_for():
    rows = {
        "normalized": [{"from": "x", "to": "X"}, {"from": "z", "to": "Z"}],
        "redirects": [{"from": "X", "to": "Two"}, {"from": "Two", "to": "End"}],
        "pages": [{"title": "End"}, {"title": "Z"}, {"title": "Á"}],
    }
    assert titles_of(titles_query(["x"]), rows) == ["End"]
    rows["redirects"].append({"from": "End", "to": "X"})
    assert titles_of(titles_query(["x"]), rows) == ["End"]
    encoded = {"fromencoded": True, "from": "A%CC%81", "to": "Á"}
    assert titles_of(titles_query(["A\N{COMBINING ACUTE ACCENT}"]), rows) == []
    rows["normalized"].append(encoded)
    assert titles_of(titles_query(["A\N{COMBINING ACUTE ACCENT}"]), rows) == ["Á"]


RC = {"rccontinue": "1|2", "continue": "-||info"}
CL = {"clcontinue": "3", "continue": "||info"}


@pytest.mark.parametrize(
    ("cursor", "of_first", "of_second", "whole"),
    [
        (None, None, None, True),
        (RC, RC, None, True),
        (CL, None, CL, True),
        ({"lecontinue": "4", **CL}, {"lecontinue": "4", "continue": "||info"}, CL, True),
        ({"zzcontinue": "5", "continue": "||"}, None, None, False),
    ],
)
def test_each_query_gets_what_continues_it(cursor, of_first, of_second, whole):
    response = ApiResponse({"pages": []}, cursor)
    first, second = part_of(response, CHANGES), part_of(response, PAGES)
    assert (first.cursor, second.cursor) == (of_first, of_second)
    assert first.query == second.query == {"pages": []}
    assert is_whole(response, CHANGES, PAGES) == whole
