"""Purges, deletions and damage of links that wait and of packed pages."""

import pytest

from crawld.core.page import PageState
from crawld.errors import CorruptDatabaseError
from crawld.store.frontier import frontier, page, tombstone, verdicts
from crawld.store.seen import seen
from crawld.store.seen.links import Links
from crawld.store.versions import purge
from tests.unit.store.frontier.test_packed import CAPS, faults, fill, unpack, waiting
from tests.unit.store.rows import NOW, found


def test_links_to_purged_pages_are_refused(connection):
    fill(connection, "a", "b")
    frontier.discover(connection, [found("c")], CAPS)  # waits
    for name, known in (("a", True), ("c", False), ("r1", True)):
        assert purge.purge(connection, f"https://example.org/{name}", NOW).known == known
    assert frontier.counts(connection)[PageState.DISCOVERED] == 2
    fill(connection, "a", "c")
    assert waiting(connection) == ["b"]
    tombstone.delete(connection, "https://example.org/a")
    fill(connection, "a")
    assert waiting(connection) == ["b", "a"]
    assert faults(connection) == []


def test_a_purge_while_a_link_waits_holds_and_leaves_no_text(connection):
    frontier.discover(connection, [found("r1"), found("r2")])
    for divided in (False, True):
        frontier.discover(connection, [found("secret"), found("other")], CAPS)
        if divided:
            seen.divide_some(connection)
        purge.purge(connection, "https://example.org/secret", NOW)
        frames = connection.execute(
            "SELECT links, urls FROM seen_found UNION ALL SELECT links, urls FROM seen_pending"
        ).fetchall()
        assert {url for frame in frames for url in Links.unpack(*frame).texts.decoded()} == {
            "https://example.org/other"
        }
        tombstone.delete(connection, "https://example.org/secret")
    verdicts.settle_all(connection, CAPS)
    assert waiting(connection) == ["other"]


def test_a_row_that_is_deleted_is_new_when_it_is_found_again(connection):
    fill(connection, "a")
    unpack(connection)
    purge.delete_page(connection, page.id_of(connection, "https://example.org/a"))
    fill(connection, "a")
    assert waiting(connection) == ["a"]
    assert faults(connection) == []


@pytest.mark.parametrize("table", ["seen_found", "seen_pending"])
def test_damaged_links_are_an_error(connection, table):
    frontier.discover(connection, [found("a")], CAPS)
    if table == "seen_pending":
        seen.divide_some(connection)
    connection.execute(f"UPDATE {table} SET links = x'00112233'")
    with pytest.raises(CorruptDatabaseError):
        verdicts.settle_all(connection, CAPS)
