"""The end of a mirror: its file."""

from contextlib import closing

from crawld.cli.mirror import leave_one_file
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier import frontier, site
from crawld.store.versions import search_index
from crawld.store.visit import record
from tests.unit.store.rows import NOW, changed, found


def make_file(path):
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        site.upsert(connection, "docs", "{}", source="config", at=NOW)
        [new] = frontier.discover(connection, [found("a")])
        record(connection, changed(new.page_id, b"<p>apple", NOW))


def test_copies_are_indexed_and_no_log_is_left(tmp_path):
    path = tmp_path / "m.db"
    make_file(path)
    assert leave_one_file(path, index=True) == ""
    assert {each.name for each in tmp_path.iterdir()} == {"m.db", "m.db.lock"}
    with closing(open_connection(path, read_only=True)) as connection:
        assert [hit.url for hit in search_index.find(connection, "apple")] == [
            "https://example.org/a"
        ]


def test_a_reader_of_the_file_is_no_failure(tmp_path):
    path = tmp_path / "m.db"
    make_file(path)
    with closing(open_connection(path, read_only=True)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM page").get == 1
        assert leave_one_file(path, index=True) == ""


def test_a_file_in_use_is_told(tmp_path):
    path = tmp_path / "m.db"
    make_file(path)
    with DatabaseLock.acquire(path):
        assert "m.db" in leave_one_file(path, index=True)
