"""Write a database under a name of its own, and give it its final name once it is complete.

A file with the final name is complete and flushed, also after a kill or a power cut. What a killed
process left under the other name is removed by the next that writes there.
"""

from __future__ import annotations

import os
from pathlib import Path


def partial_of(target: Path) -> Path:
    """Return the name for an incomplete file; no file has it any more."""
    partial = target.with_name(f"{target.name}.partial")
    discard(partial)
    return partial


def discard(file: Path) -> None:
    """Remove a database and what SQLite keeps beside it, where they exist."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def publish(partial: Path, target: Path) -> None:
    """Flush a finished file and give it its name; never replace another file.

    Raises:
        OSError: the name is taken, or the file system refuses it.
    """
    flush(partial)
    os.link(partial, target)
    partial.unlink()
    flush(target.parent)


def flush(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
