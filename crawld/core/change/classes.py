"""Bayesian rate classes: how probable it is that a page changes hourly, daily, weekly ...

Each class is a Poisson process with a fixed mean interval between changes. All visits count, even
those without a change, with the interval from the last *visit*. The published method updates only
at changes, with the time since the last change, and always ends in the fastest class. The weights
are computed from the decaying evidence that the rate is estimated from, for any classes: a page
changes its class when it behaves otherwise. They are logarithms, so that a thousand visits do not
underflow.

Source: Cho & Garcia-Molina, TOIT 2003, section 5.3 (the method); Oslo thesis, section 4.8 (without
the update for unchanged visits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawld.core.change.rate import LEAST_COUNT, RateEvidence
from crawld.core.change.record import Records
from crawld.core.units import DAY_S

Floats = npt.NDArray[np.float64]

_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class RateClasses:
    """A set of rate classes.

    Attributes:
        mean_intervals_s: mean time between changes of each class, seconds, > 0.
    """

    mean_intervals_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.mean_intervals_s or min(self.mean_intervals_s) <= 0.0:
            raise ValueError("rate classes need at least one mean interval, all above 0")

    def weights(self, evidence: RateEvidence) -> list[float]:
        """Return the log weights of a page after the evidence about it, the largest 0.

        Visits that saw a change count as if their intervals were equal, as in `rate.posterior`.
        """
        one = (
            evidence.exact_changes,
            evidence.exact_exposure_s + evidence.unchanged_s,
            evidence.changed,
            evidence.changed_s,
        )
        (weights,) = self._log_weights(*(np.array([value]) for value in one)).tolist()
        return list(weights)

    def dominant_days(self, records: Records) -> list[float | None]:
        """Return the mean interval in days of the class that dominates each page, or None."""
        known = (self.dominant(row) for row in self._weights_of(records).tolist())
        return [None if at is None else self.mean_intervals_s[at] / DAY_S for at in known]

    def shares(self, records: Records) -> Floats:
        """Return the expected share of pages in each class."""
        masses = np.exp(self._weights_of(records))
        return np.asarray((masses / masses.sum(axis=1, keepdims=True)).mean(axis=0))

    def _weights_of(self, records: Records) -> Floats:
        names = ("exact_exposure_s", "exact_changes", "changed", "changed_s", "unchanged_s")
        exposure_s, exact, changed, changed_s, unchanged_s = (
            records[name].astype(np.float64) for name in names
        )
        return self._log_weights(exact, exposure_s + unchanged_s, changed, changed_s)

    def _log_weights(
        self, exact: Floats, exposure_s: Floats, changed: Floats, changed_s: Floats
    ) -> Floats:
        """Return the log weights of pages, shape (pages, classes), the largest of each 0."""
        mean_s = np.array(self.mean_intervals_s)
        interval_s = np.divide(
            changed_s, changed, out=np.zeros_like(changed), where=changed > LEAST_COUNT
        )
        hits = np.maximum(-np.expm1(-interval_s[:, None] / mean_s), _TINY)
        found = np.where(changed[:, None] > LEAST_COUNT, changed[:, None] * np.log(hits), 0.0)
        found -= exact[:, None] * np.log(mean_s) + exposure_s[:, None] / mean_s
        return np.asarray(found - found.max(axis=1, keepdims=True))

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


PAGE_CLASSES = RateClasses(
    tuple(days * DAY_S for days in (1 / 24, 1 / 4, 1.0, 3.0, 10.0, 30.0, 100.0, 365.0))
)
"""The classes of a config without any: hourly to yearly, each about three times the one before."""
