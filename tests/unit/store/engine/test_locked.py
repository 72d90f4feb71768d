"""Another program locks the file while crawld opens it."""

import apsw
import pytest

from crawld.errors import DatabaseInUseError, StoreError
from crawld.export import importer, source
from crawld.store.engine import connection, database, migrate
from crawld.store.engine.connection import OPEN_ATTEMPTS, OPEN_PAUSE_S
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock


@pytest.fixture
def holder(path, monkeypatch):
    """Return a connection of another program that has the file for itself until it is closed."""
    monkeypatch.setattr(connection, "BUSY_MS", 0)
    migrate.migrate(path)
    with apsw.Connection(str(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("CREATE TEMP TABLE held AS SELECT count(*) FROM meta")
        other.execute("UPDATE meta SET value = value")
    yield other
    other.close()


class Pauses(list):
    """The pauses between attempts, which take no time; the lock ends in the last of them."""

    def __init__(self, holder, last):
        self._holder = holder
        self._last = last

    def sleep(self, pause_s):
        self.append(pause_s)
        if len(self) == self._last:
            self._holder.close()

    async def sleep_on_loop(self, pause_s):
        self.sleep(pause_s)


@pytest.mark.parametrize("read_only", [False, True])
async def test_the_database_is_opened_once_the_lock_ends(path, holder, monkeypatch, read_only):
    pauses = Pauses(holder, 3)
    monkeypatch.setattr(database._prepare.retry, "sleep", pauses.sleep_on_loop)
    async with await Database.open(path, read_only=read_only) as opened:
        assert await opened.read(lambda c: c.execute("PRAGMA user_version").get) > 0
    assert pauses == [OPEN_PAUSE_S] * 3


async def test_a_database_that_stays_locked_is_refused_and_lets_go_of_its_own_lock(
    path, holder, monkeypatch
):
    pauses = Pauses(holder, OPEN_ATTEMPTS)
    monkeypatch.setattr(database._prepare.retry, "sleep", pauses.sleep_on_loop)
    with pytest.raises(DatabaseInUseError, match="locked by another program"):
        await Database.open(path)
    assert len(pauses) == OPEN_ATTEMPTS - 1
    holder.close()
    await (await Database.open(path)).aclose()


async def test_only_the_lock_of_another_program_is_waited_for(path, tmp_path, monkeypatch):
    pauses = Pauses(None, 0)
    monkeypatch.setattr(database._prepare.retry, "sleep", pauses.sleep_on_loop)
    async with await Database.open(path):
        with pytest.raises(DatabaseInUseError, match="in use by process"):
            await Database.open(path)
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"no database " * 400)
    with pytest.raises(StoreError):
        await Database.open(foreign)
    assert pauses == []


def test_an_export_reads_once_the_lock_ends(path, holder, monkeypatch):
    pauses = Pauses(holder, 2)
    monkeypatch.setattr(source._require_current.retry, "sleep", pauses.sleep)
    with source.open_source(path) as opened:
        assert opened.execute("SELECT count(*) FROM page").get == 0
    assert pauses == [OPEN_PAUSE_S] * 2


def test_an_import_begins_once_the_lock_ends(path, holder, monkeypatch):
    pauses = Pauses(holder, 2)
    monkeypatch.setattr(importer._prepare.retry, "sleep", pauses.sleep)
    with importer.open_for_import(path) as opened:
        assert opened.execute("SELECT count(*) FROM page").get == 0
    assert pauses == [OPEN_PAUSE_S] * 2


def test_an_import_does_not_wait_for_the_daemon(path, monkeypatch):
    pauses = Pauses(None, 0)
    monkeypatch.setattr(importer._prepare.retry, "sleep", pauses.sleep)
    with (
        DatabaseLock.acquire(path),
        pytest.raises(DatabaseInUseError, match="in use by process"),
        importer.open_for_import(path),
    ):
        pass
    assert pauses == []
