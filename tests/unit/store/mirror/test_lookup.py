from contextlib import closing

import pytest

from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier
from crawld.store.mirror.lookup import OriginLookup
from tests.unit.store.rows import found


@pytest.mark.parametrize("by_another", [True, False])
def test_an_added_origin_is_noticed(connection, path, by_another):
    origins = OriginLookup()
    with closing(open_connection(path, read_only=True)) as other:
        reader = other if by_another else connection
        assert not origins.of(reader)("https://example.org")
        frontier.discover(connection, [found("a")])
        assert origins.of(reader)("https://example.org")
        assert not origins.of(reader)("https://other.example")
