"""A small set of slots with values that finds the best in microseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


_LEAST_ROOM = 16
"""Room at first: there may be ten thousand policies of few pages."""


class Shortlist:
    """Slots and their values in dense arrays; a removed slot is replaced by the last one."""

    def __init__(self) -> None:
        self._slot = np.zeros(_LEAST_ROOM, dtype=np.int64)
        self._value = np.zeros(_LEAST_ROOM)
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, slot: int) -> bool:
        return slot in self._place

    @property
    def slots(self) -> Slots:
        """View of the members, valid until the next change."""
        return self._slot[: len(self._place)]

    @property
    def values(self) -> Floats:
        """Writable view of their values, in the same order."""
        return self._value[: len(self._place)]

    def put(self, slot: int, value: float) -> None:
        """Add a slot, or change its value."""
        place = self._place.get(slot)
        if place is None:
            place = len(self._place)
            if place == len(self._slot):
                self._slot = np.concatenate([self._slot, np.zeros_like(self._slot)])
                self._value = np.concatenate([self._value, np.zeros_like(self._value)])
            self._place[slot] = place
            self._slot[place] = slot
        self._value[place] = value

    def discard(self, slot: int) -> bool:
        """Remove a slot; return whether it was a member."""
        place = self._place.pop(slot, None)
        if place is None:
            return False
        last = len(self._place)
        if place != last:
            moved = int(self._slot[last])
            self._slot[place], self._value[place] = moved, self._value[last]
            self._place[moved] = place
        return True

    def take_all(self) -> Slots:
        """Remove all slots and return them."""
        taken = self.slots.copy()
        self._place.clear()
        return taken

    def best(self) -> tuple[int, float]:
        """Return the slot of highest value and the value; (-1, −inf) if the list is empty."""
        if not self._place:
            return -1, -np.inf
        place = int(self.values.argmax())
        return int(self._slot[place]), float(self._value[place])
