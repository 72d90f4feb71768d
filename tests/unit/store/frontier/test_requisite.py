"""Which requisites a page needs, as stored."""

import struct

import pytest

from crawld.store.frontier import frontier, requisite
from tests.unit.store.rows import found


def stored(connection, page_id):
    data = connection.execute(
        "SELECT requisites FROM requisite_use WHERE page_id = ?", (page_id,)
    ).get
    return struct.unpack(f"<{len(data) // 8}q", data)


@pytest.fixture
def page_id(connection):
    [new] = frontier.discover(connection, [found("a")])
    return new.page_id


def test_the_set_is_replaced_where_it_differs_and_not_written_again(connection, page_id):
    requisite.put(connection, page_id, [9, 3, 9])
    assert stored(connection, page_id) == (3, 9)
    before = connection.total_changes()
    requisite.put(connection, page_id, [3, 9])
    assert connection.total_changes() == before
    for numbers in ([3], [], [3, 9, 11]):
        requisite.put(connection, page_id, numbers)
        assert stored(connection, page_id) == tuple(numbers)
