import apsw
import pytest

from crawld.store.engine.connection import open_connection
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
