"""Writes files atomically inside one directory, and never outside it.

Every path is opened segment by segment with file descriptors, and no step follows a symbolic link.
No page name and no planted link can cause a write outside the directory. A file is written in a
temporary directory and renamed, so that a reader sees the old or the new file. Each export has its
own temporary directory. If an export is killed, the next one removes that directory, so that
surviving processes can no longer replace files.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Final

from crawld.errors import OperatorError
from crawld.export.atomic_file import DISK_FULL

_OPEN_DIRECTORIES: Final = 256
"""Cached descriptors; pages of one directory mostly come in sequence."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SafeDirectory:
    """A directory to write files in; created if missing; may itself be a symbolic link.

    Raises:
        OperatorError: it cannot be created or is not a directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise OperatorError(
                f"{root} is not a writable directory: {error.strerror}",
                hint="give another one with --out",
            ) from error
        self._temp = self._root
        # Unique per process: others may write into the same directory at the same time.
        self._partial = f".crawld-partial-{os.getpid()}"
        self._open: OrderedDict[str, int] = OrderedDict()

    def use_temp(self, directory: str) -> None:
        """Write temporary files in a directory below the root from now on."""
        try:
            self._temp = self._descriptor(directory)
        except OSError as error:
            raise self._write_error(directory, error) from error
        del self._open[directory]  # the descriptor stays open

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file; no segment of the path is empty, `.` or `..`.

        Raises:
            OperatorError: a segment is a symbolic link or a file, or the write fails.
            ValueError: the path leaves the directory: a bug of the caller.
        """
        directory, name = self._split(path)
        try:
            descriptor = self._descriptor(directory)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self._partial, flags, 0o644, dir_fd=self._temp)
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(handle, view) :]
            finally:
                os.close(handle)
            os.rename(self._partial, name, src_dir_fd=self._temp, dst_dir_fd=descriptor)
        except OSError as error:
            raise self._write_error(path, error) from error

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        for descriptor in {self._root, self._temp} - {-1}:
            os.close(descriptor)
        self._root = self._temp = -1

    @staticmethod
    def _split(path: str) -> tuple[str, str]:
        if "\0" in path or any(each in ("", ".", "..") for each in path.split("/")):
            raise ValueError(f"not a path of an export: {path!r}")
        directory, _, name = path.rpartition("/")
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

    def _write_error(self, path: str, error: OSError) -> OperatorError:
        hint = "symbolic links inside an export are not followed; export into a new directory"
        if error.errno in DISK_FULL:
            hint = "free some disk space and repeat the command; the export continues"
        return OperatorError(f"{self.root / path} cannot be written: {error.strerror}", hint=hint)
