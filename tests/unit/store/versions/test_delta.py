import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.errors import CorruptDatabaseError
from crawld.store import doctor
from crawld.store.versions import body, delta, purge
from tests.unit.store.revisions import compact, contents, phpdoc, record_page
from tests.unit.store.rows import NOW

TEXT = "".join(f"<p>line {number} of the page</p>\n" for number in range(300)).encode()


def edited(number):
    return TEXT.replace(b"line 150 ", b"line 150, edit %d " % number)


def edits(count, start=0):
    return [(NOW + number, edited(number)) for number in range(start, start + count)]


def is_delta(connection, content):
    sql = "SELECT base_id IS NOT NULL FROM body WHERE digest = ?"
    return bool(connection.execute(sql, (body.digest(content),)).get)


def longest_chain(connection):
    links = delta.DeltaChains(connection)
    bodies = [row for (row,) in connection.execute("SELECT body_id FROM body")]
    return max(len(list(links.chain(body_id))) for body_id in bodies)


def test_real_revisions_take_a_tenth_of_their_gzip_sizes(connection):
    pages = phpdoc()
    gzipped = sum(len(gzip.compress(content)) for page in pages for _, content in page)
    ids = [record_page(connection, f"p{number}", page) for number, page in enumerate(pages)]
    assert sum(map(len, pages)) > 500
    assert compact(connection) > 450
    trees = "('body', 'body_base', 'sqlite_autoindex_body_1')"
    stored = connection.execute(
        f"SELECT sum(pgsize - unused) FROM dbstat('main', 1) WHERE name IN {trees}"
    ).get
    assert stored < gzipped / 10
    for page_id, page in zip(ids, pages, strict=True):
        assert contents(connection, page_id) == [content for _, content in page]
        # reading any copy decodes no more than a read may cost
    assert longest_chain(connection) < delta.CHAIN_BYTES / delta.LINK_BYTES


def test_the_newest_body_stays_whole_and_older_ones_become_deltas(connection, path):
    page_id = record_page(connection, "p", edits(5))
    assert compact(connection) == 4
    assert [is_delta(connection, edited(number)) for number in range(5)] == [True] * 4 + [False]
    largest = connection.execute("SELECT max(length(data)) FROM body WHERE base_id NOT NULL").get
    assert largest < 100
    assert contents(connection, page_id) == [edited(number) for number in range(5)]
    assert doctor.examine(path).findings == ()


def test_compaction_continues_at_its_cursor(connection):
    page_id = record_page(connection, "p", edits(3))
    delta.apply(connection, delta.plan(connection, limit=2))
    assert [is_delta(connection, edited(n)) for n in range(3)] == [True, False, False]
    assert compact(connection) == 1
    assert delta.plan(connection) is None
    assert contents(connection, page_id) == [edited(n) for n in range(3)]


def test_reused_version_ids_are_examined_again(connection):
    record_page(connection, "p", edits(3))
    doomed = record_page(connection, "q", edits(4, start=10))
    assert compact(connection) == 5
    purge.delete_page(connection, doomed)
    # The next copies get the version_ids of the removed ones.
    record_page(connection, "r", edits(3, start=20))
    assert compact(connection) == 2
    assert is_delta(connection, edited(20))


def test_a_lost_slice_is_planned_again(connection):
    record_page(connection, "p", edits(3))
    assert delta.plan(connection) == delta.plan(connection)


def test_bodies_unlike_each_other_stay_whole(connection):
    noise = [(NOW + number, os.urandom(3000)) for number in range(4)]
    page_id = record_page(connection, "p", noise)
    assert compact(connection) == 0
    assert contents(connection, page_id) == [content for _, content in noise]


def test_a_page_that_alternates_makes_no_circle(connection, path):
    flapping = [(NOW + number, edited(number % 2)) for number in range(9)]
    page_id = record_page(connection, "p", flapping)
    assert compact(connection) == 1
    assert connection.execute("SELECT count(*) FROM body").get == 2
    assert contents(connection, page_id) == [content for _, content in flapping]
    assert doctor.examine(path).findings == ()


@pytest.mark.parametrize("slices", [1, 7, 1000])
def test_chains_are_bounded_by_key_frames(connection, slices):
    # with this page size a chain has at most about fifty deltas
    big = b"".join(b"<p>line %d of a long page, and more</p>\n" % n for n in range(3000))
    revisions = [(NOW + n, big.replace(b"line 9 ", b"line 9.%d " % n)) for n in range(150)]
    page_id = record_page(connection, "p", revisions)
    while (slice_ := delta.plan(connection, limit=slices)) is not None:
        delta.apply(connection, slice_)
    cost = len(big) + delta.LINK_BYTES
    assert delta.CHAIN_BYTES * 0.9 < longest_chain(connection) * cost <= delta.CHAIN_BYTES * 1.01
    whole = connection.execute("SELECT count(*) FROM body WHERE base_id IS NULL").get
    assert whole == 150 // (delta.CHAIN_BYTES // cost) + 1
    assert contents(connection, page_id) == [content for _, content in revisions]


def test_a_body_shared_by_many_pages_stays_out_of_long_chains(connection, path):
    for number in range(30):
        away = (NOW + 1, b"<h1>back soon</h1>" + TEXT)
        record_page(connection, f"p{number}", [(NOW, edited(number)), away])
    assert compact(connection) == 30
    assert doctor.examine(path).findings == ()


def test_damage_is_skipped_and_reported(connection):
    page_id = record_page(connection, "p", edits(3))
    connection.execute("UPDATE body SET data = zeroblob(40) WHERE body_id = 1")
    slice_ = delta.plan(connection)
    assert (slice_.unreadable, len(slice_.deltas), slice_.up_to) == ((2,), 1, 3)
    delta.apply(connection, slice_)
    assert delta.plan(connection) is None
    with pytest.raises(CorruptDatabaseError):
        contents(connection, page_id)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE body SET data = (SELECT data FROM body WHERE body_id = 2) WHERE body_id = 1",
        "UPDATE body SET base_id = 5 WHERE body_id = 1",
        "UPDATE body SET base_id = 1 WHERE body_id = 2",
        "UPDATE body SET base_id = 77 WHERE body_id = 2",
    ],
)
def test_a_wrong_base_is_an_error(connection, damage):
    record_page(connection, "p", edits(4))
    record_page(connection, "q", [(NOW, TEXT.upper())])
    compact(connection)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    with pytest.raises(CorruptDatabaseError):
        body.read(connection, 1)


def test_doctor_reports_circles_and_missing_bases(connection, path):
    record_page(connection, "p", edits(4))
    compact(connection)
    connection.execute("UPDATE body SET base_id = 1 WHERE body_id = 2")
    kinds = {finding.kind: finding for finding in doctor.examine(path).findings}
    assert set(kinds) == {"unreadable_deltas"}
    assert (kinds["unreadable_deltas"].count, kinds["unreadable_deltas"].repairable) == (2, False)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("UPDATE body SET base_id = 77 WHERE body_id = 2")
    kinds = {finding.kind for finding in doctor.repair(path).findings}
    assert kinds == {"unreadable_deltas", "dangling_key"}


def test_doctor_keeps_bases_and_removes_whole_orphaned_chains(connection, path):
    page_id = record_page(connection, "p", edits(4))
    compact(connection)
    connection.execute("DELETE FROM version WHERE version_id = 3")
    assert doctor.examine(path).findings == ()
    connection.execute("DELETE FROM version WHERE version_id IN (1, 2)")
    [orphaned] = doctor.examine(path).findings
    assert (orphaned.kind, orphaned.count) == ("orphaned_bodies", 3)
    assert doctor.repair(path).findings == ()
    assert contents(connection, page_id) == [edited(3)]


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_delta_decodes_to_its_body(content, base):
    data = delta.proven_delta(content, base)
    assert body.decode(body.ZSTD, len(content), data, base) == content
