import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawld.core.page import Grace, Outcome
from crawld.store import visit
from crawld.store.changes import change, wiki, wiki_page
from crawld.store.changes.change import Change
from crawld.store.changes.wiki_page import ResolvedTitle, VisitedPage
from crawld.store.frontier import frontier
from crawld.store.frontier.caps import Caps
from tests.unit.store.rows import NOW, found, unlike


@pytest.fixture
def pages(connection):
    """Three pages of one origin that is a wiki."""
    new = frontier.discover(connection, [found(name) for name in "abc"], Caps())
    wiki.record_detection(connection, 1, 1, NOW, "https://example.org/api.php")
    return [page.page_id for page in new]


def wiki_of(connection):
    return wiki.list_wikis(connection)[0]


def register(connection, *entries, until=NOW + 100):
    pages = [
        (VisitedPage(page_id, "url", at, changed), title) for page_id, title, at, changed in entries
    ]
    return wiki_page.register(connection, wiki_of(connection).wiki_id, 1, pages, until)


def revision(number, at=NOW, **more):
    return Change(at, number, **more)


def state_of(connection, page_id):
    return wiki_page.get(connection, page_id).state


def read_part(connection, page, numbers, cursor, at=NOW):
    revisions = [revision(number) for number in numbers]
    wiki_page.record_part(connection, page, revisions, cursor=cursor, at=at, cap=10)


def resolve(connection, newest, *, number=7, at=NOW + 60):
    """Resolve the only unresolved page to the title A."""
    [page] = wiki_page.list_in_state(connection, 1, "unresolved")
    wiki_page.resolve(connection, page, ResolvedTitle(number, "A", newest), at)
    return wiki_page.get(connection, page.page_id)


def test_gone_pages_are_reopened_once(connection, pages):
    register(connection, *((page_id, f"T{page_id}", NOW, NOW) for page_id in pages))
    for page_id in pages:
        row = wiki_page.get(connection, page_id)
        wiki_page.close(connection, row, "refused", at=NOW + 10, detail="by its API")
    wiki_id = wiki_of(connection).wiki_id
    assert wiki_page.reopen_gone(connection, wiki_id, NOW + 99) == 0
    for page_id, gone_since in zip(pages, (NOW + 20, NOW + 5, NOW + 9_000), strict=True):
        gone = unlike(page_id, Outcome.GONE, gone_since, grace=Grace(1, gone_since))
        visit.record(connection, gone)
    # The second was resolved since; the third is gone in the future, since the clock was set back.
    assert wiki_page.reopen_gone(connection, wiki_id, NOW + 10) == 0
    assert wiki_page.reopen_gone(connection, wiki_id, NOW + 99) == 2
    states = [state_of(connection, page_id) for page_id in pages]
    assert states == ["unresolved", "refused", "unresolved"]
    assert wiki_page.reopen_gone(connection, wiki_id, NOW + 99) == 0
    row = wiki_page.get(connection, pages[2])
    wiki_page.close(connection, row, "refused", at=NOW + 99, detail="by its API")
    assert wiki_page.reopen_gone(connection, wiki_id, NOW + 99) == 0


class TestChanges:
    def test_are_stored_once_and_listed_newest_first_by_page(self, connection, pages):
        rows = [revision(1), revision(2), revision(3, NOW - 5), Change(NOW, 1, "log", "move")]
        assert change.insert(connection, pages[0], rows) == 4
        assert change.insert(connection, pages[0], reversed(rows)) == 0
        assert change.list_changes(connection, pages[0])[-1] == revision(3, NOW - 5)
        assert change.list_changes(connection, pages[1]) == []
        assert change.copy(connection, pages[1], pages[0]) == 3
        assert change.count(connection, pages[1]) == 3

    def test_are_read_in_storage_order(self, connection, pages):
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT changed_at FROM change WHERE page_id = 1"
            " ORDER BY changed_at DESC, revision_id DESC LIMIT 5"
        ).fetchall()
        assert [row[3] for row in plan] == ["SEARCH change USING PRIMARY KEY (page_id=?)"]

    def test_kinds_are_set(self, connection, pages):
        rows = [revision(1), revision(2, digest=-5, size_bytes=9)]
        change.insert(connection, pages[0], rows)
        change.set_kinds(connection, pages[0], [(rows[1], "revert")])
        assert change.list_changes(connection, pages[0])[0] == rows[1]._replace(kind="revert")

    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        max_examples=30,
    )
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=30))
    def test_are_a_set(self, connection, pages, rows):
        connection.execute("DELETE FROM change")
        for at, number in rows:
            change.insert(connection, pages[0], [revision(number, float(at))])
        rows_read = change.list_changes(connection, pages[0])
        stored = [(row.changed_at, row.revision_id) for row in rows_read]
        assert stored == sorted({(float(at), number) for at, number in rows}, reverse=True)


class TestReading:
    def test_a_page_goes_from_title_to_complete(self, connection, pages):
        assert register(connection, (pages[0], "A", NOW, NOW)) == 1
        resolve(connection, revision(3), at=NOW)
        [page] = wiki_page.list_in_state(connection, 1, "open")
        assert (page.wiki_page_number, page.latest_revision_id) == (7, 3)
        read_part(connection, page, [3, 2], "x")
        page = wiki_page.get(connection, pages[0])
        assert (page.state, page.cursor, page.began_at) == ("open", "x", NOW)
        read_part(connection, page, [1], None, NOW + 9)
        page = wiki_page.get(connection, pages[0])
        # Changes between the first part and the last are not among those read.
        assert (page.state, page.complete_until, page.capped) == ("read", NOW, False)
        wiki_page.mark_complete(connection, page)
        assert wiki.progress(connection, 1) == {"complete": 1}
        assert wiki_of(connection).change_count == 3

    def test_a_second_reading_ends_at_stored_changes(self, connection, pages):
        self.test_a_page_goes_from_title_to_complete(connection, pages)
        assert register(connection, (pages[0], "A", NOW + 50, NOW - 1)) == 0
        # In the future: the clock was set back.
        assert register(connection, (pages[0], "A", NOW + 50, NOW + 40), until=NOW) == 0
        assert register(connection, (pages[0], "A", NOW + 50, NOW + 40)) == 1
        resolve(connection, revision(5, NOW + 30))
        [page] = wiki_page.list_in_state(connection, 1, "open")
        part = [revision(5, NOW + 30), revision(4, NOW + 20), revision(3)]
        wiki_page.record_part(connection, page, part, cursor="x", at=NOW + 60, cap=10)
        [page] = wiki_page.list_in_state(connection, 1, "open")
        read_part(connection, page, [2, 1], "y")
        page = wiki_page.get(connection, pages[0])
        assert (page.state, page.complete_until) == ("read", NOW + 60)

    @pytest.mark.parametrize(("number", "state"), [(7, ("read", NOW + 60)), (8, ("open", None))])
    def test_only_another_page_at_the_title_is_read_again(self, connection, pages, number, state):
        self.test_a_page_goes_from_title_to_complete(connection, pages)
        register(connection, (pages[0], "A", NOW + 50, NOW + 40))
        page = resolve(connection, revision(3), number=number)
        assert (page.state, page.complete_until) == state

    def test_a_redirect_copies_a_stored_history(self, connection, pages):
        self.test_a_page_goes_from_title_to_complete(connection, pages)
        register(connection, (pages[1], "B", NOW, NOW))
        page = resolve(connection, revision(3))
        # It is complete up to the same time as the other, and no further.
        assert (page.state, page.complete_until) == ("read", NOW)
        assert change.count(connection, pages[1]) == 3
        assert wiki_of(connection).change_count == 6

    def test_a_missing_page_that_answers_again_is_resolved_again(self, connection, pages):
        register(connection, (pages[0], "A", NOW, NOW))
        [page] = wiki_page.list_in_state(connection, 1, "unresolved")
        wiki_page.close(connection, page, "missing", at=NOW + 10, detail="deletion")
        assert register(connection, (pages[0], "A", NOW + 5, NOW)) == 0
        assert register(connection, (pages[0], "A", NOW + 20, NOW)) == 1

    def test_pages_with_the_fewest_requests_are_next(self, connection, pages):
        register(connection, *((page, str(page), NOW, NOW) for page in pages))
        rows = wiki_page.list_in_state(connection, 1, "unresolved", limit=3)
        wiki_page.record_failure(connection, rows[:1], "no")
        rows = wiki_page.list_in_state(connection, 1, "unresolved", limit=3)
        assert [row.page_id for row in rows] == [pages[1], pages[2], pages[0]]
        assert (rows[2].failure_count, rows[2].detail) == (1, "no")

    def test_trouble_is_counted_and_cleared_by_an_answer(self, connection, pages):
        for count in (1, 2):
            wiki.record_failure(connection, 1, "lagged", "7 s", NOW + count)
            row = wiki_of(connection)
            assert (row.trouble_count, row.closed_until) == (count, NOW + count)
        wiki.record_response(connection, 1)
        row = wiki_of(connection)
        assert (row.trouble, row.trouble_count, row.closed_until) == (None, 0, None)
        assert row.request_count == 3

    def test_a_detection_without_an_api_keeps_a_known_api(self, connection, pages):
        wiki.record_detection(connection, 1, 1, NOW + 5, None)
        assert wiki_of(connection).api_url == "https://example.org/api.php"

    def test_visited_pages_are_read_by_index(self, connection, pages):
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT page_id FROM page"
            " WHERE host_id = 1 AND site_id = 1 AND state IN ('visited', 'gone')"
            " AND retry_at IS NULL AND (last_visit_at, page_id) > (1, 2) AND last_visit_at >= 1"
            " AND origin_id = 1 ORDER BY last_visit_at, page_id LIMIT 5"
        ).fetchall()
        index = "page_revisit (host_id=? AND site_id=? AND last_visit_at>?)"
        assert f"USING INDEX {index}" in plan[0][3]
