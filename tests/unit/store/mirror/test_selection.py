import json

import pytest

from crawld.core.page import Grace, Outcome, PageState
from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.changes import change
from crawld.store.changes.change import Change
from crawld.store.frontier import frontier, left_pages, removal, site
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.removal import RemovalReport
from crawld.store.mirror import walk
from crawld.store.mirror.selection import (
    Reason,
    ShownCopy,
    count_held,
    count_outdated,
    list_held_back,
    select_copy,
)
from crawld.store.versions import pin
from tests.unit.store.rows import NOW, changed, found, unlike

HOUR = 3600.0


def configure(connection, **keys):
    site.upsert(connection, "docs", json.dumps(keys), source="config", at=NOW)


@pytest.fixture
def page(connection):
    [new] = frontier.discover(connection, [found("a")])
    return new.page_id


def copy(connection, page, content, at, **more):
    return visit.record(connection, changed(page, content, at, **more)).version_id


def outdated(connection, now):
    """Return how many pages of site 1 show an older copy than their newest, and of how many."""
    held_back = list_held_back(connection, 1, now)
    return count_outdated(connection, held_back, now), count_held(connection, 1)


def test_pages_held_back_are_found_without_a_look_at_the_others(connection, page):
    frontier.discover(connection, [found(f"many/{number}") for number in range(3_000)])
    stored = copy(connection, page, b"<p>one", NOW)
    connection.execute("INSERT INTO pin VALUES (?, ?, ?)", (page, stored, NOW))
    steps = [0]  # of SQLite's machine, in hundreds

    def step():
        steps[0] += 1
        return False

    connection.set_progress_handler(step, 100)
    assert list_held_back(connection, 1, NOW) == [page]
    connection.set_progress_handler(None)
    assert steps[0] <= 5


def store_history(connection, page, *changes, until):
    """Store the exact history of a page up to a time, as read from its wiki."""
    connection.execute(
        "INSERT OR IGNORE INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)"
    )
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state, complete_until)"
        " VALUES (?, 1, 'A', 'complete', ?)",
        (page, until),
    )
    rows = enumerate(changes)
    change.insert(connection, page, [Change(at, n, kind=k, digest=d) for n, (at, d, k) in rows])


def report_removal(connection, path, kind, at, target_url=None):
    report = RemovalReport(url_hash(f"https://example.org/{path}"), kind, at, at + 2, target_url)
    return removal.report(connection, 1, [report])


def shown(connection, page, now, at=None):
    found = select_copy(connection, page, now, at)
    return found.version_id, found.reason


def test_the_newest_copy_is_shown(connection, page):
    assert select_copy(connection, page, NOW) == ShownCopy(None, Reason.NEWEST, None, False, None)
    copy(connection, page, b"one", NOW)
    second = copy(connection, page, b"two", NOW + 1)
    assert shown(connection, page, NOW + 1) == (second, Reason.NEWEST)


def test_an_unknown_page_has_nothing_to_show(connection):
    assert select_copy(connection, 7, NOW) is None


def test_a_past_time_shows_the_copy_of_that_time(connection, page):
    first = copy(connection, page, b"one", NOW)
    copy(connection, page, b"two", NOW + 10)
    assert shown(connection, page, NOW + 99, NOW + 9) == (first, Reason.NEWEST)
    assert shown(connection, page, NOW + 99, NOW - 1) == (None, Reason.NEWEST)


def test_a_pinned_copy_is_shown_until_released(connection, page):
    first = copy(connection, page, b"one", NOW)
    second = copy(connection, page, b"two", NOW + 10)
    assert pin.put(connection, page, NOW + 20, NOW + 5).version_id == first
    assert shown(connection, page, NOW + 20) == (first, Reason.PINNED)
    assert select_copy(connection, page, NOW + 20).newest_id == second
    # It does not change what is shown of the past.
    assert shown(connection, page, NOW + 20, NOW + 15) == (second, Reason.NEWEST)
    assert [row.version_id for row in pin.list_pins(connection)] == [first]
    assert pin.release(connection, page)
    assert not pin.release(connection, page)
    assert shown(connection, page, NOW + 20) == (second, Reason.NEWEST)


def test_a_page_cannot_be_pinned_before_its_first_copy(connection, page):
    copy(connection, page, b"one", NOW)
    assert pin.put(connection, page, NOW, NOW - 1) is None
    assert pin.get(connection, page) is None


def test_a_copy_must_settle_before_it_is_shown(connection, page):
    configure(connection, settle_s=1800.0)
    first = copy(connection, page, b"one", NOW)
    assert shown(connection, page, NOW + 60) == (first, Reason.UNSETTLED)
    second = copy(connection, page, b"two", NOW + HOUR)
    assert shown(connection, page, NOW + HOUR + 1799) == (first, Reason.SETTLED)
    assert shown(connection, page, NOW + HOUR + 1800) == (second, Reason.NEWEST)


def test_vandalism_is_skipped_and_its_revert_is_shown(connection, page):
    configure(connection, settle_s=1800.0)
    copy(connection, page, b"good", NOW)
    copy(connection, page, b"bad", NOW + HOUR)
    again = copy(connection, page, b"good", NOW + HOUR + 60)
    # The text had settled before.
    assert shown(connection, page, NOW + HOUR + 61) == (again, Reason.NEWEST)


def test_a_past_time_is_judged_by_later_copies(connection, page):
    configure(connection, settle_s=1800.0)
    first = copy(connection, page, b"one", NOW)
    second = copy(connection, page, b"two", NOW + HOUR)
    copy(connection, page, b"three", NOW + HOUR + 60)
    fourth = copy(connection, page, b"four", NOW + HOUR + 120)
    later = NOW + 9 * HOUR
    assert shown(connection, page, later, NOW + HOUR + 90) == (first, Reason.SETTLED)
    assert shown(connection, page, later, NOW + HOUR + 130) == (fourth, Reason.NEWEST)
    assert second != first


def test_a_history_dates_a_text_exactly(connection, page):
    configure(connection, settle_s=1800.0)
    first = copy(connection, page, b"<p>one, at noon", NOW)
    store_history(connection, page, (NOW - HOUR, 11, None), until=NOW + 60)
    assert shown(connection, page, NOW + 1) == (first, Reason.NEWEST)


def test_a_history_shows_that_a_text_did_not_last(connection, page):
    configure(connection, settle_s=1800.0)
    good = copy(connection, page, b"good", NOW)
    bad = copy(connection, page, b"bad", NOW + HOUR)
    # Reverted five minutes later; the page was not visited since then.
    changes = [(NOW - HOUR, 11, None), (NOW + HOUR - 1, 12, None)]
    changes.append((NOW + HOUR + 300, 11, "revert"))
    store_history(connection, page, *changes, until=NOW + 2 * HOUR)
    assert shown(connection, page, NOW + 5 * HOUR) == (good, Reason.SETTLED)
    assert bad != good


def test_a_change_without_a_new_text_ends_no_span(connection, page):
    configure(connection, settle_s=1800.0)
    copy(connection, page, b"one", NOW)
    second = copy(connection, page, b"two", NOW + HOUR)
    changes = [(NOW + HOUR, 12, None), (NOW + HOUR + 60, 12, "null")]
    store_history(connection, page, *changes, until=NOW + 2 * HOUR)
    assert shown(connection, page, NOW + 2 * HOUR) == (second, Reason.NEWEST)


def test_hidden_texts_are_never_equal(connection, page):
    configure(connection, settle_s=1800.0)
    first = copy(connection, page, b"one", NOW)
    copy(connection, page, b"two", NOW + HOUR)
    store_history(
        connection, page, (NOW, None, None), (NOW + HOUR, None, None), until=NOW + 2 * HOUR
    )
    assert shown(connection, page, NOW + HOUR + 60) == (first, Reason.SETTLED)


def test_a_copy_newer_than_the_history_is_judged_by_its_body(connection, page):
    configure(connection, settle_s=1800.0)
    first = copy(connection, page, b"one", NOW)
    store_history(connection, page, (NOW - HOUR, 11, None), until=NOW + 60)
    second = copy(connection, page, b"two", NOW + HOUR)
    assert shown(connection, page, NOW + HOUR + 60) == (first, Reason.SETTLED)
    assert shown(connection, page, NOW + 2 * HOUR) == (second, Reason.NEWEST)


def test_a_gone_page_keeps_its_copy_and_is_marked(connection, page):
    first = copy(connection, page, b"one", NOW)
    gone = unlike(page, Outcome.GONE, NOW + 9, state=PageState.GONE, grace=Grace(3, NOW))
    visit.record(connection, gone)
    assert select_copy(connection, page, NOW + 9) == ShownCopy(
        first, Reason.NEWEST, first, True, None
    )
    assert not select_copy(connection, page, NOW + 9, NOW + 8).gone
    assert select_copy(connection, page, NOW + 9, NOW + 9).gone


def test_a_redirect_is_shown_with_its_target(connection, page):
    first = copy(connection, page, b"one", NOW)
    target = "https://example.org/b"
    moved = unlike(page, Outcome.MOVED, NOW + 9, redirect_url=target, detail=target)
    visit.record(connection, moved)
    assert select_copy(connection, page, NOW + 9).redirect_url == target
    before = select_copy(connection, page, NOW + 9, NOW + 8)
    assert before == ShownCopy(first, Reason.NEWEST, first, False, None)
    assert select_copy(connection, page, NOW + 9, NOW + 9).redirect_url == target


def test_pages_that_show_an_older_copy_are_counted(connection, page):
    configure(connection, settle_s=1800.0)
    [other] = frontier.discover(connection, [found("b")])
    copy(connection, other.page_id, b"b", NOW)
    copy(connection, page, b"one", NOW)
    assert outdated(connection, NOW + HOUR) == (0, 2)
    copy(connection, page, b"two", NOW + HOUR)
    assert outdated(connection, NOW + HOUR + 60) == (1, 2)
    assert outdated(connection, NOW + 2 * HOUR) == (0, 2)
    pin.put(connection, page, NOW + 2 * HOUR, NOW)
    assert outdated(connection, NOW + 9 * HOUR) == (1, 2)


def test_a_removal_marks_the_copy_shown_now_and_none_of_the_past(connection, page):
    held = copy(connection, page, b"one", NOW)
    report_removal(connection, "a", "move", NOW + 9, "http://a.test/b")
    now = select_copy(connection, page, NOW + 10)
    assert (now.version_id, now.withheld) == (held, False)
    assert now.removal == ("move", NOW + 9, "http://a.test/b")
    assert select_copy(connection, page, NOW + 10, NOW + 1).removal is None


def test_a_site_may_withhold_copies_of_removed_pages_at_all_times(connection, page):
    copy(connection, page, b"one", NOW)
    configure(connection, deleted_pages="withhold")
    assert not select_copy(connection, page, NOW + 1).withheld
    report_removal(connection, "a", "deletion", NOW + 9)
    for at in (None, NOW + 1):
        found = select_copy(connection, page, NOW + 10, at)
        assert found.version_id is found.redirect_url is None
        assert found.withheld
    assert removal.is_withheld(connection, page)
    assert list(walk.outlines(connection, NOW + 10)) == [[]]
    report_removal(connection, "a", None, NOW + 20)
    assert select_copy(connection, page, NOW + 21).version_id is not None
    assert len(next(walk.outlines(connection, NOW + 21))) == 1


def test_a_page_that_left_its_part_is_marked_until_a_visit_after_its_return(connection, page):
    held = copy(connection, page, b"one", NOW)
    left_pages.put(connection, [page], NOW + 9)
    left_pages.put(connection, [page], NOW + 12)
    now = select_copy(connection, page, NOW + 10)
    assert (now.version_id, now.left_at, now.withheld) == (held, NOW + 9, False)
    assert select_copy(connection, page, NOW + 10, NOW + 1).left_at is None
    configure(connection, deleted_pages="withhold")
    assert select_copy(connection, page, NOW + 10).withheld
    assert removal.is_withheld(connection, page)
    # A visit that was under way as it left is none after its return, whenever it ended.
    copy(connection, page, b"two", NOW + 15)
    assert select_copy(connection, page, NOW + 16).withheld
    back = page_rows.for_visit(connection, page)
    copy(connection, page, b"three", NOW + 20, left_at=back.left_at)
    assert select_copy(connection, page, NOW + 21).left_at is None
    left_pages.put(connection, [page], NOW + 25)
    copy(connection, page, b"four", NOW + 30, left_at=back.left_at)
    assert select_copy(connection, page, NOW + 31).left_at == NOW + 25


def test_a_site_withholds_pages_that_visits_found_gone(connection, page):
    copy(connection, page, b"one", NOW)
    configure(connection, deleted_pages="withhold")
    connection.execute("UPDATE page SET state = 'gone' WHERE page_id = ?", (page,))
    assert select_copy(connection, page, NOW + 1).withheld
