"""Two queries in one request, and their responses apart."""

import pytest

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_changes import ChangesCursor, changes_query, oldest_query
from crawld.sources.mediawiki_history import titles_query
from crawld.sources.mediawiki_joint import join_queries, split_response
from crawld.sources.mediawiki_members import pages_query

CHANGES = changes_query(ChangesCursor(at=1_780_000_000.0), 1_780_000_000.0)
PAGES = pages_query(["Category:A", "Category:B"], titles=["X", "Y"])


def test_a_joined_query_has_the_parameters_of_both():
    joined = join_queries(CHANGES, PAGES)
    assert joined == {**CHANGES, **PAGES}
    assert joined["list"] == "recentchanges|logevents"
    assert joined["prop"] == "info|categories"


def test_modules_of_the_same_kind_are_joined():
    users = {"list": "embeddedin", "eititle": "Template:T", "eilimit": "max"}
    assert join_queries(CHANGES, users)["list"] == "recentchanges|logevents|embeddedin"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PAGES, titles_query(["Z"])),
        ({**CHANGES, "rccontinue": "1|2", "continue": "-||"}, PAGES),
        (CHANGES, {**PAGES, "clcontinue": "3", "continue": "||info"}),
        (CHANGES, {"generator": "categorymembers", "gcmtitle": "Category:A"}),
        (CHANGES, oldest_query()),
    ],
)
def test_queries_that_contradict_each_other_or_continue_stay_apart(first, second):
    assert join_queries(first, second) is None


@pytest.mark.parametrize(
    ("cursor", "of_first", "complete"),
    [
        (None, None, True),
        ({"rccontinue": "1|2", "continue": "-||"}, {"rccontinue": "1|2", "continue": "-||"}, True),
        ({"clcontinue": "3", "continue": "||info"}, None, False),
        (
            {"lecontinue": "1|2", "clcontinue": "3", "continue": "||info"},
            {"lecontinue": "1|2", "continue": "||info"},
            False,
        ),
    ],
)
def test_each_query_gets_what_continues_it(cursor, of_first, complete):
    first, is_complete = split_response(ApiResponse({"pages": []}, cursor), CHANGES)
    assert (first.cursor, is_complete) == (of_first, complete)
    assert first.query == {"pages": []}
