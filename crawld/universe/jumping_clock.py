"""A clock of trio that moves only when no task can run, and then jumps to the next deadline.

It does what `MockClock` does with an automatic jump, without a second pass of the loop, statistics
or a look at the real clock: a year of a daemon is a hundred million passes.
"""

from __future__ import annotations

import math
from typing import Final

import trio

IDLE_S: Final = 1.0
MOST_IDLE: Final = 10
"""Real seconds, and how often: then nothing will wake a universe any more."""


class JumpingClock(trio.abc.Clock):
    """Begins at 0 s. Nothing may wait for a thread or a socket: the clock would not wait for it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._idle = 0

    def start_clock(self) -> None:
        """Do nothing: it has begun."""

    def current_time(self) -> float:
        """Return the simulated time in seconds."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to a deadline; trio asks when no task can run."""
        if deadline == math.inf:  # trio wakes itself by a socket at its start and end
            self._idle += 1
            if self._idle > MOST_IDLE:
                raise RuntimeError("every task of the universe waits, and none for a time")
            return IDLE_S
        self._idle = 0
        self._now = max(self._now, deadline)
        return 0.0
