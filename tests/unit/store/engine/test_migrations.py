import hashlib
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from crawld.errors import (
    CorruptDatabaseError,
    ForeignDatabaseError,
    MigrationError,
    NewerDatabaseError,
    StoreError,
)
from crawld.store.engine import migrate
from crawld.store.engine.connection import APPLICATION_ID, PAGE_BYTES, open_connection
from crawld.store.engine.database import Database

# A released file is frozen: entries are added here, never changed.
FROZEN: dict[str, str] = {}

FIRST = "CREATE TABLE a (a_id INTEGER PRIMARY KEY, b TEXT) STRICT;\n"


def schema(path):
    with closing(open_connection(path, read_only=True)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1")
        return "\n\n".join(f"{sql};" for (sql,) in rows) + "\n"


@pytest.fixture(autouse=True)
def _migrate_new_files(monkeypatch):
    """Elsewhere in the tests a new file is a copy."""
    monkeypatch.setattr(migrate, "migrate", migrate.migrate.__wrapped__)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "migrations"
    made.mkdir()
    (made / "0001_first.sql").write_text(FIRST)
    (made / "README").write_text("no migration")
    return made


def test_released_files_are_unchanged():
    for migration in migrate.migrations():
        digest = hashlib.sha256(migration.sql.encode()).hexdigest()
        assert FROZEN.get(migration.name, digest) == digest
    assert set(FROZEN) <= {migration.name for migration in migrate.migrations()}


def test_the_schema_equals_the_recorded_one(path):
    migrate.migrate(path)
    assert schema(path) == (Path(__file__).parents[3] / "data" / "schema.sql").read_text()


def test_a_new_file_has_crawlds_format(path):
    assert migrate.migrate(path).version == 0
    wanted = {
        "application_id": APPLICATION_ID,
        "page_size": PAGE_BYTES,
        "auto_vacuum": 2,
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "user_version": len(migrate.migrations()),
    }
    with closing(open_connection(path)) as connection:
        found = {name: connection.execute(f"PRAGMA {name}").get for name in wanted}
    assert found == wanted
    assert migrate.status(path).pending == ()


def test_pending_files_are_applied_after_a_copy(path, folder):
    migrate.migrate(path, folder=folder)
    (folder / "0002_more.sql").write_text("ALTER TABLE a ADD COLUMN c INTEGER NOT NULL DEFAULT 7;")
    with closing(open_connection(path)) as connection:
        connection.execute("INSERT INTO a VALUES (1, 'kept')")
    assert migrate.status(path, folder=folder).pending == ("0002_more.sql",)
    lines = []
    assert migrate.migrate(path, lines.append, folder=folder).version == 1
    assert lines[-1] == "apply 0002_more.sql"
    with closing(open_connection(path)) as connection:
        assert connection.execute("SELECT * FROM a").fetchall() == [(1, "kept", 7)]
    [copy] = path.parent.glob("crawld.db.schema-0001.*")
    with closing(open_connection(copy, read_only=True)) as connection:
        assert connection.execute("SELECT * FROM a").fetchall() == [(1, "kept")]


class KilledError(Exception):
    """The process ended here."""


def test_a_migration_goes_on_after_one_that_ended_between_copy_and_statements(path, folder):
    """The second comes within the same second, and finds a part of a copy, too."""
    migrate.migrate(path, folder=folder)
    (folder / "0002_more.sql").write_text("ALTER TABLE a ADD COLUMN c INTEGER NOT NULL DEFAULT 7;")

    def end(line):
        if line.startswith("apply"):
            raise KilledError

    for _ in range(3):
        with pytest.raises(KilledError):
            migrate.migrate(path, end, folder=folder)
    path.with_name("crawld.db.schema-0001.partial").write_bytes(b"half of a copy")
    assert migrate.migrate(path, folder=folder).pending == ("0002_more.sql",)
    copies = list(path.parent.glob("crawld.db.schema-0001.*"))
    assert len(copies) == 4
    for copy in copies:
        assert migrate.status(copy, folder=folder).version == 1


async def test_opening_an_older_file_reports_the_migrations(path, folder):
    known = migrate.migrations()
    (folder / "0001_first.sql").unlink()
    for each in known[:-1]:
        (folder / each.name).write_text(each.sql)
    migrate.migrate(path, folder=folder)
    async with await Database.open(path) as database:
        copied, applied = database.migrated
    assert copied.startswith("copy to ")
    assert applied == f"apply {known[-1].name}"
    async with await Database.open(path) as database:
        assert database.migrated == []


def test_applied_files_are_not_applied_again_and_not_copied(path, folder):
    migrate.migrate(path, folder=folder)
    lines = []
    assert migrate.migrate(path, lines.append, folder=folder).pending == ()
    assert lines == []


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE TABLE b (x TEXT) STRICT;\nINSERT INTO a VALUES (2, 'y');\nSELEC 1;\n", "line 3"),
        ("INSERT INTO a VALUES (2, 'y');\nCOMMIT;\nSELEC 1;\n", "line 2"),
        ("INSERT INTO a VALUES (2, 'y');\nATTACH 'x' AS y;\n", "line 2"),
        ("INSERT INTO a VALUES (1, 'again');\n", "UNIQUE"),
        ("CREATE TABLE b (a_id INTEGER REFERENCES a) STRICT;\nINSERT INTO b VALUES (9);", "b"),
        ("CREATE TABLE b (x TEXT) STRICT;\nINSERT INTO b VALUES ('no end", "line 2"),
    ],
)
def test_a_failing_file_changes_nothing_and_is_named(path, folder, sql, named):
    migrate.migrate(path, folder=folder)
    with closing(open_connection(path)) as connection:
        connection.execute("INSERT INTO a VALUES (1, 'kept')")
    before = schema(path)
    (folder / "0002_bad.sql").write_text(sql)
    with pytest.raises(MigrationError) as caught:
        migrate.migrate(path, folder=folder)
    assert "0002_bad.sql" in caught.value.message
    assert named in caught.value.message
    assert schema(path) == before
    with closing(open_connection(path)) as connection:
        assert connection.execute("SELECT * FROM a").fetchall() == [(1, "kept")]
        assert connection.execute("PRAGMA user_version").get == 1


def test_a_trigger_is_one_statement():
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n"
    sql = f"-- why\n\n{trigger}SELECT 3;"
    assert [line for line, _ in migrate.split_statements(sql)] == [3, 7]


def test_a_newer_file_is_refused(path, folder):
    migrate.migrate(path, folder=folder)
    with closing(open_connection(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    for look in (migrate.migrate, migrate.status):
        with pytest.raises(NewerDatabaseError, match="schema 9"):
            look(path, folder=folder)


def test_a_foreign_file_is_refused_and_not_changed(path):
    with closing(apsw.Connection(str(path))) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ForeignDatabaseError):
        migrate.migrate(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_with_a_hint(path):
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(CorruptDatabaseError) as caught:
        migrate.migrate(path)
    assert f"crawld restore BACKUP --db {path}" in caught.value.hint


def test_an_empty_file_is_a_new_one(path):
    path.touch()
    assert migrate.migrate(path).version == 0


def test_an_older_file_is_refused_without_migration(path, folder):
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with pytest.raises(StoreError) as caught:
        migrate.require_current(path)
    assert f"crawld migrate --db {path}" in caught.value.hint


@pytest.mark.parametrize("name", ["0003_gap.sql", "0001_double.sql"])
def test_gaps_and_doubles_are_refused(folder, name):
    (folder / name).write_text("SELECT 1;")
    with pytest.raises(MigrationError, match=name):
        migrate.migrations(folder)
