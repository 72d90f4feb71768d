"""Why a host rests as a replica, in sentences."""

import pytest

from crawld.core.display import time_text
from crawld.core.why.facts import ComparisonFacts, ReplicaFacts, ReplicaPages
from crawld.core.why.replica_words import page_words, replica_words
from crawld.core.why.words import moment

NOW = 1_800_000_000.0
PAGES = ReplicaPages(resting=40, deferred=12, differing=4, repeated=3, only_here=2, undecided=1)


def facts(status="pruned", **more):
    fields = {"reason": "the shorter name", "pages": PAGES, "look_at": NOW + 7_200.0, **more}
    return ReplicaFacts("a.com", status, NOW - 60.0, **fields)


def test_a_replica_says_how_many_pages_rest_which_do_not_and_when_it_is_looked_at():
    assert replica_words("www.a.com", facts(), NOW) == (
        "www.a.com is a replica of a.com, which is kept (the shorter name), since "
        f"{time_text(NOW - 60.0)}. 40 of its 50 pages rest, since their text is that of a.com; 12 "
        "of these were never visited, and are once. Visited as before: 4 with another text, 3 with "
        "one text on many paths, which proves nothing, 2 of which a.com has no copy, 1 not "
        "decided yet. Some of the pages that rest are compared again "
        f"{moment(NOW + 7_200.0, NOW)}."
    )
    alone = facts(pages=ReplicaPages(resting=5), look_at=NOW)
    assert replica_words("www.a.com", alone, NOW).endswith(
        "5 of its 5 pages rest, since their text is that of a.com. Some of the pages that rest "
        "are compared again with the next search."
    )


def test_a_replica_of_which_no_page_rests_says_so():
    none = facts(pages=ReplicaPages(only_here=5))
    text = replica_words("www.a.com", none, NOW)
    assert text.endswith(
        "None of its 5 pages rests. Visited as before: 5 of which a.com has no copy."
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (facts("partly"), "has pages of a.com, but is no replica of it. 40 of its 50 pages rest"),
        (facts("held", waits_for="operator"), "may be a replica of a.com; you are asked"),
        (facts("held", waits_for="turn"), "waits for its turn"),
        (facts("held", waits_for="config"), "but nothing is done"),
        (facts("withdrawn"), "counted as a replica of a.com until"),
    ],
)
def test_every_status_has_its_words(given, told):
    text = replica_words("www.a.com", given, NOW)
    assert told in text
    rests = given.status == "partly"
    assert ("pages rest" in text) == rests
    assert "is visited." in text or rests


def test_a_page_says_how_it_compares_with_its_twin():
    assert page_words(facts(), NOW) == ""

    def told(verdict, **more):
        twin = ComparisonFacts(verdict, NOW - 60.0, **more)
        return page_words(facts(canonical_url="http://a.com/x", page=twin), NOW)

    assert "was that of http://a.com/x" in told("agrees")
    assert told("agrees").endswith("it may be drawn to be compared again.")
    assert "another than that of http://a.com/x" in told("differs")
    assert "on many paths" in told("repeated")
    assert "A later visit of http://a.com/x decides" in told("unknown")
    assert moment(NOW + 7_200.0, NOW) in told("deferred", visit_at=NOW + 7_200.0)
    assert told("deferred").endswith("It is visited once.")
