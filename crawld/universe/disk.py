"""The disk of a universe: a VFS of SQLite over real files that can fill up, fail, and lose power.

The files below are the operating system's cache: what is written is there at once. For each file
the disk notes what was written or truncated since its last sync; `power_cut_image` makes a copy in
which each of these notes is kept, dropped or torn into sectors, in any combination, since a disk
may reorder them. A sync costs nothing, as it only deletes the notes.

The shared memory of the log (`-shm`) is the operating system's own: apsw passes its methods on to
the VFS below, so several connections work as in production. No image has it; SQLite rebuilds it
from the log, as after every reboot. Creating or deleting a file is never lost.

Rule: every connection of the process uses this VFS while it is installed, those of commands too.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from crawld.universe.plan import DiskFault

NAME: Final = "crawld-universe"
BELOW: Final = "unix"
SECTOR_BYTES: Final = 512
"""A disk writes sectors as a whole; SQLite relies on it."""

FAILING_SHARE: Final = 0.3
"""Share of writes and syncs that a failing disk refuses."""


@dataclass(frozen=True, slots=True)
class _Note:
    """A write or (without bytes) a truncation that no sync has made safe.

    Attributes:
        before: the bytes that a write replaced, or a truncation removed.
        size_bytes: of the file before it.
    """

    offset: int
    data: bytes
    before: bytes
    size_bytes: int


class SimulatedDisk:
    """A disk, and what is noted about its files.

    Args:
        rng: draws which writes fail and what a power cut leaves.
        fault: returns the fault of now, None while the disk is well.
        loses_power: whether there is a power cut; else nothing is noted for it, which costs a read
            for each write.
        may_fail: whether there is ever a fault.

    Attributes:
        open_files: handles that are not closed.
    """

    def __init__(
        self,
        rng: random.Random,
        fault: Callable[[], DiskFault | None],
        *,
        loses_power: bool = True,
        may_fail: bool = True,
    ) -> None:
        self._rng = rng
        self.fault = fault
        self.loses_power = loses_power
        self.may_fail = may_fail
        self.notes: defaultdict[str, list[_Note]] = defaultdict(list)
        self.open_files = 0
        self._left = 0
        self._then: Callable[[], None] | None = None
        self._log_bytes = 0

    def after_operations(self, count: int, then: Callable[[], None]) -> None:
        """Call a function once, within the last of so many operations."""
        self._left, self._then = count, then

    def written(self, name: str, until_bytes: int) -> None:
        """Note how long a file is at least."""
        if until_bytes > self._log_bytes and name.endswith("-wal"):
            self._log_bytes = until_bytes

    def longest_log_bytes(self) -> int:
        """Return how long SQLite's log was at most since the last call."""
        longest, self._log_bytes = self._log_bytes, 0
        return longest

    def forget_operations(self) -> None:
        """Do not call the function of `after_operations` any more."""
        self._then = None

    def count(self) -> None:
        """Count an operation: a write, a truncation or a sync."""
        then = self._then
        if then is not None:
            self._left -= 1
            if self._left <= 0:
                self._then = None
                then()

    def is_refused(self) -> bool:
        """Draw whether a failing disk refuses an operation."""
        is_failing = self.may_fail and self.fault() is DiskFault.FAILING
        return is_failing and self._rng.random() < FAILING_SHARE

    def torn(self, data: bytes) -> bytes:
        """Return a beginning of some bytes, of whole sectors."""
        return data[: self._rng.randrange(0, len(data) + SECTOR_BYTES, SECTOR_BYTES)]

    def power_cut_image(self, path: Path) -> bytes:
        """Return what is on the disk of a file after a power cut now."""
        image = bytearray(path.read_bytes())
        notes = self.notes[str(path)]
        for note in reversed(notes):
            image[note.offset : note.offset + len(note.data)] = note.before
            image[note.size_bytes :] = b""
        kept_share, torn_share = self._rng.choice((0.0, 0.5, 1.0)), self._rng.choice((0.0, 0.3))
        for note in notes:
            if self._rng.random() >= kept_share:
                continue
            if note.data:
                self._put(image, note, torn_share)
            else:
                image[note.offset :] = b""
        return bytes(image)

    def _put(self, image: bytearray, note: _Note, torn_share: float) -> None:
        """Write a note into an image, or only some of its sectors."""
        is_torn = self._rng.random() < torn_share
        for start in range(0, len(note.data), SECTOR_BYTES):
            if is_torn and self._rng.random() < 0.5:
                continue
            sector, place = note.data[start : start + SECTOR_BYTES], note.offset + start
            image.extend(bytes(max(0, place - len(image))))
            image[place : place + len(sector)] = sector


class _Files(apsw.VFS):
    """The VFS: opens and deletes files of the disk."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        super().__init__(NAME, BELOW, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file; temporary ones have no name and are not simulated."""
        if name is None:
            return super().xOpen(name, flags)
        return _SimulatedFile(self._disk, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        """Delete a file and what is noted about it."""
        self._disk.notes.pop(name, None)
        super().xDelete(name, sync_directory)


class _SimulatedFile(apsw.VFSFile):
    """One handle of a file; all handles of a file share its notes."""

    def __init__(self, disk: SimulatedDisk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(BELOW, name, flags)
        self._disk = disk
        disk.open_files += 1
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name

    def xClose(self) -> None:
        """Close the handle."""
        self._disk.open_files -= 1
        super().xClose()

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write, unless the disk is full or fails; a failing one may write a part."""
        if self._disk.may_fail:
            if self._disk.fault() is DiskFault.FULL and offset + len(data) > self.xFileSize():
                raise apsw.FullError("the simulated disk is full")
            if self._disk.is_refused():
                if part := self._disk.torn(data):
                    self._write(part, offset)
                raise apsw.IOError("the simulated disk fails to write")
        self._write(data, offset)

    def _write(self, data: bytes, offset: int) -> None:
        if self._disk.loses_power:
            size_bytes = self.xFileSize()
            before = self._read(offset, min(len(data), max(0, size_bytes - offset)))
            self._disk.notes[self._name].append(_Note(offset, bytes(data), before, size_bytes))
        super().xWrite(data, offset)
        self._disk.written(self._name, offset + len(data))
        self._disk.count()

    def _read(self, offset: int, size_bytes: int) -> bytes:
        return bytes(super().xRead(size_bytes, offset)) if size_bytes > 0 else b""

    def xTruncate(self, size_bytes: int) -> None:
        """Truncate the file."""
        if self._disk.loses_power:
            before_bytes = self.xFileSize()
            removed = self._read(size_bytes, before_bytes - size_bytes)
            self._disk.notes[self._name].append(_Note(size_bytes, b"", removed, before_bytes))
        super().xTruncate(size_bytes)
        self._disk.count()

    def xSync(self, flags: int) -> None:
        """Make the file safe; a sync that fails makes nothing safe."""
        del flags
        if self._disk.is_refused():
            raise apsw.IOError("the simulated disk fails to sync")
        self._disk.count()  # as it begins
        self._disk.notes[self._name].clear()


@contextmanager
def installed(disk: SimulatedDisk) -> Iterator[None]:
    """Let all SQLite files that the process opens be on a simulated disk.

    Whoever audits them opens them without it: the last reader to close a file locks it in vain,
    which apsw raises and SQLite alone ignores.
    """
    files = _Files(disk)
    try:
        yield
    finally:
        files.unregister()
