import pytest

from crawld.core.page import PageState
from crawld.errors import CorruptDatabaseError, DatabaseInUseError
from crawld.store import doctor
from crawld.store import visit as visits
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, page
from tests.unit.store.rows import NOW, changed, found


@pytest.fixture
def filled(connection, path):
    new = frontier.discover(connection, [found(f"p{number}") for number in range(6)])
    for number in range(4):
        visits.record(connection, changed(new[number].page_id, b"content %d" % number))
    return path


def test_a_healthy_file_has_no_findings_and_all_its_tables(filled):
    report = doctor.examine(filled)
    assert report.findings == ()
    space = {row.table: row for row in report.space}
    assert (space["page"].rows, space["version"].rows, space["body"].rows) == (6, 4, 4)
    assert all(row.bytes >= row.unused_bytes >= 0 for row in report.space)


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        ("UPDATE site SET pages_visited = 9", {"site_counters"}),
        ("UPDATE host SET pages_gone = 1, pages_visited = 3", {"host_counters"}),
        ("DELETE FROM version WHERE version_id = 1", {"dangling_version", "orphaned_bodies"}),
        ("UPDATE page SET version_id = 2 WHERE page_id = 1", {"dangling_version"}),
        (
            "UPDATE page SET state = 'visited' WHERE page_id = 6",
            {"visited_never", "site_counters", "host_counters"},
        ),
        (
            "UPDATE page SET state = 'discovered' WHERE page_id = 1",
            {"discovered_visited", "site_counters", "host_counters"},
        ),
    ],
)
def test_derived_facts_are_checked_and_repaired(connection, filled, damage, kinds):
    connection.execute(damage)
    found_kinds = doctor.examine(filled).findings
    assert {finding.kind for finding in found_kinds} == kinds
    assert all(finding.repairable and finding.count for finding in found_kinds)
    lines = []
    assert doctor.repair(filled, lines.append).findings == ()
    assert lines
    counted = frontier.counts(connection)
    assert (counted[PageState.DISCOVERED], counted[PageState.VISITED]) == (2, 4)


def test_a_dangling_copy_falls_back_to_the_previous_one_without_validators(connection, filled):
    newest = visits.record(connection, changed(1, b"newer", NOW + 9)).version_id
    connection.execute("DELETE FROM version WHERE version_id = ?", (newest,))
    doctor.repair(filled)
    stored = page.for_visit(connection, 1)
    assert stored.version_id == 1
    assert (stored.etag, stored.last_modified, stored.digest) == (None, None, None)


def test_a_dangling_key_is_found_and_not_repaired(connection, filled):
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM page WHERE page_id = 1")
    kinds = {finding.kind: finding for finding in doctor.examine(filled).findings}
    assert kinds["dangling_key"].repairable is False
    assert "dangling_key" in {finding.kind for finding in doctor.repair(filled).findings}


def test_a_damaged_index_is_rebuilt(connection, filled):
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', 'IS NULL')"
        " WHERE name = 'page_retry'"
    )
    connection.execute("PRAGMA writable_schema = RESET")
    findings = doctor.examine(filled).findings
    assert findings
    assert all(finding.kind == "damaged" and finding.repairable for finding in findings)
    assert doctor.repair(filled).findings == ()


async def test_repair_is_refused_while_the_database_is_open(filled):
    async with await Database.open(filled):
        with pytest.raises(DatabaseInUseError):
            doctor.repair(filled)
        assert doctor.examine(filled).findings == ()


def test_a_file_that_is_no_database_is_refused(path):
    path.write_bytes(b"junk" * 5000)
    with pytest.raises(CorruptDatabaseError):
        doctor.examine(path)
