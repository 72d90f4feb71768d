"""How late requests leave against the instant they were permitted: the evenness of the slots."""

from __future__ import annotations

from array import array

LATENESS_SAMPLES = 8192
"""How many of the last slots `Lateness` remembers."""


class Lateness:
    """How late requests left against the instant they were permitted; the last few thousand."""

    def __init__(self) -> None:
        self._samples = array("d", bytes(8 * LATENESS_SAMPLES))
        self.count = 0

    def add(self, late_s: float) -> None:
        """Record one request."""
        self._samples[self.count % LATENESS_SAMPLES] = late_s
        self.count += 1

    def quantile_ms(self, q: float) -> float:
        """Return a quantile in milliseconds; 0 without samples."""
        held = sorted(self._samples[: min(self.count, LATENESS_SAMPLES)])
        return 1000.0 * held[min(len(held) - 1, int(q * len(held)))] if held else 0.0

    def forget(self) -> None:
        """Start again, as benchmarks do after warming up."""
        self.count = 0
