"""A program that has a terminal of its own, whose keys, Ctrl-C and size it gets, and its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

WAIT_S = 120.0
"""Longest wait for what a program should show; far more than it needs."""

_AS_LEADER = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class KeyboardTerminal:
    """A pseudo-terminal with a program.

    Attributes:
        raw: everything that the program wrote.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        directory: Path,
        *,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._master, program_side = pty.openpty()
        self.raw = b""
        self._set_size(columns, lines)
        self.attributes = termios.tcgetattr(self._master)
        # As the leader of a session whose terminal this is, the program gets Ctrl-C and sizes.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AS_LEADER, *map(str, arguments)],
            cwd=directory,
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
            stdin=program_side,
            stdout=program_side,
            stderr=program_side,
            start_new_session=True,
        )
        os.close(program_side)

    @property
    def lines(self) -> list[str]:
        """The lines on the screen, without trailing blanks."""
        return [line.rstrip() for line in self._screen.display]

    def wait_until(self, holds: Callable[[list[str]], object]) -> list[str]:
        """Read until the screen shows something; return its lines.

        Raises:
            AssertionError: it is not shown, or the program ends before.
        """
        until = time.monotonic() + WAIT_S
        while not holds(self.lines):
            shown = "\n".join(self.lines)
            assert time.monotonic() < until, f"not shown in {WAIT_S:g} s:\n{shown}"
            assert self._read(until), f"the program ended:\n{shown}"
        return self.lines

    def wait_for(self, text: str) -> list[str]:
        """Read until the screen shows a text; return its lines."""
        return self.wait_until(lambda lines: any(text in line for line in lines))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, as a window manager does."""
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)

    def wait(self) -> int:
        """Read until the program ends; return its exit code."""
        until = time.monotonic() + WAIT_S
        while self._read(until):
            assert time.monotonic() < until, "the program does not end"
        return self._process.wait(WAIT_S)

    def end(self) -> None:
        """Kill the program and close the terminal."""
        self._process.kill()
        self._process.wait(WAIT_S)
        os.close(self._master)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self, until: float) -> bool:
        """Read what comes next; False: the program has ended."""
        left_s = max(until - time.monotonic(), 0.0)
        if not select.select([self._master], (), (), left_s)[0]:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # EIO: nobody has the other side open
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
