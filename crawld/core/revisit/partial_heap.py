"""A priority queue over slots that sorts only its first part: 10 bytes a slot, 1 µs an operation.

The index policy rechecks each page repeatedly, before its value can matter. A heap of flat arrays
takes a dozen Python steps each time; the heap of the standard library is fast but costs 100 bytes
an entry. Here the keys of all slots are in one flat array, and only the slots of least key, the
*near end*, are in order: sorted in two more arrays, which are read from their start on, beside a
heap of the few that were pushed since. When both are used up, the next part is found in one
vectorised pass.

Slots leave in the order of key and slot, whatever part they were in.

Invariant: every member whose key is at most `_bound` has an entry (key, slot) in the near end, at
most one in its arrays. An entry whose slot was removed or has another key is skipped.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.heap import ABSENT

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

_NO_SLOTS: Slots = np.zeros(0, np.int64)
_NO_KEYS, _NO_ENTRIES = array("d"), array("q")
"""The near ends of all queues that have none; there may be ten thousand."""

_NEAR_SHARE, _NEAR_LEAST, _NEAR_MOST = 16, 256, 16_384
"""The near end is a sixteenth of the slots, within these limits, so that ordering it is quick."""

_SAMPLED = 65_536
"""With more slots, the bound of the near end is estimated from a sample of this size."""

_STALE_FACTOR = 4
"""The near end is cleaned of stale entries at this multiple of its intended length."""

_TAKEN = 4
"""So many entries are looked at for each slot that is wanted, since some are stale."""

_PUSHED_SHARE = 64
"""A smaller share of the near end is pushed to the heap instead of sorted into the arrays."""


class PartialHeap:
    """Waiting slots, least key first; the interface of `SlotHeap`.

    Attributes:
        least: no slot has a smaller key. It may be less than all keys: −∞ until the next part is
            put in order.
    """

    __slots__ = (
        "_bound",
        "_count",
        "_key",
        "_near_keys",
        "_near_slots",
        "_place",
        "_pushed",
        "_waits",
        "least",
    )

    def __init__(self) -> None:
        self._key = array("d")
        self._waits = bytearray()
        self._count = self._place = 0
        self._forget_order()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._waits) and self._waits[slot] == 1

    def key(self, slot: int) -> float:
        """Return the key of a slot; after its removal, the last key."""
        return self._key[slot]

    def first(self) -> int:
        """Return the slot of least key; `ABSENT` if the queue is empty."""
        keys, waits, pushed = self._key, self._waits, self._pushed
        while self._count:
            place = self._place
            if place < len(self._near_keys):
                key, slot = self._near_keys[place], self._near_slots[place]
                if not pushed or (key, slot) < pushed[0]:
                    if waits[slot] and keys[slot] == key:
                        self.least = key
                        return slot
                    self._place = place + 1
                    continue
            elif not pushed:
                self._refill()
                continue
            key, slot = pushed[0]
            if waits[slot] and keys[slot] == key:
                self.least = key
                return slot
            heappop(pushed)
        self.least = math.inf
        return ABSENT

    def take_due(self, at: float, most: int) -> Slots:
        """Remove slots whose key is at most `at`, the least first, and return them."""
        parts: list[Slots] = []
        while self._count and most > 0:
            if not self._pushed and self._place == len(self._near_keys):
                self._refill()
            self._set_least()
            if self.least > at:
                break
            parts.append(self._take_near(at, most))
            most -= len(parts[-1])
        if self._count:
            self._set_least()
        else:
            self._forget_order()
        return np.concatenate(parts) if parts else _NO_SLOTS

    def _set_least(self) -> None:
        """Set `least` to the least key of the near end, where it has one."""
        place, pushed = self._place, self._pushed
        is_sorted = place < len(self._near_keys)
        if pushed:
            key = pushed[0][0]
            self.least = min(self._near_keys[place], key) if is_sorted else key
        else:
            self.least = self._near_keys[place] if is_sorted else -math.inf

    def _take_near(self, at: float, most: int) -> Slots:
        """Remove slots of the near end as `take_due`; return some of them, or none."""
        place, pushed = self._place, self._pushed
        end = bisect_right(self._near_keys, at, place)
        last: tuple[float, float] = (at, math.inf)
        if end - place > _TAKEN * most:
            end = place + _TAKEN * most
            last = self._near_keys[end - 1], self._near_slots[end - 1]
        keys = np.frombuffer(self._near_keys)[place:end]
        slots = np.frombuffer(self._near_slots, np.int64)[place:end]
        valid = np.flatnonzero(self._are_valid(keys, slots))
        self._place = end
        if len(valid) > most:
            self._place = place + int(valid[most])
            valid = valid[:most]
        slots = slots[valid]
        if pushed and pushed[0] <= last:
            slots = self._with_pushed(keys[valid], slots, last, most)
        np.frombuffer(self._waits, np.bool_)[slots] = False
        self._count -= len(slots)
        return slots

    def _with_pushed(
        self, keys: Floats, slots: Slots, last: tuple[float, float], most: int
    ) -> Slots:
        """Add the slots that were pushed and are due to some of the arrays; leave the last ones."""
        pushed, due = self._pushed, []
        while pushed and pushed[0] <= last:
            due.append(heappop(pushed))
        pushed_keys, pushed_slots = np.array([key for key, _ in due]), np.array([s for _, s in due])
        valid = self._are_valid(pushed_keys, pushed_slots)
        keys = np.concatenate([keys, pushed_keys[valid]])
        slots = np.concatenate([slots, pushed_slots[valid]])
        keys, slots = _in_order(keys, slots)
        for entry in zip(keys[most:].tolist(), slots[most:].tolist(), strict=True):
            heappush(pushed, entry)
        return slots[:most]

    def _are_valid(self, keys: Floats, slots: Slots) -> NDArray[np.bool_]:
        """Return which entries are of slots that wait with this key."""
        waits = np.frombuffer(self._waits, np.bool_)[slots]
        return np.asarray(waits & (np.frombuffer(self._key)[slots] == keys))

    def push(self, slot: int, key: float) -> None:
        """Add a slot, or change its key."""
        while slot >= len(self._waits):
            self._key.append(0.0)
            self._waits.append(0)
        if not self._waits[slot]:
            self._waits[slot] = 1
            self._count += 1
        self._key[slot] = key
        if key < self.least:
            self.least = key
        if key <= self._bound:
            heappush(self._pushed, (key, slot))
            if len(self._pushed) > self._near_most():
                self._drop_stale()

    def remove(self, slot: int) -> None:
        """Remove a slot; do nothing if it is not in the queue."""
        waits = self._waits
        if slot < len(waits) and waits[slot]:
            waits[slot] = 0
            self._count -= 1

    def load(self, keys: Floats) -> None:
        """Add the next `len(keys)` slots at once; a slot with key NaN stays outside the queue."""
        waiting = ~np.isnan(keys)
        self._key.frombytes(np.ascontiguousarray(keys, dtype=np.float64).tobytes())
        self._waits += waiting.astype(np.uint8).tobytes()
        self._count += int(waiting.sum())
        self._forget_order()

    def add(self, slots: Slots, keys: Floats) -> None:
        """Add distinct slots that were in the queue before."""
        waits = np.frombuffer(self._waits, dtype=np.uint8)
        self._count += len(slots) - int(waits[slots].sum())
        waits[slots] = 1
        self.move(slots, keys)

    def move(self, slots: Slots, keys: Floats) -> None:
        """Set the keys of distinct slots, whether they are in the queue or not."""
        held, nearer = np.frombuffer(self._key), keys <= self._bound
        count, near = int(np.count_nonzero(nearer)), len(self._near_keys) - self._place
        held[slots] = keys
        if near + len(self._pushed) + count > self._near_most():
            self._forget_order()
            return
        if count * _PUSHED_SHARE > near:
            place = self._place
            near_keys = np.frombuffer(self._near_keys)[place:]
            near_slots = np.frombuffer(self._near_slots, np.int64)[place:]
            nearer &= np.frombuffer(self._waits, np.bool_)[slots]
            self._set_near(
                np.concatenate([near_keys, keys[nearer]]),
                np.concatenate([near_slots, slots[nearer]]),
            )
            self._set_least()
            return
        for key, slot in zip(keys[nearer].tolist(), slots[nearer].tolist(), strict=True):
            if self._waits[slot]:
                self.least = min(self.least, key)
                heappush(self._pushed, (key, slot))

    def keys(self) -> Floats:
        """Return a copy of the keys of all slots."""
        return np.frombuffer(self._key, dtype=np.float64).copy()

    def rekey(self, keys: Floats) -> None:
        """Replace the keys of all slots, in the queue or not."""
        self._key = array("d", np.ascontiguousarray(keys, dtype=np.float64).tobytes())
        self._forget_order()

    def members(self, first: int = 0, end: int | None = None) -> Slots:
        """Return the members among the slots from `first` to before `end`, ascending."""
        return first + np.flatnonzero(np.frombuffer(self._waits, dtype=np.uint8)[first:end])

    def _near_size(self) -> int:
        return min(max(self._count // _NEAR_SHARE, _NEAR_LEAST), _NEAR_MOST)

    def _near_most(self) -> int:
        return _STALE_FACTOR * (self._near_size() + _NEAR_LEAST)

    def _forget_order(self) -> None:
        self._near_keys, self._near_slots, self._place = _NO_KEYS, _NO_ENTRIES, 0
        self._pushed: list[tuple[float, int]] = []
        self._bound = -math.inf
        self.least = -math.inf if self._count else math.inf

    def _refill(self) -> None:
        """Move the members of least key to the near end, equal keys together."""
        keys, waits = np.frombuffer(self._key), np.frombuffer(self._waits, dtype=np.bool_)
        self._bound = float(self._near_bound(keys, waits))
        slots = np.flatnonzero((keys <= self._bound) & waits)
        self._set_near(keys[slots], slots)

    def _set_near(self, keys: Floats, slots: Slots) -> None:
        """Sort the entries of the arrays; of equal ones only one stays."""
        keys, slots = _in_order(keys, slots)
        self._near_keys, self._near_slots = array("d", keys.tobytes()), array("q", slots.tobytes())
        self._place = 0

    def _near_bound(self, keys: Floats, waits: NDArray[np.bool_]) -> float:
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
        valid = {entry for entry in self._pushed if self._waits[entry[1]]}
        self._pushed[:] = [entry for entry in valid if self._key[entry[1]] == entry[0]]
        heapify(self._pushed)


def _in_order(keys: Floats, slots: Slots) -> tuple[Floats, Slots]:
    """Return entries in the order of key and slot; of equal ones only one."""
    order = np.argsort(keys, kind="stable")
    keys, slots = keys[order], slots[order]
    if (keys[1:] == keys[:-1]).any():
        slots = slots[np.lexsort((slots, keys))]
        single = np.append(True, (keys[1:] != keys[:-1]) | (slots[1:] != slots[:-1]))
        keys, slots = keys[single], slots[single]
    return keys, slots
