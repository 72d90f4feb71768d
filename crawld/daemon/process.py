"""Settings of the process: memory allocation, cycle collection, threads, open files."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import resource
import sys
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from crawld.memory import HEAP_BLOCK_BYTES

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""

MOST_OPEN_FILES = 100_000
"""The highest limit of open files to ask for: one kept connection for each of many hosts."""

OPEN_FILES_KEPT = 48
"""Descriptors reserved for the database, the log, marks, copies and the sockets that listen."""

FILES_PER_LOOKUP = 4
"""A lookup has two files at a time, and as many lookups as run in time may run on late."""

COLLECTOR_THRESHOLDS = (1_000, 2, 250_000)
"""Thresholds of `gc`: young objects often and few at a time, old ones once in several hours.

A collection stops the event loop for up to a microsecond per object, on a busy machine with cold
caches: the first generation has 1,000, the second as many as the product of the first two and those
of the first once more.
"""

SWITCH_INTERVAL_S = 0.0002
"""How long a thread keeps the interpreter lock while others want it.

Beside a busy analysis the event loop waits so long after each of its system calls. A loop that
serves 200 sockets answered beside one busy thread in 26 ms (median) at Python's default of 5 ms, in
11 ms at 0.2 ms; beside two in 55 and 24 ms. The analysis was not slower.
"""


def keep_heap_memory() -> None:
    """Make glibc keep the memory of parsed pages instead of returning it to the kernel each time.

    Otherwise a third of the time to parse a 60 KB page goes into page faults. All threads share one
    heap: what one of them frees another can use. Other C libraries are left alone.
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BLOCK_BYTES)
        mallopt(M_ARENA_MAX, 1)


def return_heap_memory() -> None:
    """Return free memory of all heaps to the kernel; takes 0.1 ms per freed megabyte, any thread.

    After hundreds of megabytes of trees glibc keeps nearly all of them: the free blocks lie between
    used ones, and in the heaps of other threads.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)  # each holds itself, and is freed by a garbage collection only


def tune_collector() -> None:
    """Exempt objects of the start from garbage collection, and collect old objects rarely.

    A full collection over 10,000 hosts stops every slot for half a second, and a crawl makes almost
    no cycles.
    """
    gc.freeze()  # not collected first: that takes 30 ms on the event loop and finds 60 objects
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def switch_threads_often() -> None:
    """Let the event loop have the interpreter lock soon after it asks for it."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


@dataclass(frozen=True, slots=True)
class FileShares:
    """How many connections and lookups the limit of open files permits.

    Attributes:
        outbound: connections to hosts, idle ones included.
        lookups: name lookups at once.
        control: connections to the control socket.
        web: connections to the mirror listener.
    """

    outbound: int
    lookups: int
    control: int
    web: int


def share_files(limit: int, *, lookups: int, control: int, web: int) -> FileShares:
    """Divide the limit of open files; nobody gets more than is asked for.

    Hosts get at least half of what is not reserved, and all that others leave.
    """
    free = max(limit - OPEN_FILES_KEPT, 16)
    lookups = max(1, min(lookups, free // (8 * FILES_PER_LOOKUP)))
    control = max(2, min(control, free // 8))
    web = max(2, min(web, free // 4))
    return FileShares(
        max(4, free - FILES_PER_LOOKUP * lookups - control - web), lookups, control, web
    )


def raise_file_limit() -> int:
    """Raise the limit of open files as far as permitted, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def end_process(code: int) -> NoReturn:
    """Flush logs and output, and end the process without waiting for its threads.

    Call it only when the database is closed. A thread may be in the middle of the analysis or the
    rendering of a large page, whose result nobody waits for; it cannot be ended, and the
    interpreter would wait for it. Nothing is lost: the close of the database waits for each commit.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
