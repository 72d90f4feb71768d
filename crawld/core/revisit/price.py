"""Computes revisit frequencies at a price, the inverse of the marginal value of a visit.

A page of change rate λ and weight w is visited at the frequency at which one more visit is worth
the price μ: (w/λ)·g(λ/f) = μ, g(x) = 1 − (1 + x)e^(−x). Solving for x = λ/f directly fails at both
ends: g(x) ≈ x²/2 loses half the digits near 0, and 1 − g(x) is below rounding from x = 40 on. With
L = −ln(1 − g) the equation is x − ln(1 + x) = L, and x is a smooth function of √L on [0, ∞): one
table of cubic pieces gives x to 1e−11 in a few nanoseconds a page.

Source: Cho & Garcia-Molina, TODS 2003, section 5, for the stationarity; the substitution is ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_TABLE_END = 8.0
_TABLE_CELLS = 8192


def _changes_exact(log_share: Floats) -> Floats:
    """Solve x − ln(1 + x) = L by Newton, for the table and beyond its end."""
    x = np.sqrt(2.0 * log_share) + log_share
    for _ in range(60):
        small = x < 0.03
        z = np.where(small, x, 0.0)
        series = z * z * (0.5 - z * (1 / 3 - z * (0.25 - z * (0.2 - z * (1 / 6 - z / 7)))))
        value = np.where(small, series, x - np.log1p(x))
        step = (value - log_share) * (1.0 + x) / np.where(x > 0, x, 1.0)
        x = np.maximum(x - step, 0.5 * x)
    return x


def _cubic_pieces() -> tuple[Floats, Floats, Floats, Floats]:
    t = np.linspace(0.0, _TABLE_END, _TABLE_CELLS + 1)
    h = t[1]
    x = _changes_exact(t * t)
    # dx/dt = 2t(1 + x)/x, and √2 at the origin.
    slope = np.full_like(t, np.sqrt(2.0))
    slope[1:] = 2.0 * t[1:] * (1.0 + x[1:]) / x[1:]
    rise, left, right = np.diff(x), slope[:-1] * h, slope[1:] * h
    return x[:-1].copy(), left, 3 * rise - 2 * left - right, left + right - 2 * rise


_C0, _C1, _C2, _C3 = _cubic_pieces()


def changes_per_visit(log_share: ArrayLike) -> Floats:
    """Return x with x − ln(1 + x) = L: changes per visit if the visit's share is 1 − e^(−L).

    Args:
        log_share: L = −ln(1 − g), ≥ 0, inf allowed.

    Returns:
        x ≥ 0 of the same shape, relative error below 1e-10.

    >>> from crawld.core.revisit.freshness import visit_share
    >>> import math
    >>> round(float(changes_per_visit(-math.log1p(-float(visit_share(1.7))))), 9)
    1.7
    """
    given = np.asarray(log_share, dtype=np.float64)
    t = np.sqrt(given) * (_TABLE_CELLS / _TABLE_END)
    cell = np.minimum(t, _TABLE_CELLS - 1).astype(np.int32)
    u = t - cell
    x = _C3.take(cell)
    for c in (_C2, _C1, _C0):
        x *= u
        x += c.take(cell)
    beyond = given > _TABLE_END**2
    if np.any(beyond):
        x = np.where(beyond, np.inf, x)
        finite = beyond & np.isfinite(given)
        x[finite] = _changes_beyond(given[finite])
    return np.asarray(x)


def _changes_beyond(log_share: Floats) -> Floats:
    x = log_share + 1.0
    for _ in range(20):
        x = log_share + np.log1p(x)
    return x


def revisit_frequency(change_rate: ArrayLike, price: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    """Return the frequency at which one more visit to a page is worth the price.

    Args:
        change_rate: λ, per second, ≥ 0.
        price: μ, weighted fresh seconds per visit, > 0.
        weight: importance w ≥ 0.

    Returns:
        f per second; 0 where w/λ ≤ μ (the page changes too fast for its weight) and where λ = 0.

    Source: Cho & Garcia-Molina, TODS 2003, section 5.
    """
    rate = np.asarray(change_rate, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.asarray(price, dtype=np.float64) * rate / np.asarray(weight, dtype=np.float64)
        log_share = -np.log1p(-np.minimum(share, 1.0))
        frequency = rate / changes_per_visit(log_share)
    return np.where((share < 1.0) & (rate > 0), frequency, 0.0)
