from dataclasses import replace

import numpy as np
import pytest

from crawld.core.page import Outcome, PageState
from crawld.store import visit as visits
from crawld.store.engine.in_parts import PART_ROWS
from crawld.store.frontier import frontier, load, page, page_heir, refusal, site, unvisited
from crawld.store.frontier.caps import Caps
from crawld.store.mirror import lookup
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike


def paths(pages):
    return [each.url.rsplit("/", 1)[1] for each in pages]


def test_new_urls_are_added_once(connection):
    new = frontier.discover(connection, [found("a"), found("b"), found("a")])
    assert paths(new) == ["a", "b"]
    assert frontier.discover(connection, [found("b"), found("c")])[0].url.endswith("/c")
    assert frontier.counts(connection)[PageState.DISCOVERED] == 3


def test_no_discoveries_change_nothing(connection):
    assert frontier.discover(connection, []) == []


def test_new_pages_have_host_origin_and_site(connection):
    [new] = frontier.discover(connection, [found("a", depth=4)])
    stored = page.for_visit(connection, new.page_id)
    assert (new.host_id, new.origin_id, new.site_id) == (stored.host_id, stored.origin_id, 1)
    assert (new.depth, new.url) == (stored.depth, stored.url) == (4, "https://example.org/a")
    assert (stored.host, stored.origin) == ("example.org", "https://example.org")


def test_two_origins_of_one_host(connection):
    url = "http://example.org:8080/a"
    other = replace(found("a"), url=url, url_hash=5, origin="http://example.org:8080")
    first, second = frontier.discover(connection, [found("a"), other])
    assert first.host_id == second.host_id
    assert first.origin_id != second.origin_id


@pytest.mark.parametrize("together", [True, False])
def test_two_urls_of_one_hash_are_two_pages(connection, together):
    pair = [found("a", url_hash=77), found("b", url_hash=77)]
    calls = [pair] if together else [pair[:1], pair[1:]]
    new = [each for call in calls for each in frontier.discover(connection, call)]
    assert paths(new) == ["a", "b"]
    assert frontier.discover(connection, pair) == []
    assert refusal.totals(connection) == {}
    record = page.by_url(connection, "https://example.org/b")
    assert record.page_id == new[1].page_id == page.id_of(connection, "https://example.org/b")
    assert lookup.find(connection, record.url).page_id == record.page_id


@pytest.mark.parametrize("together", [True, False])
def test_a_url_of_which_both_hashes_collide_is_counted(connection, together, monkeypatch):
    monkeypatch.setattr(frontier, "second_hash", lambda url: 78)
    group = [found(name, url_hash=77) for name in "abc"]
    calls = [group] if together else [group[:1], group[1:2], group[2:]]
    new = [each for call in calls for each in frontier.discover(connection, call)]
    assert paths(new) == ["a", "b"]
    [row] = refusal.of_host(connection, "example.org")
    assert (row.reason, row.refused, row.example) == ("collision", 1, "https://example.org/c")


def test_the_same_hash_on_two_hosts_is_no_collision(connection):
    pair = [found("a", url_hash=77), found("a", url_hash=77, host="other.example")]
    assert len(frontier.discover(connection, pair)) == 2
    assert refusal.totals(connection) == {}


@pytest.mark.parametrize("url_hash", [-(2**63), -1, 0, 2**63 - 1])
def test_every_signed_hash_is_kept(connection, url_hash):
    assert len(frontier.discover(connection, [found("a", url_hash=url_hash)])) == 1
    assert frontier.discover(connection, [found("a", url_hash=url_hash)]) == []


def test_the_cap_of_a_site_is_exact_over_hosts_and_calls(connection):
    caps = Caps(per_site={1: 5})
    added = 0
    for call in range(4):
        batch = [found(f"p{call}-{n}", host=f"h{n}.example") for n in range(3)]
        added += len(frontier.discover(connection, batch, caps))
    assert added == frontier.counts(connection)[PageState.DISCOVERED] == 5
    assert refusal.totals(connection) == {"site_cap": 7}


def test_the_cap_of_a_host_counts_the_pages_of_every_site(connection):
    other = site.upsert(connection, "other", "{}", source="socket", at=NOW)
    batch = [found("a", site_id=other), found("b", site_id=other), found("c"), found("d")]
    new = frontier.discover(connection, batch, Caps(per_host={1: 3}))
    assert paths(new) == ["a", "b", "c"]
    assert refusal.totals(connection) == {"host_cap": 1}


def test_known_urls_do_not_fill_a_cap(connection):
    caps = Caps(per_site={1: 2}, per_host={1: 2})
    assert len(frontier.discover(connection, [found("a")], caps)) == 1
    assert paths(frontier.discover(connection, [found("a"), found("a"), found("b")], caps)) == ["b"]


def test_a_known_page_takes_a_smaller_depth_and_a_seed_mark(connection):
    [new] = frontier.discover(connection, [found("a", depth=5)])
    frontier.discover(connection, [found("a", depth=3)])
    frontier.discover(connection, [found("a", depth=9)])
    assert page.for_visit(connection, new.page_id).depth == 3
    frontier.discover(connection, [found("a", depth=9, seed=True)])
    stored = page.for_visit(connection, new.page_id)
    assert (stored.depth, stored.seed) == (3, True)
    assert site.seed_hosts(connection, 1) == ["example.org"]


def test_a_page_of_a_retired_site_moves_to_the_site_that_finds_it(connection):
    frontier.discover(connection, [found("a")])
    other = site.upsert(connection, "other", "{}", source="socket", at=NOW)
    frontier.discover(connection, [found("a", site_id=other)])
    assert frontier.counts(connection, 1)[PageState.DISCOVERED] == 1
    site.retire(connection, "docs")
    [moved] = frontier.discover(connection, [found("a", site_id=other)])
    assert (moved.site_id, moved.was_visited) == (other, False)
    assert frontier.counts(connection, 1)[PageState.DISCOVERED] == 0
    assert frontier.counts(connection, other)[PageState.DISCOVERED] == 1
    assert frontier.discover(connection, [found("a", site_id=other)]) == []


def test_a_page_is_taken_over_by_another_site_with_its_counters(connection):
    [new] = frontier.discover(connection, [found("a")])
    other = site.upsert(connection, "other", "{}", source="socket", at=NOW)
    visits.record(connection, unlike(new.page_id, Outcome.UNCHANGED))
    state = page_heir.take_over(connection, new.page_id, other, 4.0)
    assert state is PageState.VISITED
    stored = page.for_visit(connection, new.page_id)
    assert (stored.site_id, stored.importance, stored.visit_count) == (other, 4.0, 1)
    assert frontier.counts(connection, 1)[PageState.VISITED] == 0
    assert frontier.counts(connection, other)[PageState.VISITED] == 1
    assert page_heir.take_over(connection, 99, other, 1.0) is None


def test_first_visits_are_breadth_first_and_paged(connection):
    depths = {"a": 2, "b": 0, "c": 1, "d": 1, "e": 2}
    frontier.discover(connection, [found(path, depth=depth) for path, depth in depths.items()])
    after, seen = (-1, 0), []
    while waiting := unvisited.list_discovered(connection, 1, 1, 2, after=after):
        seen += paths(waiting)
        after = (waiting[-1].depth, waiting[-1].page_id)
    assert seen == ["b", "c", "d", "a", "e"]


def test_a_start_loads_hosts_unvisited_and_visited_pages(connection):
    other = site.upsert(connection, "other", "{}", source="socket", at=NOW)
    others = [found("d", site_id=other), found("e", host="second.example", site_id=other)]
    new = frontier.discover(connection, [found(name) for name in "abc"] + others)
    waiting = [(False, 1, 1), (False, 1, other), (False, 2, other)]
    assert load.load_waiting(connection) == waiting
    visits.record(connection, changed(new[2].page_id, b"c", NOW + 1))
    visits.record(connection, changed(new[0].page_id, b"a", NOW + 2))
    visits.record(connection, changed(new[4].page_id, b"e", NOW, retry_at=NOW + 9))
    visits.record(connection, changed(new[3].page_id, b"d", NOW))
    first, second = load.load_revisits(connection, least=3)
    assert (first.host_id, first.site_id, second.host_id, second.site_id) == (1, 1, 1, other)
    assert first.page_ids.tolist() == [new[2].page_id, new[0].page_id]
    assert first.last_visit_at.tolist() == [NOW + 1, NOW + 2]
    assert (second.page_ids.tolist(), second.last_visit_at.tolist()) == ([new[3].page_id], [NOW])
    assert load.load_retries(connection) == [(new[4].page_id, 2, other, NOW + 9, False)]
    assert load.load_waiting(connection) == [(False, 1, 1)]
    first, second = load.load_hosts(connection, 9).hosts
    assert (first.host, first.page_count, first.discovered) == ("example.org", 4, 1)
    assert (second.host, second.address) == ("second.example", "192.0.2.1")
    assert second.last_fetch_at == NOW


def test_an_empty_file_starts_empty(connection):
    assert load.load_hosts(connection, 9).hosts == []
    assert load.load_waiting(connection) == []
    assert load.load_revisits(connection, least=9) == []


def test_a_start_reads_visited_pages_of_some_hosts_at_a_time(connection):
    names = [("a", 1), ("b", 1), ("c", 2), ("d", 3), ("e", 3)]
    new = frontier.discover(connection, [found(name, host=f"{n}.org") for name, n in names])
    for number, each in enumerate(new):
        visits.record(connection, changed(each.page_id, b"x", NOW + number))
    parts, after = [], load.FIRST_REVISITED
    while part := load.load_revisits(connection, after, least=2):
        after = part[-1].host_id, part[-1].site_id
        parts.append([(each.host_id, each.page_ids.tolist()) for each in part])
    assert parts == [[(1, [1, 2])], [(2, [3]), (3, [4, 5])]]


@pytest.mark.parametrize("sql", [load._REVISITS, load._NEXT_REVISITED])
def test_the_start_reads_no_page_row(connection, sql):
    [plan] = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1, 1)).fetchall()
    assert plan[3].startswith("SEARCH page USING COVERING INDEX page_revisit")


def test_a_million_links_of_a_trap_are_one_row(connection):
    many = [refusal.Refusal("example.org", "path_repetition", f"u{n}", NOW + n) for n in range(500)]
    refusal.record(connection, many)
    refusal.record(connection, [refusal.Refusal("example.org", "path_repetition", "z", NOW, 7)])
    [row] = refusal.of_host(connection, "example.org")
    assert (row.refused, row.example, row.last_at) == (507, "z", NOW + 499)


def needed(path):
    return found(path, requisite=True)


def counted(connection):
    [row] = connection.execute("SELECT page_count, requisite_count FROM site WHERE site_id = 1")
    return row


def test_requisites_are_counted_capped_and_listed_separately(connection):
    caps = Caps(per_site={1: 1}, requisites={1: 2})
    frontier.discover(connection, [found("a"), found("b")], caps)
    images = [needed("1.png"), needed("2.png"), needed("3.png")]
    new, ids = discover_in_full(connection, images, caps)
    assert [page.page_id for page in new] == ids
    assert counted(connection) == (1, 2)
    again, same = discover_in_full(connection, [needed("2.png")], caps)
    assert (again, same) == ([], ids[1:])
    pages = unvisited.list_discovered(connection, 1, 1, 9)
    images = unvisited.list_discovered(connection, 1, 1, 9, requisites=True)
    assert [page.url[-1] for page in pages] == ["a"]
    assert [page.page_id for page in images] == ids
    assert load.load_waiting(connection) == [(False, 1, 1), (True, 1, 1)]
    refused = dict(connection.execute("SELECT reason, refused FROM refusal"))
    assert refused == {"site_cap": 1, "requisite_cap": 1}


def test_a_page_without_a_copy_becomes_a_requisite(connection):
    [page] = frontier.discover(connection, [found("a.png")])
    new, ids = discover_in_full(connection, [needed("a.png")])
    assert ids == [page.page_id]
    assert [(each.page_id, each.requisite) for each in new] == [(page.page_id, True)]
    assert counted(connection) == (0, 1)


def test_a_page_with_a_copy_and_a_seed_stay_pages(connection):
    [page] = frontier.discover(connection, [found("a")])
    visits.record(connection, changed(page.page_id, b"<p>a</p>"))
    frontier.discover(connection, [found("s", seed=True)])
    new, ids = discover_in_full(connection, [needed("a"), needed("s")])
    assert (new, len(ids), counted(connection)) == ([], 2, (2, 0))


def stored_requisites(connection, page_id):
    sql = "SELECT requisites FROM requisite_use WHERE page_id = ?"
    return np.frombuffer(connection.execute(sql, (page_id,)).get, dtype="<i8").tolist()


def test_requisites_are_those_of_the_last_copy(connection):
    [page] = frontier.discover(connection, [found("a")])
    visits.record(connection, changed(page.page_id, b"1", requisites=[needed("1"), needed("2")]))
    first = stored_requisites(connection, page.page_id)
    visits.record(connection, changed(page.page_id, b"2", requisites=[needed("2")]))
    assert stored_requisites(connection, page.page_id) == first[1:]
    visits.record(connection, unlike(page.page_id, Outcome.UNCHANGED))
    assert stored_requisites(connection, page.page_id) == first[1:]


def test_a_page_that_names_thousands_of_hosts_adds_few_refusals(connection):
    named = [
        refusal.Refusal(f"h{n}.test", "scope", f"https://h{n}.test/", NOW) for n in range(9_000)
    ]
    own = refusal.Refusal("example.org", "path_repetition", "https://example.org/a/a", NOW, 3)
    parts = list(refusal.record_in_parts(connection, [*named, own]))
    assert len(parts) <= refusal.ROWS_PER_CALL // PART_ROWS + 1
    rows = connection.execute("SELECT count(*) FROM refusal").get
    assert rows <= refusal.ROWS_PER_CALL + 1
    assert refusal.totals(connection) == {"scope": 9_000, "path_repetition": 3}
    assert [row.refused for row in refusal.of_host(connection, "example.org")] == [3]


def test_of_endless_hosts_the_latest_refusals_are_kept(connection):
    for first in range(0, 2 * refusal.MAX_ROWS, 50):
        names = [f"h{n}.test" for n in range(first, first + 50)]
        refusal.record(
            connection,
            [
                *(
                    refusal.Refusal(name, "scope", f"https://{name}/", NOW + first)
                    for name in names
                ),
                refusal.Refusal("example.org", "traps", "https://example.org/a", NOW + first),
            ],
        )
    rows = connection.execute("SELECT count(*) FROM refusal").get
    assert rows <= refusal.MAX_ROWS + 2
    assert refusal.totals(connection) == {"scope": 2 * refusal.MAX_ROWS, "traps": 200}
    assert refusal.of_host(connection, "h0.test") == []
    assert refusal.of_host(connection, names[-1])[0].refused == 1
    assert refusal.of_host(connection, "example.org")[0].refused == 200
