"""`crawld mirror` on a simulated site: exit codes and summaries."""

import json
import signal

import pytest


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
