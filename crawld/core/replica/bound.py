"""Bounds of the share of pages that agree, from a random sample without replacement.

Source: hypergeometric bound by inversion of the exact test (Clopper and Pearson 1934, for a finite
population); score bound: Wilson 1927, for samples of which many pages differ.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from math import ceil, exp, lgamma, sqrt
from typing import Final

_DOUBT: Final = 0.05 * (1.0 + 1e-9)
"""A probability of exactly 5 % refutes, whatever the rounding of the logarithms."""

_Z: Final = 1.645

_EXACT: Final = 200
"""From more differing pages on, the exact bound costs too much and the score bound is as good."""


def lower_bound(found: float, of: float) -> float:
    """Return the lower 95 % bound of a share (Wilson 1927).

    >>> round(lower_bound(3, 4), 2), round(lower_bound(41, 44), 2)
    (0.36, 0.84)
    """
    if of <= 0.0:
        return 0.0
    share, square = found / of, _Z * _Z
    middle = share + square / (2 * of)
    spread = _Z * sqrt(max(0.0, share * (1 - share) / of + square / (4 * of * of)))
    return max(0.0, (middle - spread) / (1 + square / of))


def agreeing_share_bound(size: int, compared: int, differing: int) -> float:
    """Return the lower 95 % bound of the share of pages that agree; 0 if none was compared.

    Args:
        size: pages in all.
        compared: pages that were compared.
        differing: pages of these that differ.

    >>> agreeing_share_bound(50, 50, 5), agreeing_share_bound(50, 10, 0)
    (0.9, 0.78)
    """
    return 1.0 - differing_bound(size, compared, differing) / size if compared else 0.0


@lru_cache(maxsize=65_536)
def differing_bound(size: int, sampled: int, differing: int) -> int:
    """Return the upper 95 % bound of the pages of a section that differ.

    It is the largest number of differing pages with which a random sample without replacement
    would show so few of them with a probability above 5 %.

    >>> differing_bound(100, 0, 0), differing_bound(100, 45, 0), differing_bound(100, 100, 3)
    (100, 4, 3)
    """
    if differing > _EXACT and sampled < size:
        # A sample of a finite population counts more, the more of it is seen.
        weight = (size - 1) / (size - sampled)
        share = 1.0 - lower_bound((sampled - differing) * weight, sampled * weight)
        return min(max(differing, ceil(share * size)), size - sampled + differing)

    def is_refuted(most: int) -> bool:
        return _at_most(differing, size, most, sampled) <= _DOUBT

    least, most = differing, size - sampled + differing
    return least + bisect_left(range(least + 1, most + 1), True, key=is_refuted)


def _at_most(found: int, size: int, differing: int, sampled: int) -> float:
    """Return the probability of at most `found` differing pages in a sample."""
    least = max(0, sampled - (size - differing))
    whole = _log_choose(size, sampled)
    return sum(
        exp(_log_choose(differing, k) + _log_choose(size - differing, sampled - k) - whole)
        for k in range(least, min(found, differing, sampled) + 1)
    )


def _log_choose(size: int, chosen: int) -> float:
    return lgamma(size + 1) - lgamma(chosen + 1) - lgamma(size - chosen + 1)
