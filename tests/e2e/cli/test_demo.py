"""`crawld demo`: a changing site, its mirror and the true freshness."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from crawld.cli.demo_view import DemoState, summary_text
from crawld.simweb.demo import make_demo_site
from tests.peer.terminal import Terminal


def test_demo_mirrors_its_site(command, tmp_path):
    db = tmp_path / "demo.db"
    ended = command("crawld", "demo", "--seconds", "3", "--json", "--db", db)
    assert ended.code == 0
    summary = json.loads(ended.out)
    assert summary["pages"] == 80
    assert 0 < summary["fresh"] <= summary["copied"] <= 80
    assert 0 < summary["freshness"] <= 1
    assert summary["visits"]["changed"] >= summary["copied"]
    assert summary["url"] in ended.err
    assert "crawlctl status --socket" in ended.err
    assert re.search(r"dashboard http://127.0.0.1:[0-9]+/-/dashboard", ended.err)
    assert db.exists()
    assert command("crawld", "demo", "--db", db).code == 2


def test_demo_deletes_its_temporary_files(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ended = command("crawld", "demo", "--seconds", "0")
    assert ended.code == 0
    assert "of 80 pages copied" in ended.out
    assert list(tmp_path.iterdir()) == []


def test_summary():
    summary = {
        "copied": 78,
        "pages": 80,
        "freshness": 0.9,
        "mean_freshness": 0.75,
        "duration_s": 90.0,
        "changes_seen": 4,
        "changes_happened": 6,
        "visits": {"changed": 82, "not_modified": 1000},
    }
    assert summary_text(summary) == (
        "78 of 80 pages copied, 90.0% current at the end, 75.0% on average over"
        " 1 min 30 s; 4 of 6 changes seen in 1,082 visits"
    )


def test_a_first_copy_does_not_count_as_change():
    state = DemoState(make_demo_site(1, lambda: 0.0), "http://127.0.0.1/")
    state.changed = 3
    state.visited_at = {"http://127.0.0.1/": [1.0, 2.0], "http://127.0.0.1/a": [1.0]}
    assert state.changes_seen == 1


@pytest.mark.parametrize("folder", [None, "long_name_of_it"])
def test_the_view_fits_a_terminal_and_its_commands_and_addresses_work(
    cleanup, tmp_path_factory, folder
):
    """What the screen shows is copied from it: addresses are opened, commands run by a shell."""
    program = [sys.executable, "-m", "crawld.cli.main"]
    if folder:
        here = tmp_path_factory.mktemp(folder)
        for name in ("crawld", "crawlctl"):
            (here / name).symlink_to(Path(sys.executable).with_name(name))
        program = [sys.executable, str(here / "crawld")]
    terminal = cleanup.enter_context(Terminal([*program, "demo"]))

    def commands():
        text = terminal.text().replace(" \\\n", " ")
        return re.findall(r"^ *(\S*crawlctl .+)$", text, re.MULTILINE)

    terminal.wait_for(r"\Acrawld demo.*\n.*Ctrl-C(.*\n)+visit .*\n.*/wiki/")
    lines = terminal.text().splitlines()
    assert not any("..." in line for line in lines), "the view is longer than the terminal"
    mirror = re.search(r"^mirror +(\S+)$", terminal.text(), re.MULTILINE)[1]
    dashboard = re.search(r"^dashboard +(\S+)$", terminal.text(), re.MULTILINE)[1]
    assert "crawld demo" in httpx.get(mirror, timeout=60).text
    assert httpx.get(dashboard, timeout=60).status_code == 200
    status, log, pause = commands()
    assert " log -f " in log
    ended = subprocess.run(status, shell=True, capture_output=True, text=True, check=True)
    assert "demo" in ended.stdout
    subprocess.run(pause, shell=True, check=True, capture_output=True)
    # The line of the state is drawn before the commands: the view is complete with its last table.
    terminal.wait_for(r"PAUSED: nothing is fetched(.*\n)+visit .*\n(.*\n){0,9}.*/wiki/")
    subprocess.run(commands()[-1], shell=True, check=True, capture_output=True)
    terminal.wait_for(r"^Ctrl-C", re.MULTILINE)


BUSY = """
import structlog
from crawld.cli import demo, main

start = demo._demo

async def start_with_a_warning(*arguments):
    structlog.get_logger().warning("loop_stall", worker="of a busy machine")
    return await start(*arguments)

demo._demo = start_with_a_warning
main.main()
"""


def test_a_warning_before_the_view_does_not_move_it(cleanup):
    terminal = cleanup.enter_context(Terminal([sys.executable, "-c", BUSY, "demo"]))
    terminal.wait_for(r"Ctrl-C(.*\n)+visit .*\n.*/wiki/")
    assert terminal.text().startswith("crawld demo")
