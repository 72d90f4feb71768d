"""Counts how often intervals hold the truth, and how wide they are."""

from __future__ import annotations


class IntervalCount:
    """Counts intervals.

    Attributes:
        claims, covered: number of intervals, and of those that held the truth.
    """

    def __init__(self) -> None:
        self.claims = self.covered = 0
        self._width = 0.0

    def add(self, low: float, high: float, truth: float) -> None:
        """Count an interval."""
        self.claims += 1
        self.covered += low <= truth <= high
        self._width += high - low

    def as_json(self) -> dict[str, object]:
        """Return the counts, and the mean width; null: there was none."""
        mean_width = self._width / self.claims if self.claims else None
        return {"claims": self.claims, "covered": self.covered, "mean_width": mean_width}
