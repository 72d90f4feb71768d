"""What is known of hints: which pages they call stale, and how far hints have proved true.

A source is described by two numbers, learnt from what visits find: the share m of changes it does
not tell of, and the rate φ at which it tells of changes that were none, per page and second. A hint
comes true from a page whose hazard of change is h with probability h(1 − m) / (h(1 − m) + φ): on a
lively page nearly surely, on one calm for long perhaps not. So a hint that may be false neither
makes its page surely stale nor, what matters more, makes a calm page look lively: the page is
priced as a mixture of both readings, lively and stale, or calm and only as stale as before. (One
precision for all hints was measured: it wastes visits on calm pages that were lied about.)

Source: Bayes' rule; the noisy-signal form of the problem is Busa-Fekete et al. 2025.
"""

from __future__ import annotations

from dataclasses import dataclass

_MISSED_BEFORE, _CHANGES_BEFORE = 0.5, 5.0
_FALSE_BEFORE, _EXPOSURE_BEFORE_S = 0.05, 100 * 86_400.0
"""Belief before any visit: one change in ten is missed, a page hears a lie once in six years."""


@dataclass(slots=True)
class Reliability:
    """How much hints missed and how often they lied, as visits found it.

    Attributes:
        changes: changes found at visits since the first hint. missed: those nothing had told of.
        false_: changes told that visits did not find. exposure_s: time between those visits.
        heard: whether a hint ever came; before, no source is known.
    """

    changes: float = 0.0
    missed: float = 0.0
    false_: float = 0.0
    exposure_s: float = 0.0
    heard: bool = False

    @property
    def missing(self) -> float:
        """Share m of the changes that no hint tells of; 1 before the first hint."""
        if not self.heard:
            return 1.0
        return (self.missed + _MISSED_BEFORE) / (self.changes + _CHANGES_BEFORE)

    @property
    def false_rate(self) -> float:
        """False hints φ per page and second."""
        return (self.false_ + _FALSE_BEFORE) / (self.exposure_s + _EXPOSURE_BEFORE_S)

    def found(self, *, told: int, changes: int, since_s: float, counted: bool) -> None:
        """Learn from a visit.

        Args:
            told: changes told since the visit before.
            changes: changes found; 1 where all that is known is that there were some.
            since_s: time since the visit before.
            counted: whether `changes` is their number.
        """
        self.exposure_s += since_s
        self.changes += changes
        if counted or changes == 0:
            self.false_ += max(told - changes, 0)
            self.missed += max(changes - told, 0)
        else:
            self.missed += told == 0

    def true(self, hazard: float) -> float:
        """Return the probability that a hint is true, from the page's hazard of change (1/s)."""
        if hazard == float("inf"):
            return 1.0
        told = hazard * (1.0 - self.missing)
        return told / (told + self.false_rate)

    def urgency_untold(self, changed: float) -> float:
        """Return what is left of the worth of a page of which nothing was told.

        Args:
            changed: probability of a change since the last visit, as the model sees it.
        """
        missing = self.missing
        return missing / max(1.0 - changed * (1.0 - missing), 1e-9)


@dataclass(slots=True)
class Stale:
    """One page called stale.

    Attributes:
        at: instant of the last change told. calm_at: last change if that hint was false.
        true: probability that it was true. before: that one of the hints before it was.
        count: changes told since the last visit.
    """

    at: float
    calm_at: float
    true: float
    before: float = 0.0
    count: int = 1

    def tell(self, at: float, true: float) -> None:
        """Take one more hint, true with a probability."""
        if self.true >= 0.5:
            self.calm_at = self.at
        self.before = 1.0 - (1.0 - self.before) * (1.0 - self.true)
        self.at, self.true = max(at, self.at), true
        self.count += 1
