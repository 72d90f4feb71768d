"""Counts of changes that decay between two of them, for histories of a million changes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PART: Final = 4_096
"""Changes at a time: as Python's floats, a million would take 64 MB."""


def decayed_counts(kept: Floats) -> Floats:
    """Return the count right after each change: c ← c · kept + 1.

    Args:
        kept: share of the count before that is left at each change; 0 at the first of a page.
    """
    counts = np.empty(len(kept))
    count = 0.0
    for begin in range(0, len(kept), PART):
        column = []
        for share in kept[begin : begin + PART].tolist():
            count = count * share + 1.0
            column.append(count)
        counts[begin : begin + PART] = column
    return counts
