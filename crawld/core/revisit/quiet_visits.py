"""Visits to copies that no source reports: evidence of the changes that sources miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VISITS_KEPT: Final = 120.0
"""Visits to copies without a hint that the evidence represents."""


@dataclass(slots=True)
class QuietVisits:
    """Visits to copies without a hint, audits included; older ones decay.

    Attributes:
        stale: visits that found a change. expected: how many the models expected.
        exposure_s: time between each visit and the one before, summed, seconds; that of a visit
            that found a change counts half.
        count: number of visits.
    """

    count: float = 0.0
    stale: float = 0.0
    expected: float = 0.0
    exposure_s: float = 0.0

    def add(self, *, changed: bool, expected: float, exposure_s: float) -> None:
        """Add a visit; whether its change is `stale` is counted apart, by `stale`.

        A change that a source reports a little later, or that a template's edit explains, was not
        unnoticed: that is known some time after the visit.

        Args:
            changed: whether it found a change.
            expected: probability of a change by its model, reported or not.
            exposure_s: time since the visit before, seconds.
        """
        self.count += 1.0
        self.expected += expected
        # A change happened at any time between the two visits.
        self.exposure_s += exposure_s * (0.5 if changed else 1.0)

    def decay(self) -> float:
        """Forget old visits beyond `VISITS_KEPT`; return the factor that was applied."""
        keep = min(1.0, VISITS_KEPT / max(self.count, 1.0))
        self.count, self.stale = self.count * keep, self.stale * keep
        self.expected, self.exposure_s = self.expected * keep, self.exposure_s * keep
        return keep
