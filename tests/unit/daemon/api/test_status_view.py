"""What `/status` reads of the file does not grow with it."""

from contextlib import closing

import pytest

from crawld.daemon.api.status_view import _read
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import site
from tests.unit.steps import sql_steps
from tests.unit.store.rows import NOW

HOSTS = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
INSERT INTO host (host_id, host, added_at, vanishing_since)
SELECT n, 'host' || n || '.test', 0, iif(n % 2, NULL, 1.0) FROM number
"""
ORIGINS = "INSERT INTO origin (origin_id, host_id, origin) SELECT host_id, host_id, host FROM host"
PAGES = """
INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, seed, importance,
                  discovered_at, requisite, url, version_id)
SELECT 1, host_id, host_id, host_id, 'visited', 0, 0, 1.0, 0, 0, 'http://' || host || '/', 1
FROM host
"""
AUDITS = "INSERT INTO audit (site_id, host_id, day, fresh) SELECT 1, host_id, 9, 1 FROM host"


def grow(connection, count):
    """Add hosts with a page and an audit each."""
    for sql in (HOSTS, ORIGINS, PAGES, AUDITS):
        connection.execute(sql, (count,) if "?1" in sql else ())


@pytest.fixture
def steps_at(tmp_path):
    """Return a function: the steps of the status in a file with so many hosts and pages."""

    def steps_at(count):
        path = tmp_path / f"{count}.db"
        migrate.migrate(path, lambda _: None)
        with closing(open_connection(path)) as connection, connection:
            site.upsert(connection, "s", "{}", source="config", at=NOW)
            grow(connection, count)
            return sql_steps(connection, _read)

    return steps_at


def test_the_status_reads_as_much_of_a_large_file_as_of_a_small_one(steps_at):
    few = steps_at(1_000)
    assert steps_at(100_000) == few < 500
