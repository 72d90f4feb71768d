"""Histories that are read again lose the revisions that the wiki no longer shows."""

import pytest

from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.changes import change, wiki, wiki_page
from crawld.store.changes.change import Change
from crawld.store.changes.wiki_page import ResolvedTitle
from crawld.store.frontier import frontier
from tests.unit.store.rows import NOW, changed, found


@pytest.fixture
def page(connection):
    """Return a page whose history of three revisions is complete; it is the wiki's page 7."""
    [new] = frontier.discover(connection, [found("a")])
    visit.record(connection, changed(new.page_id, b"one", NOW))
    connection.execute("INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)")
    connection.execute("INSERT INTO wiki_site (wiki_id, site_id) VALUES (1, 1)")
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number,"
        " latest_revision_id, complete_until) VALUES (?, 1, 'A', 'complete', 7, 3, ?)",
        (new.page_id, NOW),
    )
    wiki_page.add_changes(connection, row(connection, new.page_id), revisions(1, 2, 3))
    return new.page_id


def revisions(*numbers):
    return [Change(NOW - 100 + number, number) for number in numbers]


def row(connection, page):
    return wiki_page.get(connection, page)


def numbers(connection, page):
    return [each.revision_id for each in change.list_changes(connection, page)]


def read(connection, page, *parts):
    for number, part in enumerate(parts, 1):
        cursor = None if number == len(parts) else "more"
        changes = revisions(*part)
        before = row(connection, page)
        wiki_page.record_part(connection, before, changes, cursor=cursor, at=NOW + 60, cap=100)


def test_a_restoration_in_part_is_read_completely(connection, page):
    [known] = wiki.list_wikis(connection)
    entry = Change(NOW, 4, "log", "restoration")
    wiki_page.add_log(connection, known, [(url_hash("https://example.org/a"), entry)])
    assert row(connection, page).state == "unresolved"
    shown = ResolvedTitle(7, "A", Change(NOW - 98, 2))
    wiki_page.resolve(connection, row(connection, page), shown, NOW + 60)
    assert row(connection, page).state == "open"
    read(connection, page, [2])
    assert numbers(connection, page) == [4, 2]  # 4 is the entry of the log


def test_merged_revisions_are_read_in_parts(connection, page):
    [known] = wiki.list_wikis(connection)
    wiki_page.add_log(connection, known, [(url_hash("https://example.org/a"), None)])
    shown = ResolvedTitle(7, "A", Change(NOW - 95, 5))
    wiki_page.resolve(connection, row(connection, page), shown, NOW + 60)
    read(connection, page, [5, 3])
    assert numbers(connection, page) == [5, 3]
    wiki_page.add_log(connection, known, [(url_hash("https://example.org/a"), None)])
    wiki_page.resolve(connection, row(connection, page), shown, NOW + 60)
    wiki_page.add_changes(connection, row(connection, page), revisions(1, 2, 4))
    read(connection, page, [5, 4], [2])
    assert numbers(connection, page) == [5, 4, 2]
    assert row(connection, page).state == "read"


def test_an_edit_while_a_history_is_read_stays(connection, page):
    [known] = wiki.list_wikis(connection)
    wiki_page.add_log(connection, known, [(url_hash("https://example.org/a"), None)])
    wiki_page.resolve(connection, row(connection, page), ResolvedTitle(7, "A", None), NOW + 59)
    change.insert(connection, page, [Change(NOW + 58, 9)])
    read(connection, page, [3, 2, 1])
    assert numbers(connection, page) == [9, 3, 2, 1]


def test_another_page_at_a_title_begins_a_history(connection, page):
    shown = ResolvedTitle(8, "A", Change(NOW + 1, 6))
    wiki_page.resolve(connection, row(connection, page), shown, NOW + 60)
    assert numbers(connection, page) == [6]
    [counted] = connection.execute("SELECT change_count FROM wiki")
    assert counted == (1,)


def test_a_redirect_to_a_page_that_is_known_has_its_revisions_only(connection, page):
    [new] = frontier.discover(connection, [found("b")])
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number)"
        " VALUES (?, 1, 'B', 'unresolved', 8)",
        (new.page_id,),
    )
    wiki_page.add_changes(connection, row(connection, new.page_id), revisions(50, 51))
    shown = ResolvedTitle(7, "A", Change(NOW - 97, 3))
    wiki_page.resolve(connection, row(connection, new.page_id), shown, NOW + 60)
    assert numbers(connection, new.page_id) == [3, 2, 1]


def test_a_page_that_is_read_again_comes_before_pages_that_were_never_read(connection, page):
    [other] = frontier.discover(connection, [found("b")])
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number)"
        " VALUES (?, 1, 'B', 'complete', 8)",
        (other.page_id,),
    )
    connection.execute("UPDATE wiki_page SET state = 'unresolved', tries = 0 WHERE title = 'A'")

    def first(state):
        return wiki_page.list_in_state(connection, 1, state)[0].title

    assert first("unresolved") == "A"
    wiki_page.read_again(connection, 1, other.page_id)
    assert first("unresolved") == "B"
    for waiting in wiki_page.list_in_state(connection, 1, "unresolved", limit=9):
        number = 7 if waiting.title == "A" else 8
        shown = ResolvedTitle(number, waiting.title, Change(NOW, 9))
        wiki_page.resolve(connection, waiting, shown, NOW + 60)
    assert first("open") == "B"


@pytest.mark.parametrize(("age_s", "expected"), [(-60.0, "B"), (60.0, "A")])
def test_a_page_that_changed_since_its_wiki_is_followed_is_read_before_older_ones(
    connection, page, age_s, expected
):
    [other] = frontier.discover(connection, [found("b")])
    connection.execute(
        "INSERT INTO wiki_page (page_id, wiki_id, title, state) VALUES (?, 1, 'B', 'unresolved')",
        (other.page_id,),
    )
    connection.execute(
        "UPDATE wiki_page SET state = 'unresolved', complete_until = NULL WHERE title = 'A'"
    )
    connection.execute("UPDATE wiki SET fed_since = ?", (NOW,))
    # B was imported, or moved here from outside: no revision that is stored tells of its past.
    newest = {"A": ResolvedTitle(7, "A", Change(NOW - 9, 4))}
    newest["B"] = ResolvedTitle(8, "B", Change(NOW - age_s, 9))
    for waiting in wiki_page.list_in_state(connection, 1, "unresolved", limit=9):
        wiki_page.resolve(connection, waiting, newest[waiting.title], NOW + 60)
    assert wiki_page.list_in_state(connection, 1, "open")[0].title == expected


@pytest.mark.parametrize("answer", ["title", "part", "missing"])
def test_a_response_that_a_rename_overtook_is_dropped(connection, page, answer):
    wiki_page.read_again(connection, 1, page)
    asked = row(connection, page)
    if answer == "part":
        wiki_page.resolve(connection, asked, ResolvedTitle(7, "A", Change(NOW, 9)), NOW + 60)
        asked = row(connection, page)
    connection.execute(
        "UPDATE wiki_page SET title = 'B', wiki_page_number = 8, state = 'unresolved'"
    )
    renamed = row(connection, page)
    if answer == "title":
        wiki_page.resolve(connection, asked, ResolvedTitle(7, "A", Change(NOW, 9)), NOW + 61)
    elif answer == "part":
        wiki_page.record_part(connection, asked, revisions(5), cursor=None, at=NOW + 61, cap=100)
    else:
        wiki_page.close(connection, asked, "lost", at=NOW + 61, detail="none")
    assert row(connection, page) == renamed
    assert 5 not in numbers(connection, page)
