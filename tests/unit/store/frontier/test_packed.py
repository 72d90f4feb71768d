"""Packed pages: when links are packed, in which order they become rows, and what needs a row."""

import pytest

from crawld.core import url as url_rules
from crawld.core.page import Outcome, PageState
from crawld.errors import CorruptDatabaseError
from crawld.store import doctor, visit
from crawld.store.engine.in_parts import PART_ROWS, finish
from crawld.store.frontier import (
    frontier,
    load,
    packed,
    packed_block,
    packed_list,
    page,
    page_list,
    refusal,
    site,
    tombstone,
    unvisited,
)
from crawld.store.frontier.frontier import PACKED, Caps
from crawld.store.frontier.packed import DEFAULT_PACKING, Packing, Portion
from crawld.store.mirror import rows
from crawld.store.versions import canonical_urls
from crawld.store.versions.canonical_urls import NewUrl
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike

PACKING = Packing(file_pages=0, host_pages=2)
CAPS = Caps(packing=PACKING)


def waiting(connection):
    """Return the paths of packed pages."""
    return [
        each.url.rsplit("/", 1)[1]
        for each in packed_list.list_packed(connection, after=0, limit=9_999)
    ]


def stored(connection):
    return {url.rsplit("/", 1)[1] for (url,) in connection.execute("SELECT url FROM page")}


def fill(connection, *names, caps=CAPS, **more):
    """Discover two pages that get rows, then pages of these names."""
    frontier.discover(connection, [found("r1"), found("r2")], caps)
    return frontier.discover(connection, [found(name, **more) for name in names], caps)


def unpack(connection, most=99, importance=None, in_force=None):
    newest = connection.execute("SELECT max(page_id) FROM page").get
    made = finish(packed.unpack_in_parts(connection, Portion(1, 1, importance, in_force, most)))
    pages = connection.execute(
        "SELECT url FROM page WHERE page_id > ? ORDER BY page_id", (newest,)
    ).fetchall()
    assert made == len(pages)
    return [url.rsplit("/", 1)[1] for (url,) in pages]


def faults(connection):
    return [check.kind for check in doctor.CHECKS if connection.execute(check.counting).get]


def test_the_first_pages_of_a_host_are_rows_and_the_next_are_packed(connection):
    new = fill(connection, "a", "b")
    assert stored(connection) == {"r1", "r2"}
    assert waiting(connection) == ["a", "b"]
    assert [each.page_id for each in new] == [PACKED, PACKED]
    assert frontier.counts(connection)[PageState.DISCOVERED] == 4
    assert fill(connection, "a", "b") == []
    assert faults(connection) == []


def test_a_small_host_of_a_large_file_is_not_packed(connection):
    fill(connection, "a", "b")
    frontier.discover(connection, [found("c", host="small.example")], CAPS)
    assert "c" in stored(connection)


def test_a_large_host_of_a_small_file_is_not_packed(connection):
    names = [f"p{n}" for n in range(2 * DEFAULT_PACKING.host_pages)]
    fill(connection, *names, caps=Caps(packing=DEFAULT_PACKING))
    fill(connection, "last", caps=Caps(packing=DEFAULT_PACKING))
    assert waiting(connection) == []
    assert len(stored(connection)) == len(names) + 3


def test_a_small_mirror_asks_for_packed_pages_in_no_statement_of_its_own(connection):
    [new] = frontier.discover(connection, [found("a")])
    statements = []
    connection.trace_v2(1, lambda event: statements.append(event["sql"]))
    caps = Caps(packing=DEFAULT_PACKING)
    links = [found(f"l{n}") for n in range(9)]
    visit.record(connection, changed(new.page_id, b"text", discoveries=links, caps=caps))
    connection.trace_v2(0, None)
    asking = [sql for sql in statements if "packed" in sql]
    assert len(asking) == 1
    assert "tombstone" in asking[0]  # the statement that reads the page


def test_pages_become_rows_in_breadth_first_order(connection):
    fill(connection, "deep1", "deep2", depth=3)
    fill(connection, "near1", "near2", depth=2)
    fill(connection, "deep3", depth=3)
    assert unpack(connection) == ["near1", "near2", "deep1", "deep2", "deep3"]
    assert waiting(connection) == []
    assert faults(connection) == []


def test_whole_blocks_become_rows(connection, monkeypatch):
    monkeypatch.setattr(packed_block, "BLOCK_PAGES", 3)
    fill(connection, *"abc")
    fill(connection, *"defg")
    assert unpack(connection, most=1) == ["a", "b", "c"]
    assert unpack(connection, most=5) == ["d", "e", "f", "g"]
    assert unpack(connection) == []


def test_small_blocks_are_joined_in_their_order(connection):
    pages = 3 * packed_block.BLOCK_PAGES
    fill(connection)
    for number in range(pages):
        frontier.discover(connection, [found(f"p{number}")], CAPS)
    blocks = connection.execute("SELECT pages FROM packed_block ORDER BY packed_block_id")
    sizes = [size for (size,) in blocks]
    assert sum(sizes) == pages
    assert len(sizes) <= 3 + packed_block.MAX_TAILS
    assert unpack(connection, most=pages) == [f"p{number}" for number in range(pages)]


def test_a_page_found_nearer_to_the_seeds_comes_earlier_and_once(connection):
    fill(connection, "a", "b", "c", depth=3)
    fill(connection, "c", depth=2)
    assert unpack(connection) == ["c", "a", "b"]
    assert faults(connection) == []


def test_rows_keep_what_the_link_told(connection):
    [referrer, _] = frontier.discover(connection, [found("r1"), found("r2")])
    frontier.discover(
        connection, [found("a", depth=4, referrer_id=referrer.page_id, at=NOW + 0.25)], CAPS
    )
    unpack(connection, importance=lambda url: 7.0)
    row = page.by_url(connection, "https://example.org/a")
    assert (row.depth, row.referrer_id, row.discovered_at) == (4, referrer.page_id, NOW + 0.25)
    assert (row.state, row.importance, row.origin) == ("discovered", 7.0, "https://example.org")
    assert page.for_visit(connection, row.page_id) is not None


def test_rows_have_their_urls_by_the_rules_in_force(connection):
    fill(connection, "old", "same", "r1?old", "same?old")
    names = {"old": "new", "r1?old": "r1", "same?old": "same"}

    def in_force(url, depth):
        path = url.rsplit("/", 1)[1]
        return url.removesuffix(path) + names.get(path, path)

    assert unpack(connection, in_force=in_force) == ["new", "same"]
    assert stored(connection) == {"r1", "r2", "new", "same"}
    assert waiting(connection) == []
    assert faults(connection) == []


@pytest.fixture
def one_hash(monkeypatch):
    """Give all URLs the same first hash."""
    for module in (url_rules, packed):
        monkeypatch.setattr(module, "url_hash", lambda url: 77)


def test_packed_pages_of_one_hash_are_two_pages(connection, one_hash):
    frontier.discover(connection, [found("r1"), found("r2")], CAPS)
    pair = [found("a", url_hash=77), found("b", url_hash=77)]
    assert len(frontier.discover(connection, pair, CAPS)) == 2
    assert frontier.discover(connection, pair, CAPS) == []
    assert waiting(connection) == ["a", "b"]
    assert packed_list.find(connection, pair[1].url).url == pair[1].url
    assert unpack(connection) == ["a", "b"]
    assert frontier.discover(connection, pair, CAPS) == []
    assert faults(connection) == []


@pytest.mark.parametrize("caps", [CAPS, Caps()])
def test_a_page_under_its_second_key_stays_one_when_the_first_is_purged(connection, one_hash, caps):
    frontier.discover(connection, [found("r1"), found("r2")], CAPS)
    pair = [found("a", url_hash=77), found("b", url_hash=77)]
    frontier.discover(connection, pair, caps)
    connection.execute("DELETE FROM page WHERE url_hash = 77")
    connection.execute("DELETE FROM packed_key WHERE url_hash = 77")
    tombstone.put(connection, pair[0].url, NOW, None)
    assert frontier.discover(connection, pair, caps) == []


def test_a_page_whose_new_url_is_packed_replaces_it(connection):
    [_, other] = frontier.discover(connection, [found("r1"), found("r2?utm_source=x")])
    fill(connection, "r3", "other")
    frontier.discover(connection, [found("wanted")], CAPS)
    assert "wanted" in waiting(connection)
    new = NewUrl(other.page_id, "https://example.org/wanted")
    assert canonical_urls.rename(connection, [new]).renamed == 1
    assert "wanted" in stored(connection)
    assert "wanted" not in waiting(connection)
    assert faults(connection) == []


@pytest.mark.parametrize("more", [{"seed": True}, {"requisite": True}])
def test_seeds_and_requisites_are_rows(connection, more):
    fill(connection, "new", **more)
    assert "new" in stored(connection)
    fill(connection, "a")
    assert waiting(connection) == ["a"]
    fill(connection, "a", **more)
    assert waiting(connection) == []
    assert "a" in stored(connection)
    assert faults(connection) == []


def test_a_packed_page_that_becomes_a_requisite_is_counted_as_one(connection):
    fill(connection, "a")
    result = discover_in_full(connection, [found("a", requisite=True)], CAPS)
    row = page.for_visit(connection, result.known_ids[0])
    assert row.requisite
    assert [(each.url, each.requisite) for each in result.new] == [(row.url, True)]
    assert unpack(connection) == []
    assert connection.execute("SELECT pages_discovered, requisite_count FROM site").get == (2, 1)


def test_a_caller_without_packing_gets_rows(connection):
    fill(connection, "a")
    [known] = discover_in_full(connection, [found("a")]).known_ids
    assert page.for_visit(connection, known).url.endswith("/a")
    assert waiting(connection) == []
    assert faults(connection) == []


def test_the_target_of_a_permanent_redirect_gets_the_history(connection):
    [old, _] = frontier.discover(connection, [found("old"), found("r2")])
    visit.record(connection, changed(old.page_id, b"text"))
    fill(connection)
    frontier.discover(connection, [found("target")], CAPS)
    assert "target" in waiting(connection)
    moved = unlike(
        old.page_id,
        Outcome.MOVED,
        at=NOW + 9,
        renamed=True,
        redirect_url="https://example.org/target",
        discoveries=[found("target")],
        caps=CAPS,
    )
    visit.record(connection, moved)
    target = page.id_of(connection, "https://example.org/target")
    assert page.for_visit(connection, target).version_id is not None


def test_a_packed_page_of_a_retired_site_moves_to_the_site_that_finds_it(connection):
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    fill(connection, "a", "b", site_id=other)
    fill(connection, "a")
    assert frontier.counts(connection, other)[PageState.DISCOVERED] == 2
    site.retire(connection, "other")
    [new] = fill(connection, "a")
    assert (new.page_id, new.site_id) == (PACKED, 1)
    assert frontier.counts(connection, other)[PageState.DISCOVERED] == 1
    assert unpack(connection) == ["a"]
    assert faults(connection) == []


def test_caps_count_packed_pages(connection):
    caps = Caps(per_host={1: 4}, packing=PACKING)
    fill(connection, *"abcd", caps=caps)
    assert waiting(connection) == ["a", "b"]
    assert refusal.totals(connection) == {"host_cap": 2}
    caps = Caps(per_site={1: 5}, packing=PACKING)
    fill(connection, *"cdef", caps=caps)
    assert waiting(connection) == ["a", "b", "c"]


def test_a_start_finds_hosts_whose_pages_are_all_packed(connection):
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    fill(connection, "a")
    connection.execute("UPDATE packed_block SET site_id = ?", (other,))
    assert [tuple(each) for each in load.load_waiting(connection)] == [(0, 1, 1), (0, 1, other)]


def test_the_next_pages_tell_when_packed_ones_come_first(connection):
    fill(connection, "deep", depth=3)
    assert not unvisited.next_pages(connection, 1, 1, 2, requisites=False).unpack
    assert unvisited.next_pages(connection, 1, 1, 3, requisites=False).unpack
    fill(connection, "near", depth=0)
    assert unvisited.next_pages(connection, 1, 1, 2, requisites=False).unpack
    assert not unvisited.next_pages(connection, 1, 1, 2, requisites=True).unpack


def test_how_many_come_before_counts_rows_and_packed_pages(connection):
    fill(connection, "near", "also", depth=2)
    fill(connection, "deep", depth=4)
    [row] = frontier.discover(connection, [found("row", depth=3)])
    assert unvisited.count_before(connection, row.page_id, 99) == 4
    deep = packed_list.find(connection, "https://example.org/deep")
    assert unvisited.count_before(connection, deep.number, 99) == 5
    assert unvisited.count_before(connection, deep.number, 2) == 2
    unpack(connection)
    assert unvisited.count_before(connection, deep.number, 99) == 0


def test_a_list_of_a_host_goes_on_in_parts(connection):
    names = [f"p{number}" for number in range(7)]
    fill(connection, *names)
    part = page_list.list_packed_of_host(connection, 1, limit=3)
    listed = part.pages
    while part.following is not None:
        part = page_list.list_packed_of_host(connection, 1, after=part.following, limit=3)
        listed = [*listed, *part.pages]
    assert [each.url.rsplit("/", 1)[1] for each in listed] == names


def test_the_table_of_pages_has_packed_pages_last(connection):
    fill(connection, "a", "b", depth=2)
    table = rows.TABLES["pages"]
    exported = [
        dict(zip(table.columns, row, strict=True))
        for chunk in rows.rows(connection, table, None)
        for row in chunk
    ]
    assert [each["url"][-2:] for each in exported] == ["r1", "r2", "/a", "/b"]
    assert {each["state"] for each in exported} == {"discovered"}
    assert [each["discovered_at"] for each in exported] == [NOW] * 4
    assert not any(list(rows.rows(connection, table, NOW)))


def test_a_damaged_block_is_an_error(connection):
    fill(connection, "a")
    connection.execute("UPDATE packed_block SET entries = x'00112233'")
    with pytest.raises(CorruptDatabaseError):
        unpack(connection)


def test_the_doctor_repairs_a_page_that_is_packed_and_a_row(connection):
    fill(connection, "a")
    connection.execute(
        "INSERT INTO packed_key SELECT host_id, url_hash, site_id, depth, NULL FROM page LIMIT 1"
    )
    assert "packed_twice" in faults(connection)
    for check in doctor.CHECKS:
        if check.kind == "packed_twice":
            connection.execute(check.repair)
    assert faults(connection) == []
    assert waiting(connection) == ["a"]


def test_many_links_are_packed_in_parts(connection):
    fill(connection)
    links = [found(f"p{number}") for number in range(3 * PART_ROWS)]
    call = frontier.discover_in_parts(connection, links, CAPS)
    assert len(list(call)) >= 3
    assert len(waiting(connection)) == len(links)
