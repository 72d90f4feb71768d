"""Marks: which remote bytes are decoded or analysed right now, in a file that survives the process.

A page can freeze or kill the process while C code holds the interpreter lock: then no Python code
runs any more, so the page must be noted before. A mark is written into a small memory-mapped file
before each step and cleared after it; it costs no system call. A killed process leaves its marks in
the page cache, and the next start reads them.

The file has a header and slots of fixed size; a step that runs takes a slot. The event loop counts
*beats* in the header, and a mark has the beat of its begin: their difference tells how long a step
had been running when the process died, without a clock.

Invariants: a slot is filled before its first byte says so; the file is written by one process, the
one that holds the lock of the database. A file that is foreign, short or torn has no marks.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from zlib import crc32

SLOTS: Final = 32
"""Steps under way at once: one or two on the event loop, and those of a few threads."""

SLOT_BYTES: Final = 8192
"""Enough for the longest canonical URL, 8,000 characters."""

_HEADER: Final = struct.Struct("<8sIIQ")  # magic, format, analyser version, beats
_HEADER_BYTES: Final = 64
_BEATS: Final = struct.Struct("<Q")
_BEATS_AT: Final = 16
_MAGIC: Final = b"crawldmk"
_FORMAT: Final = 1
_SLOT: Final = struct.Struct("<BxHIQ")  # step, length of the URL, its CRC-32, beat
_URL_BYTES: Final = SLOT_BYTES - _SLOT.size
_FILE_BYTES: Final = _HEADER_BYTES + SLOTS * SLOT_BYTES


class Step(IntEnum):
    """What is done with remote bytes; 0 means an empty slot."""

    DECODING = 1
    ANALYSIS = 2


class LeftMark(NamedTuple):
    """A mark of a process that did not end cleanly.

    Attributes:
        beats: beats of the event loop between the begin of the step and the end of the process.
    """

    url: str
    step: Step
    analyser_version: int
    beats: int


class Marks(Protocol):
    """Notes which URL is decoded or analysed."""

    def under(self, url: str, step: Step = Step.ANALYSIS) -> AbstractContextManager[None]:
        """Return a context: inside it the bytes of a URL are decoded or analysed, in any thread.

        Enter it at once: it belongs to this step alone.
        """


class NoMarks:
    """Marks of programs that keep none."""

    def under(self, url: str, step: Step = Step.ANALYSIS) -> AbstractContextManager[None]:
        """Return an empty context."""
        return _NO_MARK


_NO_MARK: Final = nullcontext()

NO_MARKS: Final = NoMarks()


class _Slot:
    """A slot of the file; a context that fills and clears it."""

    __slots__ = ("_at", "_marks", "step", "url")

    def __init__(self, marks: MarksFile, at: int) -> None:
        self._marks = marks
        self._at = at
        self.url = ""
        self.step = Step.ANALYSIS

    def __enter__(self) -> None:
        data = self.url.encode("utf-8", "replace")[:_URL_BYTES]
        at, memory = self._at, self._marks.memory
        start, size = at + _SLOT.size, len(data)
        memory[start : start + size] = data
        _SLOT.pack_into(memory, at, self.step, size, crc32(data), self._marks.beats)

    def __exit__(self, *_: object) -> None:
        self._marks.memory[self._at] = 0
        self._marks.free.append(self)


class MarksFile:
    """Marks in a file; made by `open`, ended by `close`.

    Attributes:
        left: marks that the last process left, from `open` on.
        beats: beats of the event loop since `open`.
        durable: whether the marks outlive the process; False where the file cannot be made.
        memory: the mapped file.
        free: slots that hold no mark.
    """

    def __init__(self, path: Path, memory: mmap.mmap, left: tuple[LeftMark, ...]) -> None:
        self.left = left
        self.beats = 0
        self.durable = True
        self.memory = memory
        self.free = [_Slot(self, _HEADER_BYTES + number * SLOT_BYTES) for number in range(SLOTS)]
        self._path = path

    @classmethod
    def open(cls, path: Path) -> MarksFile:
        """Open or make the file; the caller holds the lock of the database beside it.

        The marks of the last process stay in the file until `begin`. Where the file cannot be
        made, the marks are kept in memory alone.
        """
        try:
            memory = _map(path)
        except OSError:
            # Nothing of the crawl depends on the marks; a full disk must not end it.
            made = cls(path, mmap.mmap(-1, _FILE_BYTES), ())
            made.durable = False
            return made
        return cls(path, memory, tuple(_read(memory)))

    def begin(self, analyser_version: int) -> None:
        """Delete the marks of the last process; from now on the file has those of this one."""
        for number in range(SLOTS):
            self.memory[_HEADER_BYTES + number * SLOT_BYTES] = 0
        _HEADER.pack_into(self.memory, 0, _MAGIC, _FORMAT, analyser_version, 0)
        self.left = ()

    def under(self, url: str, step: Step = Step.ANALYSIS) -> AbstractContextManager[None]:
        """Return a context that marks a URL; without a free slot it does nothing."""
        try:
            slot = self.free.pop()
        except IndexError:
            return _NO_MARK
        slot.url, slot.step = url, step
        return slot

    def beat(self) -> None:
        """Count a sign of the event loop."""
        self.beats += 1
        _BEATS.pack_into(self.memory, _BEATS_AT, self.beats)

    def close(self) -> None:
        """End cleanly: delete the file, unless marks of the last process were not dealt with.

        A thread that still runs may go on writing marks; nobody reads them.
        """
        if self.durable and not self.left:
            self._path.unlink(missing_ok=True)


def marks_path(database: Path) -> Path:
    """Return the path of the marks of a database."""
    return database.with_name(database.name + "-marks")


def _map(path: Path) -> mmap.mmap:
    # The file names URLs, which may be secret.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # Reserved, since a write into a mapped file without a block on a full disk is a SIGBUS.
        os.posix_fallocate(file, 0, _FILE_BYTES)
        return mmap.mmap(file, _FILE_BYTES)
    finally:
        os.close(file)


def _read(memory: mmap.mmap) -> Iterator[LeftMark]:
    """Yield the marks in a file."""
    magic, form, analyser_version, beats = _HEADER.unpack_from(memory, 0)
    if (magic, form) != (_MAGIC, _FORMAT):
        return
    for number in range(SLOTS):
        at = _HEADER_BYTES + number * SLOT_BYTES
        step, size, checksum, began = _SLOT.unpack_from(memory, at)
        data = memory[at + _SLOT.size : at + _SLOT.size + min(size, _URL_BYTES)]
        # After a power cut a part of the slot may be missing.
        if step not in (Step.DECODING, Step.ANALYSIS) or crc32(data) != checksum:
            continue
        url = data.decode("utf-8", "replace")
        yield LeftMark(url, Step(step), analyser_version, max(beats - began, 0))
