"""An upper bound of the probability of many requests at once.

Hosts with equally spaced requests and independent phases send, in a short window, a number of
requests that is a sum of independent bits and therefore stays close to its mean. (The bounds of
freshness, UNPOLITE and POLITE, are the objective of an allocation without ceilings and with them:
`allocation.py`.)

Source: PUC-Rio dissertation, chapter 5; Hoeffding, JASA 1963, theorem 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def peak_probability(request_rates: ArrayLike, window_s: float, peak: float) -> float:
    """Return an upper bound on the probability that a window contains at least `peak` requests.

    Args:
        request_rates: requests per second of each host, equally spaced, independent phases.
        window_s: length of the window, seconds; a host sends at most ⌈rate × window⌉ in it.
        peak: number of requests.

    Returns:
        A bound in [0, 1]; 1 at or below the mean.

    Source: Hoeffding, JASA 1963, theorem 1, the exponential (Chernoff) form for unequal bits.

    >>> round(peak_probability([0.1] * 100, 1.0, 30.0), 9)
    2.12e-07
    """
    expected = np.asarray(request_rates, dtype=np.float64) * window_s
    # The whole part of each expectation is certain; the rest of each host is one bit.
    sure = np.floor(expected)
    mean, hosts = float((expected - sure).sum()), len(expected)
    excess = peak - float(sure.sum())
    if excess <= mean or hosts == 0:
        return 1.0
    if excess > hosts:
        return 0.0
    share, p = excess / hosts, mean / hosts
    if p == 0.0:
        return 0.0
    kept = (1.0 - share) * math.log((1.0 - share) / (1.0 - p)) if share < 1.0 else 0.0
    return math.exp(-hosts * (share * math.log(share / p) + kept))
