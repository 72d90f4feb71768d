"""Packed pages of many hosts in shared blocks: runs, hosts that leave them, and damage."""

from collections import Counter
from hashlib import blake2b

import apsw
import numpy as np
import pytest

from crawld.core.page import PageState
from crawld.errors import CorruptDatabaseError
from crawld.store import doctor
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import (
    frontier,
    load,
    packed,
    packed_block,
    packed_list,
    packed_shared,
    packed_urls,
    page,
    site,
    unvisited,
    verdicts,
)
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing, Portion
from crawld.store.frontier.shared_entries import SharedEntries, SharedQueues
from crawld.store.seen import pending
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.versions import purge
from tests.unit.store.rows import NOW, found

CAPS = Caps(packing=Packing(file_pages=0))
HOSTS = [f"h{number}.example" for number in range(40)]


def discover(connection, links, caps=CAPS):
    """Discover pages of hosts, `(host, name)` or `(host, name, depth)`, and judge them."""
    frontier.discover(
        connection,
        [found(name, host=host, depth=(*more, 1)[0]) for host, name, *more in links],
        caps,
    )
    return verdicts.settle_all(connection, caps).new


def host_id(connection, name):
    return connection.execute("SELECT host_id FROM host WHERE host = ?", (name,)).get


def listed(connection):
    return sorted(each.url for each in packed_list.list_packed(connection, after=0, limit=99_999))


def unpack(connection, host, most=999):
    """Make pages of a host rows; return their names in this order."""
    newest = connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
    portion = Portion(host_id(connection, host), 1, most=most)
    finish(packed.unpack_in_parts(connection, portion))
    rows = connection.execute(
        "SELECT url FROM page WHERE page_id > ? ORDER BY page_id", (newest,)
    ).fetchall()
    return [url.rsplit("/", 1)[1] for (url,) in rows]


def count(connection, table):
    return connection.execute(f"SELECT count(*) FROM {table}").get


def check(connection):
    assert doctor.contradictions(connection) == []
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    packed_pages = packed_list.list_packed(connection, after=0, limit=99_999)
    pages = Counter(each.host_id for each in packed_pages)
    pages.update(row for (row,) in connection.execute("SELECT host_id FROM page"))
    counted = {row.host_id: row.page_count for row in host_rows.list_hosts(connection, limit=999)}
    assert counted == {host_id: pages[host_id] for host_id in counted}
    discovered = frontier.counts(connection)[PageState.DISCOVERED]
    assert discovered == sum(pages.values())


def test_many_hosts_share_blocks(connection):
    discover(connection, [(host, "a") for host in HOSTS])
    assert count(connection, "packed_block") == 0
    assert count(connection, "shared_block") <= 40
    assert listed(connection) == sorted(f"https://{host}/a" for host in HOSTS)
    assert {each.host_id for each in load.load_waiting(connection)} == {
        host_id(connection, host) for host in HOSTS
    }
    check(connection)


def test_hosts_are_read_a_few_at_a_time(connection):
    discover(connection, [(host, "a") for host in HOSTS])
    discover(connection, [(host, "b") for host in HOSTS[10:30]])
    unpack(connection, HOSTS[20])  # rows and blocks of its own
    discover(connection, [(HOSTS[20], name) for name in "cd"])
    hosts = load.load_hosts(connection, 99)
    ids = [each.host_id for each in hosts.hosts]
    assert (ids, hosts.left_after) == (sorted(ids), None)
    assert len(ids) == len(HOSTS)
    few = load.load_hosts(connection, 7)
    assert ([each.host_id for each in few.hosts], few.left_after) == (ids[:7], ids[6])
    host_rows.record_request(connection, ids[30], host_rows.HostUpdate(last_fetch_at=NOW))
    assert [each.host_id for each in load.load_hosts(connection, 7).hosts] == [*ids[:7], ids[30]]

    waiting = load.load_waiting(connection)
    wanted = [ids[2], ids[20], ids[39]]
    assert load.load_waiting(connection, wanted) == [
        each for each in waiting if each.host_id in wanted
    ]
    assert load.load_waiting(connection, []) == []
    found_hosts, after = [], 0
    while part := load.next_hosts(connection, after, 7):
        found_hosts += part
        after = part[-1].host_id
    assert [each.host_id for each in found_hosts] == ids
    assert sorted(queue for each in found_hosts for queue in each.waiting) == sorted(waiting)


def test_a_page_that_moves_in_shared_blocks_is_counted_once(connection):
    discover(connection, [("one.example", "a", 3), ("two.example", "b", 3)])
    discover(connection, [("one.example", "a", 2)])
    check(connection)
    assert unpack(connection, "one.example") == ["a"]
    check(connection)


def test_pages_of_shared_blocks_count_for_the_cap_of_a_host(connection):
    caps = Caps(per_host={1: 3}, packing=Packing(file_pages=0))
    discover(connection, [("one.example", "a"), ("one.example", "b"), ("two.example", "x")], caps)
    discover(connection, [("one.example", "c"), ("one.example", "d"), ("two.example", "y")], caps)
    urls = [f"https://one.example/{name}" for name in "abc"]
    assert listed(connection) == [*urls, "https://two.example/x", "https://two.example/y"]
    # Of a host that is full no link waits.
    frontier.discover(connection, [found("e", host="one.example")], caps)
    assert pending.count(connection) == 0
    check(connection)


def test_the_pages_of_many_hosts_are_counted_together(connection):
    discover(connection, [(host, "a") for host in HOSTS])
    discover(connection, [(host, "b") for host in HOSTS[:9]])
    packed_shared.draw(connection, host_id(connection, HOSTS[0]))
    ids = [host_id(connection, host) for host in HOSTS]
    expected = {of_host: 2 if at < 9 else 1 for at, of_host in enumerate(ids) if at}
    assert packed_shared.count_of_hosts(connection, ids) == expected
    for of_host in ids:
        alone = packed_shared.count_of_hosts(connection, [of_host])
        assert alone == ({of_host: expected[of_host]} if of_host in expected else {})


def test_runs_of_similar_sizes_become_one(connection):
    for number in range(packed_shared.FAN_IN**2 - 1):
        discover(connection, [("one.example", f"p{number}")])
    assert count(connection, "shared_run") == 2 * (packed_shared.FAN_IN - 1)
    discover(connection, [("one.example", "last")])
    assert count(connection, "shared_run") == 1
    names = [f"p{number}" for number in range(packed_shared.FAN_IN**2 - 1)]
    assert unpack(connection, "one.example") == [*names, "last"]
    assert count(connection, "shared_run") == count(connection, "shared_drawn") == 0
    check(connection)


def test_large_runs_stay_as_they_are(connection, monkeypatch):
    monkeypatch.setattr(packed_shared, "MAX_RUN", packed_shared.FAN_IN)
    for number in range(packed_shared.FAN_IN**2):
        discover(connection, [("one.example", f"p{number}")])
    assert count(connection, "shared_run") == packed_shared.FAN_IN


def test_blocks_end_between_hosts(connection, monkeypatch):
    monkeypatch.setattr(packed_shared, "SHARED_PAGES", 3)
    names = [(host, f"{host[1]}{n}") for host in HOSTS for n in range(2 + len(host) % 3)]
    discover(connection, names)
    firsts = connection.execute("SELECT run, first_host FROM shared_block").fetchall()
    assert len(firsts) == len(set(firsts)) > 20
    for host in HOSTS:
        of_host = host_id(connection, host)
        assert (
            len({each.block_id for each in packed_shared.queues_of_host(connection, of_host)}) == 1
        )
    for host in HOSTS:
        assert unpack(connection, host) == [name for each, name in names if each == host]
    assert count(connection, "shared_block") == 0


def test_a_host_with_many_pages_gets_blocks_of_its_own_in_order(connection, monkeypatch):
    monkeypatch.setattr(packed_shared, "OWN_PAGES", 10)
    discover(connection, [("one.example", f"p{n}") for n in range(6)] + [("two.example", "x")])
    discover(connection, [("one.example", f"p{n}") for n in range(6, 20)])
    assert count(connection, "packed_block") > 0
    assert packed_shared.queues_of_host(connection, host_id(connection, "one.example")) == []
    assert unpack(connection, "one.example") == [f"p{n}" for n in range(20)]
    assert listed(connection) == ["https://two.example/x"]
    check(connection)


def test_a_merged_run_gives_large_hosts_blocks_of_their_own(connection, monkeypatch):
    monkeypatch.setattr(packed_shared, "OWN_PAGES", 10)
    for start in range(0, 12, 3):
        discover(connection, [("one.example", f"p{n}") for n in range(start, start + 3)])
    assert count(connection, "shared_run") == 0
    assert unpack(connection, "one.example") == [f"p{n}" for n in range(12)]


def test_pages_of_all_runs_come_by_depth_then_discovery(connection):
    discover(connection, [("one.example", "deep", 5), ("one.example", "b", 2)])
    discover(connection, [("one.example", "near", 1), ("one.example", "c", 2)])
    one = host_id(connection, "one.example")
    assert packed.first_depth(connection, one, 1) == 1
    assert packed.first_depth(connection, one, 2) is None
    assert packed.count_before(connection, one, 1, 5) == 3
    deep = packed_list.find(connection, "https://one.example/deep")
    assert packed_list.queue_of(connection, deep.number) == (one, 1, 5)
    assert unvisited.count_before(connection, deep.number, 99) == 3
    assert unpack(connection, "one.example", most=2) == ["near", "b"]
    assert packed_list.find(connection, "https://one.example/deep").number < deep.number
    assert unpack(connection, "one.example") == ["c", "deep"]


def test_drawn_hosts_are_in_blocks_of_their_own_alone(connection):
    discover(connection, [("one.example", "a"), ("one.example", "b"), ("two.example", "c")])
    before = listed(connection)
    one, two = (host_id(connection, host) for host in ("one.example", "two.example"))
    packed_shared.draw(connection, one)
    packed_shared.draw(connection, one)
    assert listed(connection) == before
    assert [
        len(packed_list.list_packed(connection, after=0, limit=9, host_id=each))
        for each in (one, two)
    ] == [2, 1]
    check(connection)
    for number in range(packed_shared.FAN_IN):  # a merge leaves them out
        discover(connection, [("one.example", f"m{number}"), ("two.example", f"m{number}")])
    assert len(listed(connection)) == 3 + 2 * packed_shared.FAN_IN
    assert count(connection, "shared_drawn") == 0
    check(connection)


def same_repository(connection):
    """Return two hosts whose pages share a block."""
    discover(connection, [(host, "a") for host in HOSTS])
    for block_id in packed_shared.block_ids(connection, packed_shared.FIRST_ID):
        queues = packed_shared.queues_of_block(connection, block_id)
        if len(queues) > 1:
            return [
                host
                for host in HOSTS
                for at in (0, 1)
                if host_id(connection, host) == queues[at][0].host_id
            ]
    raise AssertionError


def test_a_merge_leaves_out_hosts_that_were_drawn(connection):
    one, two = same_repository(connection)
    packed_shared.draw(connection, host_id(connection, one))
    assert count(connection, "shared_drawn") == 1
    check(connection)
    for number in range(packed_shared.FAN_IN):
        discover(connection, [(two, f"m{number}")])
    assert count(connection, "shared_drawn") == 0
    assert listed(connection).count(f"https://{one}/a") == 1
    assert unpack(connection, one) == ["a"]
    check(connection)


def test_a_purged_page_leaves_no_text_in_shared_blocks(connection):
    one, two = same_repository(connection)
    before = listed(connection)
    packed_shared.draw(connection, host_id(connection, one))
    purge.purge(connection, f"https://{one}/a", NOW)
    for queues, frame in connection.execute("SELECT queues, entries FROM shared_block"):
        found_there = SharedEntries.unpack(SharedQueues.unpack(queues), frame)
        assert f"https://{one}/a" not in found_there.columns.texts.decoded()
    assert unpack(connection, two) == ["a"]
    assert len(before) == len(HOSTS)
    check(connection)


def test_pages_are_listed_in_the_order_of_their_numbers(connection):
    site.upsert(connection, "other", "{}", source="config", at=NOW)
    discover(connection, [(host, name) for host in HOSTS[:5] for name in "ab"])
    discover(connection, [(host, name) for host in HOSTS[3:8] for name in "cd"])
    packed_shared.draw(connection, host_id(connection, HOSTS[4]))
    pages, after = [], 0
    while part := packed_list.list_packed(connection, after=after, limit=3):
        pages += part
        after = part[-1].number
    assert [each.number for each in pages] == sorted({each.number for each in pages})
    assert len(pages) == 20
    assert packed_list.list_packed(connection, after=0, limit=99, site_id=2) == []
    for each in pages:
        assert page.by_url(connection, each.url).page_id == each.number
        assert packed_list.queue_of(connection, each.number)[0] == each.host_id
    of_host = packed_list.list_packed(
        connection, after=0, limit=99, host_id=host_id(connection, HOSTS[3])
    )
    assert [each.url[-1] for each in of_host] == ["a", "b", "c", "d"]


def test_pages_on_other_ports_are_in_blocks_of_their_host(connection):
    urls = ("https://one.example/a", "https://one.example:8080/b", "http://[::1]/c")
    links = [Discovery.of(url, site_id=1, at=NOW, depth=1) for url in urls]
    frontier.discover(connection, links, CAPS)
    verdicts.settle_all(connection, CAPS)
    assert count(connection, "packed_block") == 2
    assert len(listed(connection)) == 3
    assert sorted(unpack(connection, "one.example")) == ["a", "b"]
    check(connection)


def test_pages_told_at_once_share_blocks_if_they_are_on_many_hosts(connection, monkeypatch):
    monkeypatch.setattr(verdicts, "FEW_HOSTS", 20)
    memory = KeyMemory(1 << 20)
    memory.load(connection)
    caps = Caps(packing=Packing(file_pages=0, keys=memory))
    discover(connection, [(host, "a") for host in HOSTS[:20]], caps)
    assert (count(connection, "packed_block"), count(connection, "shared_block")) == (20, 0)
    discover(connection, [(host, "b") for host in HOSTS], caps)
    assert count(connection, "packed_block") == 20
    assert listed(connection) == sorted(
        [f"https://{host}/a" for host in HOSTS[:20]] + [f"https://{host}/b" for host in HOSTS]
    )
    assert unpack(connection, HOSTS[0]) == ["a", "b"]
    check(connection)


def test_pages_of_shared_blocks_are_renamed(connection):
    discover(connection, [("one.example", "A"), ("one.example", "a"), ("two.example", "B")])

    def new_url(_, url):
        return url.lower()

    after, renamed = 0, 0
    while (block := packed_urls.next_block(connection, after, new_url)) is not None:
        after, is_changed = block
        if is_changed:
            renamed += packed_urls.rename_in(connection, after, new_url).renamed
    assert renamed == 2
    assert packed_urls.rename_in(connection, after + 1, new_url) == (0, 0)
    verdicts.settle_all(connection, CAPS)
    assert listed(connection) == ["https://one.example/a", "https://two.example/b"]
    assert discover(connection, [("one.example", "a"), ("two.example", "b")]) == []
    check(connection)


def test_a_page_that_gets_a_forgotten_url_is_listed_once(connection):
    discover(connection, [("one.example", "a")])
    unpack(connection, "one.example")
    purge.delete_page(connection, page.id_of(connection, "https://one.example/a"))
    discover(connection, [("one.example", "A")])
    block_id, _ = packed_urls.next_block(connection, 0, lambda _, url: url.lower())
    packed_urls.rename_in(connection, block_id, lambda _, url: url.lower())
    verdicts.settle_all(connection, CAPS)
    discover(connection, [("one.example", "a")])
    assert listed(connection) == ["https://one.example/a"]
    assert unpack(connection, "one.example") == ["a"]
    check(connection)


@pytest.mark.parametrize("column", ["queues", "entries"])
def test_a_damaged_block_is_an_error(connection, column):
    discover(connection, [("one.example", "a")])
    connection.execute(f"UPDATE shared_block SET {column} = x'00112233'")
    with pytest.raises(CorruptDatabaseError):
        unpack(connection, "one.example")


def test_a_block_with_another_number_of_entries_is_an_error(connection):
    discover(connection, [("one.example", "a"), ("one.example", "b")])
    entries = packed_block.Columns.of([packed_block.PackedPage("https://one.example/a", 0.0, 0)])
    frame = entries.frame(packed_block.compressor(1))
    connection.execute("UPDATE shared_block SET entries = ?", (frame,))
    with pytest.raises(CorruptDatabaseError):
        listed(connection)


def test_the_numbers_of_queues_survive_packing():
    hosts = np.array([3, 3, 9, 2**40], np.int64)
    queues = SharedQueues(hosts, hosts % 5, hosts % 7, hosts % 11 + 1)
    found = SharedQueues.unpack(queues.pack())
    for name in ("hosts", "sites", "depths", "counts"):
        assert getattr(found, name).tolist() == getattr(queues, name).tolist()


def test_a_full_disk_during_a_merge_leaves_everything_as_it_was(connection):
    for number in range(packed_shared.FAN_IN - 1):
        discover(connection, [(host, f"{host}-{number}") for host in HOSTS])
    more = [f"{blake2b(bytes([n % 256, n // 256])).hexdigest()}" for n in range(4_000)]
    frontier.discover(connection, [found(name, host=HOSTS[0]) for name in more], CAPS)
    frontier.discover(connection, [found("last", host=host) for host in HOSTS], CAPS)
    before = listed(connection), count(connection, "shared_run"), pending.count(connection)
    pages, failed = connection.execute("PRAGMA page_count").get, 0
    for extra in range(0, 400, 4):
        connection.execute(f"PRAGMA max_page_count = {pages + extra}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            verdicts.settle_all(connection, CAPS)
        except apsw.FullError:
            failed += 1
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            now = listed(connection), count(connection, "shared_run"), pending.count(connection)
            assert now == before
        else:
            connection.execute("COMMIT")
            break
    assert failed > 3
    assert len(listed(connection)) == len(before[0]) + len(more) + len(HOSTS)
    check(connection)
