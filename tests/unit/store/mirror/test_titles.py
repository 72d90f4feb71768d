"""Lists of pages by title, suggestions and random pages."""

import itertools

import pytest

from crawld.core.page import Outcome, PageState
from crawld.store import visit
from crawld.store.frontier import frontier, page_share, site
from crawld.store.mirror import titles
from crawld.store.mirror.titles import START
from crawld.store.visit import VisitRecord
from tests.unit.store.rows import NOW, changed, found


def store(connection, named, *, site_id=1, host="example.org"):
    """Store pages by path and title; return their page_ids."""
    added = [found(path, site_id=site_id, host=host) for path in named]
    ids = {new.url.rsplit("/", 1)[1]: new.page_id for new in frontier.discover(connection, added)}
    for path, title in named.items():
        visit.record(connection, changed(ids[path], path.encode(), NOW, title=title))
    return ids


def walk(connection, site_id, limit, **more):
    """Return the titles of all parts of a list."""
    parts, after = [], START
    while after is not None:
        pages, after = titles.list_titles(connection, site_id, after=after, limit=limit, **more)
        parts.append([page.title for page in pages])
    return parts


NAMED = {"1": "Pear", "2": "apple", "3": "Apple", "4": None, "5": "Apple", "6": "Äpfel", "7": ""}


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_list_is_complete_and_in_order(connection, limit):
    store(connection, NAMED)
    frontier.discover(connection, [found("unvisited")])
    listed = list(itertools.chain(*walk(connection, 1, limit)))
    untitled = ["https://example.org/4", "https://example.org/7"]
    assert listed == ["apple", "Apple", "Apple", *untitled, "Pear", "Äpfel"]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_list_of_titles_that_begin_so(connection, limit):
    store(connection, NAMED)
    listed = list(itertools.chain(*walk(connection, 1, limit, begins="aPP")))
    assert listed == ["apple", "Apple", "Apple"]
    assert titles.count_titles(connection, 1, "aPP", at_most=2) == 2
    assert titles.count_titles(connection, 1, "b", at_most=2) == 0


def test_shared_pages_come_after_the_own_ones(connection, monkeypatch):
    ids = store(connection, NAMED)
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    store(connection, {"z": "Zucchini"}, site_id=other)
    page_share.replace_all(connection, {other: {ids["1"], ids["3"], ids["6"]}})
    assert walk(connection, other, 2) == [["Zucchini", "Pear"], ["Apple", "Äpfel"]]
    assert walk(connection, other, 9, begins="A") == [["Apple"]]
    monkeypatch.setattr(titles, "MAX_EXAMINED", 1)
    assert list(itertools.chain(*walk(connection, other, 9, begins="A"))) == ["Apple"]


def test_the_name_of_the_site_is_not_listed(connection):
    store(connection, {"1": "Pear - Wiki", "2": "Apple - Wiki", "3": "Fig - Wiki", "4": "Main"})
    assert walk(connection, 1, 9) == [["Apple", "Fig", "Main", "Pear"]]
    assert [page.title for page in titles.suggest(connection, "fi")] == ["Fig"]


def test_first_letters(connection):
    store(connection, NAMED)
    assert titles.first_letters(connection, 1) == ["A", "H", "P", "Ä"]


def test_suggestions_are_sorted_over_sites_and_withheld_pages_are_not_among_them(connection):
    store(connection, NAMED)
    other = site.upsert(
        connection, "other", '{"deleted_pages": "withhold"}', source="config", at=NOW
    )
    ids = store(connection, {"a": "Apple pie", "b": "APPLE"}, site_id=other, host="other.example")
    gone = VisitRecord(
        page_id=ids["b"], visited_at=NOW + 1, outcome=Outcome.GONE, state=PageState.GONE
    )
    visit.record(connection, gone)
    assert [page.title for page in titles.suggest(connection, " app ")] == [
        *("apple", "Apple", "Apple", "Apple pie")
    ]
    assert [page.title for page in titles.suggest(connection, "app", limit=1)] == ["apple"]
    assert [page.title for page in titles.suggest(connection, "äpf")] == ["Äpfel"]
    assert titles.suggest(connection, " ") == titles.suggest(connection, "nothing") == []


def test_each_read_seeks(connection, monkeypatch):
    """No read of a list scans the pages: it names its index, and its steps do not grow."""
    store(connection, {str(k): f"Title {k:04}" for k in range(300)})
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    store(connection, {"z": "Zucchini"}, site_id=other)
    counted = 0

    def count():
        nonlocal counted
        counted += 1
        return False

    def steps(read):
        nonlocal counted
        counted = 0
        connection.set_progress_handler(count, 10)
        read()
        connection.set_progress_handler(None)
        return counted

    def reads():
        after = titles.list_titles(connection, 1, limit=10)[1]
        return [
            steps(lambda: titles.list_titles(connection, 1, limit=10)),
            steps(lambda: titles.list_titles(connection, 1, after=after, limit=10)),
            steps(lambda: titles.list_titles(connection, other, limit=10)),
            steps(lambda: titles.first_letters(connection, 1)),
            steps(lambda: titles.suggest(connection, "title", limit=3)),
            steps(lambda: titles.random_page(connection, itertools.repeat(0.5))),
        ]

    before = reads()
    store(connection, {str(k): f"Title {k:04}" for k in range(300, 900)})
    assert all(now <= 1.2 * then + 5 for now, then in zip(reads(), before, strict=True))


def test_random_pages_are_those_with_a_copy(connection):
    draws = itertools.cycle([0.0, 0.31, 0.62, 0.93])
    assert titles.random_page(connection, draws) is None
    store(connection, {"1": "A", "2": "B"})
    frontier.discover(connection, [found("unvisited")])
    seen = {titles.random_page(connection, draws) for _ in range(20)}
    assert seen == {"https://example.org/1", "https://example.org/2"}
