"""Files inside one directory and nowhere else, each whole or not there.

Every path is walked segment by segment with file descriptors, and no step follows a symbolic link:
whatever a page is called and whoever plants a link inside the directory, nothing outside it is
written. A file is made in a room apart and renamed, so that a reader sees the old one or the new
one. The room is of one export alone: whoever goes on after it was killed removes it, and processes
that outlived it cannot put anything in a place any more.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from crawld.errors import OperatorError
from crawld.export.atomic_file import DISK_FULL

_OPEN_DIRECTORIES: Final = 256
"""Descriptors kept: pages of one directory mostly come together."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SafeDirectory:
    """A directory to write in; a context manager, since it holds descriptors.

    Args:
        root: made if it is not there; may be reached through a symbolic link.

    Raises:
        OperatorError: it cannot be made or is no directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise OperatorError(
                f"{root} is no directory that can be written: {error.strerror}",
                hint="name another one with --out",
            ) from error
        self._room = self._root
        # Of this process alone: others may write into the same directory at the same time.
        self._partial = f".crawld-partial-{os.getpid()}"
        self._open: OrderedDict[str, int] = OrderedDict()

    def work_in(self, room: str) -> None:
        """Make files in a directory of the folder from now on."""
        try:
            self._room = self._descriptor(room)
        except OSError as error:
            raise self._refusal(room, error) from error
        del self._open[room]  # it stays open

    def write(self, path: str, content: bytes) -> None:
        """Put a file in its place.

        Args:
            path: relative, `/` between segments, none of them empty, `.` or `..`.
            content: the whole file.

        Raises:
            OperatorError: a segment is a symbolic link or a file, or nothing can be written.
            ValueError: the path leads out of the directory: a bug of the caller.
        """
        directory, name = self._place(path)
        try:
            descriptor = self._descriptor(directory)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self._partial, flags, 0o644, dir_fd=self._room)
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(handle, view) :]
            finally:
                os.close(handle)
            os.rename(self._partial, name, src_dir_fd=self._room, dst_dir_fd=descriptor)
        except OSError as error:
            raise self._refusal(path, error) from error

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        for descriptor in {self._root, self._room} - {-1}:
            os.close(descriptor)
        self._root = self._room = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _place(path: str) -> tuple[str, str]:
        directory, _, name = path.rpartition("/")
        segments = path.split("/")
        if "\0" in path or any(each in ("", ".", "..") for each in segments):
            raise ValueError(f"no path of an export: {path!r}")
        return directory, name

    def _descriptor(self, directory: str) -> int:
        if not directory:
            return self._root
        known = self._open.get(directory)
        if known is not None:
            self._open.move_to_end(directory)
            return known
        above, _, name = directory.rpartition("/")
        parent = self._descriptor(above)
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
        self._open[directory] = descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        if len(self._open) > _OPEN_DIRECTORIES:
            _, oldest = self._open.popitem(last=False)
            os.close(oldest)
        return descriptor

    def _refusal(self, path: str, error: OSError) -> OperatorError:
        hint = "symbolic links inside an export are never followed; export into a new directory"
        if error.errno in DISK_FULL:
            hint = "make room and say it again: the export goes on where it stopped"
        return OperatorError(f"{self.root / path} cannot be written: {error.strerror}", hint=hint)
