"""The two clocks of the daemon, handed around so that tests can set them.

Politeness counts intervals on the monotonic clock, which no time server moves; what is stored is
Unix time. Only this module turns one into the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import trio


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall clock beside trio's own.

    Attributes:
        wall: returns Unix seconds (UTC).
    """

    wall: Callable[[], float] = time.time

    def now(self) -> float:
        """Unix seconds."""
        return self.wall()

    def monotonic(self) -> float:
        """Seconds of trio's clock."""
        return trio.current_time()

    def to_wall(self, instant: float) -> float:
        """Return the Unix time of a recent instant of trio's clock."""
        return self.wall() - (trio.current_time() - instant)

    def to_monotonic(self, at: float) -> float:
        """Return the instant of trio's clock at which the wall clock should read `at`."""
        return trio.current_time() + (at - self.wall())
