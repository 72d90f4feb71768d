"""Estimators of the Poisson rate of change, from visits and from exact times of changes.

They take one page, or many as arrays of the same shape; rates are per second. Evidence comes in two
kinds that add up: *exact* (a count of changes over an observed time: revisions, or a trusted
Last-Modified) and *censored* (a visit saw changed or unchanged, but not how often).

The maximum likelihood rate is infinite for a page that changed at every visit and 0 for one that
never changed. The Gamma prior fitted to the pages of their host (`prior.py`) gives both a plausible
rate.

Sources: Cho & Garcia-Molina, "Estimating Frequency of Change", TOIT 2003 (naive, bias-reduced,
Last-Modified, irregular intervals); Gamma-Poisson shrinkage is standard empirical Bayes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crawld.core.change.prior import Gamma
from crawld.core.value_type import value_type

FloatArray = npt.NDArray[np.float64]


LEAST_COUNT = 1e-9
"""Censored changes decayed below this count no longer have a mean interval."""


def naive(changed: npt.ArrayLike, exposure_s: npt.ArrayLike) -> FloatArray:
    """Return the observed changes per second; biased low, because a visit sees at most one.

    Args:
        changed: number of visits that saw a change, any shape.
        exposure_s: time between the first and the last visit, > 0, same shape.

    Returns:
        Rates per second, same shape. With n = 10 daily visits and one change a day: 0.632 a day.

    Source: Cho & Garcia-Molina, TOIT 2003, section 4.1.
    """
    return np.asarray(changed, np.float64) / np.asarray(exposure_s, np.float64)


def bias_reduced(
    changed: npt.ArrayLike, visits: npt.ArrayLike, interval_s: npt.ArrayLike
) -> FloatArray:
    """Return the bias-reduced rate for visits at a regular interval.

    Args:
        changed: visits that saw a change, X, 0 <= X <= n.
        visits: visits that could have seen one, n.
        interval_s: time between two visits, > 0.

    Returns:
        Rates per second, -ln((n - X + 0.5) / (n + 0.5)) / I; finite also for X = n. Their mean is
        1.00308 for n = 10 and a true rate of one change per interval (the paper's simulation:
        1.002).

    Source: Cho & Garcia-Molina, TOIT 2003, section 4.2.

    >>> round(float(bias_reduced(6, 10, 1.0)), 4)
    0.8473
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return -np.log((n - x + 0.5) / (n + 0.5)) / np.asarray(interval_s, np.float64)


def irregular_mle(changed_s: FloatArray, unchanged_s: FloatArray) -> float:
    """Return the maximum-likelihood rate of one page visited at irregular intervals.

    Solves sum over changed of t / (e^(rate t) - 1) = sum over unchanged of t. The left side falls
    from infinity to 0, so the root is unique; it is found by bisection.

    Args:
        changed_s: intervals that saw a change, seconds, > 0.
        unchanged_s: intervals that saw none, seconds, >= 0.

    Returns:
        The rate per second; 0.0 if nothing changed, `inf` if every interval saw a change.

    Source: Cho & Garcia-Molina, TOIT 2003, section 5 (irregular intervals).
    """
    unchanged_total = float(unchanged_s.sum())
    if changed_s.size == 0:
        return 0.0
    if unchanged_total <= 0.0 or math.isinf(changed_s.size / unchanged_total):
        return math.inf
    # t/(e^(rate t) - 1) lies between 1/rate - t and 1/rate: that brackets the root.
    high = changed_s.size / unchanged_total
    low = changed_s.size / (unchanged_total + float(changed_s.sum()))
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        exponent = np.minimum(middle * changed_s, 700.0)
        if float((changed_s / np.expm1(exponent)).sum()) > unchanged_total:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def last_modified_mle(changed: npt.ArrayLike, exposure_s: npt.ArrayLike) -> FloatArray:
    """Return the maximum-likelihood rate from visits that learn the time of the last change.

    Args:
        changed: visits that saw a change, X.
        exposure_s: sum over visits of min(time back to the last change, interval), > 0.

    Returns:
        Rates per second, X / T; in the same case 1.07420 on average (the paper's simulation:
        1.077).

    Source: Cho & Garcia-Molina, TOIT 2003, section 4.3.
    """
    return naive(changed, exposure_s)


def last_modified_bias_reduced(
    changed: npt.ArrayLike, visits: npt.ArrayLike, exposure_s: npt.ArrayLike
) -> FloatArray:
    """Return the bias-reduced rate from visits that learn the time of the last change.

    Args:
        changed: visits that saw a change, X, 0 <= X <= n.
        visits: visits that could have seen one, n.
        exposure_s: as in `last_modified_mle`, > 0.

    Returns:
        Rates per second, ((X - 1) - X / (n ln(1 - X/n))) / T; 0 for X = 0, (X - 1)/T for X = n. In
        the same case 1.00863 on average (the paper's simulation: 1.012).

    Source: Cho & Garcia-Molina, TOIT 2003, section 4.3.
    """
    x, n = np.broadcast_arrays(np.asarray(changed, np.float64), np.asarray(visits, np.float64))
    share = np.where(n > 0, x / np.maximum(n, 1.0), 0.0)
    inside = (x > 0) & (x < n)
    logarithm = np.log1p(-np.where(inside, share, 0.5))
    corrected = np.where(inside, (x - 1.0) - x / (np.maximum(n, 1.0) * logarithm), x - 1.0)
    return np.where(x > 0, corrected, 0.0) / np.asarray(exposure_s, np.float64)


def exact_decayed(
    changed_at: FloatArray, *, observed_from: float, at: float, memory_s: float
) -> float:
    """Return the rate from exact times of changes, with more weight on recent ones.

    Args:
        changed_at: times of changes, Unix seconds; those outside (observed_from, at] are ignored.
        observed_from: time since which every change is known.
        memory_s: time constant of the decay, > 0; `inf` weighs all equally.

    Returns:
        Decayed count divided by decayed exposure, per second; 0.0 without any exposure.
    """
    span_s = at - observed_from
    if span_s <= 0.0:
        return 0.0
    seen = changed_at[(changed_at > observed_from) & (changed_at <= at)]
    if math.isinf(memory_s):
        return float(seen.size) / span_s
    count = float(np.exp((seen - at) / memory_s).sum())
    return count / (memory_s * -math.expm1(-span_s / memory_s))


@value_type
class RateEvidence:
    """Sufficient statistics of one page: exact and censored observations.

    Attributes:
        exact_changes: changes counted exactly.
        exact_exposure_s: time over which they were counted.
        changed: visits that saw "changed", but not how often.
        changed_s: sum of their intervals; each is taken as their mean.
        unchanged_s: sum of the intervals of visits that saw "unchanged".
    """

    exact_changes: float = 0.0
    exact_exposure_s: float = 0.0
    changed: float = 0.0
    changed_s: float = 0.0
    unchanged_s: float = 0.0


def expected_changes(expected: float) -> float:
    """Return E[N | N >= 1] of a Poisson number N with the given mean: x / (1 - e^-x), 1 at 0."""
    if expected < 1e-6:
        return 1.0 + 0.5 * expected
    return expected / -math.expm1(-expected)


def posterior(prior: Gamma, evidence: RateEvidence, *, start: float | None = None) -> Gamma:
    """Return the Gamma posterior of a rate from exact and censored evidence.

    A censored change counts as its expected number of changes at the rate itself (EM). The map is a
    contraction, because x/(1 - e^-x) has a slope below 1, so Newton's method finds its one fixed
    point, the mean of the posterior. The spread follows from the curvature there. Without censored
    changes the result is conjugate and therefore exact.

    Args:
        start: a rate near the result, per second; saves a step or two.

    Source: Dempster, Laird & Rubin, JRSS B 1977 (EM for exponential families); our application.
    """
    shape = prior.shape + evidence.exact_changes
    exposure_s = (
        prior.exposure_s + evidence.exact_exposure_s + evidence.changed_s + evidence.unchanged_s
    )
    x_count = evidence.changed
    if x_count < LEAST_COUNT or evidence.changed_s <= 0.0:
        return Gamma(shape + x_count, exposure_s)
    interval_s = evidence.changed_s / x_count
    rate = start if start is not None and start > 0.0 else (shape + x_count) / exposure_s
    for _ in range(60):
        expected = rate * interval_s
        gap = shape + x_count * expected_changes(expected) - rate * exposure_s
        slope = x_count * interval_s * _expected_slope(expected) - exposure_s
        step = gap / slope
        rate = rate - step if rate > step else 0.5 * rate
        if abs(step) <= 1e-10 * rate:
            break
    lost = x_count * _information(rate * interval_s)
    certain = max(shape + lost, 1e-3)
    return Gamma(certain, certain / rate)


def _expected_slope(x: float) -> float:
    """Return the derivative of x / (1 - e^-x): 1/2 at 0, 1 at infinity."""
    if x < 1e-3:
        return 0.5 + x / 6.0
    if x > 40.0:
        return 1.0
    kept = -math.expm1(-x)
    return (kept - x * math.exp(-x)) / (kept * kept)


def _information(x: float) -> float:
    """Return rate^2 times the Fisher information of one "changed": x^2 e^x / (e^x - 1)^2."""
    if x < 1e-3:
        return 1.0 - x * x / 12.0
    return x * x * math.exp(-x) / math.expm1(-x) ** 2 if x < 700.0 else 0.0
