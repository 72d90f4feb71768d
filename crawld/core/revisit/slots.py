"""Maps page keys to dense slot numbers, at twelve bytes a page.

A policy keeps the state of its pages in flat arrays indexed by slot. A dict from page key to slot
would cost more than 100 bytes a page; here the keys are sorted in one array beside their slots and
found by bisection. Keys added one by one go to a small dict, which is merged into the sorted arrays
when it has grown to a share of them, so that an addition costs O(1) amortised.

Invariants: a live key has exactly one slot; a freed slot is the next one assigned; the arrays of
the owner are as long as `capacity`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MERGE_LEAST = 1024
_MERGE_SHARE = 32
"""Added keys are merged once they are more than 1,024 and 1/32 of all: a few bytes a page."""

FREE = -1
"""Returned for a key that is not held."""


class PageSlots:
    """The pages of one policy, each with a slot in the owner's arrays."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._slot_of_key = array("i")
        self._added: dict[int, int] = {}
        self._freed: list[int] = []
        self._live = 0
        self.page_at = array("q")
        """Page key of each slot; stale if the slot is free."""

    def __len__(self) -> int:
        return self._live

    def __contains__(self, page: int) -> bool:
        return self.find(page) != FREE

    def __iter__(self) -> Iterator[int]:
        """Yield the slots in use, in order of page key within the merged part."""
        yield from (slot for slot in self._slot_of_key if slot != FREE)
        yield from self._added.values()

    @property
    def capacity(self) -> int:
        """Number of slots ever assigned: the length of the owner's arrays."""
        return len(self.page_at)

    def find(self, page: int) -> int:
        """Return the slot of a page, or `FREE`."""
        slot = self._added.get(page) if self._added else None
        if slot is not None:
            return slot
        keys = self._keys
        at = bisect_left(keys, page)
        if at < len(keys) and keys[at] == page:
            return self._slot_of_key[at]
        return FREE

    def find_many(self, pages: ArrayLike) -> NDArray[np.int64]:
        """Return the slots of many pages in the same order, `FREE` for those not held."""
        wanted = np.asarray(pages, dtype=np.int64)
        slots = np.full(len(wanted), FREE, dtype=np.int64)
        if len(self._keys):
            keys = np.frombuffer(self._keys, dtype=np.int64)
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            merged = np.frombuffer(self._slot_of_key, dtype=np.int32)[at]
            slots = np.where(keys[at] == wanted, merged, FREE).astype(np.int64)
        if self._added:
            for place in np.flatnonzero(slots == FREE).tolist():
                slots[place] = self._added.get(int(wanted[place]), FREE)
        return slots

    def add(self, page: int) -> int:
        """Assign a slot to a page that is not held, and return it."""
        if self._freed:
            slot = self._freed.pop()
            self.page_at[slot] = page
        else:
            slot = len(self.page_at)
            self.page_at.append(page)
        self._live += 1
        self._added[page] = slot
        if len(self._added) > max(_MERGE_LEAST, len(self._keys) // _MERGE_SHARE):
            self._merge()
        return slot

    def remove(self, page: int) -> int:
        """Free the slot of a page and return it; `FREE` if the page is not held."""
        slot = self._added.pop(page, FREE)
        if slot == FREE:
            at = bisect_left(self._keys, page)
            if at == len(self._keys) or self._keys[at] != page:
                return FREE
            slot = self._slot_of_key[at]
            self._slot_of_key[at] = FREE
        if slot != FREE:
            self._freed.append(slot)
            self._live -= 1
        return slot

    def load(self, pages: ArrayLike) -> NDArray[np.int64]:
        """Assign new, consecutive slots to many pages in the order given, and return them.

        Raises:
            ValueError: a key is given twice or is already held.
        """
        keys = np.ascontiguousarray(pages, dtype=np.int64)
        first = self.capacity
        slots = np.arange(first, first + len(keys), dtype=np.int64)
        self._merge(keys, slots.astype(np.int32))
        self.page_at.frombytes(keys.tobytes())
        self._live += len(keys)
        return slots

    def _merge(
        self,
        keys: NDArray[np.int64] | None = None,
        slots: NDArray[np.int32] | None = None,
    ) -> None:
        held_slots = np.frombuffer(self._slot_of_key, dtype=np.int32)
        live = held_slots != FREE
        parts = [
            np.frombuffer(self._keys, dtype=np.int64)[live],
            np.fromiter(self._added.keys(), np.int64, len(self._added)),
        ]
        slot_parts = [
            held_slots[live],
            np.fromiter(self._added.values(), np.int32, len(self._added)),
        ]
        if keys is not None and slots is not None:
            parts.append(keys)
            slot_parts.append(slots)
        all_keys = np.concatenate(parts)
        order = np.argsort(all_keys, kind="stable")
        all_keys = all_keys[order]
        if np.any(all_keys[1:] == all_keys[:-1]):
            raise ValueError("a page is added twice")
        self._keys = array("q", all_keys.tobytes())
        self._slot_of_key = array("i", np.concatenate(slot_parts)[order].tobytes())
        self._added.clear()
