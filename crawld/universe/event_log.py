"""The event log of a universe: a hash of everything that happened, in order."""

from __future__ import annotations

import hashlib
from typing import Protocol

import trio


class Lines(Protocol):
    """A file, or what takes its lines."""

    def write(self, line: str, /) -> object:
        """Take a line."""


class EventLog:
    """Hashes one line per event; equal runs give equal digests.

    Attributes:
        events: number of events so far.
    """

    def __init__(self, file: Lines | None = None) -> None:
        self.events = 0
        self._hash = hashlib.sha256()
        self._file = file

    def add(self, kind: str, *facts: object) -> None:
        """Add an event of now: a word, and facts that are equal in equal runs."""
        line = f"{trio.current_time():.6f} {kind} {' '.join(map(str, facts))}\n"
        self._hash.update(line.encode())
        self.events += 1
        if self._file is not None:
            self._file.write(line)

    def sha256(self) -> str:
        """Return the digest of all lines, in hexadecimal."""
        return self._hash.hexdigest()
