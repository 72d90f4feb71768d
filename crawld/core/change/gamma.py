"""Special functions of the Gamma distribution that numpy lacks: digamma, CDF and quantile.

Sources: Abramowitz & Stegun 1964, 6.3.5 and 6.3.18 (digamma: recurrence, then the asymptotic
series), 6.5.29 and 6.5.31 (series and continued fraction of the incomplete Gamma function), 26.4.17
(start value of Wilson & Hilferty for the quantile).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_TINY = 1e-300


def digamma(x: FloatArray) -> FloatArray:
    """Return the logarithmic derivative of the Gamma function for x > 0, to about 1e-10.

    >>> bool(abs(digamma(np.array([1.0]))[0] + 0.5772156649) < 1e-9)
    True
    """
    # psi(x) = psi(x + 6) - sum of 1/(x + k), paired so that six terms cost three divisions.
    lifted = x + 6.0
    below = (
        (2.0 * x + 5.0) / (x * (x + 5.0))
        + (2.0 * x + 5.0) / ((x + 1.0) * (x + 4.0))
        + (2.0 * x + 5.0) / ((x + 2.0) * (x + 3.0))
    )
    square = 1.0 / (lifted * lifted)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return np.asarray(np.log(lifted) - 0.5 / lifted - series - below, np.float64)


def gamma_cdf(x: float, shape: float) -> float:
    """Return Pr[G <= x] for G of the given shape > 0 and scale 1."""
    if x <= 0.0:
        return 0.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        return min(1.0, scale * _series(x, shape))
    return max(0.0, 1.0 - scale * _continued_fraction(x, shape))


def _series(x: float, shape: float) -> float:
    term = total = 1.0 / shape
    step = shape
    while abs(term) > abs(total) * 1e-15:
        step += 1.0
        term *= x / step
        total += term
    return total


def _continued_fraction(x: float, shape: float) -> float:
    # Lentz's method needs no guess of the depth.
    b = x + 1.0 - shape
    c, d = 1.0 / _TINY, 1.0 / b
    total = d
    for index in range(1, 10_000):
        a = -index * (index - shape)
        b += 2.0
        d = 1.0 / (a * d + b or _TINY)
        c = b + a / c or _TINY
        total *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return total


def gamma_quantile(probability: float, shape: float) -> float:
    """Return the x with Pr[G <= x] = probability, for G of the given shape > 0 and scale 1.

    The relative error is about 1e-10.

    Raises:
        ValueError: the probability is not inside (0, 1).
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability must lie inside (0, 1), got {probability}")
    low, high = _bracket(probability, shape)
    for _ in range(200):
        middle = math.sqrt(low * high)
        if gamma_cdf(middle, shape) < probability:
            low = middle
        else:
            high = middle
        if high <= low * (1.0 + 1e-12):
            break
    return math.sqrt(low * high)


def _bracket(probability: float, shape: float) -> tuple[float, float]:
    normal = NormalDist().inv_cdf(probability)
    ninth = 1.0 / (9.0 * shape)
    guess = shape * max(1.0 - ninth + normal * math.sqrt(ninth), 1e-3) ** 3
    low = high = max(guess, _TINY)
    while gamma_cdf(low, shape) > probability and low > _TINY:
        low = max(low * 0.25, _TINY)
    while gamma_cdf(high, shape) < probability:
        high *= 2.0
    return low, high
