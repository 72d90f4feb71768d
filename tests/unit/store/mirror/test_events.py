"""Events: which visits and reports are one, and how they are listed."""

import sqlite3

import pytest

from crawld.core.event import EventKind, event_urn
from crawld.core.page import Grace, Outcome, PageState
from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.frontier import event, frontier, removal, site
from crawld.store.frontier.removal import RemovalReport
from crawld.store.mirror import events
from crawld.store.mirror.events import EventFilter
from crawld.store.versions import purge, search_index
from tests.unit.store.rows import NOW, changed, found, unlike


@pytest.fixture
def page_id(connection):
    [new] = frontier.discover(connection, [found("a")])
    return new.page_id


def kinds(connection, **wanted):
    listed = events.list_after(connection, 0, 1000, EventFilter(**wanted))
    return [each.kind.value for each in listed.events]


def add(connection, path, at=NOW, content=b"<p>text</p>", **more):
    """Store a page with its first copy."""
    [new] = frontier.discover(connection, [found(path, **more)])
    visit.record(connection, changed(new.page_id, content + path.encode(), at, title=path))
    return new.page_id


def report(connection, kind, at, path="a", target_url=None):
    key = url_hash(f"https://example.org/{path}")
    removal.report(connection, 1, [RemovalReport(key, kind, at, at + 2.0, target_url)])


GONE = {"outcome": Outcome.GONE, "grace": Grace(1, NOW)}


def test_the_first_copy_is_new_and_another_a_change(connection, page_id):
    first = visit.record(connection, changed(page_id, b"one"))
    visit.record(connection, unlike(page_id, Outcome.UNCHANGED, NOW + 1))
    visit.record(connection, unlike(page_id, Outcome.FAILED, NOW + 2, failure="timeout"))
    second = visit.record(connection, changed(page_id, b"two", NOW + 3, difference=0.25))
    [new, edit] = events.list_after(connection, 0).events
    assert (new.kind, new.at, new.before_id, new.version_id) == ("new", NOW, None, first.version_id)
    assert edit.kind is EventKind.CHANGED
    assert (edit.before_id, edit.version_id) == (first.version_id, second.version_id)
    assert (edit.difference, edit.url, edit.site) == (0.25, "https://example.org/a", "docs")
    assert new.event_id < edit.event_id == events.newest_id(connection)


def test_a_requisite_has_no_events(connection):
    [new] = frontier.discover(connection, [found("a.png", requisite=True)])
    visit.record(connection, changed(new.page_id, b"one"))
    visit.record(connection, unlike(new.page_id, **GONE))
    assert kinds(connection) == []


def test_a_copy_without_one_to_compare_with_is_a_change_only_if_it_differs(connection, page_id):
    visit.record(connection, changed(page_id, b"one"))
    visit.record(connection, changed(page_id, b"one", NOW + 1))
    assert kinds(connection) == ["new"]
    visit.record(connection, changed(page_id, b"two", NOW + 2))
    visit.record(connection, changed(page_id, b"may not be kept", NOW + 3, body=None))
    assert kinds(connection) == ["new", "changed", "changed"]


def test_a_page_that_goes_and_comes_back_has_one_event_each(connection, page_id):
    visit.record(connection, unlike(page_id, at=NOW - 1, **GONE))
    visit.record(connection, changed(page_id, b"one"))
    visit.record(connection, unlike(page_id, at=NOW + 1, **GONE))
    visit.record(connection, unlike(page_id, Outcome.FAILED, NOW + 2, failure="timeout"))
    visit.record(connection, unlike(page_id, at=NOW + 3, **GONE))
    visit.record(connection, unlike(page_id, at=NOW + 4, state=PageState.GONE, **GONE))
    visit.record(connection, unlike(page_id, Outcome.NOT_MODIFIED, NOW + 5))
    visit.record(connection, unlike(page_id, Outcome.NOT_MODIFIED, NOW + 6))
    assert kinds(connection) == ["new", "gone", "back"]


def test_a_soft_404_is_gone_once_the_page_is_retired(connection, page_id):
    visit.record(connection, changed(page_id, b"one"))
    visit.record(connection, unlike(page_id, Outcome.SOFT_GONE, NOW + 1, grace=Grace(1, NOW)))
    assert kinds(connection) == ["new"]
    retired = unlike(page_id, Outcome.SOFT_GONE, NOW + 2, state=PageState.GONE, grace=Grace(3, NOW))
    visit.record(connection, retired)
    visit.record(connection, changed(page_id, b"two", NOW + 3, difference=0.5))
    assert kinds(connection) == ["new", "gone", "back"]
    back = events.list_newest(connection).events[0]
    assert None not in (back.before_id, back.version_id, back.difference)


def test_a_host_that_loses_many_pages_reports_those_that_are_retired(connection):
    pages = [add(connection, f"p{number}") for number in range(20)]
    for page_id in pages:
        visit.record(connection, unlike(page_id, at=NOW + 1, **GONE))
    assert kinds(connection, kinds=frozenset({EventKind.GONE})) == ["gone"] * 9
    retired = unlike(pages[-1], at=NOW + 9, state=PageState.GONE, **GONE)
    visit.record(connection, retired)
    assert kinds(connection, kinds=frozenset({EventKind.GONE})) == ["gone"] * 10


def test_a_redirect_is_a_move_of_a_page_that_had_a_copy(connection, page_id):
    target = "https://example.org/b"
    moved = {"outcome": Outcome.MOVED, "redirect_url": target, "renamed": True}
    visit.record(connection, unlike(page_id, at=NOW - 1, **moved))
    visit.record(connection, changed(page_id, b"one"))
    frontier.discover(connection, [found("b")])
    visit.record(connection, unlike(page_id, at=NOW + 1, **moved))
    visit.record(connection, unlike(page_id, at=NOW + 2, **moved))
    visit.record(connection, unlike(page_id, at=NOW + 3, **GONE))
    [_, event_] = events.list_after(connection, 0).events
    assert (event_.kind, event_.target_url) == ("moved", target)
    # The new page took the history along: its next copy is a change, not a new page.
    [other] = [row for (row,) in connection.execute("SELECT page_id FROM page WHERE url LIKE '%b'")]
    visit.record(connection, changed(other, b"two", NOW + 4, difference=0.1))
    visit.record(connection, changed(page_id, b"again", NOW + 5))
    assert kinds(connection) == ["new", "moved", "changed", "back"]


@pytest.mark.parametrize(("kind", "told"), [("deletion", "gone"), ("move", "moved")])
def test_a_reported_removal_is_one_event_at_once(connection, page_id, kind, told):
    visit.record(connection, changed(page_id, b"one"))
    target = "https://example.org/b" if kind == "move" else None
    report(connection, kind, NOW + 10, target_url=target)
    report(connection, kind, NOW + 10, target_url=target)
    assert kinds(connection) == ["new", told]
    assert events.list_newest(connection).events[0].target_url == target
    if kind == "move":
        visit.record(connection, unlike(page_id, Outcome.MOVED, NOW + 30, redirect_url=target))
    else:
        visit.record(connection, unlike(page_id, at=NOW + 30, state=PageState.GONE, **GONE))
    assert kinds(connection) == ["new", told]
    report(connection, None, NOW + 40)
    visit.record(connection, changed(page_id, b"two", NOW + 50, difference=1.0))
    assert kinds(connection) == ["new", told, "back"]


def test_a_removal_that_the_same_poll_takes_back_is_none(connection, page_id):
    visit.record(connection, changed(page_id, b"one"))
    key = url_hash("https://example.org/a")
    story = [("move", 10), (None, 20)]
    reports = [RemovalReport(key, kind, NOW + at, NOW + at) for kind, at in story]
    removal.report(connection, 1, reports)
    assert kinds(connection) == ["new"]


def test_ids_are_never_used_again(connection, page_id):
    visit.record(connection, changed(page_id, b"one"))
    first = events.newest_id(connection)
    purge.purge(connection, "https://example.org/a", NOW)
    assert kinds(connection) == []
    add(connection, "b")
    assert events.newest_id(connection) > first


def test_the_ids_of_a_restored_backup_begin_above_those_that_were_lost(connection, path, tmp_path):
    event.lift_ids(connection, NOW)
    add(connection, "a")
    backup = tmp_path / "backup.db"
    connection.execute("VACUUM INTO ?", (str(backup),))
    add(connection, "lost")
    lost = events.newest_id(connection)
    with sqlite3.connect(backup) as restored:
        assert restored.execute("SELECT max(event_id) FROM event").fetchone()[0] < lost
    event.lift_ids(connection, NOW - 9)  # a clock that went back
    assert event_after(connection, "b") == lost + 1
    event.lift_ids(connection, NOW + 1)
    assert event_after(connection, "c") > lost + 900
    event.lift_ids(connection, 1e30)  # a clock in another century
    assert event_after(connection, "d") < 2**53


def event_after(connection, path):
    add(connection, path)
    return events.newest_id(connection)


def test_a_mirror_has_an_identity(connection):
    named = events.mirror_id(connection)
    assert len(named) == 32
    assert event_urn(named, 7) == f"urn:crawld:{named}:7"


def test_copies_that_are_no_longer_kept_are_not_named(connection, page_id):
    for at, content in enumerate([b"one", b"two", b"three"]):
        visit.record(connection, changed(page_id, content, NOW + at, difference=0.5))
    connection.execute("DELETE FROM version WHERE visited_at = ?", (NOW + 1,))
    connection.execute("UPDATE version SET version_id = 2 WHERE visited_at = ?", (NOW + 2,))
    [_, second, third] = events.list_after(connection, 0).events
    assert (second.before_id, second.version_id) == (1, None)
    assert (third.before_id, third.version_id) == (None, None)


def test_a_purge_forgets_where_pages_moved_to(connection, page_id):
    visit.record(connection, changed(page_id, b"one"))
    report(connection, "move", NOW + 10, target_url="https://example.org/secret")
    purge.purge(connection, "https://example.org/secret", NOW)
    assert events.list_newest(connection).events[0].target_url is None


@pytest.fixture
def mixed(connection):
    """Two sites: 30 new pages each, then some changes, removals and a return."""
    site.upsert(connection, "wiki", "{}", source="config", at=NOW)
    for number in range(30):
        add(connection, f"d{number}", NOW + number)
        add(connection, f"w{number}", NOW + number, site_id=2, host="wiki.org")
    for number in range(5):
        page_id = 2 * number + 1
        later = changed(page_id, b"edit", NOW + 40 + number, difference=number / 10)
        visit.record(connection, later)
    visit.record(connection, unlike(2, at=NOW + 50, **GONE))
    visit.record(connection, unlike(2, Outcome.UNCHANGED, at=NOW + 51))
    return connection


def test_lists_are_filtered(mixed):
    assert len(kinds(mixed)) == 67
    assert len(kinds(mixed, site="wiki")) == 32
    assert kinds(mixed, site="none") == []
    assert kinds(mixed, kinds=frozenset({EventKind.GONE, EventKind.BACK})) == ["gone", "back"]
    assert kinds(mixed, site="docs", kinds=frozenset({EventKind.CHANGED})) == ["changed"] * 5
    assert kinds(mixed, at_least=0.25) == ["changed"] * 2
    assert kinds(mixed, url="https://wiki.org/w0") == ["new", "gone", "back"]
    assert kinds(mixed, url="https://wiki.org/w0", site="docs") == []
    assert kinds(mixed, url="https://wiki.org/none") == []


@pytest.mark.parametrize(
    "wanted",
    [
        EventFilter(),
        EventFilter(site="docs"),
        EventFilter(kinds=frozenset({EventKind.NEW, EventKind.CHANGED})),
        EventFilter(site="wiki", kinds=frozenset({EventKind.GONE, EventKind.NEW})),
        EventFilter(at_least=0.1),
    ],
)
def test_pages_of_a_list_hold_each_event_once(mixed, wanted):
    whole = events.list_after(mixed, 0, 1000, wanted).events
    assert [each.event_id for each in whole] == sorted({each.event_id for each in whole})
    forth, after, ended = [], 0, False
    while not ended:
        events_, after, ended = events.list_after(mixed, after, 7, wanted)
        forth += events_
    back, before, ended = [], None, False
    while not ended:
        events_, before, ended = events.list_newest(mixed, wanted, before, 7)
        back += events_
    assert forth == whole == back[::-1]
    assert events.list_after(mixed, after, 7, wanted) == ([], after, True)


@pytest.mark.parametrize("most", [1000, 2])
def test_a_list_by_words_finds_pages_by_the_search_index(mixed, monkeypatch, most):
    """Few pages are looked up; of many, the newest events are examined."""
    monkeypatch.setattr(events, "MAX_MATCHED", most)
    while (work := search_index.plan(mixed)) is not None:
        search_index.apply(mixed, work)
    assert len(kinds(mixed, query="text")) == 57  # an edited page has another text
    assert kinds(mixed, query="title:w0 text") == ["new", "gone", "back"]
    assert kinds(mixed, query="edit", kinds=frozenset({EventKind.CHANGED})) == ["changed"] * 5
    assert kinds(mixed, query='"', url="https://wiki.org/w0") == []
    assert kinds(mixed, query="text", url="https://wiki.org/w0") == ["new", "gone", "back"]


def test_a_list_by_size_ends_after_some_thousand_events(mixed, monkeypatch):
    monkeypatch.setattr(events, "MAX_EXAMINED", 10)
    wanted = EventFilter(at_least=0.35)
    first = events.list_newest(mixed, wanted)
    assert [each.difference for each in first.events] == [0.4]
    assert not first.ended
    second = events.list_newest(mixed, wanted, first.last_id)
    assert (second.events, second.ended) == ([], False)
    assert first.last_id - second.last_id == 10


def test_the_first_event_since_a_time_is_found(mixed):
    assert kinds(mixed)[0] == "new"
    after = events.first_since(mixed, NOW + 45 + events.CLOCK_SLACK_S)
    listed = events.list_after(mixed, after).events
    assert [each.kind for each in listed] == ["gone", "back"]
    assert events.first_since(mixed, NOW - 1e9) == 0
    assert events.first_since(mixed, NOW + 1e9) == events.newest_id(mixed)


def test_the_oldest_events_are_deleted(mixed):
    event.delete_oldest(mixed, 60)
    assert event.count(mixed) == 7
    assert kinds(mixed) == ["changed"] * 5 + ["gone", "back"]


def test_lists_use_an_index(mixed):
    """A quiet site or a rare kind must not cost a scan of a million events."""
    plans = []

    def note(_cursor, sql, _bindings):
        if "FROM event" in sql and "EXPLAIN" not in sql:
            plans.append(sql)
        return True

    mixed.set_exec_trace(note)
    for wanted in (
        EventFilter(),
        EventFilter(site="docs"),
        EventFilter(kinds=frozenset({EventKind.GONE})),
        EventFilter(url="https://wiki.org/w0"),
    ):
        events.list_newest(mixed, wanted)
        events.list_after(mixed, 0, 10, wanted)
    mixed.set_exec_trace(None)
    assert len(plans) > 8
    for sql in plans:
        steps = mixed.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * sql.count("?"))
        assert not [step for *_, step in steps if step.startswith("SCAN event")], sql
