"""Pages that their wiki reports as deleted or moved away, before and after visits."""

import pytest

from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash
from crawld.daemon.hints.acceptance import _write_beside
from crawld.daemon.hints.source import Poll
from crawld.store import visit
from crawld.store.frontier import frontier, removal
from crawld.store.frontier.removal import RemovalReport
from crawld.store.versions import purge
from tests.unit.store.rows import NOW, changed, found, unlike


@pytest.fixture
def page(connection):
    [new] = frontier.discover(connection, [found("a")])
    visit.record(connection, changed(new.page_id, b"one", NOW))
    return new.page_id


def report(connection, kind, at, path="a", target_url=None):
    """Report a change between `at` and two seconds later; return the pages to confirm."""
    key = url_hash(f"https://example.org/{path}")
    reports = [RemovalReport(key, kind, at, at + 2.0, target_url)]
    return [each.page_id for each in removal.report(connection, 1, reports)]


def stored(connection):
    return connection.execute("SELECT page_id, kind, first_at FROM removal").fetchall()


def test_a_deletion_is_stored_until_a_restoration(connection, page):
    assert report(connection, "deletion", NOW + 10) == [page]
    assert stored(connection) == [(page, "deletion", NOW + 10)]
    assert report(connection, None, NOW + 30) == []
    assert stored(connection) == []


def test_the_last_of_several_reports_counts(connection, page):
    key = url_hash("https://example.org/a")
    story = [("deletion", 10), (None, 20), ("move", 30)]
    reports = [RemovalReport(key, kind, NOW + at, NOW + at + 2) for kind, at in story]
    assert [each.page_id for each in removal.report(connection, 1, reports)] == [page]
    assert stored(connection) == [(page, "move", NOW + 30)]
    later = RemovalReport(key, None, NOW + 40, NOW + 42)
    assert removal.report(connection, 1, [*reports, later]) == []
    assert stored(connection) == []


def test_an_unknown_or_unvisited_page_has_nothing_to_mark(connection, page):
    frontier.discover(connection, [found("b")])
    assert report(connection, "deletion", NOW + 10, "none") == []
    assert report(connection, "deletion", NOW + 10, "b") == []
    assert stored(connection) == []


@pytest.mark.parametrize(("duration_s", "left"), [(5.0, 1), (0.5, 0)])
def test_a_page_deleted_while_its_first_visit_is_under_way_is_marked(connection, duration_s, left):
    [new] = frontier.discover(connection, [found("b")])
    reports = [RemovalReport(url_hash(new.url), "deletion", NOW - 3, NOW - 1)]
    assert len(removal.report(connection, 1, reports, [new.page_id])) == 1
    visit.record(connection, changed(new.page_id, b"one", NOW, duration_s=duration_s))
    assert len(stored(connection)) == left


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.MOVED])
def test_a_visit_that_finds_the_page_ends_its_removal(connection, page, outcome):
    report(connection, "deletion", NOW + 10)
    visit.record(connection, unlike(page, outcome, NOW + 13, redirect_url="https://example.org/b"))
    assert stored(connection) == []


@pytest.mark.parametrize(
    ("outcome", "at"),
    [
        (Outcome.GONE, NOW + 60),
        (Outcome.SOFT_GONE, NOW + 60),
        (Outcome.FAILED, NOW + 60),
        (Outcome.BLOCKED, NOW + 60),
        (Outcome.UNCHANGED, NOW + 11),  # it may have been answered before the deletion
    ],
)
def test_a_visit_that_does_not_show_the_page_leaves_it_removed(connection, page, outcome, at):
    report(connection, "deletion", NOW + 10)
    visit.record(connection, unlike(page, outcome, at))
    assert len(stored(connection)) == 1


def test_a_report_of_before_a_visit_that_found_the_page_is_late(connection, page):
    visit.record(connection, unlike(page, Outcome.UNCHANGED, NOW + 60))
    assert report(connection, "deletion", NOW + 10) == []
    assert stored(connection) == []


def test_a_report_retires_a_page_that_a_visit_has_found_gone(connection, page):
    visit.record(connection, unlike(page, Outcome.GONE, NOW + 12, retry_at=NOW + 86_400))
    assert report(connection, "deletion", NOW + 10) == []
    row = connection.execute("SELECT state, retry_at FROM page WHERE page_id = ?", (page,))
    assert row.fetchone() == (PageState.GONE, NOW + 12 + 30 * 86_400)
    counts = connection.execute("SELECT pages_visited, pages_gone FROM site WHERE site_id = 1")
    assert counts.fetchone() == (0, 1)


def test_a_page_gone_for_another_reason_is_confirmed_by_a_visit(connection, page):
    visit.record(connection, unlike(page, Outcome.GONE, NOW + 5))
    assert report(connection, "deletion", NOW + 10) == [page]


def test_a_purge_deletes_the_removal(connection, page):
    report(connection, "deletion", NOW + 10)
    purge.purge(connection, "https://example.org/a", NOW + 20, None)
    assert stored(connection) == []


@pytest.mark.parametrize(("replaced", "kept"), [(True, 0), (False, 1)])
def test_a_page_at_whose_url_there_is_another_one_is_asked_for_without_conditions(
    connection, page, replaced, kept
):
    poll = Poll(at=NOW + 9, replaced={page} if replaced else frozenset())
    _write_beside(1, poll, (), [], connection)
    sql = "SELECT count(*) FROM page WHERE etag IS NOT NULL AND last_modified IS NOT NULL"
    assert connection.execute(sql).get == kept
    sql = "SELECT count(*) FROM page WHERE version_id IS NOT NULL AND digest IS NOT NULL"
    assert connection.execute(sql).get == 1  # the copy stays
