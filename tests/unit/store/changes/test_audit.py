"""Audits: drawing among all copies, and counts by day."""

from contextlib import closing

import pytest

from crawld.core.audit import AuditResult
from crawld.store.changes import audit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection


@pytest.fixture
def connection(path):
    """A file with pages of one host: with a copy, never visited, gone, of another site."""
    migrate.migrate(path)
    with closing(open_connection(path)) as opened:
        opened.execute(
            "INSERT INTO site (name, source, added_at) VALUES ('s', 'config', 0);"
            "INSERT INTO site (name, source, added_at) VALUES ('t', 'config', 0);"
            "INSERT INTO host (host, added_at) VALUES ('a.test', 0);"
            "INSERT INTO origin (host_id, origin) VALUES (1, 'http://a.test')"
        )
        rows = [(1, "visited", 7)] * 5 + [(1, "discovered", None), (1, "visited", None)]
        rows += [(1, "gone", 7), (2, "visited", 7)]
        for number, (site_id, state, version_id) in enumerate(rows):
            opened.execute(
                "INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth,"
                " discovered_at, version_id, url) VALUES (?, 1, 1, ?, ?, 0, 0, ?, ?)",
                (site_id, number, state, version_id, f"http://a.test/{number}"),
            )
        yield opened


def test_every_copy_held_can_be_drawn(connection):
    assert audit.count_copies(connection) == [(1, 1, 5), (2, 1, 1)]
    assert [audit.page_at(connection, 1, 1, position) for position in range(6)] == [
        1,
        2,
        3,
        4,
        5,
        None,
    ]
    assert audit.page_at(connection, 2, 1, 0) == 9


def test_counts_by_day(connection):
    for _ in range(2):
        audit.record(connection, 1, 1, 100, AuditResult(fresh=1, expected=0.5))
    audit.record(connection, 1, 1, 101, AuditResult(stale=1, unknown=2, expected=0.25))
    rows = audit.list_since(connection, 100)
    assert [(row.host, row.day) for row in rows] == [("a.test", 100), ("a.test", 101)]
    assert sum((row.audited for row in rows), AuditResult()) == AuditResult(2, 1, 2, 1.25)
    audit.delete_before(connection, 101)
    assert [row.day for row in audit.list_since(connection, 0)] == [101]
