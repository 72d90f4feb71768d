"""The hinted pages of one policy: beliefs, visit values, due times.

Values change slowly: with very many pages, one block is valued at a time, and the best page is
found from the maxima of the blocks. What a belief says, and what a visit is worth by it, is in
`hint_belief.py`.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.due import Due
from crawld.core.revisit.hint_belief import WIDTH, Belief

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

SAME_TIME_S = 1.0
"""Pages due so soon after one another are visited in the order of their values: one poll reported
them."""

BLOCK = 512
"""Pages valued at once; with more hinted pages, the next block follows at a later pick."""

REVALUE_S = 3.0
"""Least time between two valuations; a value grows as 2d + 600 s, about one percent in this
time."""

NEW_PER_PICK = 8 * BLOCK
"""New hinted pages valued in one pick, so that a flood of hints does not delay it."""

STALE_SHARE = 0.03
"""Value per second since the last visit of a hinted page: one that always changes again soon would
otherwise never be visited. Where all are edited without end, it waits for about 1/0.03 visits to
each of the others. The lively articles of 2006 are as fresh with it as without."""

_INITIAL_ROOM = 16
"""Initial room for hinted pages."""

_NO_VALUE = -math.inf


class HintedPages:
    """The hinted pages of one policy: slots of the policy, beliefs, visit values, due times."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        # Empty before the first hint: there may be ten thousand policies without one.
        self._slot = np.zeros(0, np.int64)
        self._rows = np.zeros((0, WIDTH))
        self._value = np.zeros(0)
        self._due = np.zeros((0, len(Due._fields)))
        self._block_max = np.full(1, _NO_VALUE)
        self._new: set[int] = set()
        self._next_block = 0
        self._revalued_at = -math.inf

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, slot: int) -> bool:
        return slot in self._place

    def belief(self, slot: int) -> Belief | None:
        """Return the belief about a page; None if it has no hint."""
        place = self._place.get(slot)
        return None if place is None else Belief.from_row(self._rows[place].tolist())

    def put(self, slot: int, belief: Belief, due: Due) -> None:
        """Add a page, or replace its belief; it is valued at the next pick.

        Args:
            due: a page that is held keeps earlier times.
        """
        place = self._place.get(slot)
        if place is None:
            place = self._place[slot] = len(self._place)
            if place == len(self._slot):
                self._extend(max(place, _INITIAL_ROOM))
            self._slot[place], self._due[place] = slot, due
        self._rows[place] = belief.as_row()
        self._due[place] = np.minimum(due, self._due[place])
        self._new.add(slot)

    def discard(self, slot: int) -> tuple[Belief, Due] | None:
        """Remove a page; return its belief and until when it should be visited."""
        place = self._place.pop(slot, None)
        if place is None:
            return None
        self._new.discard(slot)
        belief, due = Belief.from_row(self._rows[place].tolist()), Due(*self._due[place].tolist())
        end = len(self._place)
        if place != end:
            moved = int(self._slot[end])
            self._slot[place], self._place[moved] = moved, place
            self._rows[place], self._value[place] = self._rows[end], self._value[end]
            self._due[place] = self._due[end]
        self._value[end] = _NO_VALUE
        self._update_block_max({place // BLOCK, end // BLOCK})
        return belief, due

    def _extend(self, more: int) -> None:
        self._slot = np.concatenate([self._slot, np.zeros(more, np.int64)])
        self._rows = np.concatenate([self._rows, np.zeros((more, WIDTH))])
        self._value = np.concatenate([self._value, np.full(more, _NO_VALUE)])
        self._due = np.concatenate([self._due, np.zeros((more, len(Due._fields)))])
        blocks = -(-len(self._slot) // BLOCK) - len(self._block_max)
        self._block_max = np.concatenate([self._block_max, np.full(blocks, _NO_VALUE)])

    def _update_block_max(self, blocks: set[int]) -> None:
        for block in blocks:
            self._block_max[block] = self._value[block * BLOCK : (block + 1) * BLOCK].max()

    # --- values ---------------------------------------------------------------------------------

    def due(self, at: float) -> Places:
        """Return the places to be valued now: the new ones, and the next block (or all, if few)."""
        count = len(self._place)
        some = [self._place[slot] for slot in islice(self._new, NEW_PER_PICK)]
        new = np.array(some, np.int64)
        if at < self._revalued_at + REVALUE_S and (len(new) == 0 or count > BLOCK):
            return new
        self._revalued_at = at
        if count <= BLOCK:
            return np.arange(count)
        first, self._next_block = self._next_block, self._next_block + BLOCK
        if first >= count:
            first, self._next_block = 0, BLOCK
        return np.union1d(new, np.arange(first, min(first + BLOCK, count)))

    def slots(self, places: Places) -> Places:
        """Return the slots at places."""
        return self._slot[places]

    def beliefs(self, places: Places) -> Floats:
        """Return the beliefs at places, shape (WIDTH, places)."""
        return self._rows[places].T

    def set_values(self, places: Places, value: Floats) -> None:
        """Set the values of pages, seconds, in the order of `places`."""
        self._value[places] = value
        self._new.difference_update(self._slot[places].tolist())
        self._update_block_max(set((places // BLOCK).tolist()))

    def due_at(self, at: float) -> float:
        """Return the earliest time until which a page should be visited; ∞ if no page is hinted."""
        return float(self._due_times(at).min(initial=math.inf))

    def first_due(self, at: float) -> int:
        """Return the page that is due first; of those due with it, the one of highest value."""
        due_at = self._due_times(at)
        places = np.flatnonzero(due_at <= due_at.min() + SAME_TIME_S)
        return int(self._slot[places[self._value[places].argmax()]])

    def _due_times(self, at: float) -> Floats:
        """Return until when each page should be visited, by place."""
        soon_at, due_at, missed_at = self._due[: len(self._place)].T
        late = np.where(due_at < at, missed_at, due_at)
        return np.asarray(np.where(soon_at < at, late, soon_at))

    def best(self) -> tuple[int, float]:
        """Return the slot of highest value and the value; (-1, −inf) if no page is hinted."""
        if not self._place:
            return -1, _NO_VALUE
        block = int(self._block_max.argmax()) * BLOCK
        place = block + int(self._value[block : block + BLOCK].argmax())
        return int(self._slot[place]), float(self._value[place])
