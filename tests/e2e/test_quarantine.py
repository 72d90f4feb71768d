"""A page that freezes or kills the daemon does it once: it is known after the restart."""

import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from crawld.daemon.freeze_watch import STALL_BEATS, evidence_path
from crawld.marks import MarksFile, marks_path
from crawld.store.engine.connection import open_connection
from crawld.web.address import mirror_path
from tests.e2e.daemon_config import query_rows, site, write_config
from tests.peer.crawld_process import with_serve

POISONED = (sys.executable, "-m", "tests.peer.poisoned_crawld")
GOOD = 6
EXIT_FROZEN = 1
FREEZE_S = 3.0
"""Longer than a busy machine leaves a process without a core."""


class PoisonedSite:
    """A site with a poisoned page, a daemon that it freezes, and the log of parsed pages."""

    def __init__(self, crawld, server, folder):
        self.crawld = crawld
        self.log = folder / "parsed"
        self.root = server.url("/")
        self.poison = server.url("/poison.html")
        crawld._environment |= {"POISON_LOG": str(self.log)}

    def start(self, *, freeze_s=60.0, poisoned=True, ready=True):
        """Start a daemon, which parses the poison unless `poisoned` is False."""
        self.log.write_text("")
        config = write_config(
            self.crawld,
            site(self.root),
            hosts=(),
            daemon={"freeze_s": freeze_s},
            politeness={"host_delay_s": 0.01},
            schedule={"min_revisit_s": 1.0},
        )
        program = {"program": POISONED} if poisoned else {}
        return self.crawld.start("run", "-c", config, ready=ready, **program)

    def parsed(self):
        """Return the names of the pages parsed since the last start."""
        return set(self.log.read_text().split())

    def wait_until_stored(self):
        """Wait until the good pages and the poison have copies."""
        self.crawld.wait_until(lambda _: self.copies() == GOOD + 2)

    def copies(self):
        """Return the number of pages that have a copy."""
        return query_rows(self.crawld, "SELECT count(*) FROM page WHERE version_id")[0][0]


@pytest.fixture
def poisoned(crawld, nginx, tmp_path):
    """Return a function that serves a site with a poison: `poisoned("poison-freeze")`."""

    def serve(poison, *, padding=""):
        tree = tmp_path / "tree"
        tree.mkdir()
        names = ["poison", *(f"good{number}" for number in range(GOOD))]
        links = "".join(f"<a href=/{name}.html>{name}</a> " for name in names)
        (tree / "index.html").write_text(f"index <p>{links}")
        for name in names[1:]:
            (tree / f"{name}.html").write_text(f"{name} <p>A page.")
        text = f"poison <p>{poison} <a href=/hidden.html>hidden</a>{padding}"
        (tree / "poison.html").write_text(text)
        (tree / "hidden.html").write_text("hidden <p>Only the poison links here.")
        return PoisonedSite(crawld, nginx({"127.0.0.1": tree}), tmp_path)

    return serve


def check_quarantined(web):
    """Check that a restarted daemon stores the poison without parsing it, and goes on."""
    web.start()
    web.wait_until_stored()
    assert "poison" not in web.parsed()
    status = web.crawld.get("/status")
    assert status["quarantined"] == 1
    assert [(page["url"], page["held"]) for page in status["quarantined_pages"]] == [
        (web.poison, True)
    ]
    assert not query_rows(web.crawld, "SELECT url FROM page WHERE url LIKE '%hidden%'")


def test_a_freeze_ends_by_itself_and_its_page_is_not_analysed_again(poisoned, tmp_path):
    web = poisoned("poison-freeze")
    process = web.start(freeze_s=FREEZE_S, ready=False)
    assert process.wait() == EXIT_FROZEN
    stacks = process.stderr.read_text()
    assert f"Timeout (0:00:0{FREEZE_S:.0f})!" in stacks
    assert "_poisoned_parse" in stacks
    check_quarantined(web)
    crawld = web.crawld
    assert "1 page stored without analysis" in crawld.crawlctl("status").stdout
    listed = crawld.crawlctl("quarantine").stdout
    assert web.poison in listed
    assert "not analysed" in listed
    # Nobody who reads the file analyses the copy either.
    body = (tmp_path / "tree" / "poison.html").read_bytes()
    with with_serve(crawld) as root, urlopen(root.rstrip("/") + mirror_path(web.poison)) as answer:
        assert answer.headers["content-type"] == "text/plain"
        assert answer.read() == body
    out = tmp_path / "static"
    assert crawld.crawld("export", "static", "--db", crawld.db, "--out", out).returncode == 0
    (note,) = out.rglob("poison.html")
    assert "could not read this page" in note.read_text()
    assert crawld.terminate() == 0
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0
    # A release by the operator, of a crawld that can read the page.
    web.start(poisoned=False)
    assert crawld.crawlctl("quarantine", "release", "http://127.0.0.1/x").returncode != 0
    assert crawld.crawlctl("quarantine", "release", web.poison).returncode == 0
    crawld.wait_until(lambda _: web.copies() == GOOD + 3)  # its link is known now
    assert crawld.get("/status")["quarantined"] == 0
    assert crawld.terminate() == 0
    assert not list(crawld.folder.glob("crawld.db-*"))


def test_sigterm_during_a_freeze_ends_with_the_freeze(poisoned):
    web = poisoned("poison-freeze")
    process = web.start(freeze_s=FREEZE_S, ready=False)
    while "poison" not in web.parsed():
        assert not process.exits_within(0.05)
    process.send(signal.SIGTERM)
    assert process.wait() == EXIT_FROZEN


def test_a_page_that_crashes_the_process_is_not_analysed_again(poisoned):
    web = poisoned("poison-crash")
    assert web.start(ready=False).wait() == -signal.SIGSEGV
    check_quarantined(web)
    assert "Segmentation fault" in web.crawld.output()


def test_a_kill_during_a_stall_is_evidence(poisoned):
    web = poisoned("poison-long")
    process = web.start(ready=False)
    evidence = evidence_path(web.crawld.db)
    while not (evidence.exists() and evidence.stat().st_size):
        assert not process.exits_within(0.05)
    web.crawld.kill()
    check_quarantined(web)


def test_a_kill_during_a_long_analysis_on_a_thread_is_evidence(poisoned, tmp_path):
    web = poisoned("poison-long", padding="<b>x</b>" * 50_000)
    process = web.start(ready=False)
    copy = tmp_path / "copied-marks"

    def beats():
        if not marks_path(web.crawld.db).exists():
            return {}
        shutil.copyfile(marks_path(web.crawld.db), copy)
        return {mark.url: mark.beats for mark in MarksFile.open(copy).left}

    while beats().get(web.poison, 0) < STALL_BEATS:
        assert not process.exits_within(0.05)
    web.crawld.kill()
    check_quarantined(web)


def test_a_new_analyser_reads_the_page_again(poisoned):
    web = poisoned("poison-freeze")
    web.start(freeze_s=FREEZE_S, ready=False).wait()
    check_quarantined(web)
    web.crawld.terminate()
    with closing(open_connection(web.crawld.db)) as connection:
        connection.execute("UPDATE quarantine SET analyser_version = analyser_version - 1")
    web.start(poisoned=False)
    web.crawld.wait_until(lambda _: web.copies() == GOOD + 3)
    assert web.crawld.get("/quarantine") == []


def test_ctrl_z_stops_the_timers_too(poisoned):
    web = poisoned("harmless")
    process = web.start(freeze_s=FREEZE_S)
    process.send(signal.SIGTSTP)
    while " T " not in Path(f"/proc/{process.pid}/stat").read_text():
        assert not process.exits_within(0.05)
    assert not process.exits_within(FREEZE_S + 1.0)
    process.send(signal.SIGCONT)
    web.crawld.wait_until(lambda _: web.copies() == GOOD + 3)
    assert web.crawld.terminate() == 0
