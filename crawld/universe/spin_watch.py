"""Finds a daemon that spins: its tasks run on and on, and the simulated time stands still.

The clock moves only when no task can run. A retry without a pause, which costs a real daemon the
processor while it lasts, never ends in a universe.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import trio

from crawld.universe.jumping_clock import JumpingClock

SPIN_CPU_S: Final = 15.0
"""CPU seconds without a step of the clock."""

SPIN_READS: Final = 1_000
"""Readings of the clock meanwhile; one long pass, such as a check of a large file, has few."""


@contextmanager
def spins_watched(clock: JumpingClock, found: Callable[[], None]) -> Iterator[None]:
    """Call `found` in the run of trio inside, between two steps, while the clock stands still."""
    last_s, last_reads = -1.0, 0

    def look(_signal: int, _frame: FrameType | None) -> None:
        nonlocal last_s, last_reads
        before_s, last_s = last_s, clock.current_time()
        before_reads, last_reads = last_reads, clock.reads
        if before_s == last_s and last_reads > before_reads + SPIN_READS:
            trio.lowlevel.current_trio_token().run_sync_soon(found)

    before = signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, SPIN_CPU_S, SPIN_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
