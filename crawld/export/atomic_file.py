"""Writes files that get their name only when complete, and never replace another file."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from crawld.errors import OperatorError

DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a full disk or quota."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write; it gets its name when the block succeeds, else it is deleted.

    A temporary file left by an interrupted export is overwritten.

    Raises:
        OperatorError: the file exists, another export writes it, or it cannot be written.
    """
    refuse_existing(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, 0o644)
    except OSError as error:
        raise _write_error(partial, error) from error
    file = os.fdopen(descriptor, "r+b")
    try:
        _lock(descriptor, partial)
        try:
            file.truncate()
            yield file
            file.flush()
            os.fsync(descriptor)
            os.link(partial, path)
        except OSError as error:
            raise _write_error(path, error) from error
        finally:
            partial.unlink(missing_ok=True)
    finally:
        # Closing flushes again after a full disk; that error is already reported.
        with suppress(OSError):
            file.close()


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a path to write, as `atomic_file` does, for a writer that opens its file itself.

    The path is in a separate directory, which also holds the temporary files of the writer.

    Raises:
        OperatorError: as for `atomic_file`.
    """
    refuse_existing(path)
    directory = path.with_name(f"{path.name}.partial")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        directory.mkdir(exist_ok=True)
        descriptor = os.open(directory, flags)
    except OSError as error:
        raise _write_error(directory, error) from error
    try:
        _lock(descriptor, directory)
        try:
            _empty(directory)
            yield directory / path.name
            with (directory / path.name).open("rb") as file:
                os.fsync(file.fileno())
            os.link(directory / path.name, path)
        except OSError as error:
            raise _write_error(path, error) from error
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(descriptor)


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _lock(descriptor: int, partial: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OperatorError(
            f"another export is writing {partial}", hint="wait until it ends"
        ) from error


def refuse_existing(path: Path) -> None:
    """Refuse a path that exists.

    Raises:
        OperatorError: it exists.
    """
    if os.path.lexists(path):
        raise OperatorError(f"{path} exists", hint="give a new path with --out")


def _write_error(path: Path, error: OSError) -> OperatorError:
    hint = "give another path with --out"
    if error.errno in DISK_FULL:
        hint = f"free some disk space, or {hint}"
    return OperatorError(f"{path} cannot be written: {error.strerror}", hint=hint)
