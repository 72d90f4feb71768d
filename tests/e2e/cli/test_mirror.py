"""`crawld mirror` on a simulated site: exit codes and summaries."""

import json
import signal
from contextlib import closing

import pytest

from crawld.store.engine.connection import open_connection
from crawld.store.versions import search_index
from tests.e2e.cli.conftest import wait_for_lines


@pytest.fixture
def mirrored(command, simweb_port, tmp_path):
    """Mirror a path of the site once, without delay."""

    def run(path="/", *arguments):
        url = f"http://127.0.0.1:{simweb_port}{path}"
        fixed = ("--db", tmp_path / "m.db", "--delay", "0", "--once")
        return command("crawld", "mirror", url, *fixed, *arguments)

    return run


def test_once_visits_every_page_and_ends_with_0(mirrored):
    ended = mirrored("/", "--depth", "20", "--json")
    assert ended.code == 0
    summary = json.loads(ended.out)
    assert (summary["complete"], summary["pages"]) == (True, {"visited": 30})
    # The first pages are fetched twice, and one may be edited in between.
    assert summary["visits"]["changed"] == 32  # the style sheet and the logo are visited too
    assert summary["wire_bytes"] > 30_000
    assert "started" in ended.err
    again = json.loads(mirrored("/", "--depth", "20", "--json").out)
    assert (again["complete"], again["pages"]) == (True, {"visited": 30})


def test_summary_for_people(mirrored):
    ended = mirrored("/", "--depth", "0")
    assert ended.code == 0
    assert "1 page visited, 0 of them failed, 0 never visited" in ended.out


def test_once_leaves_one_file_that_can_be_searched(mirrored, tmp_path):
    ended = mirrored("/", "--depth", "1")
    names = {path.name for path in tmp_path.iterdir() if path.name.startswith("m.db")}
    assert names == {"m.db", "m.db.lock"}
    with closing(open_connection(tmp_path / "m.db", read_only=True)) as connection:
        assert search_index.count_pending(connection) == 0
        assert search_index.count_hits(connection, "see").of("") > 0
    assert "to follow one more: --depth 2" in ended.out
    assert "--max-pages" not in ended.out


def test_the_limit_of_pages_is_named_at_the_end(mirrored):
    ended = mirrored("/", "--max-pages", "3", "--depth", "20", "--json")
    assert json.loads(ended.out)["limits"] == [
        "the limit of 3 pages left further links out; to raise it: --max-pages 30"
    ]


def test_only_pages_of_a_directory(mirrored, simweb_port):
    ended = mirrored("/wiki/", "--no-parent", "--json")
    assert json.loads(ended.out)["pages_in_all"] >= 1
    kept = mirrored("/", "--exclude", f"prefix:http://127.0.0.1:{simweb_port}/wiki/", "--json")
    assert ended.err.count("error") == 0
    assert json.loads(kept.out)["pages_in_all"] >= 1


def test_a_mirror_that_can_fetch_nothing_says_so_at_once(crawld):
    process = crawld.start("mirror", "http://127.0.0.1:9/")
    [line] = wait_for_lines(process, process.stderr, "nothing_can_be_fetched")
    assert "port 9 belongs to another service" in line


def test_max_pages_and_depth_are_kept(mirrored):
    summary = json.loads(mirrored("/", "--depth", "20", "--max-pages", "4", "--json").out)
    assert (summary["pages_in_all"], summary["complete"]) == (4, True)


def test_a_missing_page_is_no_failure(mirrored):
    summary = json.loads(mirrored("/no/such/page", "--json").out)
    assert (summary["complete"], summary["visits"]["gone"]) == (True, 1)


def test_failed_pages_end_with_3(command, simweb, tmp_path):
    web = simweb("--pages", "5", "--fault", "/wiki/=status:403")
    db = ("--db", tmp_path / "m.db", "--delay", "0", "--once")
    ended = command("crawld", "mirror", web.url(), "--json", *db)
    text = command("crawld", "mirror", web.url(), *db)
    summary = json.loads(ended.out)
    assert (ended.code, summary["complete"], summary["held_back"]) == (3, False, 0)
    assert summary["failed_by_reason"] == {"unauthorized": summary["failed"]}
    assert summary["failed"] > 0
    assert "(access refused)" in text.out


def test_a_host_with_retry_after_is_named(command, simweb, tmp_path):
    web = simweb("--pages", "5", "--fault", "/wiki/=busy:600")
    db = ("--db", tmp_path / "m.db", "--delay", "0", "--once")
    ended = command("crawld", "mirror", web.url(), *db)
    assert ended.code == 3
    assert "not fetched: 127.0.0.1 (for " in ended.out
    assert "host_retry_after" in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_ends_with_0(mirror, number):
    mirror.process.send(number)
    assert mirror.wait() == 0
    assert "draining" in mirror.process.stderr.read_text()
    assert "never visited" in mirror.process.stdout.read_text()


def test_a_database_in_use_is_refused(command, mirror):
    ended = command("crawld", "mirror", mirror.url, "--db", mirror.db)
    assert ended.code == 2
    assert str(mirror.process.pid) in ended.err
