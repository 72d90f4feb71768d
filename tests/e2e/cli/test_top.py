"""Live views of a running daemon, on a real terminal."""

import json
import sys

import pytest

from tests.e2e.cli.conftest import wait_for_lines
from tests.peer.keyboard_terminal import KeyboardTerminal


@pytest.fixture
def terminal(cleanup, tmp_path):
    def start(mirror, *arguments, **options):
        command = [sys.executable, "-m", "crawld.cli.crawlctl", *arguments]
        made = KeyboardTerminal([*command, "--socket", mirror.socket], tmp_path, **options)
        cleanup.callback(made.end)
        return made

    return start


def number_of(lines, heading):
    """Return the number of pages, visits or whatever a line of the overview begins with."""
    line = next(line for line in lines if line.startswith(heading))
    return int(line.split()[1].rstrip(":").replace(",", ""))


def test_top_shows_the_daemon_live_until_q(running, terminal):
    view = terminal(running, "top", "--every", "0.2")
    lines = view.wait_for("127.0.0.1")
    assert lines[0].startswith("crawld ")
    assert "running" in lines[0]
    seen = number_of(lines, "visits")
    lines = view.wait_until(lambda lines: number_of(lines, "visits") > seen + 1)
    assert any(line.split()[3:4] == ["new"] or " new " in line for line in lines)
    assert max(map(len, lines)) <= 80
    view.type("q")
    assert view.wait() == 0
    assert b"\x1b[2J" not in view.raw


def test_top_once_is_for_scripts(running, command):
    ended = command("crawlctl", "top", "--once", "--socket", running.socket)
    assert (ended.code, ended.err) == (0, "")
    assert "Busiest hosts" in ended.out
    ended = command("crawlctl", "top", "--json", "--socket", running.socket)
    told = json.loads(ended.out)
    assert set(told) == {"status", "attention", "hosts", "changes"}
    assert told["hosts"][0]["host"] == "127.0.0.1"


def test_a_watched_view_follows_the_daemon_through_its_end(mirror, terminal):
    view = terminal(mirror, "status", "--watch", "0.2")
    seen = number_of(view.wait_for("q quits"), "visits")
    view.wait_until(lambda lines: number_of(lines, "visits") > seen)
    mirror.terminate()
    view.wait_for("no daemon responds")
    view.type("\x03")
    assert view.wait() == 0


@pytest.mark.parametrize("name", ["pages", "history"])
def test_lists_can_be_watched(running, terminal, name):
    view = terminal(running, name, *[running.url] * (name == "history"), "--watch")
    view.wait_for("every 2 s; q quits")
    view.type("q")
    assert view.wait() == 0


def test_watched_json_is_one_line_a_look(running, start):
    watch = ("sites", "--watch", "0.2", "--json", "--socket", running.socket)
    client = start("crawld.cli.crawlctl", *watch)
    for line in wait_for_lines(client, client.stdout, "visited", 3):
        assert json.loads(line)[0]["name"] == "127.0.0.1"


@pytest.mark.parametrize(
    "words", [("replicas", "prefer", "127.0.0.1"), ("quarantine", "release", "http://a.test/")]
)
def test_what_changes_something_is_not_repeated(running, command, words):
    ended = command("crawlctl", *words, "--watch", "--socket", running.socket)
    assert ended.code == 2
    assert "leave out --watch" in ended.err
