"""The process itself: its memory, its cycle collector, its open files."""

from __future__ import annotations

import ctypes
import gc
import resource

HEAP_BLOCK_BYTES = 4 * 1024 * 1024
"""Blocks up to this come from the heap and stay with it; the tree of a 60 KB page takes 1 MB."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""

MOST_OPEN_FILES = 100_000
"""Open files asked for at most: a connection kept for each of very many hosts."""

OPEN_FILES_KEPT = 128
"""Files that are no connections to servers: database, log, control socket and its clients."""

COLLECTOR_THRESHOLDS = (10_000, 50, 1_000)
"""Young objects are looked at as often as needed, old ones about once in hours."""


def settle_heap() -> None:
    """Make glibc keep the memory of parsed pages instead of asking the kernel for it each time.

    A third of the time to parse a 60 KB page went into page faults before. Another C library is
    left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BLOCK_BYTES)


def settle_collector() -> None:
    """Keep Python's cycle collector from walking all hosts again and again.

    What stands after the start stays; a full walk over the objects of 10,000 hosts stops every
    slot for half a second, and almost nothing in a crawl is a cycle.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def open_files() -> int:
    """Return how many files this process may have open, raised as far as it may raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
