from contextlib import closing

from crawld.core.url import url_hash
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.mirror.lookup import OriginLookup

ORIGIN = "http://h.example"


def discover(connection):
    url = f"{ORIGIN}/"
    page = Discovery(
        url=url, url_hash=url_hash(url), site_id=1, host="h.example", origin=ORIGIN, at=1.0
    )
    frontier.discover(connection, [page])


def test_an_origin_that_another_connection_adds_is_noticed(tmp_path):
    path = tmp_path / "m.db"
    migrate.migrate(path)
    origins = OriginLookup()
    with (
        closing(open_connection(path)) as writer,
        closing(open_connection(path, read_only=True)) as reader,
    ):
        site.upsert(writer, "site", "{}", source="config", at=1.0)
        assert not origins.of(reader)(ORIGIN)
        discover(writer)
        assert origins.of(reader)(ORIGIN)
        assert not origins.of(reader)("http://other.example")


def test_an_origin_that_the_same_connection_adds_is_noticed(tmp_path):
    path = tmp_path / "m.db"
    migrate.migrate(path)
    origins = OriginLookup()
    with closing(open_connection(path)) as connection:
        site.upsert(connection, "site", "{}", source="config", at=1.0)
        assert not origins.of(connection)(ORIGIN)
        discover(connection)
        assert origins.of(connection)(ORIGIN)
