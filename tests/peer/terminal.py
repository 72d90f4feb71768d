"""A terminal of 80 columns and 24 lines, and a program that draws on it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Sequence
from typing import Self

import pyte

from tests.peer.crawld_process import WAIT_S

COLUMNS, LINES = 80, 24


class Terminal:
    """A program in a terminal; a context manager, which ends the program.

    A thread reads what the program writes: one whose terminal is not read stands still when it
    has written some kilobytes.
    """

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
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(WAIT_S)
        os.close(self._master)

    def text(self) -> str:
        """Return what the screen shows, without spaces at the ends of lines."""
        with self._changed:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def wait_for(self, pattern: str, flags: int = 0) -> None:
        """Wait until the screen shows what a pattern matches."""
        until_s = time.monotonic() + WAIT_S
        with self._changed:
            while re.search(pattern, self.text(), flags) is None:
                assert time.monotonic() < until_s, f"no {pattern!r} on:\n{self.text()}"
                assert self.process.poll() is None, self.text()
                self._changed.wait(0.2)

    def _read(self) -> None:
        while True:
            try:
                written = os.read(self._master, 65_536)
            except OSError:  # the program has ended
                return
            with self._changed:
                self._stream.feed(written)
                self._changed.notify_all()
