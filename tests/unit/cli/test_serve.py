"""`crawld index`, and refusals of `crawld serve`."""

import pytest

from crawld.store.engine.lock import DatabaseLock


@pytest.mark.parametrize("options", [(), ("--rebuild",)])
def test_an_empty_database_is_indexed(command, db, options):
    ended = command("crawld", "index", "--db", db, *options)
    assert ended.code == 0
    assert "0 pages indexed" in ended.out


def test_a_database_in_use_is_refused(command, db):
    with DatabaseLock.acquire(db):
        ended = command("crawld", "index", "--db", db)
    assert ended.code == 2
    assert "in use" in ended.err or "holds" in ended.err


@pytest.mark.parametrize("name", ["index", "serve"])
def test_a_missing_database_is_refused(command, tmp_path, name):
    ended = command("crawld", name, "--db", tmp_path / "none.db")
    assert ended.code == 2
    assert "there is no database" in ended.err


@pytest.mark.parametrize("listen", ["8080", "nowhere:1", "127.0.0.1:70000", "127.0.0.1:x", "::1:1"])
def test_an_invalid_address_is_refused(command, db, listen):
    ended = command("crawld", "serve", "--db", db, "--listen", listen)
    assert ended.code == 2
    assert "must be" in ended.err


@pytest.mark.parametrize("host", ["a b", "http://mirror.test/", "a.*", ""])
def test_an_invalid_host_name_is_refused(command, db, host):
    ended = command("crawld", "serve", "--db", db, "--host", host)
    assert ended.code == 2
    assert "must be a host name" in ended.err
