"""The lock that is taken before the daemon is imported."""

import pytest
import trio

from crawld.cli.early_lock import MAX_CONFIG_BYTES, lock_early
from crawld.config.load import load
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock, lock_path

SITE = '[[site]]\nname = "s"\nseeds = ["http://a.example/"]\n'


def written(folder, daemon):
    path = folder / "crawld.toml"
    path.write_text(f'[daemon]\ncontact = "a@example.org"\n{daemon}\n{SITE}')
    return path


def made(database):
    database.parent.mkdir(parents=True, exist_ok=True)
    database.touch()
    return database


@pytest.mark.parametrize("named", ["m.db", "sub/m.db", "../m.db", "~/m.db", "/{}/m.db", None])
def test_the_file_is_locked_that_the_config_names(tmp_path, monkeypatch, named):
    home = tmp_path / "home"
    (tmp_path / "etc").mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    db = "" if named is None else f'db = "{named.format(tmp_path)}"'
    config = written(tmp_path / "etc", db)
    database = made(load(config).config.daemon.db)
    early = lock_early(config)
    assert early.lock.path == lock_path(database)
    early.lock.release()


@pytest.mark.parametrize(
    "text",
    ["", "[daemon", "daemon = 3", "[daemon]\ndb = 3", '[daemon]\ndb = "a\\u0000b"', "\xff" * 9],
)
def test_what_is_no_config_of_an_existing_file_is_left_to_the_start(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "crawld.toml"
    config.write_bytes(text.encode("latin-1"))
    assert lock_early(config) is None
    assert lock_early(tmp_path / "absent.toml") is None
    assert [each.name for each in tmp_path.iterdir()] == ["crawld.toml"]


def test_a_large_config_is_read_once(tmp_path):
    made(tmp_path / "m.db")
    config = written(tmp_path, 'db = "m.db"')
    config.write_text(config.read_text() + "#" * MAX_CONFIG_BYTES)
    assert lock_early(config) is None


def test_a_file_in_use_is_left_to_the_start(tmp_path):
    database = made(tmp_path / "m.db")
    with DatabaseLock.acquire(database):
        assert lock_early(written(tmp_path, 'db = "m.db"')) is None


async def test_a_database_takes_the_lock_over_with_its_age(tmp_path):
    async with await Database.open(tmp_path / "m.db"):
        pass
    early = lock_early(written(tmp_path, 'db = "m.db"'))
    held_s = early.held_s()
    assert 0.0 <= held_s <= early.held_s()
    before = trio.current_time()
    async with await Database.open(
        tmp_path / "m.db", lock=early.lock, lock_held_s=1000.0
    ) as database:
        assert before - 1000.0 <= database.opened_at <= trio.current_time() - 1000.0
        assert lock_early(tmp_path / "crawld.toml") is None
    DatabaseLock.acquire(tmp_path / "m.db").release()


async def test_the_lock_of_another_file_is_released_and_does_not_count(tmp_path):
    other = made(tmp_path / "other.db")
    early = lock_early(written(tmp_path, 'db = "other.db"'))
    before = trio.current_time()
    async with await Database.open(
        tmp_path / "m.db", lock=early.lock, lock_held_s=1000.0
    ) as database:
        assert database.opened_at >= before
        DatabaseLock.acquire(other).release()
