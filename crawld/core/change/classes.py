"""Bayesian rate classes: how probable it is that a page changes hourly, daily, weekly ...

Each class is a Poisson process with a fixed mean interval between changes. Every visit updates the
weights, even one without a change. The published method updates only at changes, with the time
since the last change, and always ends in the fastest class. Intervals are measured from the last
*visit*. Weights are logarithms, so that a thousand visits do not underflow.

Source: Cho & Garcia-Molina, TOIT 2003, section 5.3 (the method); Oslo thesis, section 4.8 (without
the update for unchanged visits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DAY_S = 86_400.0
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class RateClasses:
    """A set of rate classes, with a lower limit for their weights.

    Attributes:
        mean_intervals_s: mean time between changes of each class, seconds, > 0.
        floor: lowest log weight relative to the best class, <= 0. It lets a page change its class
            when its behavior changes after years; `-inf` gives the pure posterior.
    """

    mean_intervals_s: tuple[float, ...]
    floor: float = -math.inf

    def __post_init__(self) -> None:
        if not self.mean_intervals_s or min(self.mean_intervals_s) <= 0.0:
            raise ValueError("rate classes need at least one mean interval, all above 0")

    def uniform(self) -> list[float]:
        """Return the log weights of an unknown page."""
        return [0.0] * len(self.mean_intervals_s)

    def after_visit(
        self, weights: Sequence[float], interval_s: float, *, changed: bool
    ) -> list[float]:
        """Return the log weights after a visit, the largest 0; an interval of 0 changes nothing."""
        if interval_s <= 0.0:
            return list(weights)
        if not changed:
            return self.after_exact(weights, 0.0, interval_s)
        pairs = zip(weights, self.mean_intervals_s, strict=True)
        return self._normalized(
            [
                weight + math.log(max(-math.expm1(-interval_s / mean_s), _TINY))
                for weight, mean_s in pairs
            ]
        )

    def after_exact(
        self, weights: Sequence[float], changes: float, exposure_s: float
    ) -> list[float]:
        """Return the log weights after a count of changes in a completely observed time."""
        pairs = zip(weights, self.mean_intervals_s, strict=True)
        return self._normalized(
            [weight - changes * math.log(mean_s) - exposure_s / mean_s for weight, mean_s in pairs]
        )

    def probabilities(self, weights: Sequence[float]) -> list[float]:
        """Return the probability of each class, in class order; they sum to 1."""
        top = max(weights)
        masses = [math.exp(weight - top) for weight in weights]
        total = math.fsum(masses)
        return [mass / total for mass in masses]

    def most_probable(self, weights: Sequence[float]) -> int:
        """Return the index of the most probable class; ties go to the slower class."""
        return max(range(len(weights)), key=lambda c: (weights[c], self.mean_intervals_s[c]))

    def dominant(self, weights: Sequence[float]) -> int | None:
        """Return the class with more than half of the probability; None if there is none."""
        best = self.most_probable(weights)
        return best if self.probabilities(weights)[best] > 0.5 else None

    def credible_range(self, weights: Sequence[float], level: float = 0.9) -> tuple[int, int]:
        """Return the first and last index of adjacent classes that hold a share of the probability.

        The range grows from the most probable class, towards the more probable neighbor first.

        >>> RateClasses((1.0, 3.0, 9.0, 27.0)).credible_range([-9.0, 0.0, -1.0, -9.0])
        (1, 2)
        """
        shares = self.probabilities(weights)
        first = last = self.most_probable(weights)
        held = shares[first]
        # Rounding may leave the sum a little short of a level of 1.
        while held < level and (first > 0 or last < len(shares) - 1):
            before = shares[first - 1] if first > 0 else -1.0
            after = shares[last + 1] if last < len(shares) - 1 else -1.0
            first, last = (first - 1, last) if before > after else (first, last + 1)
            held += max(before, after)
        return first, last

    def _normalized(self, weights: list[float]) -> list[float]:
        top = max(weights)
        floor = self.floor
        return [max(weight - top, floor) for weight in weights]


PAGE_CLASSES = RateClasses(
    tuple(days * DAY_S for days in (1 / 24, 1 / 4, 1.0, 3.0, 10.0, 30.0, 100.0, 365.0)), -30.0
)
"""The classes of every page model: hourly to yearly, each about three times the one before."""
