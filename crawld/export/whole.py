"""A file that appears under its name when it is whole, and never over another one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from crawld.errors import OperatorError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; it gets its name when the block ends well, else it is thrown away.

    What an interrupted export left under the temporary name is overwritten.

    Raises:
        OperatorError: the name is taken, another export is writing there, or nothing can be
            written.
    """
    refuse_taken(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, 0o644)
    except OSError as error:
        raise _refusal(partial, error) from error
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OperatorError(
                f"another export is writing {partial}", hint="wait until it has ended"
            ) from error
        try:
            file.truncate()
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.link(partial, path)
        except OSError as error:
            raise _refusal(path, error) from error
        finally:
            partial.unlink(missing_ok=True)


def refuse_taken(path: Path) -> None:
    """Refuse a name that something has already.

    Raises:
        OperatorError: it has.
    """
    if os.path.lexists(path):
        raise OperatorError(f"{path} exists", hint="name a file that does not exist yet with --out")


def _refusal(path: Path, error: OSError) -> OperatorError:
    return OperatorError(
        f"{path} cannot be written: {error.strerror}", hint="name another place with --out"
    )
