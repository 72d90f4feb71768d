"""Audits: drawing among all copies, and counts by day."""

from crawld.core.audit import AuditResult
from crawld.core.units import DAY_S
from crawld.store.changes import audit
from crawld.store.frontier import frontier, site
from tests.unit.store.rows import NOW, found


def test_only_copies_of_live_pages_are_drawn(connection):
    site.upsert(connection, "other", "{}", source="config", at=NOW)
    rows = [("visited", 7)] * 5 + [("discovered", None), ("visited", None), ("gone", 7)]
    pages = [found(str(number)) for number in range(len(rows))] + [found("other", site_id=2)]
    frontier.discover(connection, pages)
    for page_id, row in enumerate([*rows, ("visited", 7)], 1):
        sql = "UPDATE page SET state = ?, version_id = ? WHERE page_id = ?"
        connection.execute(sql, (*row, page_id))
    assert audit.count_copies(connection) == [(1, 1, 5), (2, 1, 1)]
    drawn = [audit.page_at(connection, 1, 1, position) for position in range(6)]
    assert drawn == [1, 2, 3, 4, 5, None]
    assert audit.page_at(connection, 2, 1, 0) == 9


def test_counts_by_day(connection):
    frontier.discover(connection, [found("a")])
    for _ in range(2):
        audit.record(connection, 1, 1, 100 * DAY_S, AuditResult(fresh=1, expected=0.5))
    audit.record(connection, 1, 1, 101 * DAY_S, AuditResult(stale=1, unknown=2, expected=0.25))
    rows = audit.list_since(connection, 100)
    assert [(row.host, row.day) for row in rows] == [("example.org", 100), ("example.org", 101)]
    assert sum((row.audited for row in rows), AuditResult()) == AuditResult(2, 1, 2, 1.25)
    assert audit.sums_by_site(connection, 100) == {1: AuditResult(2, 1, 2, 1.25)}
    assert audit.sums_by_site(connection, 101) == {1: AuditResult(0, 1, 2, 0.25)}
    assert audit.sums_by_host(connection, 1, 101, 9) == {"example.org": AuditResult(0, 1, 2, 0.25)}
    assert (
        audit.sums_by_host(connection, 1, 101, 0) == audit.sums_by_host(connection, 2, 0, 9) == {}
    )
    audit.delete_before(connection, 101)
    assert [row.day for row in audit.list_since(connection, 0)] == [101]
