"""What is known of hints: which pages they call stale, and how far hints have proved true.

Source: the mixing of noisy and partial signals with a change model follows Busa-Fekete et al. 2025.
"""

from __future__ import annotations

from dataclasses import dataclass

_DOUBT = 5.0
_DOUBTED = 0.5


@dataclass(slots=True)
class Reliability:
    """How often hints were right, and how much they missed, as visits found it.

    Attributes:
        told: visits to hinted pages, false_: those of them that found no change.
        expected: changes the model expected at visits to pages not hinted, missed: those found.
        heard: whether a hint ever came; before, nothing is known to be told.
    """

    told: float = 0.0
    false_: float = 0.0
    expected: float = 0.0
    missed: float = 0.0
    heard: bool = False

    @property
    def precision(self) -> float:
        """Probability that a hinted page is stale."""
        return 1.0 - (self.false_ + _DOUBTED) / (self.told + _DOUBT)

    @property
    def missing(self) -> float:
        """Share of all changes that no hint tells of; 1 before the first hint."""
        if not self.heard:
            return 1.0
        return min((self.missed + _DOUBTED) / (self.expected + _DOUBT), 1.0)

    def found(self, *, hinted: bool, changed: bool, expected: float) -> None:
        """Learn from a visit.

        Args:
            hinted: the page was called stale before the visit.
            changed: the visit found a change.
            expected: probability of a change as the model saw it.
        """
        if hinted:
            self.told += 1.0
            self.false_ += not changed
        elif self.heard:
            self.expected += expected
            self.missed += changed


@dataclass(slots=True)
class Stale:
    """One page called stale.

    Attributes:
        at: instant of the last change told.
        count: changes told since the last visit.
    """

    at: float
    count: int = 1
