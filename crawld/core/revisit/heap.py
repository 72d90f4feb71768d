"""A binary heap over slots with changeable keys and removable members: 16 bytes a slot.

The standard heap of tuples costs 120 bytes an entry and cannot move one. Here the keys of the
slots, the heap of slots and the place of each slot in it are three flat arrays, so that finding the
first slot takes O(1), and a changed key or a removal O(log n).

Invariant: for every place p > 0 of the heap, the key at its parent (p − 1) // 2 is not larger.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

ABSENT = -1
"""Place of a slot that is not in the heap; returned for "no slot"."""


class SlotHeap:
    """Waiting slots, least key first."""

    def __init__(self) -> None:
        self._key = array("d")
        self._heap = array("i")
        self._place = array("i")

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._place) and self._place[slot] != ABSENT

    def key(self, slot: int) -> float:
        """Return the key of a slot; after its removal, the last key."""
        return self._key[slot]

    def first(self) -> int:
        """Return the slot of least key; `ABSENT` if the heap is empty."""
        return self._heap[0] if self._heap else ABSENT

    def push(self, slot: int, key: float) -> None:
        """Add a slot, or change its key."""
        while slot >= len(self._place):
            self._key.append(0.0)
            self._place.append(ABSENT)
        place = self._place[slot]
        if place == ABSENT:
            place = len(self._heap)
            self._heap.append(slot)
        rising = place == len(self._heap) - 1 or key < self._key[slot]
        self._key[slot] = key
        if rising:
            self._rise(slot, place)
        else:
            self._sink(slot, place)

    def move(self, slot: int, key: float) -> None:
        """Set the key of a slot, whether it is in the heap or not."""
        if slot in self:
            self.push(slot, key)
        else:
            self._key[slot] = key

    def remove(self, slot: int) -> None:
        """Remove a slot; do nothing if it is not in the heap."""
        if slot not in self:
            return
        place = self._place[slot]
        self._place[slot] = ABSENT
        last = self._heap.pop()
        if last == slot:
            return
        parent = (place - 1) >> 1
        if place and self._key[last] < self._key[self._heap[parent]]:
            self._rise(last, place)
        else:
            self._sink(last, place)

    def load(self, keys: NDArray[np.float64]) -> None:
        """Add the next `len(keys)` slots at once; a slot with key NaN stays outside the heap."""
        first = len(self._place)
        self._key.frombytes(np.ascontiguousarray(keys, dtype=np.float64).tobytes())
        self._place.frombytes(np.full(len(keys), ABSENT, dtype=np.int32).tobytes())
        entering = first + np.flatnonzero(~np.isnan(keys))
        members = np.concatenate([np.frombuffer(self._heap, dtype=np.int32), entering])
        self._rebuild(members.astype(np.int32))

    def _rebuild(self, members: NDArray[np.int32]) -> None:
        # A sorted array is a heap, and sorting a million keys takes 0.1 s; sifting takes seconds.
        order = np.argsort(np.frombuffer(self._key, dtype=np.float64)[members], kind="stable")
        members = members[order]
        place = np.frombuffer(self._place, dtype=np.int32).copy()
        place[members] = np.arange(len(members), dtype=np.int32)
        self._heap = array("i", members.tobytes())
        self._place = array("i", place.tobytes())

    def _rise(self, slot: int, place: int) -> None:
        heap, keys, places = self._heap, self._key, self._place
        key = keys[slot]
        while place:
            parent = (place - 1) >> 1
            above = heap[parent]
            if keys[above] <= key:
                break
            heap[place] = above
            places[above] = place
            place = parent
        heap[place] = slot
        places[slot] = place

    def _sink(self, slot: int, place: int) -> None:
        heap, keys, places = self._heap, self._key, self._place
        key, size = keys[slot], len(heap)
        child = 2 * place + 1
        while child < size:
            if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
                child += 1
            below = heap[child]
            if keys[below] >= key:
                break
            heap[place] = below
            places[below] = place
            place, child = child, 2 * child + 1
        heap[place] = slot
        places[slot] = place
