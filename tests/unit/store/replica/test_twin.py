"""Comparisons of pages with their twins: what is compared, what is due, and what is kept."""

import apsw
import pytest

from crawld.core.page import Outcome
from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.sections import SectionState
from crawld.store import visit
from crawld.store.replica import due_pages, pages, replica, twin, twin_facts
from crawld.store.replica.sample import STAND_IN_PREFIX, has_shown
from crawld.store.replica.twin import TwinRow
from tests.unit.store.replica.test_replica import AT, COPY, KEPT, ONE_ID, OTHER_ID, File, both
from tests.unit.store.rows import unlike
from tests.unit.store.twins import compare, rest_agreeing

HOUR_S, DAY_S = 3_600.0, 86_400.0


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")
    made = File(connection)
    both(made, "/", "/a", "/b")
    status = ("pruned", "why")
    replica.put_replica(connection, OTHER_ID, ONE_ID, *status, now=AT, look_at=AT + 9)
    return made


def facts_of(file, path):
    [found] = twin_facts.twin_facts(file.connection, [file.number(f"{COPY}{path}")], ONE_ID)
    return found


def row_of(file, path, verdict, at, **more):
    page_id, twin_id = file.number(f"{COPY}{path}"), file.number(f"{KEPT}{path}")
    values = {"digest": b"text", "visited_at": at, "compared_at": at} | more
    return TwinRow(page_id, OTHER_ID, twin_id, verdict, **values)


def history_of(file, path):
    [found] = [
        (page.agreed, page.turns, page.turned_at)
        for page in twin.compared_pages(file.connection, OTHER_ID, ONE_ID, 0, 99)
        if page.url == f"{COPY}{path}"
    ]
    return found


def test_the_times_of_the_twin_around_a_visit(file):
    page, there = file.number(f"{COPY}/a"), file.number(f"{KEPT}/a")
    facts = facts_of(file, "/a")
    # Both have one body, which agrees whenever it was shown.
    assert (facts.then_id, facts.is_steady, facts.seen_at, facts.lost_at) == (None, False, AT, None)
    file.visit(page, b"other", AT + HOUR_S)
    facts = facts_of(file, "/a")
    assert not facts.is_steady  # the twin was not visited since
    assert facts.then_id == facts.twin.version_id
    file.visit(there, b"third", AT + 2 * HOUR_S)
    facts = facts_of(file, "/a")
    assert not facts.is_steady
    assert facts.then_id != facts.twin.version_id
    file.visit(page, b"other", AT + 3 * HOUR_S)
    visit.record(file.connection, unlike(there, Outcome.NOT_MODIFIED, at=AT + 4 * HOUR_S))
    facts = facts_of(file, "/a")
    assert (facts.is_steady, facts.seen_at) == (True, AT + 4 * HOUR_S)


def test_a_text_that_the_twin_lost_is_known_by_its_last_time(file):
    there = file.number(f"{KEPT}/a")
    for hours, text in ((1, b"new"), (2, b"/a"), (5, b"newer")):
        file.visit(there, text, AT + hours * HOUR_S)
    assert facts_of(file, "/a").lost_at == AT + 5 * HOUR_S


def test_a_copy_that_a_replica_answered_proves_nothing(file):
    there = file.number(f"{KEPT}/a")
    file.visit(there, b"new", AT + HOUR_S)
    file.connection.execute(
        "UPDATE visit SET detail = ? WHERE visited_at = ?",
        (f"{STAND_IN_PREFIX}www.a.test", AT + HOUR_S),
    )
    file.visit(file.number(f"{COPY}/a"), b"new", AT + 2 * HOUR_S)
    facts = facts_of(file, "/a")
    assert facts.stands_in
    assert facts.then_id is None
    assert has_shown(file.connection, there, b"new")
    assert not has_shown(file.connection, there, b"never")


def test_pages_without_a_twin_have_no_facts(connection, file):
    only = file.page(f"{COPY}/own")
    new = file.page(f"{COPY}/new", visited=False)
    file.page(f"{KEPT}/new")
    assert twin_facts.twin_facts(connection, [only, new], ONE_ID) == []


def test_the_history_of_a_page_counts_agreements_in_a_row_and_turns(connection, file):
    history = [
        (PageVerdict.DIFFERS, (0, 0, 0.0)),
        (PageVerdict.AGREES, (1, 0, 0.0)),
        (PageVerdict.AGREES, (2, 0, 0.0)),
        (PageVerdict.UNKNOWN, (2, 0, 0.0)),
        (PageVerdict.DIFFERS, (0, 1, AT + 4)),
        (PageVerdict.DIFFERS, (0, 1, AT + 4)),
        (PageVerdict.AGREES, (1, 1, AT + 4)),
        (PageVerdict.REPEATED, (0, 2, AT + 7)),
    ]
    for at, (verdict, known) in enumerate(history):
        twin.put(connection, [row_of(file, "/a", verdict, AT + at)])
        assert history_of(file, "/a") == known
    # With another twin it begins anew.
    other = file.page("https://b.test/a")
    page_id = file.number(f"{COPY}/a")
    twin.put(
        connection,
        [TwinRow(page_id, OTHER_ID, other, PageVerdict.AGREES, None, AT + 9, AT + 9)],
    )
    assert history_of(file, "/a") == (1, 0, 0.0)


def test_a_released_page_waits_for_a_decisive_comparison(connection, file):
    rest_agreeing(connection, OTHER_ID, ONE_ID)
    page_id = file.number(f"{COPY}/a")
    twin.release(connection, [page_id], AT + 50)
    assert set(twin.released_pages(connection, [page_id])) == {page_id}
    for verdict, at, waits in (
        (PageVerdict.AGREES, AT + 49, True),  # of the visit before
        (PageVerdict.UNKNOWN, AT + 60, True),
        (PageVerdict.AGREES, AT + 60, False),
    ):
        twin.put(connection, [row_of(file, "/a", verdict, at)])
        assert bool(twin.released_pages(connection, [page_id])) == waits


def test_a_text_on_many_paths_proves_nothing(connection, file):
    twin.put(
        connection,
        [row_of(file, path, PageVerdict.AGREES, AT) for path in ("/", "/a", "/b")],
    )
    assert twin.repeated_pages(connection, OTHER_ID, 4) == []
    repeated = twin.repeated_pages(connection, OTHER_ID, 3)
    assert len(repeated) == 3
    twin.mark_repeated(connection, repeated)
    assert twin.repeated_pages(connection, OTHER_ID, 3) == []
    assert {page.verdict for page in twin.compared_pages(connection, OTHER_ID, ONE_ID, 0, 9)} == {
        PageVerdict.REPEATED
    }


def test_pages_are_due_when_they_or_their_twins_were_visited(connection, file):
    both_ids = (OTHER_ID, ONE_ID, 0, 99)
    every = [file.number(f"{COPY}{path}") for path in ("/", "/a", "/b")]
    assert due_pages.uncompared(connection, *both_ids) == every
    compare(connection, OTHER_ID, ONE_ID)
    assert due_pages.uncompared(connection, *both_ids) == []
    last = connection.execute("SELECT max(visit_id) FROM visit").get
    file.visit(every[1], b"new", AT + 9)
    file.visit(file.number(f"{KEPT}/b"), b"new", AT + 9)
    assert due_pages.uncompared(connection, *both_ids) == [every[1]]
    assert due_pages.visited_between(connection, last, last + 99) == [(OTHER_ID, every[1])]
    twin.put(connection, [row_of(file, "/b", PageVerdict.UNKNOWN, AT)])
    assert due_pages.undecided(connection, 99) == [(OTHER_ID, every[2])]
    replica.put_replica(connection, OTHER_ID, ONE_ID, "withdrawn", "why", now=AT, look_at=AT)
    assert due_pages.undecided(connection, 99) == []


def test_pages_at_rest_without_agreement_are_restless(connection, file):
    rest_agreeing(connection, OTHER_ID, ONE_ID)
    both_ids = (OTHER_ID, ONE_ID, 0, 99)
    assert due_pages.restless(connection, *both_ids) == []
    root, gone, old = (file.number(f"{COPY}{path}") for path in ("/", "/a", "/b"))
    # Suspended by an older version of crawld; its twin is gone; it differs now.
    connection.execute("DELETE FROM page_twin WHERE page_id = ?", (old,))
    connection.execute("UPDATE page SET state = 'gone' WHERE url = ?", (f"{KEPT}/a",))
    twin.put(connection, [row_of(file, "/", PageVerdict.DIFFERS, AT)])
    assert due_pages.restless(connection, *both_ids) == sorted((root, gone, old))
    # Nothing was compared with another canonical host.
    assert len(due_pages.restless(connection, OTHER_ID, 3, 0, 99)) == 3


def test_a_deferred_page_is_visited_at_its_time(connection, file):
    file.page(f"{KEPT}/c")
    page_id = file.page(f"{COPY}/c", visited=False)
    file.page(f"{COPY}/own", visited=False)
    found, after = due_pages.unvisited(connection, OTHER_ID, ONE_ID, 0, 99)
    assert [(page.page_id, page.target, after) for page in found] == [(page_id, "/c", None)]
    assert due_pages.unvisited_sites(connection, [page_id, file.number(f"{COPY}/a")]) == {
        page_id: 1
    }
    row = row_of(file, "/c", PageVerdict.DEFERRED, 0.0, digest=None, visit_at=AT + DAY_S)
    twin.put(connection, [row])
    assert pages.suspend(connection, [page_id]) == 1
    assert due_pages.unvisited(connection, OTHER_ID, ONE_ID, 0, 99) == ([], None)
    assert due_pages.deferred_until(connection, AT, 9) == []
    assert due_pages.deferred_until(connection, AT + DAY_S, 9) == [(OTHER_ID, page_id)]
    for status, found in (("withdrawn", []), ("partly", [(OTHER_ID, page_id)])):
        replica.put_replica(connection, OTHER_ID, ONE_ID, status, "why", now=AT, look_at=AT)
        assert due_pages.deferred_until(connection, AT + DAY_S, 9) == found
    twin.release(connection, [page_id], AT + DAY_S)
    [back] = pages.resume(connection, [page_id])
    assert not back.visited
    assert due_pages.deferred_until(connection, AT + 99 * DAY_S, 9) == []


def test_a_page_is_due_when_its_first_twin_was_visited(connection, file):
    own = file.page(f"{COPY}/late", digest=b"late")
    file.page(f"{COPY}/alone", digest=b"alone")
    last = connection.execute("SELECT max(visit_id) FROM visit").get
    assert due_pages.first_twins_between(connection, last, last + 99) == []
    file.page(f"{KEPT}/late", digest=b"late")
    assert due_pages.first_twins_between(connection, last, last + 99) == [(OTHER_ID, own)]
    twin.put(connection, [row_of(file, "/late", PageVerdict.AGREES, AT)])
    assert due_pages.first_twins_between(connection, last, last + 99) == []
    replica.put_replica(connection, OTHER_ID, ONE_ID, "withdrawn", "why", now=AT, look_at=AT)
    connection.execute("DELETE FROM page_twin")
    assert due_pages.first_twins_between(connection, last, last + 99) == []


def test_recent_visits_of_the_twin_are_counted(connection, file):
    compare(connection, OTHER_ID, ONE_ID)
    for days in (1, 40, 50):
        file.visit(file.number(f"{KEPT}/a"), b"new", AT + days * DAY_S)

    def counts(since):
        pages = twin.compared_pages(connection, OTHER_ID, ONE_ID, 0, 9, since=since)
        return {page.url.removeprefix(COPY): page.twin_visits for page in pages}

    assert counts(0.0) == {"/": 1, "/a": 4, "/b": 1}
    assert counts(AT + 20 * DAY_S) == {"/": 0, "/a": 2, "/b": 0}


def test_visits_of_a_twin_are_known_since_the_first_that_is_kept(connection, file):
    """A page may have been found long before: its visits of that time would count as none."""
    compare(connection, OTHER_ID, ONE_ID)
    page_id = file.number(f"{KEPT}/a")
    connection.execute("UPDATE page SET discovered_at = ?", (AT - 90 * DAY_S,))
    file.visit(page_id, b"new", AT + DAY_S)

    def since():
        pages = twin.compared_pages(connection, OTHER_ID, ONE_ID, 0, 9)
        return next(page.twin_known_since for page in pages if page.url == f"{COPY}/a")

    first = connection.execute("SELECT min(visited_at) FROM visit WHERE page_id = ?", (page_id,))
    assert since() == first.get >= AT
    connection.execute("DELETE FROM visit WHERE page_id = ?", (page_id,))
    assert since() == AT - 90 * DAY_S


def test_reads_for_each_run_search_by_keys(connection, file):
    rest_agreeing(connection, OTHER_ID, ONE_ID)
    costs = []
    connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE, lambda run: costs.append((run["sql"], run["stmt_status"]))
    )
    due_pages.visited_between(connection, 0, 99)
    due_pages.first_twins_between(connection, 0, 99)
    due_pages.undecided(connection, 99)
    due_pages.deferred_until(connection, AT, 99)
    due_pages.restless(connection, OTHER_ID, ONE_ID, 0, 99)
    due_pages.uncompared(connection, OTHER_ID, ONE_ID, 0, 99)
    due_pages.unvisited(connection, OTHER_ID, ONE_ID, 0, 99)
    twin.compared_pages(connection, OTHER_ID, ONE_ID, 0, 99)
    connection.trace_v2(0)
    assert len(costs) >= 7
    for sql, cost in costs:
        assert cost["SQLITE_STMTSTATUS_FULLSCAN_STEP"] == 0, sql


def test_sections_and_comparisons_are_forgotten_with_the_replica(connection, file):
    compare(connection, OTHER_ID, ONE_ID)
    states = {"/": SectionState(True), "/a/": SectionState(False, True, AT, 2)}
    twin.put_sections(connection, OTHER_ID, states)
    assert twin.section_states(connection, OTHER_ID) == states
    assert twin.forget(connection, OTHER_ID, 2) == 2
    assert twin.forget(connection, OTHER_ID, 2) == 1
    replica.drop_replica(connection, OTHER_ID)
    assert twin.section_states(connection, OTHER_ID) == {}
