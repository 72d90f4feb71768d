"""Histories that follow renamed pages to their new titles."""

import pytest

from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.changes import change, wiki_page
from crawld.store.changes.change import Change
from crawld.store.frontier import frontier, rename, site
from crawld.store.frontier.rename import Rename
from tests.unit.store.rows import NOW, changed, found, unlike

MOVED_AT = NOW + 100


def url(path):
    return f"https://example.org/{path}"


def renamed(old, new, at=MOVED_AT, **more):
    return Rename(url(old), url(new), new.upper(), at, **more)


@pytest.fixture
def pages(connection):
    """Return a function that adds pages, each with copies made at some times."""

    def add(**copies):
        ids = {}
        for name, times in copies.items():
            [new] = frontier.discover(connection, [found(name)])
            ids[name] = new.page_id
            for at in times:
                visit.record(connection, changed(new.page_id, f"{name} {at}".encode(), at))
        return ids

    return add


def apply(connection, *renames, beside=()):
    with connection:
        return rename.apply(connection, 1, rename.net_renames(renames), beside=beside)


def copies(connection, page_id):
    rows = connection.execute(
        "SELECT visited_at FROM version WHERE page_id = ? ORDER BY 1", (page_id,)
    )
    return [at for (at,) in rows]


def shown(connection, page_id):
    """Return the time of the current copy of a page, and where it redirects."""
    sql = (
        "SELECT (SELECT visited_at FROM version WHERE version.version_id = page.version_id),"
        " redirect_url FROM page WHERE page_id = ?"
    )
    return connection.execute(sql, (page_id,)).fetchone()


def is_sound(connection):
    return not connection.execute("PRAGMA foreign_key_check").fetchall()


def test_a_renamed_page_takes_its_copies_and_leaves_a_redirect(connection, pages):
    ids = pages(a=[NOW, NOW + 50], b=[])
    assert apply(connection, renamed("a", "b")) == 1
    assert copies(connection, ids["b"]) == [NOW, NOW + 50]
    assert shown(connection, ids["b"]) == (NOW + 50, None)
    assert shown(connection, ids["a"]) == (None, url("b"))
    assert is_sound(connection)


def test_without_a_redirect_the_old_page_is_empty(connection, pages):
    ids = pages(a=[NOW], b=[])
    assert apply(connection, renamed("a", "b", leaves_redirect=False)) == 1
    assert shown(connection, ids["a"]) == (None, None)


def test_pages_that_swap_their_titles_swap_their_histories(connection, pages):
    ids = pages(a=[NOW, NOW + 10], b=[NOW + 5])
    swap = (renamed("a", "t"), renamed("b", "a"), renamed("t", "b"))
    assert apply(connection, *swap) == 2
    assert copies(connection, ids["a"]) == [NOW + 5]
    assert copies(connection, ids["b"]) == [NOW, NOW + 10]
    assert shown(connection, ids["a"]) == (NOW + 5, None)
    assert shown(connection, ids["b"]) == (NOW + 10, None)
    assert is_sound(connection)


def test_a_way_back_is_no_rename(connection, pages):
    ids = pages(a=[NOW], b=[])
    assert apply(connection, renamed("a", "b"), renamed("b", "a")) == 0
    assert copies(connection, ids["a"]) == [NOW]


def test_a_visit_of_the_new_title_before_the_report_continues_the_history(connection, pages):
    ids = pages(a=[NOW, NOW + 50], b=[NOW + 101])
    assert apply(connection, renamed("a", "b")) == 1
    assert copies(connection, ids["b"]) == [NOW, NOW + 50, NOW + 101]
    assert shown(connection, ids["b"])[0] == NOW + 101


def test_two_pages_that_have_become_one_keep_their_histories(connection, pages):
    ids = pages(a=[NOW, NOW + 50], b=[NOW + 20])
    assert apply(connection, renamed("a", "b")) == 0
    assert copies(connection, ids["a"]) == [NOW, NOW + 50]
    assert copies(connection, ids["b"]) == [NOW + 20]


def test_a_new_page_at_the_old_title_keeps_its_own_copies(connection, pages):
    ids = pages(a=[NOW, NOW + 150], b=[])
    assert apply(connection, renamed("a", "b")) == 1
    assert copies(connection, ids["a"]) == [NOW + 150]
    assert copies(connection, ids["b"]) == [NOW]
    assert shown(connection, ids["b"])[0] == NOW
    assert shown(connection, ids["a"])[0] == NOW + 150


def test_revisions_follow_and_those_of_the_former_page_go(connection, pages):
    ids = pages(a=[NOW], b=[])
    connection.execute("INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, 1, 0)")
    for name, number in (("a", 5), ("b", 9)):
        connection.execute(
            "INSERT INTO wiki_page (page_id, wiki_id, title, state, wiki_page_number,"
            " complete_until) VALUES (?, 1, ?, 'complete', ?, ?)",
            (ids[name], name.upper(), number, NOW),
        )
        change.insert(connection, ids[name], [Change(NOW, number), Change(NOW, number, "log")])
    visit.record(connection, unlike(ids["b"], Outcome.GONE, NOW + 20))
    apply(connection, renamed("a", "b"))
    stored = [(each.revision_id, each.source) for each in change.list_changes(connection, ids["b"])]
    assert sorted(stored) == [(5, "revision"), (9, "log")]
    row = wiki_page.get(connection, ids["b"])
    assert (row.title, row.state, row.wiki_page_number) == ("B", "unresolved", 5)
    assert row.complete_until == NOW  # only what is newer has to be read
    assert wiki_page.get(connection, ids["a"]) is None


def test_pages_of_other_sites_stay(connection, pages):
    ids = pages(a=[NOW], b=[])
    assert rename.apply(connection, 2, [renamed("a", "b")]) == 0
    assert copies(connection, ids["a"]) == [NOW]
    assert rename.known_urls(connection, 1, [url("a"), url("x")]) == {url("a")}


@pytest.mark.parametrize("beside", [(), (1, 2)])
def test_a_history_follows_to_a_page_that_another_site_of_the_wiki_named(connection, pages, beside):
    ids = pages(a=[NOW], b=[NOW + 150])
    site.upsert(connection, "t", "{}", source="config", at=NOW)
    connection.execute("UPDATE page SET site_id = 2 WHERE page_id = ?", (ids["b"],))
    moved = apply(connection, renamed("a", "b"), beside=beside)
    assert moved == len(beside[1:])
    assert copies(connection, ids["b"]) == [NOW, NOW + 150][1 - moved :]
    # The pages of another site give no history away.
    assert apply(connection, renamed("b", "a", NOW + 300), beside=[1, 2]) == 0
