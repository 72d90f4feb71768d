"""A file that appears under its name when it is whole, and never over another one."""

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
"""How a system says that there is no room left."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; it gets its name when the block ends well, else it is thrown away.

    What an interrupted export left under the temporary name is overwritten.

    Raises:
        OperatorError: the name is taken, another export is writing there, or nothing can be
            written.
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
        # What a full disk did not take is tried once more by closing, and said already.
        with suppress(OSError):
            file.close()


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a name to write a file under, as `atomic_file` does for what opens its file itself.

    It is in a directory of its own, where whatever else that program makes beside it goes too.

    Raises:
        OperatorError: as of `atomic_file`.
    """
    refuse_existing(path)
    room = path.with_name(f"{path.name}.partial")
    try:
        room.mkdir(exist_ok=True)
        descriptor = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _write_error(room, error) from error
    try:
        _lock(descriptor, room)
        try:
            _empty(room)
            yield room / path.name
            with (room / path.name).open("rb") as file:
                os.fsync(file.fileno())
            os.link(room / path.name, path)
        except OSError as error:
            raise _write_error(path, error) from error
        finally:
            shutil.rmtree(room, ignore_errors=True)
    finally:
        os.close(descriptor)


def _empty(room: Path) -> None:
    for left in room.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()


def _lock(descriptor: int, partial: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OperatorError(
            f"another export is writing {partial}", hint="wait until it has ended"
        ) from error


def refuse_existing(path: Path) -> None:
    """Refuse a name that something has already.

    Raises:
        OperatorError: it has.
    """
    if os.path.lexists(path):
        raise OperatorError(f"{path} exists", hint="name a file that does not exist yet with --out")


def _write_error(path: Path, error: OSError) -> OperatorError:
    hint = "make room, or name another place with --out"
    if error.errno not in DISK_FULL:
        hint = "name another place with --out"
    return OperatorError(f"{path} cannot be written: {error.strerror}", hint=hint)
