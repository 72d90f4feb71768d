"""How much memory the daemon may use: that of the machine, or the limit of its control group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DEFAULT_SHARE: Final = 4
"""The default of `max_memory`: one part in this many."""

_MOUNTS: Final = (("", "sys/fs/cgroup"), ("memory", "sys/fs/cgroup/memory"))
"""Controller and mount point of the hierarchies that limit memory: version 2, version 1."""

_FILES: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")


def machine_memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory of the machine, or the least limit of the control groups above the process.

    Args:
        root: where `proc` and `sys` are.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    for folder in dict.fromkeys(_folders(root)):
        for name in _FILES:
            try:
                text = (folder / name).read_text()
            except OSError:
                continue
            # Version 2 writes "max" where there is no limit, version 1 a huge number.
            if text.strip().isdecimal() and int(text) > 0:
                yield int(text)


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folder of each control group of the process, and of those above it."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        parts = line.split(":", 2)
        if len(parts) < 3:
            continue
        _, controllers, group = parts
        for controller, mount in _MOUNTS:
            if controller not in controllers.split(","):
                continue
            top = root / mount
            folder = top / group.strip("/")
            yield top  # a container sees its own group here
            while folder != top and top in folder.parents:
                yield folder
                folder = folder.parent
