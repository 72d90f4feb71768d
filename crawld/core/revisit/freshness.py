"""Freshness and age of one page with Poisson changes, in closed form.

A copy is fresh while the page has not changed since the visit; its age is the time since the first
change it has missed. Both means depend on the changes per visit r = λ/f and on the order of visits:
equally spaced (fixed), one in each period at a random time (random), or a Poisson process (purely
random). In that order freshness falls and age rises, for every r.

Near r = 0, where a formula cancels, its power series is used. A page with λ = 0 is always fresh;
with f = 0 and λ > 0 it is never fresh and its age is unbounded; with λ = ∞ it is never fresh and as
old as its last visit.

Source: Cho & Garcia-Molina, TODS 2003, section 4; the author's forms 4.1-4.8 of the Oslo thesis.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_SERIES_BELOW = 0.1
_SERIES_TERMS = 12


class Order(StrEnum):
    """How the visits of a page are placed in time."""

    FIXED = "fixed"
    RANDOM = "random"
    PURELY_RANDOM = "purely-random"


def mean_freshness(order: Order, change_rate: ArrayLike, revisit_frequency: ArrayLike) -> Floats:
    """Return the share of time the copy is fresh.

    Args:
        change_rate: λ, per second, ≥ 0, inf allowed.
        revisit_frequency: f, per second, ≥ 0; broadcast against `change_rate`.

    Returns:
        Mean freshness in [0, 1], of the broadcast shape.

    Source: Cho & Garcia-Molina, TODS 2003, table 2.

    >>> round(float(mean_freshness(Order.RANDOM, 1.7, 1.0)), 5)
    0.45227
    """
    r = _changes_per_visit(change_rate, revisit_frequency)
    with np.errstate(invalid="ignore", divide="ignore"):
        if order is Order.PURELY_RANDOM:
            return np.asarray(1.0 / (1.0 + r))
        fixed = np.where(r == 0, 1.0, -np.expm1(-r) / r)
        fixed = np.where(np.isinf(r), 0.0, fixed)
        if order is Order.FIXED:
            return np.asarray(fixed)
        # 1 − F² cancels near r = 0.
        random = np.where(
            r < _SERIES_BELOW, _alternating(r, _RANDOM_FRESHNESS), (1.0 - fixed**2) / r
        )
    return np.asarray(np.where(np.isinf(r), 0.0, random))


def mean_age(order: Order, change_rate: ArrayLike, revisit_frequency: ArrayLike) -> Floats:
    """Return the mean age of the copy in seconds; a fresh copy has age 0.

    Args:
        change_rate: λ, per second, ≥ 0, inf allowed.
        revisit_frequency: f, per second, ≥ 0; broadcast against `change_rate`.

    Returns:
        Mean age in seconds; inf where f = 0 and λ > 0.

    Source: Cho & Garcia-Molina, TODS 2003, table 2; Oslo thesis 4.6-4.8 (whose 4.3 has an extra
    factor t).

    >>> round(float(mean_age(Order.RANDOM, 1.7, 1.0)), 5)
    0.26114
    """
    r = _changes_per_visit(change_rate, revisit_frequency)
    frequency = np.asarray(revisit_frequency, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scaled = _scaled_age(order, r)
        age = np.where(frequency > 0, scaled / frequency, np.inf)
    return np.asarray(np.where(r == 0, 0.0, age))


def random_slot_freshness(change_rate: ArrayLike, share: ArrayLike, slot_s: float) -> Floats:
    """Return the freshness of a page drawn with a fixed probability at each slot of its host.

    Args:
        change_rate: λ, per second, ≥ 0.
        share: probability p that a slot goes to the page, in [0, 1].
        slot_s: time between slots Δ, seconds, > 0.

    Returns:
        p(1 − e^(−λΔ)) / (λΔ(1 − (1 − p)e^(−λΔ))), which tends to 1/(1 + λ/(p/Δ)) as Δ → 0.

    Source: the mean over the geometric number of slots between two visits of the freshness of one
    slot; PUC-Rio dissertation, chapter 5.

    >>> round(float(random_slot_freshness(1.0, 1.0, 1.0)), 6)
    0.632121
    """
    changes = np.asarray(change_rate, dtype=np.float64) * slot_s
    p = np.asarray(share, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        in_slot = np.where(changes == 0, 1.0, -np.expm1(-changes) / changes)
        survive = np.exp(-changes)
        fresh = p * in_slot / (-np.expm1(-changes) + p * survive)
    # A page that never changes is always fresh; a changing one that is never drawn is never fresh.
    fresh = np.where(np.isinf(changes), 0.0, fresh)
    return np.asarray(np.where(changes == 0, 1.0, fresh))


def visit_share(changes: ArrayLike) -> Floats:
    """Return g(x) = 1 − (1 + x)e^(−x) for x ≥ 0, exact to rounding, also near 0 and at ∞.

    >>> float(visit_share(1e-8)) / (1e-16 / 2)  # doctest: +ELLIPSIS
    0.99999999...
    """
    x = np.asarray(changes, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        direct = -np.expm1(-x) - x * np.exp(-x)
        share = np.where(x < _SERIES_BELOW, x * _alternating(x, _SHARE), direct)
    return np.asarray(np.where(np.isinf(x), 1.0, share))


# Power series Σ c_k (−r)^k, each from the Taylor series of e^(−r) and e^(−2r).
_FACTORIALS = np.array([float(math.factorial(k)) for k in range(_SERIES_TERMS + 5)])
_TERMS = np.arange(_SERIES_TERMS)
_SHARE = -_TERMS / _FACTORIALS[_TERMS + 1]  # g(x)/x, times −1 by the sign of odd powers
_RANDOM_FRESHNESS = (2.0 ** (_TERMS + 3) - 2.0) / _FACTORIALS[_TERMS + 3]
_FIXED_AGE = -np.where(_TERMS > 0, 1.0 / _FACTORIALS[_TERMS + 2], 0.0)
_RANDOM_AGE = -np.where(_TERMS > 0, (2.0 ** (_TERMS + 4) - 2.0) / _FACTORIALS[_TERMS + 4], 0.0)


def _alternating(r: Floats, coefficients: Floats) -> Floats:
    total = np.zeros_like(r)
    for c in coefficients[::-1]:
        total = c - r * total
    return total


def _scaled_age(order: Order, r: Floats) -> Floats:
    """Return mean age × f, which depends on r alone."""
    if order is Order.PURELY_RANDOM:
        return np.where(np.isinf(r), 1.0, r / (1.0 + r))
    decay = -np.expm1(-r) / r**2
    if order is Order.FIXED:
        direct, series, limit = 0.5 - 1.0 / r + decay, _FIXED_AGE, 0.5
    else:
        direct = 1.0 / 3.0 + (0.5 - 1.0 / r) ** 2 - decay**2
        series, limit = _RANDOM_AGE, 1.0 / 3.0 + 0.25
    near_zero = np.minimum(r, _SERIES_BELOW)
    scaled = np.where(r < _SERIES_BELOW, _alternating(near_zero, series), direct)
    return np.where(np.isinf(r), limit, scaled)


def _changes_per_visit(change_rate: ArrayLike, revisit_frequency: ArrayLike) -> Floats:
    rate = np.asarray(change_rate, dtype=np.float64)
    frequency = np.asarray(revisit_frequency, dtype=np.float64)
    if np.any(rate < 0) or np.any(frequency < 0):
        raise ValueError("a change rate or a revisit frequency is negative")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        r = rate / frequency
    return np.asarray(np.where(rate == 0, 0.0, r))
