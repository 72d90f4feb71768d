"""Disk and database problems: full, nearly full, damaged, foreign or read-only."""

import os
import signal
import subprocess
from contextlib import contextmanager

import apsw
import pytest

from crawld.bench.article_mirror import ArticleMirror, write_mirror
from tests.e2e.daemon_config import query_rows, site, start_daemon, write_config
from tests.peer.crawld_process import Crawld

MIB = 1024 * 1024


@contextmanager
def small_disk(path, size_bytes):
    """Mount a file system of this size at a directory."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}; run as root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def disk(cleanup, tmp_path):
    """A file system of 32 MiB."""
    return cleanup.enter_context(small_disk(tmp_path / "disk", 32 * MIB))


@pytest.fixture
def crawld(cleanup, disk):
    """A folder on the small disk to run daemons in."""
    crawld = Crawld(disk)
    cleanup.callback(crawld.stop)
    return crawld


def fill_disk(disk):
    """Fill a disk; return the file that takes the space."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(16 * 1024))
            except OSError:
                return ballast


def start_and_drain(crawld, web, *, store=None):
    """Start a daemon, let it visit some pages, and drain it."""
    start_daemon(
        crawld,
        site(web.url("/", "a.test")),
        hosts=("a.test",),
        store={"batch_max_age_s": 0.05, **(store or {})},
    )
    crawld.wait_until(lambda status: status["pages"]["visited"] > 3)
    crawld.post("/drain")


def test_a_full_disk_pauses_the_crawl_until_there_is_room(simweb, crawld, disk):
    web = simweb("--host=a.test", "--pages=60", "--page-bytes=8000")
    start_and_drain(crawld, web)
    ballast = fill_disk(disk)
    crawld.post("/resume", {})
    # Commits fail first; the watcher of the disk pauses the crawl in its next step.
    status = crawld.wait_until(lambda status: "disk" in status["pauses"])
    assert "full" in status["stalled"]
    reported = {each["visit_id"]: each["visited_at"] for each in crawld.get("/log?limit=1000")}
    assert not crawld.process.exits_within(1.0)
    assert crawld.get("/status")["visits"] == status["visits"]
    asked = len(web.ledger())
    ballast.unlink()
    status = crawld.wait_until(lambda status: status["pages"]["visited"] == 60)
    assert (status["pauses"], status["stalled"]) == ([], None)
    stored = dict(query_rows(crawld, "SELECT visit_id, visited_at FROM visit"))
    assert reported.items() <= stored.items()
    assert len(web.ledger()) == 1 + len(stored) > asked  # no page was lost and fetched again
    assert crawld.terminate() == 0


def test_a_second_signal_ends_a_daemon_with_a_full_disk(simweb, crawld, disk):
    web = simweb("--host=a.test", "--pages=60", "--page-bytes=8000")
    start_and_drain(crawld, web)
    fill_disk(disk)
    crawld.post("/resume", {})
    crawld.wait_until(lambda status: status["stalled"])
    reported = {each["visit_id"]: each["visited_at"] for each in crawld.get("/log?limit=1000")}
    crawld.process.send(signal.SIGTERM)
    crawld.wait_until(lambda status: status["phase"] in ("draining", "stopping"))
    assert not crawld.process.exits_within(0.5)  # it waits for room
    crawld.process.send(signal.SIGTERM)
    assert crawld.wait() == 2
    assert "pending writes were not stored" in crawld.output()
    assert "Traceback" not in crawld.output()
    (disk / "ballast").unlink()
    stored = dict(query_rows(crawld, "SELECT visit_id, visited_at FROM visit"))
    assert reported.items() <= stored.items()


def test_low_disk_space_pauses_before_the_disk_is_full(simweb, crawld):
    web = simweb("--host=a.test", "--pages=10")
    start_daemon(crawld, site(web.url("/", "a.test")), store={"min_free_bytes": 10**15})
    crawld.wait_until(lambda status: status["pauses"] == ["disk_room"])
    assert len(web.ledger()) <= 1  # sent before the first check


def overwrite_middle(path):
    """Overwrite the middle of a file."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def test_a_damaged_database_is_rejected_with_a_restore_hint(simweb, crawld):
    web = simweb("--host=a.test", "--pages=10")
    start_and_drain(crawld, web)
    assert crawld.terminate() == 0
    overwrite_middle(crawld.db)
    crawld.start("run", "-c", crawld.folder / "crawld.toml", ready=False)
    assert crawld.wait() == 2
    assert "crawld restore" in crawld.output()
    assert "Traceback" not in crawld.output()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"these are my notes\n" * 500, "not"), (b"SQLite format 3\x00" + b"\xff" * 4000, "")],
)
def test_a_file_that_is_not_a_database_is_left_alone(simweb, crawld, content, message):
    crawld.db.write_bytes(content)
    config = write_config(crawld, site("http://a.test/"))
    crawld.start("run", "-c", config, ready=False)
    assert crawld.wait() == 2
    assert message in crawld.output()
    assert "Traceback" not in crawld.output()
    assert crawld.db.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(crawld):
    with apsw.Connection(str(crawld.db)) as other:
        other.execute("PRAGMA application_id = 7; CREATE TABLE note (text TEXT)")
    other.close()
    config = write_config(crawld, site("http://a.test/"))
    crawld.start("run", "-c", config, ready=False)
    assert crawld.wait() == 2
    assert "another program" in crawld.output()


def test_a_read_only_directory_is_reported(crawld, disk):
    config = write_config(crawld, site("http://a.test/"))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    refused = crawld.crawld("run", "-c", config)
    assert refused.returncode == 2
    assert "writable" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.fixture
def export_to_small_disk(cleanup, tmp_path):
    """Return a function that exports a mirror of a hundred articles to a disk of 256 KiB."""
    crawld = Crawld(tmp_path)
    write_mirror(crawld.db, ArticleMirror(100, 28_000))
    small = cleanup.enter_context(small_disk(tmp_path / "small", 256 * 1024))

    def export(form):
        return crawld.crawld("export", form, "--out", small / "x")

    return export, small


@pytest.mark.parametrize("form", ["warc", "wacz", "zim"])
def test_an_export_that_fills_the_disk_fails_and_leaves_nothing(export_to_small_disk, form):
    export, small = export_to_small_disk
    done = export(form)
    assert done.returncode == 2, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(small.iterdir()) == []


def test_a_static_export_continues_when_there_is_room(export_to_small_disk):
    export, small = export_to_small_disk
    done = export("static")
    assert (done.returncode, "free some disk space" in done.stderr) == (2, True), done.stderr
    assert all(path.stat().st_size > 20_000 for path in small.rglob("Page_*.html"))
    subprocess.run(["mount", "-o", "remount,size=16m", str(small)], check=True)
    done = export("static")
    assert done.returncode == 0, done.stderr
    assert len(list(small.rglob("Page_*.html"))) == 99
