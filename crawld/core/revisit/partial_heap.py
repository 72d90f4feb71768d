"""A priority queue over slots that sorts only its first part: 9 bytes a slot, 1 µs an operation.

The index policy rechecks each page repeatedly, before its value can matter. A heap of flat arrays
takes a dozen Python steps each time; the heap of the standard library is fast but costs 100 bytes
an entry. Here the keys of all slots are in one flat array, and only the slots of least key are in a
heap. When it is empty, the next part is found in one vectorised pass.

Invariant: every member whose key is at most `_bound` has an entry (key, slot) in `_near`. An entry
whose slot was removed or has another key is skipped.
"""

from __future__ import annotations

import math
from array import array
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.heap import ABSENT

_NEAR_SHARE, _NEAR_LEAST, _NEAR_MOST = 16, 256, 16_384
"""The near end is a sixteenth of the slots, within these limits, so that ordering it is quick."""

_SAMPLED = 65_536
"""With more slots, the bound of the near end is estimated from a sample of this size."""

_STALE_FACTOR = 4
"""The near end is cleaned of stale entries at this multiple of its intended length."""


class PartialHeap:
    """Waiting slots, least key first; the interface of `SlotHeap`."""

    __slots__ = ("_bound", "_count", "_key", "_near", "_waits")

    def __init__(self) -> None:
        self._key = array("d")
        self._waits = bytearray()
        self._count = 0
        self._near: list[tuple[float, int]] = []
        self._bound = -math.inf

    def __len__(self) -> int:
        return self._count

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._waits) and self._waits[slot] == 1

    def key(self, slot: int) -> float:
        """Return the key of a slot; after its removal, the last key."""
        return self._key[slot]

    def first(self) -> int:
        """Return the slot of least key; `ABSENT` if the queue is empty."""
        near, keys, waits = self._near, self._key, self._waits
        while self._count:
            while near:
                key, slot = near[0]
                if waits[slot] and keys[slot] == key:
                    return slot
                heappop(near)
            near = self._refill()
        return ABSENT

    def is_due(self, at: float) -> bool:
        """Whether a slot may have this key or a smaller one; if not, none has."""
        near = self._near
        return near[0][0] <= at if near else self._count > 0

    def take_due(self, at: float, most: int) -> list[int]:
        """Remove slots whose key is at most `at`, the least first, and return them."""
        taken: list[int] = []
        near, keys, waits = self._near, self._key, self._waits
        while len(taken) < most and self._count:
            if not near:
                near = self._refill()
            key, slot = near[0]
            if key > at:
                break
            heappop(near)
            if waits[slot] and keys[slot] == key:
                waits[slot] = 0
                self._count -= 1
                taken.append(slot)
        return taken

    def push(self, slot: int, key: float) -> None:
        """Add a slot, or change its key."""
        while slot >= len(self._waits):
            self._key.append(0.0)
            self._waits.append(0)
        if not self._waits[slot]:
            self._waits[slot] = 1
            self._count += 1
        self._key[slot] = key
        if key <= self._bound:
            heappush(self._near, (key, slot))
            if len(self._near) > self._near_most():
                self._drop_stale()

    def remove(self, slot: int) -> None:
        """Remove a slot; do nothing if it is not in the queue."""
        if slot in self:
            self._waits[slot] = 0
            self._count -= 1

    def load(self, keys: NDArray[np.float64]) -> None:
        """Add the next `len(keys)` slots at once; a slot with key NaN stays outside the queue."""
        waiting = ~np.isnan(keys)
        self._key.frombytes(np.ascontiguousarray(keys, dtype=np.float64).tobytes())
        self._waits += waiting.astype(np.uint8).tobytes()
        self._count += int(waiting.sum())
        self._forget_order()

    def add(self, slots: NDArray[np.int64], keys: NDArray[np.float64]) -> None:
        """Add distinct slots that were in the queue before."""
        waits = np.frombuffer(self._waits, dtype=np.uint8)
        self._count += len(slots) - int(waits[slots].sum())
        waits[slots] = 1
        self.move(slots, keys)

    def move(self, slots: NDArray[np.int64], keys: NDArray[np.float64]) -> None:
        """Set the keys of distinct slots, whether they are in the queue or not."""
        np.frombuffer(self._key, dtype=np.float64)[slots] = keys
        nearer = keys <= self._bound
        if len(self._near) + np.count_nonzero(nearer) > self._near_most():
            self._forget_order()
            return
        for key, slot in zip(keys[nearer].tolist(), slots[nearer].tolist(), strict=True):
            if self._waits[slot]:
                heappush(self._near, (key, slot))

    def keys(self) -> NDArray[np.float64]:
        """Return a copy of the keys of all slots."""
        return np.frombuffer(self._key, dtype=np.float64).copy()

    def rekey(self, keys: NDArray[np.float64]) -> None:
        """Replace the keys of all slots, in the queue or not."""
        self._key = array("d", np.ascontiguousarray(keys, dtype=np.float64).tobytes())
        self._forget_order()

    def members(self, first: int = 0, end: int | None = None) -> NDArray[np.int64]:
        """Return the members among the slots from `first` to before `end`, ascending."""
        return first + np.flatnonzero(np.frombuffer(self._waits, dtype=np.uint8)[first:end])

    def _near_size(self) -> int:
        return min(max(self._count // _NEAR_SHARE, _NEAR_LEAST), _NEAR_MOST)

    def _near_most(self) -> int:
        return _STALE_FACTOR * (self._near_size() + _NEAR_LEAST)

    def _forget_order(self) -> None:
        self._near, self._bound = [], -math.inf

    def _refill(self) -> list[tuple[float, int]]:
        """Move the members of least key to the near end, equal keys together."""
        keys, waits = np.frombuffer(self._key), np.frombuffer(self._waits, dtype=np.bool_)
        bound = self._near_bound(keys, waits)
        slots = np.flatnonzero((keys <= bound) & waits)
        slots = slots[np.argsort(keys[slots], kind="stable")]
        # A sorted list is a heap.
        self._near = list(zip(keys[slots].tolist(), slots.tolist(), strict=True))
        self._bound = float(bound)
        return self._near

    def _near_bound(self, keys: NDArray[np.float64], waits: NDArray[np.bool_]) -> float:
        """Return a key with about the wanted share of the members (at least one) at or below it."""
        share = self._near_size()
        if share >= self._count:
            return math.inf
        stride = max(len(keys) // _SAMPLED, 1)
        sample = keys[::stride][waits[::stride]]
        if len(sample) * stride < self._count // 2:
            sample = keys[waits]  # few of the slots wait, or unevenly
        rank = share * len(sample) // self._count
        return float(np.partition(sample, rank)[rank])

    def _drop_stale(self) -> None:
        valid = {entry for entry in self._near if self._waits[entry[1]]}
        self._near = [entry for entry in valid if self._key[entry[1]] == entry[0]]
        heapify(self._near)
