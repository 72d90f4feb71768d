"""Bounds of the number of pages that differ, from a random sample without replacement.

Source: hypergeometric bound by inversion of the exact test (Clopper and Pearson 1934, for a finite
population).
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma
from typing import Final

_DOUBT: Final = 0.05


@lru_cache(maxsize=65_536)
def differing_bound(size: int, sampled: int, differing: int) -> int:
    """Return the upper 95 % bound of the pages of a section that differ.

    It is the largest number of differing pages with which a random sample without replacement
    would show so few of them with a probability above 5 %.

    >>> differing_bound(100, 0, 0), differing_bound(100, 45, 0), differing_bound(100, 100, 3)
    (100, 4, 3)
    """
    low, high = differing, size - sampled + differing
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(differing, size, middle, sampled) > _DOUBT:
            low = middle
        else:
            high = middle - 1
    return low


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
