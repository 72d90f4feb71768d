"""The memory of this process."""

from __future__ import annotations

import os
import resource
from typing import Final

_PAGE_BYTES: Final = resource.getpagesize()
_STATM: Final = "/proc/self/statm"


class ResidentMemory:
    """Reads the resident memory of this process, in some microseconds.

    The file is read by the process that opened it: after a fork it still tells of the parent.
    """

    def __init__(self) -> None:
        self._file = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)

    def bytes(self) -> int:
        """Return the resident memory now, bytes."""
        return int(os.pread(self._file, 128, 0).split()[1]) * _PAGE_BYTES

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
