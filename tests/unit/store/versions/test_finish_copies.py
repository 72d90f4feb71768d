"""The end of a one-off mirror: words and identities of the copies that wait."""

import pytest

from crawld.core.content.analysis import analyse, read_blocks
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import NO_RULES
from crawld.store import visit
from crawld.store.changes import volatile
from crawld.store.frontier import frontier
from crawld.store.versions import finish_copies, search_index, version
from crawld.store.versions.finish_copies import CopyFinisher
from tests.unit.store.rows import changed, found

HTML = "text/html; charset=utf-8"


@pytest.fixture
def copies(connection):
    """Store seven copies; return their version_ids."""
    kept = []
    for number in range(7):
        body = f"<title>T</title><p>word{number} common <a href=/x>link</a>".encode()
        [new] = frontier.discover(connection, [found(f"{number}")])
        kept.append(visit.record(connection, changed(new.page_id, body)).version_id)
    return kept


def finish(connection, **wanted):
    finisher = CopyFinisher(connection, **wanted)
    slices = 0
    while finisher.finish_slice():
        slices += 1
    return slices


def identities(connection):
    return connection.execute(
        "SELECT version_id, page.cleaned_digest, page.sketch, visit.cleaned_digest, visit.sketch"
        " FROM page JOIN visit USING (version_id) ORDER BY version_id"
    ).fetchall()


def expected(connection, version_id, rules=None):
    analysed = analyse(version.read_body(connection, version_id), HTML, volatile=rules)
    return (version_id, *[analysed.cleaned_digest, analysed.sketch] * 2)


@pytest.mark.parametrize("slice_copies", [2, 3, 64])
@pytest.mark.parametrize("index", [True, False])
def test_copies_get_the_identity_of_their_analysis(
    connection, copies, monkeypatch, index, slice_copies
):
    monkeypatch.setattr(finish_copies, "SLICE_COPIES", slice_copies)
    assert finish(connection, index=index, analyse=True)
    assert identities(connection) == [expected(connection, each) for each in copies]
    assert len(search_index.find(connection, "word3")) == int(index)
    assert finish(connection, index=index, analyse=True) == 0


@pytest.mark.parametrize("slice_bytes", [1, 150, 2**20])
def test_each_copy_is_read_once_however_short_the_slices_are(
    connection, copies, monkeypatch, slice_bytes
):
    monkeypatch.setattr(search_index, "SLICE_BYTES", slice_bytes)
    reads = []

    def count(connection, version_id):
        reads.append(version_id)
        return undamaged_copy(connection, version_id)

    undamaged_copy = version.undamaged_copy
    monkeypatch.setattr(version, "undamaged_copy", count)
    finish(connection, index=True, analyse=True)
    assert reads == copies
    assert all(None not in row for row in identities(connection))


def test_only_what_is_wanted_is_done(connection, copies):
    assert finish(connection, index=False, analyse=False) == 0
    assert search_index.count_pending(connection) == len(copies)
    assert finish(connection, index=True, analyse=False) == 1
    assert all(row[1:] == (None,) * 4 for row in identities(connection))
    assert len(search_index.find(connection, "common")) == len(copies)
    assert finish(connection, index=True, analyse=True) == 1
    assert all(None not in row for row in identities(connection))


def test_known_noise_does_not_count(connection, copies):
    first, second = (read_blocks(version.read_body(connection, each), HTML) for each in copies[:2])
    rules = ReadingPair.of(second, first).learn(NO_RULES, pair=True)
    page_id = version.get(connection, copies[0]).page_id
    volatile.put_of_page(connection, page_id, rules.to_bytes())
    finish(connection, index=True, analyse=True)
    assert identities(connection)[0] == expected(connection, copies[0], rules)
    assert identities(connection)[0] != expected(connection, copies[0])


def test_a_damaged_copy_stops_no_other(connection, copies):
    body_id = connection.execute(
        "SELECT body_id FROM version WHERE version_id = ?", (copies[2],)
    ).get
    connection.execute("UPDATE body SET data = x'00' WHERE body_id = ?", (body_id,))
    finish(connection, index=True, analyse=True)
    found = identities(connection)
    assert found[2][1:] == (None,) * 4
    assert all(None not in row for row in found[:2] + found[3:])
    assert len(search_index.find(connection, "common")) == len(copies) - 1
