"""Files that were packed by an older version, with a row of `packed_key` for each page."""

import pytest

from crawld.core.page import PageState
from crawld.core.url import second_hash, split_url, url_hash
from crawld.store import doctor
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import (
    frontier,
    packed,
    packed_keys,
    packed_list,
    packed_shared,
    verdicts,
)
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.packed import Packing, Portion
from tests.unit.store.rows import found

CAPS = Caps(packing=Packing(file_pages=0))


def pack(connection, *names, depth):
    frontier.discover(connection, [found(name, depth=depth) for name in names], CAPS)
    verdicts.settle_all(connection, CAPS)


def make_old(connection, *, checked):
    """Store what is packed as an older version did."""
    packed_shared.draw(connection, 1)
    pages = packed_list.list_packed(connection, after=0, limit=999)
    for page in pages:
        check = (second_hash(page.url) & 0xFFFF_FFFF) - (1 << 31) if checked else None
        connection.execute(
            "INSERT INTO packed_key (host_id, url_hash, site_id, depth, url_check)"
            " VALUES (?, ?, ?, ?, ?)",
            (page.host_id, url_hash(page.url), page.site_id, page.depth, check),
        )
    for table in ("seen_chunk", "packed_void"):
        connection.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("checked", [True, False])
def test_packed_pages_of_an_older_version_are_known(connection, monkeypatch, checked):
    monkeypatch.setattr(packed_keys, "SLICE_BLOCKS", 1)
    pack(connection, "a", "b", "c", depth=3)
    pack(connection, "d", depth=4)
    pack(connection, "b", depth=2)  # its first entry is void now
    make_old(connection, checked=checked)
    assert packed_keys.any_left(connection)
    slices = 0
    while packed_keys.convert_some(connection):
        slices += 1
    assert slices == 3
    assert not packed_keys.any_left(connection)
    assert [check.kind for check, _ in doctor.contradictions(connection)] == []
    pack(connection, "a", "b", "c", "d", "e", depth=5)
    names = [
        split_url(page.url).target for page in packed_list.list_packed(connection, after=0, limit=9)
    ]
    assert sorted(names) == ["/a", "/b", "/c", "/d", "/e"]
    assert frontier.counts(connection)[PageState.DISCOVERED] == 5
    assert finish(packed.unpack_in_parts(connection, Portion(1, 1))) == 5
    urls = [url for (url,) in connection.execute("SELECT url FROM page ORDER BY page_id")]
    assert [url[-1] for url in urls] == ["b", "a", "c", "d", "e"]
    assert [check.kind for check, _ in doctor.contradictions(connection)] == []
