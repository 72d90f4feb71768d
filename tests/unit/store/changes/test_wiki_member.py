"""Which titles belong to a part of a wiki, why, and what became of listed ones."""

import pytest

from crawld.store.changes import wiki_event, wiki_listed, wiki_member
from crawld.store.changes.wiki_event import StoredEvent, WikiEvent
from crawld.store.changes.wiki_listed import ListedRow
from crawld.store.changes.wiki_member import MemberRow, Part
from crawld.store.frontier import frontier
from tests.unit.store.rows import NOW, found

PART = Part(1, 1)


@pytest.fixture(autouse=True)
def _wiki(connection):
    frontier.discover(connection, [found("a")])
    connection.execute("INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)")


def titles(connection):
    return sorted(wiki_member.list_titles(connection, PART))


def test_a_title_leaves_with_its_last_reason(connection):
    both = [("A", "category", "Category:X"), ("A", "category", "Category:Y")]
    wiki_member.put(connection, PART, both, NOW)
    wiki_member.put(connection, PART, both[:1], NOW + 50)
    assert wiki_member.reasons_of(connection, PART, "A")[0] == MemberRow(*both[0], NOW)
    wiki_member.remove(connection, PART, both[:1])
    assert titles(connection) == ["A"]
    assert wiki_member.delete_before(connection, PART, NOW + 1, ["prefix"]) == 0
    assert wiki_member.delete_before(connection, PART, NOW + 1, ["category"]) == 1
    assert titles(connection) == []


def test_a_list_does_not_end_what_was_named_after_it_began(connection):
    moved = ("New title", "category", "Category:X")
    # The wiki's log tells of the move 3 s later, in whole seconds.
    wiki_member.put(connection, PART, [moved], NOW, NOW + 3)
    assert wiki_member.reasons_of(connection, PART, "New title") == [MemberRow(*moved, NOW)]
    before = [
        wiki_member.list_by_reason(connection, PART, "category", before=NOW + s) for s in (2, 4)
    ]
    assert [len(each) for each in before] == [0, 1]
    wiki_member.put(connection, PART, [moved], NOW - 1)  # an older report
    assert wiki_member.delete_before(connection, PART, NOW + 2, ["category"]) == 0
    assert wiki_member.delete_before(connection, PART, NOW + 4, ["category"]) == 1


def test_titles_that_a_category_does_not_name(connection):
    wiki_member.put(connection, PART, [("A", "category", "Category:X")], NOW)
    wiki_member.put(connection, PART, [("B", "category", "Category:Y"), ("B", "prefix", "")], NOW)
    asked = ["A", "B", "C"]
    assert wiki_member.without_category(connection, PART, "Category:X", asked) == ["B", "C"]
    assert wiki_member.without_category(connection, Part(2, 1), "Category:X", asked) == asked


def test_a_redirect_gets_new_targets(connection):
    wiki_member.set_redirects(connection, PART, {"Old": ["Mid", "New"], "Other": ["New"]}, NOW)
    wiki_member.set_redirects(connection, PART, {"Old": ["New"], "Other": []}, NOW + 5)
    assert wiki_member.reasons_of(connection, PART, "New") == [
        MemberRow("New", "redirect", "Old", NOW)
    ]
    assert titles(connection) == ["New"]
    assert wiki_member.list_redirects(connection, PART) == ["Old"]
    assert wiki_member.remove_unfounded(connection, PART) == {"New"}  # "Old" is no member


def test_listed_titles_belong_to_the_part(connection):
    rows = [
        ListedRow(0, "a", "A", "unresolved", "", None),
        ListedRow(1, "A", "A", "duplicate", "a", None),
        ListedRow(2, "b|c", None, "invalid", "no", None),
        ListedRow(3, "D", "D", "missing", "", NOW),
        ListedRow(4, "E", "E", "redirect", "F", NOW - 100),
    ]
    wiki_listed.replace(connection, PART, rows)
    assert wiki_listed.list_titles(connection, PART) == rows
    wiki_member.sync_listed(connection, PART, NOW)
    assert titles(connection) == ["A", "D", "E"]
    waiting = wiki_listed.next_unresolved(connection, PART, NOW - 50, 10)
    assert [row.position for row in waiting] == [0, 4]
    done = waiting[0]._replace(outcome="page", resolved_at=NOW)
    wiki_listed.set_resolved(connection, PART, [done])
    assert wiki_listed.by_title(connection, PART, ["A", "X"]) == [done]
    problems = wiki_listed.list_problems(connection, PART, 10)
    assert [row.position for row in problems] == [0, 1, 2, 3, 4]
    assert wiki_listed.count_outcomes(connection, PART) == {
        **{"duplicate": 1, "invalid": 1, "missing": 1, "page": 1, "redirect": 1},
        "normalized": 1,
    }
    wiki_listed.resolve_again(connection, 1)
    again = wiki_listed.next_unresolved(connection, PART, NOW - 1e6, 10)
    assert [row.position for row in again] == [0, 3, 4]
    wiki_listed.replace(connection, PART, rows[3:4])
    assert wiki_member.sync_listed(connection, PART, NOW) == 2
    assert titles(connection) == ["D"]


def test_followed_categories_are_kept(connection):
    wiki_member.set_categories(connection, PART, ["Category:A", "Category:B"])
    wiki_member.set_categories(connection, PART, ["Category:B"])
    assert wiki_member.list_categories(connection, PART) == ["Category:B"]


def test_events_wait_in_their_order(connection):
    events = [
        WikiEvent("move", "A", NOW, "B", leaves_redirect=True),
        WikiEvent("category", "Category:X", NOW, page_number=7),
        WikiEvent("page", "C", NOW),
    ]
    wiki_event.add(connection, 1, events)
    assert wiki_event.list_events(connection, 1, 2) == [
        StoredEvent(1, events[0]),
        StoredEvent(2, events[1]),
    ]
    wiki_event.remove(connection, [1, 2])
    assert wiki_event.count(connection, 1) == 1


def test_titles_are_counted_for_the_sites_of_a_wiki_only(connection):
    rows = [ListedRow(n, title, title, "unresolved", "", None) for n, title in enumerate("ABC")]
    wiki_listed.replace(connection, PART, [*rows[:2], rows[2]._replace(outcome="page")])
    wiki_member.sync_listed(connection, PART, NOW)
    wiki_member.put(connection, PART, [("A", "prefix", "A")], NOW)

    def counts():
        return wiki_member.count_titles(connection), wiki_listed.count_unresolved(connection)

    assert counts() == (0, 0)
    connection.execute("INSERT INTO wiki_site (wiki_id, site_id) VALUES (1, 1)")
    assert counts() == (3, 2)
