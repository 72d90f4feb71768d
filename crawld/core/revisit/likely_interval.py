"""The interval of a share that draws predict.

It is the shortest one that holds `LEVEL` of the draws. If a few of them widen it much, such as the
edit of a template that half of the pages include, just now, it holds a little less, at least
`LEAST_LEVEL`. Numbers of whole copies make up for that: over many times, such intervals cover
`LEVEL`, and are narrower together.

Source: Casella, Hwang & Robert 1993 (loss functions of set estimation).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.audit import LEVEL

Floats = NDArray[np.float64]

LEAST_LEVEL: Final = 0.9
LEVEL_STEPS: Final = 6
"""The lowest level of an interval, and how many levels are tried."""

WIDTH_COST: Final = 0.5
"""What a width of all copies has to gain in level."""


def likely_interval(copies: Floats, whole: float) -> tuple[float, float]:
    """Return the interval of a number whose width is worth its level.

    Args:
        copies: draws of the number of fresh copies.
        whole: number of all copies.

    >>> likely_interval(np.array([0.0] * 20 + [51.0] * 80), 100.0)
    (0.0, 51.0)
    >>> likely_interval(np.array([0.0] * 6 + [50.0] * 44 + [51.0] * 50), 100.0)
    (50.0, 51.0)
    """
    ordered = np.sort(copies)
    levels = np.linspace(LEVEL, LEAST_LEVEL, LEVEL_STEPS)
    found = [shortest_interval(ordered, level) for level in levels]
    worth = [
        level - WIDTH_COST * (high - low) / whole
        for level, (low, high) in zip(levels, found, strict=True)
    ]
    return found[int(np.argmax(worth))]


def shortest_interval(ordered: Floats, level: float) -> tuple[float, float]:
    """Return the shortest interval that holds a share of ascending values.

    >>> shortest_interval(np.array([0.0, 5.0, 6.0, 7.0]), 0.7)
    (5.0, 7.0)
    """
    inside = min(math.ceil(level * len(ordered) - 1e-9), len(ordered))
    width = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    first = int(width.argmin())
    return float(ordered[first]), float(ordered[first + inside - 1])
