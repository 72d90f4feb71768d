"""SIGTERM while a thread computes without end: the daemon ends, with a whole file."""

import contextlib
import re
import sys
from http.client import HTTPConnection
from threading import Thread

import pytest

from tests.e2e.daemon_config import query_rows, site, write_config

BUSY = (sys.executable, "-m", "tests.peer.busy_crawld")
LARGE_BYTES = 4_000_000


def read(address, target):
    connection = HTTPConnection(address, timeout=120)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("GET", target)
        connection.getresponse()


@pytest.fixture
def start(crawld, nginx, tmp_path):
    """Return a function that starts a daemon with such work on a small site, and its URL."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "index.html").write_text("<a href=large.html>large</a><p>" + "small " * 20)
    (tree / "large.html").write_text("<p>" + "large " * (LARGE_BYTES // 6))
    url = nginx({"127.0.0.1": tree}).url("/")
    web = {"listen": "127.0.0.1:0"}
    config = write_config(crawld, site(url), hosts=(), web=web, daemon={"log_format": "json"})

    def start(busy):
        crawld._environment["BUSY"] = busy
        crawld.start("run", "-c", config, program=BUSY)
        return url

    return start


def wait_busy(crawld):
    crawld.wait_until(lambda _: (crawld.folder / "busy").exists())


def count_copies(crawld):
    return query_rows(crawld, "SELECT count(*) FROM page WHERE version_id IS NOT NULL")[0][0]


def assert_whole(crawld, *, copies):
    """Assert that what was committed is in the file, and that nothing looks like a crash."""
    assert count_copies(crawld) == copies
    assert '"stopped"' in crawld.output()
    assert not crawld.socket.exists()
    assert not list(crawld.folder.glob("*-marks"))
    assert not list(crawld.folder.glob("*-stacks"))
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0


def test_sigterm_does_not_wait_for_a_rendering(crawld, start):
    url = start("rendering")
    crawld.wait_until(lambda _: count_copies(crawld) == 2)
    address = re.search(r"http://(127\.0\.0\.1:[0-9]+)/", crawld.output())[1]
    reader = Thread(target=read, args=(address, "/" + url.replace("://", "/", 1)))
    reader.start()
    wait_busy(crawld)
    assert crawld.terminate() == 0
    reader.join()
    assert_whole(crawld, copies=2)


def test_sigterm_does_not_wait_for_an_analysis(crawld, start):
    start("analysis")
    crawld.wait_until(lambda _: count_copies(crawld) == 1)
    wait_busy(crawld)
    assert crawld.terminate() == 0
    assert_whole(crawld, copies=1)
