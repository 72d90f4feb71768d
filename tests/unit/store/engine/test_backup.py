from contextlib import closing

import pytest
import trio

from crawld.errors import (
    CorruptDatabaseError,
    DatabaseInUseError,
    ForeignDatabaseError,
    StoreError,
)
from crawld.store import doctor
from crawld.store.engine import backup, migrate
from crawld.store.engine.connection import open_connection
from crawld.store.engine.database import Database


def put(connection, key, size=10):
    connection.execute("INSERT INTO meta VALUES (?, ?)", (key, "x" * size))


def keys(path):
    with closing(open_connection(path, read_only=True)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM meta")}


@pytest.fixture
def filled(path):
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        for number in range(10):
            put(connection, f"old {number}")
    return path


async def test_a_backup_beside_writes_is_complete(path, nursery):
    target = path.with_name("copy.db")
    async with await Database.open(path, batch_max_age_s=0.001) as database:
        await nursery.start(database.run_writer)
        for number in range(60):
            await database.write(put, f"before {number}", 100_000)
        steps = []
        stop = False

        async def write():
            number = 0
            while not stop:
                await database.write(put, f"during {number}", 5_000)
                number += 1

        async with trio.open_nursery() as writers:
            writers.start_soon(write)
            await backup.backup(database, target, lambda copied, pages: steps.append(copied))
            stop = True
    assert len(steps) >= 2
    assert {f"before {number}" for number in range(60)} <= keys(target)
    assert doctor.examine(target).findings == ()
    assert not target.with_name("copy.db.partial").exists()


def test_a_backup_from_another_process_beside_a_writer(filled):
    target = filled.with_name("copy.db")
    with closing(open_connection(filled)) as writer:
        put(writer, "large", 5_000_000)
        backup.backup_file(filled, target, lambda copied, pages: put(writer, f"during {copied}"))
    assert keys(target) == {f"old {number}" for number in range(10)} | {"large"}


def test_a_copy_never_replaces_a_file(filled):
    target = filled.with_name("copy.db")
    target.write_text("precious")
    with pytest.raises(StoreError, match="exists"):
        backup.backup_file(filled, target)
    assert target.read_text() == "precious"


def test_a_copy_that_cannot_be_written_is_an_error(filled):
    with pytest.raises(StoreError):
        backup.backup_file(filled, filled.parent / "missing" / "copy.db")


def test_restore_replaces_the_file_and_keeps_it(filled):
    copy = filled.with_name("copy.db")
    backup.backup_file(filled, copy)
    with closing(open_connection(filled)) as connection:
        put(connection, "newer")
    aside = backup.restore(filled, copy)
    assert keys(filled) == {f"old {number}" for number in range(10)}
    assert keys(aside) == keys(filled) | {"newer"}
    assert doctor.examine(filled).findings == ()


def test_restore_beside_the_log_of_a_damaged_file(filled):
    copy = filled.with_name("copy.db")
    backup.backup_file(filled, copy)
    with closing(open_connection(filled)) as connection:
        put(connection, "in the log")
        wal = filled.with_name("crawld.db-wal").read_bytes()
    filled.write_bytes(b"\xa5" * 5000)
    filled.with_name("crawld.db-wal").write_bytes(wal)
    aside = backup.restore(filled, copy)
    assert keys(filled) == {f"old {number}" for number in range(10)}
    assert aside.read_bytes() == b"\xa5" * 5000
    assert aside.with_name(aside.name + "-wal").read_bytes() == wal


def test_restore_without_a_database(filled):
    place = filled.with_name("new.db")
    assert backup.restore(place, filled) is None
    assert keys(place) == keys(filled)


async def test_restore_is_refused_while_the_database_is_open(filled):
    copy = filled.with_name("copy.db")
    backup.backup_file(filled, copy)
    async with await Database.open(filled):
        with pytest.raises(DatabaseInUseError):
            backup.restore(filled, copy)


def spoil_header(copy):
    copy.write_bytes(b"\xa5" * 4096 + copy.read_bytes()[4096:])


def spoil_page(copy):
    content = bytearray(copy.read_bytes())
    content[5 * 4096 : 7 * 4096] = b"\xa5" * (2 * 4096)
    copy.write_bytes(content)


def make_foreign(copy):
    with closing(open_connection(copy)) as connection:
        connection.execute("PRAGMA application_id = 7")


def remove(copy):
    copy.unlink()


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (spoil_header, CorruptDatabaseError),
        (spoil_page, CorruptDatabaseError),
        (make_foreign, ForeignDatabaseError),
        (remove, StoreError),
    ],
)
def test_a_bad_copy_is_refused_and_nothing_changes(filled, spoil, error):
    copy = filled.with_name("copy.db")
    backup.backup_file(filled, copy)
    spoil(copy)
    before = filled.read_bytes()
    with pytest.raises(error):
        backup.restore(filled, copy)
    assert filled.read_bytes() == before
    assert not list(filled.parent.glob("*.replaced.*"))


def test_a_database_is_not_restored_from_itself(filled):
    with pytest.raises(StoreError, match="itself"):
        backup.restore(filled, filled)
