"""Commands on a database file: migrate, backup, restore, doctor."""

import json
from pathlib import Path

import apsw
import pytest

from crawld.cli.offline import report_table
from crawld.store.doctor import Finding, Report, TableSpace
from crawld.store.engine.lock import DatabaseLock
from tests.unit.cli.conftest import shown


def change(path, sql):
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


def names(path):
    connection = apsw.Connection(str(path))
    found = [name for (name,) in connection.execute("SELECT name FROM site ORDER BY name")]
    connection.close()
    return found


ADD_SITE = "INSERT INTO site (name, source, added_at) VALUES ('{}', 'config', 1.0)"


def test_migrate_prints_the_schema(command, db):
    ended = command("crawld", "migrate", "--db", db)
    assert ended.code == 0
    assert "is current" in ended.out


def test_backup_and_restore(command, db, tmp_path):
    change(db, ADD_SITE.format("first"))
    copy = tmp_path / "copy.db"
    ended = command("crawld", "backup", copy, "--db", db)
    assert ended.code == 0
    assert str(copy) in ended.out
    assert command("crawld", "backup", copy, "--db", db).code == 2
    change(db, ADD_SITE.format("second"))
    ended = command("crawld", "restore", copy, "--db", db)
    assert ended.code == 0
    assert names(db) == ["first"]
    replaced = Path(ended.out.strip().rpartition(": ")[2])
    assert names(replaced) == ["first", "second"]


def test_doctor_on_a_healthy_database(command, db):
    ended = command("crawld", "doctor", "--db", db)
    assert ended.code == 0
    assert "no errors" in ended.out
    report = json.loads(command("crawld", "doctor", "--db", db, "--json").out)
    assert report["findings"] == []
    assert "page" in {space["table"] for space in report["space"]}


def test_doctor_finds_and_repairs(command, db):
    change(db, ADD_SITE.format("a"))
    change(db, "UPDATE site SET pages_visited = 7")
    ended = command("crawld", "doctor", "--db", db, "--json")
    assert ended.code == 3
    assert [each["kind"] for each in json.loads(ended.out)["findings"]] == ["site_counters"]
    assert "crawld doctor --repair" in command("crawld", "doctor", "--db", db).out
    assert command("crawld", "doctor", "--db", db, "--repair").code == 0
    assert command("crawld", "doctor", "--db", db).code == 0


@pytest.mark.parametrize(
    "arguments", [("migrate",), ("doctor", "--repair"), ("restore", "copy.db")]
)
def test_commands_that_write_refuse_a_database_in_use(
    command, db, arguments, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    command("crawld", "backup", "copy.db", "--db", db)
    with DatabaseLock.acquire(db):
        ended = command("crawld", *arguments, "--db", db)
    assert ended.code == 2
    assert "crawlctl" in ended.err


def test_damage_needs_a_backup():
    finding = Finding("damaged", "page 7 is no page", 1, repairable=False)
    report = Report((finding,), (), 0)
    text = shown(report_table(Path("m.db"), report, "a network file system"))
    assert "warning: a network file system" in text
    assert "crawld restore COPY --db m.db" in text
    assert "--repair" not in text


def test_space():
    space = (
        TableSpace("body", 1234, 5 << 20, 1024),
        TableSpace("hint", 0, 4096, 4096),
        TableSpace("pin", 0, 8192, 8192),
    )
    text = shown(report_table(Path("m.db"), Report((), space, 4096), None))
    cells = [line.split() for line in text.splitlines()]
    assert ["body", "1,234", "5.0", "MiB", "1.0", "KiB"] in cells
    assert "hint" not in text
    assert "2 empty tables: 12.0 KiB" in text
    assert "free pages: 4.0 KiB" in text
