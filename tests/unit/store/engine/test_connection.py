from contextlib import closing
from functools import partial

import apsw
import pytest
import trio

from crawld.store.engine import connection as connection_module
from crawld.store.engine.connection import WRITER_CACHE_KIB, fit_writer_cache, open_connection
from crawld.store.engine.database import Database
from crawld.store.frontier import page


@pytest.fixture
async def path_of_file(tmp_path):
    path = tmp_path / "mirror.db"
    async with await Database.open(path):
        pass
    return path


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_cached_statement_is_not_prepared_again_for_other_values(path_of_file, read_only):
    connection = open_connection(path_of_file, read_only=read_only)
    questions = []

    def authorizer(*question):
        questions.append(question)  # asked while a statement is prepared
        return apsw.SQLITE_OK

    connection.authorizer = authorizer
    page.for_visit(connection, 1)
    asked_once = len(questions)
    for page_id in range(10):
        page.for_visit(connection, page_id)
    assert 0 < asked_once == len(questions)
    connection.close()


async def test_the_cache_of_a_writer_grows_with_its_file_within_limits(path_of_file, monkeypatch):
    monkeypatch.setattr(connection_module, "CACHED_SHARE", 1)
    sizes = []
    with closing(open_connection(path_of_file)) as connection:
        for more_mib in (0, 8, 16):
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
            connection.execute("INSERT INTO t VALUES (zeroblob(?))", (more_mib * 2**20,))
            fit_writer_cache(connection)
            sizes.append(-connection.execute("PRAGMA cache_size").get)
    least, most = WRITER_CACHE_KIB
    assert sizes[0] == least < sizes[1] < sizes[2] == most


async def test_a_daemon_fits_the_cache_when_its_log_was_long(path_of_file, monkeypatch):
    monkeypatch.setattr(connection_module, "CACHED_SHARE", 1)
    async with await Database.open(path_of_file) as database, trio.open_nursery() as nursery:
        await nursery.start(database.run_writer)
        size = partial(database.write, lambda each: each.execute("PRAGMA cache_size").get)
        assert -(await size()) == WRITER_CACHE_KIB[0]
        await database.write(_store_mib, 20)
        with trio.fail_after(60.0):
            while -(await size()) != WRITER_CACHE_KIB[1]:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


def _store_mib(connection, count):
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (zeroblob(?))", (count * 2**20,))
