"""Copies that no source reports: how likely each is stale, and how far the models may be wrong.

The rate of a page is known with error: behind it are some changes, seen or assumed, so that it has
a Gamma distribution. A time in which a source reported no change of the page is evidence, too. The
probability of a change is that of the mixture: a page that has not changed for long probably is one
of those that never do.

What visits to such copies found corrects the models by a factor that all pages of the site share,
and by a share of copies that the models do not explain. Before the first visits the factor may be
anything: a mirror that is minutes old knows nothing of its pages.

Source: Gamma-Poisson mixture (Gelman et al., Bayesian Data Analysis, chapter 2); Bayes' rule on a
grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.quiet_visits import QuietVisits

Floats = NDArray[np.float64]

FACTORS = 2.0 ** np.arange(-7.0, 11.1, 0.5)
"""Factors of the rates of the models, from where they are 100 times too high to the reverse."""

_FACTOR_SPREAD = 2.0
"""Standard deviation of the logarithm of the factor, before any visit."""

_FACTOR_WEIGHTS = np.exp(-0.5 * (np.log(FACTORS) / _FACTOR_SPREAD) ** 2)

# A change or so has another reason than a source's silence: one alone, found in a short time, must
# not mean that a part of the copies is stale.
_ODD_CHANGES = 0.15

# Mostly the model explains what audits find; else a source is silent, and any share is possible.
EXCESSES = np.array([0.0, 0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95])
"""Shares of stale copies that the models do not explain."""

_EXCESS_WEIGHTS = np.array(
    [0.86, 0.05, 0.03, 0.02, 0.012, 0.008, 0.006, 0.004, 0.003, 0.003, 0.002, 0.002]
)

_NEW_EXCESS_WEIGHTS = np.array([0.56] + [0.04] * (len(EXCESSES) - 1))
_NEW_VISITS = 20.0
"""The same before visits, at a site that no source reports on: they forget it after so many."""


@dataclass(frozen=True, slots=True)
class QuietCopies:
    """Sampled copies without a hint; arrays of shape (copies,).

    Attributes:
        rate: changes per second by the models.
        changes: how many changes, seen or assumed, are behind each rate; > 0.
        covered_s: time after the last visit that the sources have reported, seconds.
        open_s: time after the last visit that they have not reported yet, seconds.
    """

    rate: Floats
    changes: Floats
    covered_s: Floats
    open_s: Floats

    def __len__(self) -> int:
        return len(self.rate)

    def after_silence(self, reported_share: float) -> QuietCopies:
        """Return them with the rates that follow from no report in `covered_s`.

        Args:
            reported_share: share of changes that the sources report, 0 to 1.
        """
        exposure_s = self.changes / np.maximum(self.rate, 1e-300)
        return replace(self, rate=self.changes / (exposure_s + reported_share * self.covered_s))

    def unchanged(self, expected: Floats) -> Floats:
        """Return the probability of each copy that no change came where so many are expected."""
        return np.asarray((1.0 + expected / self.changes) ** -self.changes)


def correction(visits: QuietVisits, excesses: Floats, missed_share: float) -> Floats:
    """Return the probability of each factor (rows) and excess rate (columns) by what visits found.

    Args:
        excesses: rates of changes that the models do not explain, 1/s, one for each of `EXCESSES`.
        missed_share: share of changes that no source reports.
    """
    count = max(visits.count, 1e-9)
    missed = min(missed_share * visits.expected / count, 1.0 - 1e-9)
    found = count * -np.expm1(FACTORS * np.log1p(-missed))
    mean = found[:, None] + excesses * visits.exposure_s + _ODD_CHANGES
    likelihood = visits.stale * np.log(mean) - mean
    new = math.exp(-visits.count / _NEW_VISITS) if missed_share == 1.0 else 0.0
    prior = new * _NEW_EXCESS_WEIGHTS + (1.0 - new) * _EXCESS_WEIGHTS
    weight = np.outer(_FACTOR_WEIGHTS, prior) * np.exp(likelihood - likelihood.max())
    return np.asarray(weight / weight.sum())


def between_factors(values: Floats, factor: NDArray[np.int64], part: Floats) -> Floats:
    """Return values between those of a factor and of the next one, in parts of the distance.

    Args:
        values: one for each factor (last axis), and each column if there are some.
        factor: numbers of factors. part: 0 to 1.
    """
    after = np.minimum(factor + 1, len(FACTORS) - 1)
    return np.asarray(values[factor] * (1.0 - part) + values[after] * part)
