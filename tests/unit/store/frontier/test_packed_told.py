"""Packed pages that are told to be new by keys in memory, before their verdict."""

import pytest

from crawld.store.engine.in_parts import finish
from crawld.store.frontier import frontier, packed, page, site, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.packed import Packing, Portion
from crawld.store.seen import seen
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.seen.links import Links
from crawld.store.seen.seen import SeenFile
from crawld.store.versions import purge
from tests.unit.store.frontier.test_packed import faults
from tests.unit.store.rows import NOW, found


@pytest.fixture(params=[48, 0], ids=["keys", "colliding"])
def caps(connection, request, monkeypatch):
    """Keys in memory; also where all URLs of a host have one key, so that checks decide."""
    monkeypatch.setattr(SeenFile, "of", lambda _: SeenFile(7, url_bits=request.param))
    site.upsert(connection, "two", "{}", source="config", at=NOW)
    frontier.discover(connection, [found("r1"), found("r2")])
    memory = KeyMemory(1 << 20)
    memory.load(connection)
    return Caps(packing=Packing(file_pages=0, keys=memory))


def find(connection, caps, name, site_id, depth):
    frontier.discover(connection, [found(name, site_id=site_id, depth=depth)], caps)


def place(connection, name):
    record = page.by_url(connection, f"https://example.org/{name}")
    return record.site_id, record.depth


def unpacked(connection, site_id):
    return finish(packed.unpack_in_parts(connection, Portion(1, site_id, most=9)))


def test_a_page_stays_with_the_site_that_found_it_when_another_finds_it_nearer(connection, caps):
    find(connection, caps, "a", 1, 2)
    find(connection, caps, "a", 2, 1)
    verdicts.settle_all(connection, caps)
    assert place(connection, "a") == (1, 1)
    assert (unpacked(connection, 2), unpacked(connection, 1)) == (0, 1)
    assert faults(connection) == []


def test_the_first_site_keeps_its_page_without_a_nearer_link(connection, caps):
    find(connection, caps, "a", 1, 2)
    find(connection, caps, "a", 2, 2)
    verdicts.settle_all(connection, caps)
    assert place(connection, "a") == (1, 2)
    assert (unpacked(connection, 2), unpacked(connection, 1)) == (0, 1)


def test_a_page_of_a_site_that_retires_before_the_verdict_moves(connection, caps):
    find(connection, caps, "a", 2, 1)
    site.retire(connection, "two")
    find(connection, caps, "a", 1, 3)
    verdicts.settle_all(connection, caps)
    assert place(connection, "a") == (1, 1)
    assert unpacked(connection, 1) == 1
    assert faults(connection) == []


@pytest.mark.parametrize("divided", [False, True])
def test_a_page_that_is_deleted_before_its_verdict_stays_deleted(connection, caps, divided):
    find(connection, caps, "a", 1, 2)
    if divided:
        assert seen.divide_some(connection)
    assert place(connection, "a") == (1, 2)
    assert unpacked(connection, 1) == 1
    purge.delete_page(connection, page.id_of(connection, "https://example.org/a"))
    verdicts.settle_all(connection, caps)
    assert page.by_url(connection, "https://example.org/a") is None
    find(connection, caps, "a", 1, 3)
    verdicts.settle_all(connection, caps)
    assert place(connection, "a") == (1, 3)
    assert unpacked(connection, 1) == 1
    assert faults(connection) == []


def test_links_that_were_told_wait_by_their_keys_alone(connection, caps):
    find(connection, caps, "a", 1, 2)
    find(connection, caps, "a", 2, 1)
    seen.divide_some(connection)
    frames = connection.execute("SELECT links, urls FROM seen_pending").fetchall()
    texts = [text for frame in frames for text in Links.unpack(*frame).texts.decoded()]
    assert texts == ["", "https://example.org/a"]
