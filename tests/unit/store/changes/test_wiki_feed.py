"""Histories that polls of the recent changes continue."""

import pytest

from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.changes import change, wiki_feed, wiki_page
from crawld.store.changes.change import Change
from crawld.store.changes.wiki_feed import Fed, NewRevision
from crawld.store.changes.wiki_page import VisitedPage
from crawld.store.frontier import frontier
from tests.unit.store.rows import NOW, changed, found

URL = "https://example.org/a"


@pytest.fixture
def page(connection):
    """Return a page whose history is complete until NOW, with revision 5 of the wiki's page 7."""
    [new] = frontier.discover(connection, [found("a")])
    visit.record(connection, changed(new.page_id, b"one", NOW - 60))
    connection.execute("INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)")
    connection.execute("INSERT INTO wiki_site (wiki_id, site_id) VALUES (1, 1)")
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number,"
        " latest_revision_id, complete_until) VALUES (?, 1, 'A', 'complete', 7, 5, ?)",
        (new.page_id, NOW),
    )
    change.insert(connection, new.page_id, [Change(NOW - 90, 5)])
    return new.page_id


def revision(number, before, at):
    return NewRevision(7, before, Change(at, number, digest=number))


def feed(connection, *revisions, urls=(), until=None, since=None):
    fed = Fed(revisions, {url_hash(url) for url in urls}, until, since)
    wiki_feed.store(connection, 1, 1, fed)


def state(connection, page):
    row = wiki_page.get(connection, page)
    return row.state, row.latest_revision_id


def register(connection, page, changed_at, until):
    """Register a visit that found a change; return how many histories must be asked for."""
    visited = VisitedPage(page, URL, changed_at, changed_at)
    return wiki_page.register(connection, 1, 1, [(visited, "A")], until)


def test_revisions_that_follow_each_other_complete_a_history_without_a_request(connection, page):
    feed(connection, since=NOW - 10, until=NOW - 2)
    feed(connection, revision(6, 5, NOW + 3), revision(8, 6, NOW + 4), until=NOW + 8)
    assert state(connection, page) == ("read", 8)
    assert [each.revision_id for each in change.list_changes(connection, page)] == [8, 6, 5]
    connection.execute("UPDATE wiki_page SET state = 'complete'")
    assert register(connection, page, NOW + 7, NOW + 8) == 0
    assert state(connection, page) == ("complete", 8)


def test_a_page_without_a_new_revision_is_known_until_the_last_poll(connection, page):
    feed(connection, since=NOW - 10, until=NOW + 8)
    assert register(connection, page, NOW + 7, NOW + 8) == 0
    assert register(connection, page, NOW + 9, NOW + 9) == 1


def test_a_history_that_was_complete_before_a_gap_is_read_again(connection, page):
    feed(connection, since=NOW + 1, until=NOW + 8)
    assert register(connection, page, NOW + 7, NOW + 8) == 1


def test_a_revision_with_another_one_before_it_lets_the_history_be_read_again(connection, page):
    feed(connection, revision(9, 7, NOW + 3))
    assert state(connection, page) == ("unresolved", 5)


def test_a_row_that_is_repeated_changes_nothing(connection, page):
    feed(connection, revision(6, 5, NOW + 3))
    connection.execute("UPDATE wiki_page SET state = 'complete'")
    feed(connection, revision(6, 5, NOW + 3))
    assert state(connection, page) == ("complete", 6)


def test_a_log_entry_lets_the_history_be_read_again(connection, page):
    feed(connection, urls=["https://example.org/b"])
    assert state(connection, page)[0] == "complete"
    feed(connection, urls=[URL])
    assert state(connection, page)[0] == "unresolved"


def test_a_title_that_waits_for_its_history_is_resolved_again_after_a_log_entry(connection, page):
    connection.execute("UPDATE wiki_page SET state = 'open'")
    feed(connection, urls=[URL])
    assert state(connection, page)[0] == "unresolved"
    connection.execute("UPDATE wiki_page SET state = 'open', cursor = '{}'")
    feed(connection, urls=[URL])
    assert state(connection, page)[0] == "open"


def test_a_history_that_is_being_read_keeps_its_place(connection, page):
    connection.execute("UPDATE wiki_page SET state = 'open', cursor = '{}'")
    feed(connection, revision(6, 5, NOW + 3))
    assert state(connection, page)[0] == "open"
    assert change.count(connection, page) == 2


def test_a_wiki_tells_until_when_it_was_fed(connection, page):
    assert wiki_feed.fed_until(connection, 1) is None
    assert not wiki_feed.is_fed(connection, 1)
    feed(connection, since=NOW, until=NOW + 5)
    feed(connection)  # a part of a long response
    assert wiki_feed.fed_until(connection, 1) == NOW + 5
    assert wiki_feed.is_fed(connection, 1)
