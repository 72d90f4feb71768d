"""Views that stay, on a terminal and elsewhere."""

import subprocess
import sys
import termios
from contextlib import ExitStack

import pytest

from tests.peer.keyboard_terminal import KeyboardTerminal

PROGRAM = """
import itertools, sys
from rich.text import Text
from crawld.cli.watch import show_at_intervals
from crawld.errors import UnreachableError

count = itertools.count(1)
lines = int(sys.argv[2])

def view():
    number = next(count)
    if number == 3:
        raise UnreachableError("gone for now")
    text = "".join(f"\\nline {each} of look {number} \\u3042" for each in range(lines))
    return Text(f"look {number}\\x1b[2J{text}", "green")

try:
    show_at_intervals(view, float(sys.argv[1]))
except KeyboardInterrupt:
    sys.exit(9)
print("after")
"""
OPEN, CLOSE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


@pytest.fixture
def cleanup():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def terminal(tmp_path, cleanup):
    def start(interval_s=0.01, lines=2, **options):
        command = [sys.executable, "-c", PROGRAM, str(interval_s), str(lines)]
        made = KeyboardTerminal(command, tmp_path, **options)
        cleanup.callback(made.end)
        return made

    return start


def local_modes(terminal):
    return termios.tcgetattr(terminal._master)[3]


def test_a_view_is_drawn_in_place_until_q(terminal):
    shown = terminal()
    shown.wait_for("look 9")
    shown.type("x")
    lines = shown.wait_for("look 12")
    assert lines[0].startswith("look ")
    assert sum(line.startswith("look ") for line in lines) == 1
    assert lines[4].endswith("q quits")
    shown.type("q")
    assert shown.wait() == 0
    assert b"\x1b[2J" not in shown.raw  # nothing is erased before it is drawn anew
    assert shown.raw.startswith(OPEN)
    assert shown.raw.rstrip().endswith(CLOSE + b"after")
    assert local_modes(shown) == shown.attributes[3]


def test_ctrl_c_restores_the_terminal(terminal):
    shown = terminal(interval_s=1000.0)
    shown.wait_for("look 1")
    assert not local_modes(shown) & termios.ECHO
    shown.type("\x03")
    assert shown.wait() == 9
    assert shown.raw.endswith(CLOSE)
    assert local_modes(shown) == shown.attributes[3]


def test_a_view_that_fails_for_a_while_says_so_and_goes_on(terminal):
    shown = terminal(interval_s=0.3)
    shown.wait_for("gone for now")
    shown.wait_for("look 4")


def test_a_new_size_is_drawn_at_once(terminal):
    shown = terminal(interval_s=1000.0, lines=30)
    lines = shown.wait_for("q quits")
    assert lines[20:23] == ["line 19 of look 1 あ", "… 10 more lines", ""]
    shown.resize(40, 10)
    lines = shown.wait_until(lambda lines: lines[-3] == "… 24 more lines" and lines[-1])
    assert lines[0] == "look 2�[2J"


def test_nothing_has_a_color_if_none_is_wanted(terminal):
    plain = terminal(environment={"NO_COLOR": "1"})
    plain.wait_for("look 9")
    assert b"\x1b[32m" not in plain.raw
    colored = terminal()
    colored.wait_for("look 9")
    assert b"\x1b[32m" in colored.raw


def test_a_dumb_terminal_gets_one_view_after_another(terminal):
    shown = terminal(environment={"TERM": "dumb"}, lines=0)
    shown.wait_until(lambda lines: len([line for line in lines if "look" in line]) >= 4)
    assert OPEN not in shown.raw
    assert b"\x1b[H" not in shown.raw


def test_a_pipe_gets_one_view_after_another(tmp_path):
    command = [sys.executable, "-c", PROGRAM, "0.01", "1"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as run:
        text = "".join(run.stdout.readline() for _ in range(12))
        run.kill()
    assert text.startswith("look 1\N{REPLACEMENT CHARACTER}[2J\nline 0 of look 1 あ\n\n")
    assert "look 2" in text
    assert "\x1b" not in text
