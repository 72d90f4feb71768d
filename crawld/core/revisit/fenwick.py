"""Weighted draws without replacement in O(log n), with a binary indexed tree.

Source: Fenwick, Software: Practice and Experience 1994.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.heap import ABSENT


class Fenwick:
    """Non-negative weights of slots; 16 bytes a slot."""

    def __init__(self) -> None:
        self._weight = array("d")
        self._tree = array("d", [0.0])
        self._positive = 0

    def __len__(self) -> int:
        return len(self._weight)

    def set(self, slot: int, weight: float) -> None:
        """Set the weight of a slot; add the slots up to it if needed."""
        while slot >= len(self._weight):
            self._append()
        before = self._weight[slot]
        self._weight[slot] = weight
        self._positive += (weight > 0) - (before > 0)
        at = slot + 1
        while at < len(self._tree):
            self._tree[at] += weight - before
            at += at & -at

    def load(self, weights: NDArray[np.float64]) -> None:
        """Replace all weights."""
        self._weight = array("d", weights.tobytes())
        self._positive = int(np.count_nonzero(weights > 0))
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        at = np.arange(1, len(weights) + 1)
        tree = np.concatenate([[0.0], sums[at] - sums[at - (at & -at)]])
        self._tree = array("d", tree.tobytes())

    def find(self, share: float) -> int:
        """Return the slot at a share in [0, 1) of the total weight; `ABSENT` if the total is 0."""
        if self._positive == 0:
            return ABSENT
        rest = share * self._prefix(len(self._weight))
        at, step = 0, 1 << (len(self._tree).bit_length() - 1)
        while step:
            after = at + step
            if after < len(self._tree) and self._tree[after] <= rest:
                at = after
                rest -= self._tree[after]
            step >>= 1
        return self._near(at)

    def _near(self, slot: int) -> int:
        """Return the first slot of positive weight from a slot on; rounding may have missed it."""
        size = len(self._weight)
        for offset in range(size):
            candidate = (slot + offset) % size
            if self._weight[candidate] > 0:
                return candidate
        return ABSENT

    def _prefix(self, count: int) -> float:
        total = 0.0
        while count:
            total += self._tree[count]
            count &= count - 1
        return total

    def _append(self) -> None:
        self._weight.append(0.0)
        at = len(self._weight)
        total, below = 0.0, at - 1
        stop = at - (at & -at)
        while below > stop:
            total += self._tree[below]
            below &= below - 1
        self._tree.append(total)
