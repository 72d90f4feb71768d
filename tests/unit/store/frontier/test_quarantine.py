"""Rows of quarantine: who is held, who is a suspect, and who is released."""

from dataclasses import replace

import pytest

from crawld.core.content.quarantine import UNANALYSED
from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.frontier import page, quarantine, redirect
from crawld.store.frontier.quarantine import UnderWay
from crawld.store.mirror import walk
from crawld.store.versions import purge, search_index, version
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike

A, B = "https://example.org/a", "https://example.org/b"


@pytest.fixture
def page_id(connection):
    """The number of page A, which has a copy."""
    ((page, *_), _) = discover_in_full(connection, [found("a"), found("b")])
    visit.record(connection, changed(page.page_id, b"<p>poisonous words"))
    return page.page_id


def settle(connection, *found, now=NOW, version=1):
    return {row.url: row.held for row in quarantine.settle(connection, found, version, now)}


def test_evidence_holds_a_page_at_the_first_time(connection, page_id):
    assert settle(connection, UnderWay(A, "analysis", evidence=True)) == {A: True}
    assert quarantine.step_of_page(connection, page_id, A) == "analysis"
    assert quarantine.step_of_url(connection, A) == "analysis"
    assert quarantine.count(connection) == 1


def test_without_evidence_two_unclean_ends_in_a_row_hold_a_page(connection, page_id):
    mark = UnderWay(A, "decoding", evidence=False)
    assert settle(connection, mark) == {A: False}
    assert quarantine.step_of_page(connection, page_id, A) is None
    assert quarantine.step_of_url(connection, A) is None
    assert quarantine.count(connection) == 0
    assert settle(connection, mark) == {A: True}
    assert quarantine.step_of_page(connection, page_id, A) == "decoding"


def test_a_suspect_that_the_next_end_does_not_meet_is_forgotten(connection, page_id):
    mark = UnderWay(A, "analysis", evidence=False)
    settle(connection, mark)
    assert settle(connection, UnderWay(B, "analysis", evidence=False)) == {B: False}
    assert settle(connection) == {}  # a clean end
    assert quarantine.list_rows(connection) == []
    assert settle(connection, mark) == {A: False}


def test_a_held_page_stays_held(connection, page_id):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    settle(connection)
    settle(connection, UnderWay(A, "analysis", evidence=False), now=NOW + 1)
    assert [row.held for row in quarantine.list_rows(connection)] == [True]


@pytest.mark.parametrize("url", ["https://new.test/robots.txt", "nonsense", "", "https://[/"])
def test_what_is_no_page_is_held_by_its_url(connection, url):
    assert settle(connection, UnderWay(url, "analysis", evidence=True)) == {url: True}
    assert quarantine.step_of_url(connection, url) == "analysis"
    assert quarantine.release(connection, url)
    assert quarantine.list_rows(connection) == []


def test_a_page_that_is_found_later_is_held_too(connection):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    ((page, *_), _) = discover_in_full(connection, [found("a")])
    assert quarantine.step_of_page(connection, page.page_id, A) == "analysis"
    visit.record(connection, changed(page.page_id, b"<p>words"))
    settle(connection)
    version_id = version.current_at(connection, page.page_id, NOW).version_id
    assert not version.read_copy(connection, version_id).readable


def test_a_release_makes_the_next_visit_read_the_page(connection, page_id):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    assert not quarantine.release(connection, B)
    assert quarantine.release(connection, A)
    assert quarantine.step_of_page(connection, page_id, A) is None
    row = connection.execute(
        "SELECT digest, etag, last_modified, retry_at, version_id FROM page WHERE page_id = ?",
        (page_id,),
    ).get
    assert row[:3] == (None, None, None)
    assert row[3] <= NOW
    assert row[4] is not None  # its copies stay


@pytest.mark.parametrize("outcome", [Outcome.NOT_MODIFIED, Outcome.UNCHANGED, Outcome.CHANGED])
def test_a_visit_that_began_before_a_release_does_not_undo_it(connection, page_id, outcome):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    if outcome is Outcome.CHANGED:
        late = changed(page_id, b"<p>more poison", NOW + 9, unread=True)
    else:
        late = unlike(page_id, outcome, NOW + 9, etag='"b"')
    assert not visit.record(connection, late).released
    assert quarantine.release(connection, A)
    recorded = visit.record(connection, replace(late, visited_at=NOW + 10))
    assert recorded.released
    stored = page.for_visit(connection, page_id)
    assert (stored.etag, stored.last_modified, stored.digest) == (None, None, None)
    # After a restart it is visited at once, too.
    sql = "SELECT retry_at FROM page WHERE page_id = ?"
    assert connection.execute(sql, (page_id,)).get == NOW + 10
    whole = changed(page_id, b"<p>more poison", NOW + 11)
    assert not visit.record(connection, whole).released


def test_another_analyser_releases_all_others(connection, page_id):
    settle(connection, UnderWay(A, "analysis", evidence=True), version=1)
    settle(connection, UnderWay(B, "analysis", evidence=True), version=2)
    assert quarantine.release_outdated(connection, 2) == 1
    assert [row.url for row in quarantine.list_rows(connection)] == [B]


def test_nobody_gets_the_type_of_copies_of_a_held_page(connection, page_id):
    version_id = version.current_at(connection, page_id, NOW).version_id
    assert version.read_copy(connection, version_id).readable
    settle(connection, UnderWay(A, "analysis", evidence=False))
    assert version.read_copy(connection, version_id).readable
    settle(connection, UnderWay(A, "analysis", evidence=True))
    assert not version.read_copy(connection, version_id).readable
    assert version.get(connection, version_id).response.content_type == UNANALYSED
    assert walk.copy(connection, version_id).response.content_type == UNANALYSED
    assert search_index.plan(connection).entries == ()
    quarantine.release(connection, A)
    assert version.get(connection, version_id).response.content_type == "text/html"


def test_a_page_that_moves_stays_in_quarantine(connection, page_id):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    assert redirect.transfer_history(connection, page_id, B, NOW + 1)
    ((new_id,),) = connection.execute("SELECT page_id FROM page WHERE url = ?", (B,)).fetchall()
    assert quarantine.step_of_page(connection, new_id, B) == "analysis"
    assert [row.url for row in quarantine.list_rows(connection)] == [B]
    assert quarantine.release(connection, B)


def test_a_purge_removes_the_url(connection, page_id):
    settle(connection, UnderWay(A, "analysis", evidence=True))
    settle(connection, UnderWay("https://x.test/feed", "analysis", evidence=True))
    purge.purge(connection, A, NOW)
    purge.purge(connection, "https://x.test/feed", NOW)
    assert quarantine.list_rows(connection) == []
