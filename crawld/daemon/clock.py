"""The two clocks of the daemon, passed in so that tests can set them.

Politeness counts intervals on the monotonic clock, which no time server adjusts; stored times are
Unix times. Only this module converts between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import trio


def thread_cpu_s() -> float:
    """Return the CPU time of this thread, to which other work of the machine does not add."""
    return time.thread_time()


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock, trio's clock, and the CPU time of this thread.

    Attributes:
        wall: returns Unix seconds (UTC).
        cpu: returns the CPU time of this thread (seconds).
        is_simulated: whether trio's clock stands while the event loop works: there are no stalls to
            measure, and signals are for the simulation.
    """

    wall: Callable[[], float] = time.time
    cpu: Callable[[], float] = thread_cpu_s
    is_simulated: bool = False

    def now(self) -> float:
        """Unix seconds."""
        return self.wall()

    def monotonic(self) -> float:
        """Seconds of trio's clock."""
        return trio.current_time()

    def to_wall(self, at: float) -> float:
        """Return the Unix time of a recent time on trio's clock.

        What is still to come is later than now, however near: Unix times are doubles, a quarter of
        a microsecond apart, and what waits until one that is rounded down is due at once.
        """
        now, ahead_s = self.wall(), at - trio.current_time()
        return (
            now + ahead_s if ahead_s <= 0.0 else max(now + ahead_s, math.nextafter(now, math.inf))
        )

    def to_monotonic(self, at: float) -> float:
        """Return the time on trio's clock when the wall clock should read `at`."""
        return trio.current_time() + (at - self.wall())
