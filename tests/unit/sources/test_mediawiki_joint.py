"""Two queries in one request, and their responses apart."""

import pytest

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_changes import ChangesCursor, changes_query, oldest_query
from crawld.sources.mediawiki_history import history_query, titles_query
from crawld.sources.mediawiki_joint import is_whole, join_queries, part_of
from crawld.sources.mediawiki_members import pages_query

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
