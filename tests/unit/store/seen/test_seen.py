import apsw
import pytest

from crawld.core.seen import run
from crawld.core.seen.event import SeenMark
from crawld.errors import CorruptDatabaseError, StoreError
from crawld.store.seen import chunk, known, pending, seen, text
from crawld.store.seen.seen import SeenFile


@pytest.fixture
def file(connection):
    return SeenFile.of(connection, 7)


def settled(connection, file, urls):
    seen.offer(connection, file, urls, SeenMark.WAITING)
    return seen.settle_all(connection)


def tables(connection):
    return {
        name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
        for name in ("seen_pending", "seen_chunk", "seen_text")
    }


def test_many_urls_of_one_host_are_one_run_in_several_chunks(connection, file):
    urls = [f"https://a.org/wiki/{n}" for n in range(100_000)]
    assert sorted(settled(connection, file, urls).urls) == sorted(urls)
    assert settled(connection, file, urls[::-1]).urls == []
    chunks = connection.execute("SELECT repository, urls FROM seen_chunk").fetchall()
    assert len({repository for repository, _ in chunks}) == 1
    assert all(count <= 2 * run.CHUNK_ENTRIES for _, count in chunks)
    assert sum(count for _, count in chunks) == len(urls)


def test_many_hosts_of_one_url_fill_all_repositories(connection, file):
    urls = [f"https://h{n}.example/" for n in range(100_000)]
    assert len(settled(connection, file, urls).urls) == len(urls)
    per_repository = [chunk.known(connection, repository) for repository in range(64)]
    assert min(per_repository) > 1_000
    assert settled(connection, file, urls).new == 0


def test_the_structure_takes_seventeen_bytes_beside_the_text(connection, file):
    urls = [f"https://h{n % 977}.example/articles/of/{n}" for n in range(200_000)]
    settled(connection, file, urls)
    stored = connection.execute("SELECT sum(length(entries)) FROM seen_chunk").get
    assert stored / len(urls) <= 13
    assert connection.execute("SELECT sum(length(checks)) FROM seen_text").get == 4 * len(urls)
    octets = connection.execute("SELECT sum(length(texts)) FROM seen_text").get
    assert octets < sum(map(len, urls)) / 3


def test_few_new_urls_join_the_last_row_of_texts_until_it_is_full(connection, file, monkeypatch):
    monkeypatch.setattr(text, "ROW_TEXTS", 10)
    for start in range(0, 48, 4):
        settled(connection, file, [f"https://a.org/{n}" for n in range(start, start + 4)])
    rows = connection.execute("SELECT first_number, urls FROM seen_text ORDER BY 1").fetchall()
    assert rows == [(first, 8) for first in range(0, 48, 8)]


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
def test_any_text_is_seen_once_and_returned_as_it_was(connection, file, given):
    assert settled(connection, file, [given, "http://a.org/", given]).urls.count(given) == 1
    assert settled(connection, file, [given]).urls == []
    assert (given, SeenMark.WAITING) in list(known.urls_with_marks(connection))


def test_a_text_above_a_megabyte_is_refused_before_anything_is_stored(connection, file):
    with pytest.raises(StoreError, match="1,048,577 bytes"):
        seen.offer(connection, file, ["http://a.org/", "x" * (2**20 + 1)], SeenMark.WAITING)
    assert tables(connection)["seen_pending"] == []


@pytest.mark.parametrize("bits", [0, 1, 8])
def test_urls_with_equal_keys_are_told_apart_by_their_checks(connection, bits):
    file = SeenFile(7, bits)
    urls = [f"https://a.org/{n}" for n in range(3_000)]
    assert sorted(settled(connection, file, urls[:2_000] + urls[:10]).urls) == sorted(urls[:2_000])
    assert sorted(settled(connection, file, urls).urls) == sorted(urls[2_000:])
    assert known.marks(connection, file, [*urls[:3], "https://a.org/x"]) == [
        *[SeenMark.WAITING] * 3,
        None,
    ]


def test_a_url_that_comes_alone_is_compared_with_known_ones_of_its_key(connection):
    file = SeenFile(7, url_bits=0)
    urls = [f"https://a.org/{n}" for n in range(20)]
    assert [settled(connection, file, [url]).urls for url in urls] == [[url] for url in urls]
    assert [settled(connection, file, [url]).urls for url in urls] == [[]] * 20


def test_the_same_batches_make_the_same_file(connection, file):
    urls = [f"https://h{n % 7}.org/{n}" for n in range(40_000)]
    settled(connection, file, urls)
    first = tables(connection)
    for table in first:
        connection.execute(f"DELETE FROM {table}")
    settled(connection, file, urls)
    assert tables(connection) == first


def test_more_urls_than_may_wait_are_settled_by_those_who_offer(connection, file):
    told = set()
    for batch in range(12):
        urls = [f"https://h{n % 211}.org/{batch}/{n}" for n in range(20_000)]
        told |= set(seen.take(connection, file, urls, SeenMark.WAITING).urls)
        waiting = sum(each.urls for each in pending.backlogs(connection))
        assert waiting <= max(seen.MIN_WAITING, seen.WAITING_SHARE * chunk.known(connection))
    assert len(told) > 150_000


def test_no_url_waits_for_ever(connection, file, monkeypatch):
    """One repository gets many URLs a batch, another got one long ago."""
    monkeypatch.setattr(pending, "MIN_DIVIDED", 1)
    monkeypatch.setattr(seen, "MIN_WAITING", 300)
    monkeypatch.setattr(seen, "WAITING_SHARE", 0.0)
    seen.offer(connection, file, ["https://rare.org/"], SeenMark.WAITING)
    for batch in range(600):
        urls = [f"https://h{n % 20}.org/{batch}/{n}" for n in range(100)]
        if "https://rare.org/" in seen.take(connection, file, urls, SeenMark.WAITING).urls:
            return
    pytest.fail("the URL of the rare repository was never settled")


def test_few_urls_at_a_time_wait_together(connection, file):
    for n in range(50):
        seen.offer(connection, file, [f"https://h{n}.org/"], SeenMark.FOUND)
    assert pending.backlogs(connection) == []
    assert len(settled(connection, file, []).urls) == 50
    assert tables(connection)["seen_pending"] == []


def test_a_full_disk_during_a_merge_leaves_everything_as_it_was(connection, file):
    old = [f"https://h{n % 50}.org/{n}" for n in range(30_000)]
    new = [f"https://n{n % 50}.org/{n * n}" for n in range(60_000)]
    settled(connection, file, old)
    seen.offer(connection, file, old, SeenMark.PAGE, sets=True)
    before = tables(connection)
    pages = connection.execute("PRAGMA page_count").get
    failed = 0
    for more in range(0, 4_000, 60):
        connection.execute(f"PRAGMA max_page_count = {pages + more}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            seen.offer(connection, file, new, SeenMark.WAITING)
            told = seen.settle_all(connection).urls
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
    [("seen_text", "checks"), ("seen_pending", "entries"), ("seen_pending", "texts")],
)
def test_a_damaged_block_is_named(connection, file, table, column):
    urls = [f"https://a.org/{n}" for n in range(100)]
    settled(connection, file, urls)
    seen.offer(connection, file, urls, SeenMark.WAITING)
    connection.execute(f"UPDATE {table} SET {column} = substr({column}, 1, length({column}) - 3)")
    with pytest.raises(CorruptDatabaseError, match="damaged"):
        seen.settle_all(connection)


def test_damaged_texts_are_named(connection, file):
    settled(connection, file, ["https://a.org/"])
    connection.execute("UPDATE seen_text SET texts = substr(texts, 1, length(texts) - 3)")
    with pytest.raises(CorruptDatabaseError, match="damaged"):
        list(known.urls_with_marks(connection))


def test_missing_checks_are_named(connection, file):
    settled(connection, file, [f"https://a.org/{n}" for n in range(10)])
    connection.execute("UPDATE seen_text SET urls = 9, checks = substr(checks, 1, 36)")
    with pytest.raises(CorruptDatabaseError, match="missing"):
        settled(connection, file, [f"https://a.org/{n}" for n in range(10)])


def test_a_damaged_chunk_is_named(connection, file):
    settled(connection, file, ["https://a.org/"])
    connection.execute("UPDATE seen_chunk SET entries = substr(entries, 2)")
    with pytest.raises(CorruptDatabaseError, match="damaged"):
        settled(connection, file, ["https://a.org/"])


def test_marks_follow_the_last_news(connection, file):
    url = "https://a.org/"
    steps = [
        (SeenMark.FOUND, False, SeenMark.FOUND),
        (SeenMark.WAITING, False, SeenMark.FOUND),
        (SeenMark.WAITING, True, SeenMark.WAITING),
        (SeenMark.PURGED, True, SeenMark.PURGED),
        (SeenMark.WAITING, False, SeenMark.PURGED),
    ]
    for mark, sets, after in steps:
        seen.offer(connection, file, [url], mark, sets=sets)
        assert known.marks(connection, file, [url]) == [after]
    seen.settle_all(connection)
    assert known.marks(connection, file, [url]) == [SeenMark.PURGED]


def test_many_urls_at_once_do_not_overtake_those_that_came_one_by_one(connection, file):
    url = "https://a.org/"
    many = [f"https://a.org/{n}" for n in range(pending.MIN_DIVIDED)]
    seen.offer(connection, file, [url], SeenMark.PURGED, sets=True)
    seen.offer(connection, file, [url, *many], SeenMark.PAGE, sets=True)
    seen.settle_all(connection)
    assert known.marks(connection, file, [url]) == [SeenMark.PAGE]


def test_the_urls_of_a_host_are_stored_in_order_of_arrival(connection, file):
    first = [f"https://h{n % 5}.org/{n * 7919 % 1000}" for n in range(1_000)]
    second = [f"https://h{n % 5}.org/later/{n * 7919 % 1000}" for n in range(1_000)]
    told = (
        settled(connection, file, first + first[:50]).urls + settled(connection, file, second).urls
    )
    stored = [url for url, _ in known.urls_with_marks(connection)]
    for host in range(5):
        arrived = [url for url in first + second if f"//h{host}." in url]
        assert [url for url in stored if f"//h{host}." in url] == arrived
        assert [url for url in told if f"//h{host}." in url] == arrived
