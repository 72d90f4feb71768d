"""Pages that get other URLs because the rules for canonical URLs changed."""

import pytest

from crawld.core.page import PageState
from crawld.core.url import RULES_VERSION, split_url, url_hash
from crawld.store import visit
from crawld.store.engine import meta
from crawld.store.frontier import frontier, page, tombstone
from crawld.store.mirror import lookup
from crawld.store.versions import canonical_urls, pin
from crawld.store.versions.canonical_urls import Renamed
from tests.unit.store.rows import NOW, changed, found

RULES = canonical_urls.wanted_rules(())


def url(path):
    return f"https://example.org/{path}"


@pytest.fixture
def add(connection):
    """Return a function that adds a page with copies made at some times; it returns its number."""

    def added(path, *times, **more):
        [new] = frontier.discover(connection, [found(path, **more)])
        for at in times:
            visit.record(connection, changed(new.page_id, f"{path} {at}".encode(), at))
        return new.page_id

    return added


def walk(connection, sorting=(), *, slices=None):
    """Rename pages slice by slice, as the job does; stop after some slices."""
    rules = canonical_urls.wanted_rules(sorting)
    after = canonical_urls.begin(connection, rules)
    done = []
    while after is not None and (slices is None or len(done) < slices):
        part = canonical_urls.next_slice(connection, after, sorting)
        if part.up_to is None:
            canonical_urls.finish(connection, rules)
            break
        with connection:
            done.append(canonical_urls.rename(connection, part.new_urls))
            canonical_urls.put_cursor(connection, rules, part.up_to)
        after = part.up_to
    return Renamed(*map(sum, zip(*done, strict=True))) if done else Renamed()


def found_at(connection, path):
    """Return the page that answers under a URL: its number and its URL."""
    wanted = url(path)
    known = lookup.find(connection, wanted)
    record = page.by_url(connection, wanted)
    assert page.id_of(connection, wanted) == (known and known.page_id)
    assert (record and record.page_id) == (known and known.page_id)
    return known and (known.page_id, known.url.removeprefix(url("")))


def copies(connection, page_id):
    rows = connection.execute(
        "SELECT visited_at FROM version WHERE page_id = ? ORDER BY 1", (page_id,)
    )
    return [at for (at,) in rows]


def counts(connection):
    sql = "SELECT pages_discovered, pages_visited, pages_excluded, requisite_count FROM site"
    return connection.execute(sql).fetchone()


def is_sound(connection):
    sql = "SELECT count(*) FROM page WHERE state = ? AND NOT requisite"
    states = ("discovered", "visited", "excluded")
    in_fact = tuple(connection.execute(sql, (state,)).get for state in states)
    pages = connection.execute("SELECT url, url_hash FROM page").fetchall()
    return (
        not connection.execute("PRAGMA foreign_key_check").fetchall()
        and in_fact == counts(connection)[:3]
        and all(url_hash(each) == stored for each, stored in pages)
    )


def test_a_page_takes_its_new_url_and_answers_under_the_old_one(connection, add):
    page_id = add("a?utm_id=4&b=1", NOW, NOW + 50)
    other = add("c?b=1", NOW)
    assert walk(connection) == Renamed(renamed=1)
    assert found_at(connection, "a?b=1") == (page_id, "a?b=1")
    assert found_at(connection, "a?utm_id=4&b=1") == (page_id, "a?b=1")
    assert found_at(connection, "c?b=1") == (other, "c?b=1")
    names = connection.execute("SELECT page_id, url FROM page_name").fetchall()
    assert names == [(page_id, url("a?utm_id=4&b=1"))]
    assert copies(connection, page_id) == [NOW, NOW + 50]
    assert is_sound(connection)
    assert meta.get(connection, canonical_urls.RULES) == str(RULES_VERSION)
    assert canonical_urls.begin(connection, RULES) is None


@pytest.mark.parametrize("first", ["old", "new"])
def test_two_pages_that_become_one_lose_no_copy(connection, add, first):
    old, new = "a?utm_id=4", "a"
    times = {old: [NOW, NOW + 20, NOW + 40], new: [NOW + 10, NOW + 50]}
    pages = {path: add(path, *times[path]) for path in sorted(times, reverse=first == "old")}

    pin.put(connection, pages[new], NOW + 10)
    assert walk(connection) == Renamed(joined=1)
    kept = pages[old]  # three visits are the better history
    assert found_at(connection, old) == found_at(connection, new) == (kept, new)
    assert copies(connection, kept) == sorted([*times[old], *times[new]])
    record = page.for_visit(connection, kept)
    newest = connection.execute(
        "SELECT version_id FROM version WHERE visited_at = ?", (NOW + 50,)
    ).get
    assert (record.version_id, record.visit_count, record.etag) == (newest, 5, None)
    assert connection.execute("SELECT count(*) FROM visit WHERE page_id = ?", (kept,)).get == 5
    assert connection.execute("SELECT count(*) FROM event WHERE page_id = ?", (kept,)).get == 5
    assert connection.execute("SELECT page_id FROM pin").get == kept
    assert counts(connection) == (0, 1, 0, 0)
    assert is_sound(connection)


def test_many_names_of_a_page_become_one(connection, add):
    shown = add("a", NOW)
    for n in range(30):
        add(f"a?utm_id={n}")
    assert walk(connection) == Renamed(joined=30)
    assert counts(connection) == (0, 1, 0, 0)
    assert found_at(connection, "a?utm_id=7") == (shown, "a")
    assert walk(connection) == Renamed()
    assert is_sound(connection)


def test_names_of_a_page_that_joins_another_stay_its_names(connection, add):
    page_id = add("a?utm_id=4", NOW)
    walk(connection)
    connection.execute("DELETE FROM meta")
    # The next rules might take "a" for another name of "b".
    [other] = frontier.discover(connection, [found("b")])
    with connection:
        canonical_urls.rename(connection, [canonical_urls.NewUrl(other.page_id, url("a"))])
    assert found_at(connection, "b") == found_at(connection, "a?utm_id=4") == (page_id, "a")


def test_the_walk_goes_on_where_it_was(connection, add, monkeypatch):
    monkeypatch.setattr(canonical_urls, "SLICE_PAGES", 2)
    for n in range(7):
        add(f"{n}?utm_id=4")
    assert walk(connection, slices=2) == Renamed(renamed=4)
    assert canonical_urls.begin(connection, RULES) == 4
    assert canonical_urls.begin(connection, "9") == 0  # other rules: from the beginning
    assert walk(connection) == Renamed(renamed=3)
    assert canonical_urls.begin(connection, RULES) is None


def test_a_site_whose_parameters_have_no_order_answers_under_every_order(connection, add):
    page_id = add("x?b=1&a=2", NOW)
    assert walk(connection) == Renamed()
    assert found_at(connection, "x?a=2&b=1") is None
    connection.execute("UPDATE site SET definition = '{\"sort_query\": true}'")
    assert walk(connection, [1]) == Renamed(renamed=1)
    for path in ("x?b=1&a=2", "x?a=2&b=1"):
        assert found_at(connection, path) == (page_id, "x?a=2&b=1")
    add("y?a=1&b=2&c=3", NOW)
    assert found_at(connection, "y?c=3&b=2&a=1")[1] == "y?a=1&b=2&c=3"


def test_what_keeps_its_url(connection, add):
    purged, image = add("p?utm_id=4", NOW), add("i?utm_id=4", requisite=True)
    add("i", NOW)
    tombstone.put(connection, url("p"), NOW, None)
    assert walk(connection) == Renamed()
    assert found_at(connection, "p?utm_id=4") == (purged, "p?utm_id=4")
    assert found_at(connection, "i?utm_id=4") == (image, "i?utm_id=4")
    assert canonical_urls.begin(connection, RULES) is None


def test_requisites_that_become_one_are_counted_once(connection, add):
    add("i.png", requisite=True)
    add("i.png?utm_id=4", requisite=True)
    assert walk(connection) == Renamed(joined=1)
    assert counts(connection) == (0, 0, 0, 1)


def test_a_page_whose_former_url_robots_txt_forbade_is_asked_for_again(connection, add):
    page_id = add("a?utm_id=4")
    page.set_state(connection, page_id, PageState.EXCLUDED, "robots")
    assert counts(connection) == (0, 0, 1, 0)
    assert walk(connection) == Renamed(renamed=1)
    assert counts(connection) == (1, 0, 0, 0)
    assert split_url(page.for_visit(connection, page_id).url).target == "/a"
