"""Packed pages: when links are packed, in which order they become rows, and what needs a row."""

from dataclasses import replace

import pytest

from crawld.core import url as url_rules
from crawld.core.page import Outcome, PageState
from crawld.core.seen.place import MAX_SITE
from crawld.errors import CorruptDatabaseError
from crawld.store import doctor, visit
from crawld.store.engine.in_parts import PART_ROWS, finish
from crawld.store.frontier import (
    frontier,
    load,
    packed,
    packed_block,
    packed_list,
    packed_shared,
    packed_urls,
    page,
    page_list,
    refusal,
    site,
    tombstone,
    unvisited,
    verdicts,
)
from crawld.store.frontier.caps import PACKED, Caps
from crawld.store.frontier.packed import DEFAULT_PACKING, Packing, Portion
from crawld.store.mirror import rows
from crawld.store.seen import pending
from crawld.store.seen.seen import SeenFile
from crawld.store.versions import canonical_urls, purge
from crawld.store.versions.canonical_urls import NewUrl
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike

CAPS = Caps(packing=Packing(file_pages=0))


def waiting(connection):
    """Return the paths of packed pages."""
    return [
        each.url.rsplit("/", 1)[1]
        for each in packed_list.list_packed(connection, after=0, limit=9_999)
    ]


def stored(connection):
    return {url.rsplit("/", 1)[1] for (url,) in connection.execute("SELECT url FROM page")}


def fill(connection, *names, caps=CAPS, **more):
    """Discover two pages that get rows, then pages of these names, and give them their verdict."""
    frontier.discover(connection, [found("r1"), found("r2")])
    frontier.discover(connection, [found(name, **more) for name in names], caps)
    return verdicts.settle_all(connection, caps).new


def unpack(connection, most=99, importance=None, in_force=None):
    newest = connection.execute("SELECT max(page_id) FROM page").get
    made = finish(packed.unpack_in_parts(connection, Portion(1, 1, importance, in_force, most)))
    pages = connection.execute(
        "SELECT url FROM page WHERE page_id > ? ORDER BY page_id", (newest,)
    ).fetchall()
    assert made == len(pages)
    return [url.rsplit("/", 1)[1] for (url,) in pages]


def faults(connection):
    return [check.kind for check, _ in doctor.contradictions(connection)]


def test_pages_of_a_large_file_are_packed_after_their_verdict(connection):
    new = fill(connection, "a", "b")
    assert stored(connection) == {"r1", "r2"}
    assert waiting(connection) == ["a", "b"]
    assert [(each.page_id, each.host_id, each.site_id) for each in new] == [(PACKED, 1, 1)]
    assert frontier.counts(connection)[PageState.DISCOVERED] == 4
    assert fill(connection, "a", "b") == []
    assert faults(connection) == []


def test_links_wait_for_their_verdict_and_are_no_pages_until_then(connection):
    fill(connection)
    assert frontier.discover(connection, [found("a"), found("b"), found("r1")], CAPS) == []
    assert waiting(connection) == []
    assert page.by_url(connection, "https://example.org/a") is None
    assert frontier.counts(connection)[PageState.DISCOVERED] == 2
    assert verdicts.settle_all(connection, CAPS).judged == 2
    assert waiting(connection) == ["a", "b"]
    assert verdicts.settle_all(connection, CAPS).judged == 0


def test_a_small_file_is_not_packed(connection):
    names = [f"p{n}" for n in range(2_000)]
    caps = Caps(packing=DEFAULT_PACKING)
    fill(connection, *names, caps=caps)
    assert waiting(connection) == []
    assert len(stored(connection)) == len(names) + 2


def test_a_site_that_has_no_place_is_not_packed(connection):
    site_id = MAX_SITE + 1
    connection.execute(
        "INSERT INTO site (site_id, name, source, added_at) VALUES (?, 'far', 'config', 0)",
        (site_id,),
    )
    fill(connection, "a", site_id=site_id)
    assert waiting(connection) == []
    assert "a" in stored(connection)


def test_a_small_mirror_asks_for_packed_pages_in_no_statement_of_its_own(connection):
    [new] = frontier.discover(connection, [found("a")])
    statements = []
    connection.trace_v2(1, lambda event: statements.append(event["sql"]))
    caps = Caps(packing=DEFAULT_PACKING)
    links = [found(f"l{n}") for n in range(9)]
    visit.record(connection, changed(new.page_id, b"text", discoveries=links, caps=caps))
    connection.trace_v2(0, None)
    assert not [sql for sql in statements if "packed" in sql or "seen_" in sql]


def test_pages_become_rows_in_breadth_first_order(connection):
    fill(connection, "deep1", "deep2", depth=3)
    fill(connection, "near1", "near2", depth=2)
    fill(connection, "deep3", depth=3)
    assert unpack(connection) == ["near1", "near2", "deep1", "deep2", "deep3"]
    assert waiting(connection) == []
    assert faults(connection) == []


def test_as_many_pages_become_rows_as_are_asked_for(connection, monkeypatch):
    monkeypatch.setattr(packed_block, "BLOCK_PAGES", 3)
    fill(connection, *"abc")
    fill(connection, *"defg")
    assert unpack(connection, most=1) == ["a"]
    assert unpack(connection, most=4) == ["b", "c", "d", "e"]
    assert waiting(connection) == ["f", "g"]
    assert unpack(connection, most=5) == ["f", "g"]
    assert unpack(connection) == []
    assert faults(connection) == []


def test_small_blocks_are_joined_in_their_order(connection, monkeypatch):
    monkeypatch.setattr(packed_block, "BLOCK_PAGES", 40)
    pages = 3 * packed_block.BLOCK_PAGES
    fill(connection)
    for number in range(pages):
        fill(connection, f"p{number}")
        packed_shared.draw(connection, 1)
    blocks = connection.execute("SELECT pages FROM packed_block ORDER BY packed_block_id")
    sizes = [size for (size,) in blocks]
    assert sum(sizes) == pages
    assert len(sizes) <= 3 + packed_block.MAX_TAILS
    assert unpack(connection, most=pages) == [f"p{number}" for number in range(pages)]


def test_a_page_found_nearer_to_the_seeds_comes_earlier_and_once(connection):
    fill(connection, "a", "b", "c", depth=3)
    fill(connection, "c", depth=2)
    assert waiting(connection) == ["a", "b", "c"]
    assert frontier.counts(connection)[PageState.DISCOVERED] == 5
    assert faults(connection) == []
    assert unpack(connection) == ["c", "a", "b"]
    assert faults(connection) == []


def test_of_links_that_wait_together_the_nearest_counts(connection):
    frontier.discover(connection, [found("c", depth=9), found("a", depth=3)], CAPS)
    frontier.discover(connection, [found("c", depth=2), found("c", depth=20)], CAPS)
    fill(connection)
    assert unpack(connection) == ["c", "a"]
    assert faults(connection) == []


def test_large_depths_are_kept(connection):
    fill(connection, "a", depth=70)
    assert packed_list.find(connection, "https://example.org/a").depth == 70
    fill(connection, "a", depth=40)
    assert unpack(connection) == ["a"]
    assert page.by_url(connection, "https://example.org/a").depth == 70


def test_rows_keep_what_the_link_told(connection):
    [referrer, _] = frontier.discover(connection, [found("r1"), found("r2")])
    fill(connection, "a", depth=4, referrer_id=referrer.page_id, at=NOW + 0.25)
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
    # The rule is no longer in force: what it replaced is new when it is found again.
    fill(connection, "old", "same", "r1?old")
    assert waiting(connection) == ["old", "r1?old"]


@pytest.fixture
def one_key(monkeypatch):
    """Give all URLs of a host one key: their checks tell them apart."""
    monkeypatch.setattr(SeenFile, "of", lambda connection: SeenFile(7, url_bits=0))


@pytest.mark.usefixtures("one_key")
def test_packed_pages_of_one_key_are_two_pages(connection):
    fill(connection, "a", "b")
    fill(connection, "b", "c", "a")
    assert waiting(connection) == ["a", "b", "c"]
    assert packed_list.find(connection, "https://example.org/b").url.endswith("/b")
    assert unpack(connection) == ["a", "b", "c"]
    fill(connection, "a", "b")
    assert waiting(connection) == []
    assert faults(connection) == []


@pytest.fixture
def one_hash(monkeypatch):
    """Give all URLs the same first hash."""
    monkeypatch.setattr(url_rules, "url_hash", lambda url: 77)


@pytest.mark.usefixtures("one_hash")
def test_rows_of_one_hash_are_two_pages(connection):
    fill(connection, "a", "b")
    assert unpack(connection) == ["a", "b"]
    pair = [found("a", url_hash=77), found("b", url_hash=77)]
    frontier.discover(connection, pair, CAPS)
    assert verdicts.settle_all(connection, CAPS).judged == 0
    assert faults(connection) == []


@pytest.mark.usefixtures("one_hash")
def test_a_page_under_its_second_key_stays_one_when_the_first_is_purged(connection):
    pair = [found("a", url_hash=77), found("b", url_hash=77)]
    frontier.discover(connection, pair)
    connection.execute("DELETE FROM page WHERE url_hash = 77")
    tombstone.put(connection, pair[0].url, NOW, None)
    assert frontier.discover(connection, pair) == []


def test_a_page_takes_a_new_url_that_is_packed(connection):
    [_, other] = frontier.discover(connection, [found("r1"), found("r2?utm_source=x")])
    fill(connection, "wanted")
    assert "wanted" in waiting(connection)
    new = NewUrl(other.page_id, "https://example.org/wanted")
    assert canonical_urls.rename(connection, [new]).renamed == 1
    assert "wanted" in stored(connection)
    assert "wanted" not in waiting(connection)
    assert unpack(connection) == []
    assert faults(connection) == []


def test_packed_pages_are_renamed(connection):
    fill(connection, "a?x", "b", "c?x", "d?x", "d", "r1?x")
    purge.purge(connection, "https://example.org/c", NOW)

    def new_url(site_id, url):
        return url.removesuffix("?x")

    block, is_changed = packed_urls.next_block(connection, 0, new_url)
    assert is_changed
    assert packed_urls.rename_in(connection, block, new_url) == (4, 3)
    assert packed_urls.next_block(connection, 0, new_url) == (block, False)
    assert packed_urls.next_block(connection, block, new_url) is None
    assert waiting(connection) == ["a", "b", "d"]
    assert faults(connection) == []
    fill(connection, "a", "b", "d", "a?x")
    assert waiting(connection) == ["a", "b", "d", "a?x"]  # its former URL is unknown
    assert unpack(connection) == ["a", "b", "d", "a?x"]
    assert packed_urls.rename_in(connection, block, new_url) == (0, 0)
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
    assert unpack(connection) == []
    assert frontier.counts(connection)[PageState.DISCOVERED] == 2 + 2 * ("seed" in more)
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
    fill(connection, "target")
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
    caps = replace(CAPS, per_host={1: 4})
    fill(connection, *"abcd", caps=caps)
    assert waiting(connection) == ["a", "b"]
    assert refusal.totals(connection) == {"host_cap": 2}
    fill(connection, "e", caps=caps)  # refused when it is found
    assert refusal.totals(connection) == {"host_cap": 3}
    caps = replace(CAPS, per_site={1: 5})
    fill(connection, *"cdef", caps=caps)
    assert waiting(connection) == ["a", "b", "c"]
    assert refusal.totals(connection) == {"host_cap": 3, "site_cap": 3}
    fill(connection, *"def")  # what a cap refused is new when it is found again
    assert waiting(connection) == [*"abcdef"]
    assert faults(connection) == []


def test_a_start_finds_hosts_whose_pages_are_all_packed(connection):
    other = site.upsert(connection, "other", "{}", source="config", at=NOW)
    fill(connection, "a")
    fill(connection, "b", site_id=other)
    assert [tuple(each) for each in load.load_waiting(connection)] == [(0, 1, 1), (0, 1, other)]
    packed_shared.draw(connection, 1)
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
    packed_shared.draw(connection, 1)
    connection.execute("UPDATE packed_block SET entries = x'00112233'")
    with pytest.raises(CorruptDatabaseError):
        unpack(connection)


def test_many_links_wait_in_parts(connection):
    fill(connection)
    links = [found(f"p{number}") for number in range(3 * PART_ROWS)]
    call = frontier.discover_in_parts(connection, links, CAPS)
    assert len(list(call)) >= 3
    verdicts.settle_all(connection, CAPS)
    assert len(waiting(connection)) == len(links)


def test_who_finds_more_links_than_may_wait_divides_them(connection, monkeypatch):
    monkeypatch.setattr(pending, "MAX_FOUND", 5)
    for number in range(20):
        frontier.discover(connection, [found(f"p{number}")], CAPS)
        assert connection.execute("SELECT count(*) FROM seen_found").get <= 5
    assert pending.count(connection) == 20
    verdicts.settle_all(connection, CAPS)
    assert len(waiting(connection)) == 20


def test_a_turn_of_a_repository_where_nothing_waits_changes_nothing(connection):
    for _ in range(2):
        for repository in range(64):
            settled = verdicts.settle(connection, repository, CAPS)
            assert (settled.judged, settled.new) == (0, [])
        fill(connection, "a")
    assert waiting(connection) == ["a"]
