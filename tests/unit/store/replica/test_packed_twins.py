"""Packed pages of a replica whose twin has a copy become rows."""

import pytest

from crawld.store import visit
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import frontier, host, packed_list, packed_shared, verdicts
from crawld.store.frontier.caps import NO_CAPS, Caps
from crawld.store.frontier.packed import Packing
from crawld.store.replica import packed_twins
from crawld.store.replica.packed_twins import TwinBlock
from tests.unit.store.rows import changed, found

KEPT, COPY = "a.test", "www.a.test"
KEPT_ID, COPY_ID = 1, 2
PACKED = Caps(packing=Packing(file_pages=0))


@pytest.fixture
def pages(connection):
    """Return a function that adds pages of the kept host with a copy, and packed ones."""

    def add(copied, packed, **more):
        links = [found(path, host=KEPT, **more) for path in copied]
        for page in frontier.discover(connection, links, NO_CAPS):
            visit.record(connection, changed(page.page_id, page.url.encode()))
        frontier.discover(connection, [found(path, host=COPY, **more) for path in packed], PACKED)
        verdicts.settle_all(connection, PACKED)

    return add


def unpack(connection, importance=None):
    """Walk the blocks of the copy; return how many pages became rows."""
    packed_shared.draw(connection, COPY_ID)
    made, last = 0, 0
    while block_id := packed_twins.next_block(connection, COPY_ID, last):
        last = block_id
        block = TwinBlock(block_id, COPY, KEPT_ID, importance or {})
        made += finish(packed_twins.unpack_in_parts(connection, block))
    return made


def rows(connection):
    return connection.execute(
        "SELECT url, state, depth, importance FROM page WHERE host_id = ? ORDER BY page_id",
        (COPY_ID,),
    ).fetchall()


def packed(connection):
    return [page.url for page in packed_list.list_packed(connection, after=0, limit=999)]


def test_pages_whose_twin_has_a_copy_become_rows(connection, pages):
    pages(["a", "b"], ["a", "own", "b"])
    pages(["deep"], ["deep"], depth=4)
    counted = host.get(connection, COPY_ID).pages_discovered
    assert unpack(connection, {1: lambda url: 2.0 + url.endswith("/b")}) == 3
    assert rows(connection) == [
        (f"https://{COPY}/a", "discovered", 1, 2.0),
        (f"https://{COPY}/b", "discovered", 1, 3.0),
        (f"https://{COPY}/deep", "discovered", 4, 2.0),
    ]
    assert packed(connection) == [f"https://{COPY}/own"]
    assert host.get(connection, COPY_ID).pages_discovered == counted == 4
    assert unpack(connection) == 0


def test_void_entries_become_no_rows(connection, pages):
    pages(["a"], ["a", "b"], depth=3)
    # Found again nearer to the seeds: its first entry is void.
    frontier.discover(connection, [found("a", host=COPY, depth=2)], PACKED)
    verdicts.settle_all(connection, PACKED)
    assert unpack(connection) == 1
    assert [row[:3] for row in rows(connection)] == [(f"https://{COPY}/a", "discovered", 2)]
    assert packed(connection) == [f"https://{COPY}/b"]


def test_a_block_that_is_gone_is_passed_over(connection, pages):
    pages(["a"], ["a"])
    assert unpack(connection) == 1
    assert finish(packed_twins.unpack_in_parts(connection, TwinBlock(1, COPY, KEPT_ID))) == 0
