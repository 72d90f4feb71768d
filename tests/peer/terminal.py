"""A terminal of 80 columns and 24 lines, and a program that draws on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from typing import Self

import pyte

from tests.peer.crawld_process import WAIT_S

COLUMNS, LINES = 80, 24


class Terminal:
    """A program in a terminal; a context manager, which ends the program."""

    def __init__(self, command: Sequence[str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("COLUMNS", None)
        environment.pop("LINES", None)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        until_s = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < until_s:
            self._read(0.1)  # a program whose output nobody reads does not end
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def text(self) -> str:
        """Return what the screen shows, without spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait_for(self, pattern: str, flags: int = 0) -> None:
        """Wait until the screen shows what a pattern matches."""
        until_s = time.monotonic() + WAIT_S
        while re.search(pattern, self.text(), flags) is None:
            assert time.monotonic() < until_s, f"no {pattern!r} on:\n{self.text()}"
            assert self.process.poll() is None, self.text()
            self._read(0.2)

    def _read(self, most_s: float) -> None:
        if select.select([self._master], [], [], most_s)[0]:
            with contextlib.suppress(OSError):  # the program has ended
                self._stream.feed(os.read(self._master, 65_536))
