import json
from dataclasses import replace

import pytest

from crawld.core.page import Outcome
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.store import visit
from crawld.store.changes import fan_out, freshness, hint, hint_answer, hint_source
from crawld.store.changes.hint import PageHint, PollResult, UrlHint
from crawld.store.changes.hint_answer import HintJudgement, VisitTimes
from crawld.store.frontier import frontier, left_pages, removal
from crawld.store.frontier.removal import RemovalReport
from tests.unit.store.rows import NOW, changed, found, unlike, url_hash

HOUR_S = 3_600.0


@pytest.fixture
def pages(connection):
    """The page_ids of three pages, visited an hour ago."""
    new = frontier.discover(connection, [found(name) for name in "abc"])
    for page in new:
        visit.record(connection, changed(page.page_id, page.url.encode(), NOW - HOUR_S))
    return [page.page_id for page in new]


@pytest.fixture
def source(connection, pages):
    return hint_source.ensure(connection, 1, 1, "recent_changes", "https://example.org/api", NOW)


def take(connection, source, *changes, at=NOW, **more):
    """Accept changes (page_id, first_at, last_at); return the pages with new hints."""
    poll = PollResult(at=at, of_pages=[PageHint(*each) for each in changes], **more)
    return [each.page_id for each in hint.accept(connection, source.hint_source_id, poll)]


def answer(connection, page, at, *sources, changed=None, before_at=NOW - HOUR_S):
    numbers = tuple(each.hint_source_id for each in sources)
    times = VisitTimes(at, at)
    hint_answer.judge(connection, page, times, HintJudgement(numbers, before_at, changed))


def outstanding(connection):
    return [row.page_id for row in hint.list_outstanding(connection, limit=100)]


def test_an_outstanding_hint_tells_whether_its_page_is_reported_as_removed(
    connection, pages, source
):
    take(connection, source, *((page, NOW - 20, NOW - 10) for page in pages[:2]))
    report = RemovalReport(url_hash("https://example.org/b"), "deletion", NOW - 20, NOW - 10)
    assert len(removal.report(connection, 1, [report])) == 1
    rows = hint.list_outstanding(connection, limit=100)
    assert [(row.page_id, row.is_removed) for row in rows] == [(pages[0], False), (pages[1], True)]


def test_pages_that_left_their_part_have_no_hints(connection, pages, source):
    take(connection, source, *((page, NOW - 20, NOW - 10) for page in pages[:2]))
    left_pages.put(connection, pages[1:], NOW - 5)
    assert outstanding(connection) == pages[:1]
    changes = [(page, NOW + 5, NOW + 6) for page in pages]
    # The second returned, and its visit is under way.
    under_way = {"under_way": (pages[1],), "at": NOW + 10}
    assert take(connection, source, *changes, **under_way) == pages[:2]
    assert outstanding(connection) == pages[:2]


def stored(connection, source):
    return hint_source.get(connection, source.hint_source_id)


def test_a_source_with_a_moved_cursor_is_due_after_a_restart(connection, source):
    take(connection, source, cursor="one", next_poll_at=NOW + 86_400.0)
    hint_source.set_cursors(connection, [(source.hint_source_id, "moved")])
    after = stored(connection, source)
    assert (after.cursor, after.next_poll_at) == ("moved", None)


def test_a_poll_keeps_a_cursor_that_another_source_moved(connection, source):
    take(connection, source, cursor="one")
    hint_source.set_cursors(connection, [(source.hint_source_id, "moved")])
    take(connection, source, cursor="two", cursor_before="one", next_poll_at=NOW + 86_400.0)
    after = stored(connection, source)
    assert (after.cursor, after.next_poll_at) == ("moved", None)
    take(connection, source, cursor="three", cursor_before="moved")
    assert stored(connection, source).cursor == "three"


def test_cursor_and_hints_are_one_transaction(connection, pages, source):
    a, b, _ = pages
    changes = [(a, NOW - 20, NOW - 20), (b, NOW - 10, NOW - 10), (999, NOW, NOW)]
    hinted = take(connection, source, *changes, cursor="here", told_until=NOW - 1)
    assert hinted == outstanding(connection) == [a, b]
    after = stored(connection, source)
    assert (after.cursor, after.told_until, after.hint_count) == ("here", NOW - 1, 2)
    assert (after.poll_count, after.request_count) == (1, 1)


def test_a_repeated_hint_is_not_new(connection, pages, source):
    change = (pages[0], NOW - 20, NOW - 20)
    assert take(connection, source, change)
    assert not take(connection, source, change)
    assert take(connection, source, (pages[0], NOW - 5, NOW - 5))
    assert stored(connection, source).hint_count == 2
    assert len(outstanding(connection)) == 1


def test_a_hint_by_url_finds_its_page(connection, pages, source):
    key = url_hash("https://example.org/b")
    hints = [UrlHint(1, url_hash, NOW - 9, NOW - 9) for url_hash in (key, 7)]
    poll = PollResult(at=NOW, of_urls=hints)
    [accepted] = hint.accept(connection, source.hint_source_id, poll)
    assert accepted.page_id == pages[1]


def test_hints_older_than_the_visit_or_in_the_future_are_cut(connection, pages, source):
    a, b, _ = pages
    assert take(connection, source, (a, NOW - 2 * HOUR_S, NOW - 2 * HOUR_S)) == []
    assert take(connection, source, (b, NOW + 9e6, NOW + 9e6)) == [b]
    # Otherwise no visit would ever answer a change in the future.
    answer(connection, b, NOW + 1, source, changed=True)
    assert outstanding(connection) == []


def test_pages_of_other_sites_and_unvisited_pages_get_no_hints(connection, pages, source):
    [new] = frontier.discover(connection, [found("never")])
    assert take(connection, source, (new.page_id, NOW, NOW)) == []
    connection.execute("UPDATE page SET state = 'excluded' WHERE page_id = ?", (pages[0],))
    assert take(connection, source, (pages[0], NOW, NOW)) == []


def test_a_page_whose_first_visit_is_under_way_gets_hints(connection, source):
    [new, other] = frontier.discover(connection, [found("never"), found("other")])
    change = [(new.page_id, NOW - 3, NOW - 1), (other.page_id, NOW - 3, NOW - 1)]
    assert take(connection, source, *change, under_way=[new.page_id]) == [new.page_id]
    first = changed(new.page_id, b"text", NOW, duration_s=2.0)
    visit.record(connection, first)
    assert outstanding(connection) == [new.page_id]
    answer(connection, new.page_id, NOW + 5, source, changed=True, before_at=NOW)
    assert outstanding(connection) == []


@pytest.mark.parametrize("more", [{"duration_s": 0.5}, {"outcome": Outcome.FAILED}])
def test_a_first_visit_answers_earlier_changes_and_one_without_a_copy_all(connection, source, more):
    [new] = frontier.discover(connection, [found("never")])
    take(connection, source, (new.page_id, NOW - 3, NOW - 1), under_way=[new.page_id])
    first = changed(new.page_id, b"text", NOW, **{"duration_s": 60.0, **more})
    visit.record(connection, replace(first, state="discovered") if "outcome" in more else first)
    assert outstanding(connection) == []


@pytest.mark.parametrize(("duration_s", "is_new"), [(0.5, False), (9.0, True)])
def test_a_change_while_a_response_came_slowly_is_new(
    connection, pages, source, duration_s, is_new
):
    visit.record(connection, changed(pages[0], b"text", NOW, duration_s=duration_s))
    hinted = take(connection, source, (pages[0], NOW - 3, NOW - 1), at=NOW + 5)
    assert hinted == ([pages[0]] if is_new else [])


def test_a_visit_answers_no_change_after_its_request(connection, pages, source):
    take(connection, source, (pages[0], NOW - 3, NOW - 1))
    judgement = HintJudgement((source.hint_source_id,), NOW - HOUR_S, True)
    hint_answer.judge(connection, pages[0], VisitTimes(NOW, NOW - 2), judgement)
    assert outstanding(connection) == [pages[0]]
    hint_answer.judge(connection, pages[0], VisitTimes(NOW, NOW - 1), judgement)
    assert outstanding(connection) == []


def test_visits_judge_hints(connection, pages, source):
    a, b, c = pages
    take(connection, source, (a, NOW - 20, NOW - 20), (b, NOW - 20, NOW - 20), told_until=NOW)
    answer(connection, a, NOW + 5, source, changed=True)
    answer(connection, b, NOW + 6, source, changed=False)
    answer(connection, c, NOW + 7, source, changed=True)
    after = stored(connection, source)
    assert (after.real_count, after.false_count, after.missed_count) == (1, 1, 0)
    assert (after.lag_s, after.lag_count) == (20.0, 1)
    assert outstanding(connection) == []
    # The source has reported all changes up to a later time, without the third: it missed that.
    take(connection, source, at=NOW + 20, told_until=NOW + 10)
    assert stored(connection, source).missed_count == 1
    known = hint.load_reliability(stored(connection, source).evidence)
    assert known.trust < 0.9
    assert known.missed_share > 0.1


def test_a_hint_after_the_visit_is_late_and_not_missed(connection, pages, source):
    take(connection, source, told_until=NOW - 50)
    answer(connection, pages[0], NOW - 10, source, changed=True)
    visit.record(connection, unlike(pages[0], Outcome.UNCHANGED, NOW - 10))
    assert take(connection, source, (pages[0], NOW - 15, NOW - 15), told_until=NOW) == []
    after = stored(connection, source)
    assert (after.real_count, after.missed_count) == (1, 0)
    assert (after.lag_s, after.lag_count) == (15.0, 1)


@pytest.fixture
def templates(connection, pages):
    return hint_source.ensure(connection, 1, 1, "fan_out", "https://example.org/api", NOW)


def list_users(connection, templates, pages, at, cause="Template:A"):
    """Store a listing of the pages that use a template."""
    take(connection, templates, *((page, at - 5, at) for page in pages), at=at, cause=cause)
    fan_out.record(connection, templates.hint_source_id, cause, len(pages), at)


def test_of_a_template_that_is_edited_again_both_listings_have_their_users(
    connection, pages, source, templates
):
    list_users(connection, templates, pages[:2], NOW)
    list_users(connection, templates, pages, NOW + 60)
    take(connection, source, (pages[2], NOW - 20, NOW - 10))
    number = templates.hint_source_id
    # Pages keep the time at which they were reported first.
    assert fan_out.users_by_time(connection) == {(number, NOW): 2, (number, NOW + 60): 3}


def test_a_change_due_to_a_template_is_not_missed(connection, pages, source, templates):
    take(connection, source, told_until=NOW)
    take(connection, templates, (pages[0], NOW - 20, NOW - 1), cause="Template:A")
    answer(connection, pages[0], NOW + 5, source, changed=True)
    take(connection, source, at=NOW + 20, told_until=NOW + 10)
    after = stored(connection, source)
    assert (after.missed_count, after.explained_count) == (0, 1)
    assert stored(connection, templates).real_count == 1
    # A template does not explain a change without its edit.
    answer(connection, pages[0], NOW + 15, source, changed=True)
    take(connection, source, at=NOW + 30, told_until=NOW + 30)
    assert stored(connection, source).missed_count == 1


def test_a_page_copied_before_its_template_was_listed_is_not_missed(
    connection, pages, source, templates
):
    a, _, c = pages
    take(connection, source, told_until=NOW - 50)
    for page in pages:
        answer(connection, page, NOW - 10, source, changed=True)
        visit.record(connection, unlike(page, Outcome.UNCHANGED, NOW - 10))
    # The template was edited at NOW - 30, and its pages are not listed yet.
    take(connection, source, told_until=NOW, settled_until=NOW - 30)
    assert stored(connection, source).missed_count == 0
    # The third was copied before the edit of its template: that is no reason of its change.
    take(connection, templates, (a, NOW - 30, NOW), (c, NOW - 5, NOW), cause="Template:A")
    take(connection, source, told_until=NOW)
    after = stored(connection, source)
    assert (after.missed_count, after.explained_count) == (2, 1)


def test_a_change_that_no_source_reported_is_unnoticed_once(connection, pages, source):
    other = hint_source.ensure(connection, 1, 1, "probe", "https://example.org/api", NOW)
    for each in (source, other):
        take(connection, each, told_until=NOW - 50)
    answer(connection, pages[0], NOW - 10, source, other, changed=True)
    for each in (source, other):
        take(connection, each, told_until=NOW)
        assert stored(connection, each).missed_count == 1
        assert freshness.quiet_visits(connection, 1).stale == 1.0


def test_a_change_that_one_source_reported_is_not_unnoticed(connection, pages, source):
    other = hint_source.ensure(connection, 1, 1, "probe", "https://example.org/api", NOW)
    for each in (source, other):
        take(connection, each, told_until=NOW - 50)
    # The first is reported in time, the second after its visit.
    take(connection, source, (pages[0], NOW - 20, NOW - 20), at=NOW - 15, told_until=NOW - 16)
    for page in pages[:2]:
        answer(connection, page, NOW - 10, source, other, changed=True)
        visit.record(connection, unlike(page, Outcome.UNCHANGED, NOW - 10))
    take(connection, source, (pages[1], NOW - 12, NOW - 12), told_until=NOW)
    take(connection, other, told_until=NOW)
    assert stored(connection, other).missed_count == 2
    assert freshness.quiet_visits(connection, 1).stale == 0.0


def test_reports_of_fresh_copies_arrive_at_a_rate(connection, pages, source):
    a, b, _ = pages
    take(connection, source, at=NOW - 60, told_until=NOW - 60)
    take(connection, source, (a, NOW - 20, NOW - 20), (b, NOW - 9, NOW - 9), told_until=NOW)
    take(connection, source, (a, NOW + 5, NOW + 5), at=NOW + 60, told_until=NOW + 60)
    arrivals = hint.load_reliability(stored(connection, source).evidence).arrivals
    assert arrivals.long == pytest.approx(2.0, abs=0.01)  # the first was reported twice
    assert arrivals.long_s == pytest.approx(120.0, rel=0.01)


def test_what_visits_found_before_a_source_reported_is_not_what_it_misses(
    connection, pages, source
):
    freshness.add_quiet_visits(connection, {1: QuietVisits(9.0, 4.0, 2.0, 900.0)})
    take(connection, source)
    assert freshness.quiet_visits(connection, 1).count == 9.0
    take(connection, source, told_until=NOW)
    assert freshness.quiet_visits(connection, 1) == QuietVisits()
    freshness.add_quiet_visits(connection, {1: QuietVisits(9.0, 4.0, 2.0, 900.0)})
    take(connection, source, at=NOW + 60, told_until=NOW + 60)
    assert freshness.quiet_visits(connection, 1).count == 9.0


def test_the_first_report_of_a_source_tells_no_rate(connection, pages, source):
    a, b, _ = pages
    take(connection, source, (a, NOW - 20, NOW - 20))
    take(connection, source, (b, NOW - 9, NOW - 9), told_until=NOW)
    assert not hint.load_reliability(stored(connection, source).evidence).arrivals.is_known
    take(connection, source, at=NOW + 60, told_until=NOW + 60)
    arrivals = hint.load_reliability(stored(connection, source).evidence).arrivals
    assert arrivals.long == 0.0


def due_again(connection, templates, now):
    return hint.due_again(connection, templates.hint_source_id, now, limit=10)


def test_a_visit_before_the_wiki_rendered_a_page_again_answers_nothing(
    connection, pages, source, templates
):
    a, b, _ = pages
    rendered_at = NOW - 4 + hint.RENDER_S
    take(connection, templates, *((page, NOW - 4, NOW) for page in (a, b)), cause="Template:A")
    answer(connection, a, NOW + 5, source, changed=False)
    # It stays known as stale, and its source is not blamed.
    assert outstanding(connection) == [a, b]
    assert stored(connection, templates).false_count == 0
    assert due_again(connection, templates, NOW + 30) == ([], rendered_at)
    # A visit in between, such as after a restart, changes nothing.
    answer(connection, a, NOW + 9, source, changed=False)
    again, next_at = due_again(connection, templates, rendered_at + 1)
    assert again == [PageHint(a, rendered_at, rendered_at + 1)]
    assert next_at == rendered_at + 1 + hint.RENDER_S  # another one waits for its first visit
    assert take(
        connection,
        templates,
        *((p.page_id, p.first_at, p.last_at) for p in again),
        at=rendered_at + 1,
    ) == [a]
    assert due_again(connection, templates, rendered_at + 2)[0] == []
    # The visit after that counts.
    answer(connection, a, rendered_at + 3, source, changed=False, before_at=NOW + 9)
    assert outstanding(connection) == [b]
    assert stored(connection, templates).false_count == 1
    answer(connection, b, rendered_at + 4, source, changed=True)
    assert due_again(connection, templates, rendered_at + 5) == ([], None)


def test_a_change_found_before_its_time_is_that_of_the_template(
    connection, pages, source, templates
):
    a, *_ = pages
    take(connection, source, told_until=NOW)
    take(connection, templates, (a, NOW - 4, NOW), cause="Template:A")
    answer(connection, a, NOW + 5, source, changed=False)
    answer(connection, a, NOW + 20, source, changed=True, before_at=NOW + 5)
    assert outstanding(connection) == []
    assert stored(connection, templates).real_count == 1
    take(connection, source, at=NOW + 99, told_until=NOW + 98)
    assert stored(connection, source).missed_count == 0


def test_a_page_that_was_edited_before_its_template_may_show_the_old_one(
    connection, pages, source, templates
):
    a, *_ = pages
    take(connection, source, (a, NOW - 9, NOW - 7))
    take(connection, templates, (a, NOW - 4, NOW), cause="Template:A")
    answer(connection, a, NOW + 5, source, changed=True)
    assert outstanding(connection) == [a]
    assert stored(connection, source).real_count == 1
    rendered_at = NOW - 4 + hint.RENDER_S
    [again], _ = due_again(connection, templates, rendered_at + 1)
    take(connection, templates, again, at=rendered_at + 1)
    answer(connection, a, rendered_at + 3, source, changed=True, before_at=NOW + 5)
    assert outstanding(connection) == []


@pytest.mark.parametrize("put_off", [False, True])
def test_a_page_that_was_edited_after_its_template_shows_the_new_one(
    connection, pages, source, templates, put_off
):
    a, *_ = pages
    take(connection, templates, (a, NOW - 4, NOW), cause="Template:A")
    if put_off:
        answer(connection, a, NOW + 1, source, changed=False)
    take(connection, source, (a, NOW + 2, NOW + 4), at=NOW + 5)
    answer(connection, a, NOW + 6, source, changed=True)
    assert outstanding(connection) == []


def test_pages_of_a_template_are_judged_together(connection, pages, source, templates):
    a, b, c = pages
    take(connection, templates, *((page, NOW - 9, NOW - 1) for page in (a, b)), cause="Template:A")
    take(connection, templates, (c, NOW + 1, NOW + 2), at=NOW + 2, cause="Template:B")
    answer(connection, a, NOW + 5, source, changed=True)
    answer(connection, b, NOW + 60, source, changed=False)
    answer(connection, c, NOW + 61, source, changed=False)
    known = hint.load_reliability(stored(connection, templates).evidence)
    assert known.groups == [(NOW, 1.0, 1.0), (NOW + 2, 0.0, 1.0)]
    assert known.arrivals.long == pytest.approx(2.0, abs=0.01)


def test_a_hint_of_a_later_change_outlives_a_visit(connection, pages, source):
    take(connection, source, (pages[0], NOW - 20, NOW - 1))
    answer(connection, pages[0], NOW - 10, source, changed=True)
    assert outstanding(connection) == [pages[0]]
    # The previous visit may have seen the change: the source is not to blame.
    answer(connection, pages[0], NOW + 5, source, changed=False, before_at=NOW - 10)
    assert outstanding(connection) == []
    assert stored(connection, source).false_count == 0


def test_a_hint_before_a_clock_reset_is_answered(connection, pages, source):
    take(connection, source, (pages[0], NOW - 1, NOW - 1))
    answer(connection, pages[0], NOW - 9_000, source, changed=True)
    assert outstanding(connection) == []


def test_a_visit_and_its_judgement_are_one_transaction(connection, pages, source):
    take(connection, source, (pages[1], NOW - 20, NOW - 20))
    answered = HintJudgement((source.hint_source_id,), NOW - HOUR_S, True)
    visit.record(connection, changed(pages[1], b"new", NOW, hint_judgement=answered))
    assert outstanding(connection) == []
    assert stored(connection, source).real_count == 1


def test_each_source_is_judged_separately(connection, pages, source):
    other = hint_source.ensure(connection, 1, 1, "sitemap", "https://example.org/s.xml", NOW)
    take(connection, source, (pages[0], NOW - 20, NOW - 20), told_until=NOW)
    take(connection, other, told_until=NOW)
    answer(connection, pages[0], NOW + 1, source, other, changed=True)
    take(connection, other, at=NOW + 9, told_until=NOW + 9)
    assert stored(connection, source).real_count == 1
    assert stored(connection, other).missed_count == 1


def test_a_poll_writes_other_cursors_in_its_transaction(connection, pages, source):
    other = hint_source.ensure(connection, 1, 1, "fan_out", "https://example.org/api", NOW)
    done = []
    updates = [(other.hint_source_id, "work")]
    take(connection, source, cursor_updates=updates, also_write=done.append)
    assert stored(connection, other).cursor == "work"
    assert len(done) == 1


def test_trouble_is_counted_and_cleared_by_the_next_poll(connection, source):
    failure = hint_source.PollFailure(NOW, "closed", "403", 1, NOW + 60)
    for _ in range(2):
        hint_source.record_failure(connection, source.hint_source_id, failure)
    assert stored(connection, source)[-4:] == ("closed", "403", 2, NOW + 60)
    take(connection, source)
    assert stored(connection, source)[-4:] == (None, None, 0, None)


def test_unreadable_evidence_starts_over():
    unreadable = json.dumps({"of": "another version"})
    assert hint.load_reliability(unreadable) == hint.load_reliability(None)


def test_a_deleted_page_loses_its_hints(connection, pages, source):
    take(connection, source, (pages[0], NOW - 20, NOW - 20))
    answer(connection, pages[1], NOW, source, changed=True)
    for table in ("visit", "version", "model"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("DELETE FROM page")
    assert outstanding(connection) == []
    assert connection.execute("SELECT count(*) FROM untold").get == 0


def test_a_wiki_that_reports_a_change_comes_before_other_sources(connection, pages, source):
    connection.execute("INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)")
    connection.execute("INSERT INTO wiki_site (wiki_id, site_id) VALUES (1, 1)")
    wiki = hint_source.ensure_of_wiki(connection, 1, 1, "fan_out", "https://example.org/api", NOW)
    a, b, c = pages
    take(connection, source, (a, NOW - 20, NOW - 20), (b, NOW - 20, NOW - 20))
    take(connection, wiki, (b, NOW - 20, NOW - 20))
    reporters = [hint.reporter_of(connection, page) for page in (a, b, c)]
    assert reporters == [hint.Reporter.SOURCE, hint.Reporter.WIKI, None]
