"""`crawld index`; refusals of `crawld serve`, and its pauses."""

import sys
from contextlib import closing
from http.client import HTTPConnection
from subprocess import PIPE, Popen
from urllib.parse import urlsplit

import pytest

from crawld.store.engine.connection import open_connection
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier import site
from crawld.web.address import mirror_path
from tests.unit.web.conftest import NOW, Mirror


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


SERVE_AND_COUNT = """
import gc
from crawld.cli.main import main
try:
    main()
finally:
    print("full collections:", gc.get_stats()[2]["collections"])
"""


def full_collections(db, *targets):
    """Return how often `crawld serve` collected all objects while it answered requests."""
    arguments = ("serve", "--db", str(db), "--listen", "127.0.0.1:0")
    with Popen([sys.executable, "-c", SERVE_AND_COUNT, *arguments], stdout=PIPE, text=True) as run:
        try:
            connection = HTTPConnection(urlsplit(run.stdout.readline().strip()).netloc)
            for target in targets:
                connection.request("GET", target)
                response = connection.getresponse()
                assert (response.status, bool(response.read())) == (200, True)
            connection.close()
        finally:
            run.terminate()
        return int(run.stdout.read().rpartition(":")[2])


def test_a_page_of_many_links_stops_no_reader_for_a_collection_of_all_objects(db):
    url = "https://example.org/links"
    many_links = "<title>t</title>" + "".join(f"<a href=/{n}>a</a> " for n in range(100_000))
    with closing(open_connection(db)) as connection, connection:
        site.upsert(connection, "s", "{}", source="config", at=NOW)
        Mirror(connection).page(url, many_links)
    assert full_collections(db, mirror_path(url)) == full_collections(db, "/")
