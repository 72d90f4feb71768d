"""How late requests are sent, and other figures of the schedule."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

LATENESS_SAMPLES = 8192
"""Number of requests that `Lateness` remembers."""


class Lateness:
    """How much later than permitted the last few thousand requests were sent."""

    def __init__(self) -> None:
        self._samples = array("d", bytes(8 * LATENESS_SAMPLES))
        self.count = 0

    def add(self, late_s: float) -> None:
        """Add the lateness of one request."""
        self._samples[self.count % LATENESS_SAMPLES] = late_s
        self.count += 1

    def quantile_ms(self, q: float) -> float:
        """Return a quantile in milliseconds; 0 without samples."""
        held = sorted(self._samples[: min(self.count, LATENESS_SAMPLES)])
        return 1000.0 * held[min(len(held) - 1, int(q * len(held)))] if held else 0.0

    def forget(self) -> None:
        """Discard all samples, for benchmarks after their warm-up."""
        self.count = 0


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    """A snapshot for the status page."""

    hosts: int
    waiting: int
    on_turn: int
    lateness_p50_ms: float
    lateness_p99_ms: float
    served: int
