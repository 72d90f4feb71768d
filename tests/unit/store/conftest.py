from contextlib import closing

import pytest

from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import site
from tests.unit.store.rows import NOW


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawld.db"


@pytest.fixture
def connection(path):
    """A migrated file with one site, open for writing, each statement its own transaction."""
    migrate.migrate(path)
    with closing(open_connection(path)) as opened:
        opened.execute("PRAGMA synchronous = OFF")  # no test cuts the power
        site.upsert(opened, "docs", "{}", source="config", at=NOW)
        yield opened
