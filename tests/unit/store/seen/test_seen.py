"""The structure that answers which URLs are known: exactness, space, order, damage, full disks."""

import apsw
import numpy as np
import pytest

from crawld.core.seen import run
from crawld.core.seen.place import NOWHERE, place_of
from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError
from crawld.store.seen import chunk, pending, seen
from crawld.store.seen.links import FACTS, Links
from crawld.store.seen.seen import SeenFile

RETIRED = np.zeros(4096, bool)


@pytest.fixture
def file(connection, monkeypatch):
    monkeypatch.setattr(SeenFile, "of", lambda connection: SeenFile(7))
    return SeenFile(7)


def links_to(urls, depth=3):
    facts = np.zeros(len(urls), FACTS)
    facts["site"], facts["depth"] = 1, depth
    return Links(facts, TextBlock.of(urls))


def settle(connection):
    """Give each link its verdict; return the new URLs."""
    while seen.divide_some(connection):
        pass
    return [url for each in pending.backlogs(connection) for url in turn(connection, each)]


def turn(connection, backlog):
    found = seen.begin_turn(connection, backlog.repository, RETIRED)
    verdicts = found.verdicts
    everything = np.ones(len(verdicts.new), bool), np.ones(len(verdicts.changed), bool)
    seen.end_turn(connection, found, new=everything[0], changed=everything[1])
    return found.waiting.links.select(np.sort(verdicts.new)).texts.decoded()


def settled(connection, file, urls):
    seen.put(connection, file, links_to(urls))
    return settle(connection)


def tables(connection):
    return {
        name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
        for name in ("seen_found", "seen_pending", "seen_chunk")
    }


def test_many_urls_of_one_host_are_one_run_in_several_chunks(connection, file):
    urls = [f"https://a.org/wiki/{n}" for n in range(100_000)]
    assert settled(connection, file, urls) == urls
    assert settled(connection, file, urls[::-1]) == []
    chunks = connection.execute("SELECT repository, urls FROM seen_chunk").fetchall()
    assert len({repository for repository, _ in chunks}) == 1
    assert all(count <= 2 * run.CHUNK_ENTRIES for _, count in chunks)
    assert sum(count for _, count in chunks) == len(urls)


def test_many_hosts_of_one_url_fill_all_repositories(connection, file):
    urls = [f"https://h{n}.example/" for n in range(100_000)]
    assert len(settled(connection, file, urls)) == len(urls)
    per_repository = [chunk.known(connection, repository) for repository in range(64)]
    assert min(per_repository) > 1_000
    assert settled(connection, file, urls) == []


def test_the_structure_takes_fourteen_bytes_a_url(connection, file):
    urls = [f"https://h{n % 977}.example/articles/of/{n}" for n in range(200_000)]
    settled(connection, file, urls)
    stored = connection.execute("SELECT sum(length(entries)) FROM seen_chunk").get
    assert stored == 14 * len(urls)


def test_a_small_batch_writes_only_the_chunks_that_it_falls_into(connection, file):
    settled(connection, file, [f"https://a.org/{n}" for n in range(150_000)])
    before = dict(connection.execute("SELECT seen_chunk_id, entries FROM seen_chunk"))
    settled(connection, file, ["https://a.org/new"])
    after = dict(connection.execute("SELECT seen_chunk_id, entries FROM seen_chunk"))
    assert len(before) > 2
    assert sum(before[key] != after[key] for key in before) == 1


@pytest.mark.parametrize(
    "given",
    [
        "",
        "\0",
        "http://a.org/\0",
        "http://a.org/\n",
        "\ud800",
        "http://é.org/",
        "////",
        "x" * 2**20,
    ],
    ids=range(8),
)
def test_any_text_is_new_once_and_returned_as_it_was(connection, file, given):
    assert settled(connection, file, [given, "http://a.org/", given]).count(given) == 1
    assert settled(connection, file, [given]) == []


@pytest.mark.parametrize("bits", [0, 1, 8])
def test_urls_with_equal_keys_are_told_apart_by_their_checks(connection, monkeypatch, bits):
    file = SeenFile(7, bits)
    monkeypatch.setattr(SeenFile, "of", lambda connection: file)
    urls = [f"https://a.org/{n}" for n in range(3_000)]
    assert settled(connection, file, urls[:2_000] + urls[:10]) == urls[:2_000]
    assert settled(connection, file, urls) == urls[2_000:]
    places = seen.places(connection, file, [*urls[:3], "https://a.org/x"])
    assert places.tolist() == [place_of(1, 3)] * 3 + [NOWHERE]


def test_a_url_that_comes_alone_is_compared_with_known_ones_of_its_key(connection, monkeypatch):
    file = SeenFile(7, url_bits=0)
    monkeypatch.setattr(SeenFile, "of", lambda connection: file)
    urls = [f"https://a.org/{n}" for n in range(20)]
    assert [settled(connection, file, [url]) for url in urls] == [[url] for url in urls]
    assert [settled(connection, file, [url]) for url in urls] == [[]] * 20
    seen.forget(connection, file, urls[3:5])
    assert seen.places(connection, file, urls[2:6]).tolist() == [
        place_of(1, 3),
        NOWHERE,
        NOWHERE,
        place_of(1, 3),
    ]


def test_the_same_batches_make_the_same_file(connection, file):
    urls = [f"https://h{n % 7}.org/{n}" for n in range(40_000)]
    settled(connection, file, urls)
    first = tables(connection)
    for table in first:
        connection.execute(f"DELETE FROM {table}")
    settled(connection, file, urls)
    assert tables(connection) == first


def test_repositories_are_due_while_more_links_wait_than_may(connection, file):
    told = set()
    for batch in range(12):
        urls = [f"https://h{n % 211}.org/{batch}/{n}" for n in range(20_000)]
        seen.put(connection, file, links_to(urls))
        due = seen.due(connection)
        for backlog in pending.backlogs(connection):
            if backlog.repository in due:
                told |= set(turn(connection, backlog))
        waiting = sum(each.urls for each in pending.backlogs(connection))
        assert waiting <= max(seen.MIN_WAITING, seen.WAITING_SHARE * chunk.known(connection))
    assert 100_000 < len(told) < 240_000


def test_no_link_waits_for_ever(connection, file, monkeypatch):
    """One repository gets many links a batch, another got one long ago."""
    monkeypatch.setattr(pending, "MIN_DIVIDED", 1)
    monkeypatch.setattr(seen, "MIN_WAITING", 300)
    monkeypatch.setattr(seen, "WAITING_SHARE", 0.0)
    seen.put(connection, file, links_to(["https://rare.org/"]))
    for batch in range(600):
        urls = [f"https://h{n % 20}.org/{batch}/{n}" for n in range(100)]
        seen.put(connection, file, links_to(urls))
        due = seen.due(connection)
        backlogs = [each for each in pending.backlogs(connection) if each.repository in due]
        if any("https://rare.org/" in turn(connection, backlog) for backlog in backlogs):
            return
    pytest.fail("the URL of the rare repository was never settled")


def test_few_links_at_a_time_wait_together(connection, file):
    for n in range(50):
        seen.put(connection, file, links_to([f"https://h{n}.org/"]))
    assert pending.backlogs(connection) == []
    assert len(settle(connection)) == 50
    assert not any(tables(connection)[name] for name in ("seen_found", "seen_pending"))


def test_many_links_at_once_do_not_overtake_those_that_came_one_by_one(connection, file):
    url = "https://a.org/"
    many = [f"https://a.org/{n}" for n in range(pending.MIN_DIVIDED)]
    seen.put(connection, file, links_to([url], depth=2))
    seen.put(connection, file, links_to([url, *many], depth=2))
    assert settle(connection) == [url, *many]


def test_a_full_disk_during_a_merge_leaves_everything_as_it_was(connection, file):
    old = [f"https://h{n % 50}.org/{n}" for n in range(30_000)]
    new = [f"https://n{n % 50}.org/{n * n}" for n in range(60_000)]
    settled(connection, file, old)
    seen.put(connection, file, links_to(old, depth=1))
    before = tables(connection)
    pages = connection.execute("PRAGMA page_count").get
    failed = 0
    for more in range(0, 4_000, 60):
        connection.execute(f"PRAGMA max_page_count = {pages + more}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            seen.put(connection, file, links_to(new))
            told = settle(connection)
        except apsw.FullError:
            failed += 1
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            assert tables(connection) == before
        else:
            connection.execute("COMMIT")
            break
    assert failed > 3
    assert sorted(told) == sorted(new)


@pytest.mark.parametrize(
    ("table", "column"),
    [("seen_chunk", "entries"), ("seen_pending", "entries"), ("seen_pending", "links")],
)
def test_a_damaged_block_is_named(connection, file, table, column):
    urls = [f"https://a.org/{n}" for n in range(100)]
    settled(connection, file, urls)
    seen.put(connection, file, links_to(urls))
    seen.divide_some(connection)
    connection.execute(f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) - 3)")
    with pytest.raises(CorruptDatabaseError, match="damaged"):
        settle(connection)


def test_a_file_without_a_seed_is_damaged(connection):
    connection.execute("DELETE FROM seen_seed")
    with pytest.raises(CorruptDatabaseError, match="seed"):
        SeenFile.of(connection)


def test_a_known_url_takes_the_place_of_a_nearer_link(connection, file):
    urls = [f"https://a.org/{n}" for n in range(9)]
    settled(connection, file, urls)
    seen.put(connection, file, links_to(urls[:4], depth=2))
    seen.put(connection, file, links_to(urls[2:6], depth=5))
    assert settle(connection) == []
    assert (
        seen.places(connection, file, urls).tolist() == [place_of(1, 2)] * 4 + [place_of(1, 3)] * 5
    )


def test_a_forgotten_url_is_new_again_also_if_it_waits(connection, file):
    settled(connection, file, ["https://a.org/1"])
    seen.forget(connection, file, ["https://a.org/1", "https://a.org/2"])
    seen.put(connection, file, links_to(["https://a.org/1", "https://a.org/2"]))
    while seen.divide_some(connection):
        pass
    found = seen.begin_turn(connection, pending.backlogs(connection)[0].repository, RETIRED)
    assert found.verdicts.before.tolist() == [NOWHERE] * 2
