"""The starts of bodies in the file: few, and none that is old."""

import pytest

from crawld.store.frontier import frontier
from crawld.store.versions import partial_body
from crawld.store.versions.partial_body import MAX_AGE_S, MOST_ROWS, PartialBodyRow
from tests.unit.store.rows import NOW, found

ROW = PartialBodyRow('"one"', 10, b"start")


@pytest.fixture
def page_ids(connection):
    """More pages than starts of bodies are kept."""
    pages = frontier.discover(connection, [found(str(number)) for number in range(MOST_ROWS + 3)])
    return [page.page_id for page in pages]


def test_a_start_is_replaced_read_and_removed(connection, page_ids):
    page_id = page_ids[0]
    assert partial_body.get(connection, page_id, NOW) is None
    partial_body.put(connection, page_id, NOW, ROW._replace(body=b"st"))
    partial_body.put(connection, page_id, NOW, ROW)
    assert partial_body.get(connection, page_id, NOW) == ROW
    partial_body.remove(connection, page_id)
    assert partial_body.get(connection, page_id, NOW) is None


def test_an_old_start_is_not_used_and_goes(connection, page_ids):
    old, new = page_ids[:2]
    partial_body.put(connection, old, NOW, ROW)
    assert partial_body.get(connection, old, NOW + MAX_AGE_S) == ROW
    assert partial_body.get(connection, old, NOW + MAX_AGE_S + 1) is None
    partial_body.put(connection, new, NOW + MAX_AGE_S + 1, ROW)
    assert connection.execute("SELECT page_id FROM partial_body").fetchall() == [(new,)]


def test_only_the_newest_starts_are_kept(connection, page_ids):
    for number, page_id in enumerate(page_ids):
        partial_body.put(connection, page_id, NOW + number, ROW)
    kept = connection.execute("SELECT page_id FROM partial_body ORDER BY received_at").fetchall()
    assert [page_id for (page_id,) in kept] == page_ids[-MOST_ROWS:]


def test_a_page_that_is_gone_keeps_nothing(connection):
    partial_body.put(connection, 77, NOW, ROW)
    assert connection.execute("SELECT * FROM partial_body").fetchall() == []
