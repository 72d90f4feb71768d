"""What pages at rest save, and which of them a source reports as changed."""

import pytest

from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint import PageHint, PollResult
from crawld.store.replica import pages, reported
from tests.unit.store.replica.test_replica import AT, COPY, KEPT, OTHER_ID, File, both

DAY_S = 86_400.0


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")
    made = File(connection)
    both(made, "/", "/a", "/b", "/c")
    made.prune()
    return made


def test_pages_at_rest_save_as_many_visits_as_their_twins_get(file, connection, monkeypatch):
    assert reported.saved_per_day(connection, OTHER_ID, AT + 2 * DAY_S) == 4 / 2
    for path in ("/a", "/b"):
        file.visit(file.number(f"{KEPT}{path}"), b"new", AT + DAY_S)
    assert reported.saved_per_day(connection, OTHER_ID, AT + 2 * DAY_S) == 6 / 2
    assert reported.saved_per_day(connection, OTHER_ID, AT + 90 * DAY_S) == 0
    pages.resume_some(connection, OTHER_ID)
    assert reported.saved_per_day(connection, OTHER_ID, AT + 2 * DAY_S) == 0


def test_what_many_pages_save_is_estimated_from_some(file, connection, monkeypatch):
    monkeypatch.setattr(reported, "COUNTED_PAGES", 2)
    assert reported.saved_per_day(connection, OTHER_ID, AT + 2 * DAY_S) == 4 / 2


def test_a_report_of_a_page_at_rest_is_kept_for_the_job_and_no_policy_hears_of_it(file, connection):
    source = hint_source.ensure(connection, 1, OTHER_ID, "sitemap", f"{COPY}/map.xml", AT)
    ids = [file.number(f"{COPY}{path}") for path in ("/", "/a", "/b")]
    pages.resume(connection, ids[:1])
    told = [PageHint(number, AT + 5, AT + 5) for number in ids]
    poll = PollResult(at=AT + 9, of_pages=told)
    accepted = hint.accept(connection, source.hint_source_id, poll)
    assert [each.page_id for each in accepted] == ids[:1]
    assert [row.page_id for row in hint.list_outstanding(connection, limit=9)] == ids[:1]
    assert hint_source.get(connection, source.hint_source_id).hint_count == 3
    found, last = reported.reported(connection, {source.hint_source_id}, 0, 9)
    assert [(host_id, page.page_id) for host_id, page in found] == [
        (OTHER_ID, number) for number in ids[1:]
    ]
    assert reported.reported(connection, {source.hint_source_id}, last, 9) == ([], None)
    assert reported.reported(connection, {source.hint_source_id}, 0, 1).last == ids[0]
    assert reported.reported(connection, set(), 0, 9).pages == []
    # A later change of a page that waits is no new hint.
    assert not hint.accept(connection, source.hint_source_id, poll)
