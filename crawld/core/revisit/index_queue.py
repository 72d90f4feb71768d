"""Finds the waiting page with the highest visit value, for the index policy.

The value grows with the time since the last visit, so a page needs no check before its value can
reach a *level* near the value of the last picks. A page is in one of two places:

- the **heap**, keyed by a time up to which the value stays below the level (new pages before all
  times, in order of arrival);
- the **shortlist**, the few pages whose value is about the level or more, known and refreshed
  whenever it may have changed by half a percent.

A full shortlist raises the level and returns the rest to the heap. When no page reaches the level,
it is lowered and the heap rekeyed in one vectorised pass, at most once in n/32 picks. For very many
pages that pass would stop the daemon for a fifth of a second: there it is a *sweep*, a part of the
pages at each pick, started before the shortlist is used up.

Every page outside the shortlist is below the level, so a pick that reaches the level is the best,
within a percent (for the refresh). With more than `_AT_ONCE` pages this holds from the end of the
first sweep on, some sixty picks for a million pages; until then the best page seen so far is taken.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.index_pages import LONGEST_S, IndexPages
from crawld.core.revisit.partial_heap import PartialHeap
from crawld.core.revisit.shortlist import Shortlist

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

NEW = -(2.0**42)
"""Keys of new pages are within `LONGEST_S` of this: before all times."""

_SMALL = 512
"""Up to this number, all pages are in the shortlist: exact, and cheaper than any heap."""

_SHORTLIST_LEAST, _SHORTLIST_SHARE, _SHORTLIST_MOST = 256, 8, 8192
"""The shortlist holds up to an eighth of the pages, so that it lasts while values fall."""

_TAKEN_IF_EMPTY = 8
_MAX_PROMOTED = 64
"""Pages moved to the shortlist in one pick at most, so that a clock jump cannot stall the
daemon."""

_REFRESH_SHARE = 1e-3
"""The shortlist is refreshed when the time since the visit has grown by this share for one of the
best, or by as much as another needs to reach the best: where changes are regular, a value grows up
to ten times as fast."""

_PAUSE, _PAUSE_S = 1e-3, 1e-3
"""Least wait of a page near the level, which would otherwise be due again at once."""

_FARTHEST = 1.0
"""A page is rechecked when the time since its visit has grown by this share, at the latest."""

_SLOWEST = 0.1
"""Of many pages at once: a value grows at most with the inverse of this power of the time since the
visit, near the level."""

_NEAR = 0.99
_ADMITTED, _ADMITTED_LATER, _MANY = 0.8, 0.95, 160_000
"""A page at this share of the level enters the shortlist instead of being rechecked soon: at the
second one when the shortlist is more than half full, and not with very many pages, of which too
many are this close."""

_REKEY_SHARE = 32
_AT_ONCE = 65_536
"""Pages rekeyed in one pass, about 15 ms."""

_SWEEP_PAGES = 16_384
"""Pages rekeyed at one pick of a sweep, about 3 ms; also the sample size to estimate a new
level."""


class IndexQueue:
    """The waiting pages of one policy, with their state in `pages`."""

    def __init__(self, pages: IndexPages) -> None:
        self._pages = pages
        self._heap = PartialHeap()
        self._shortlist = Shortlist()
        self._level = 0.0
        self._refresh_at = -math.inf
        self._picks_since_rekey = 0
        self._swept: int | None = None

    def __len__(self) -> int:
        return len(self._heap) + len(self._shortlist)

    def __contains__(self, slot: int) -> bool:
        return slot in self._shortlist or slot in self._heap

    def is_new(self, slot: int) -> bool:
        """Whether a waiting page is among the new ones."""
        return slot in self._heap and self._heap.key(slot) <= NEW / 2

    # --- adding and removing --------------------------------------------------------------------

    def load(self, slots: Slots, new: Floats) -> None:
        """Add the next slots at once; `new`: keys of the new pages, NaN for the others."""
        self._heap.load(np.where(np.isnan(new), self._pages.dues(slots, self._level), new))

    def push_new(self, slot: int, key: float) -> None:
        """Add a new page; `key`: its order among the new ones, around `NEW`."""
        self._heap.push(slot, key)

    def push(self, slot: int) -> None:
        """Add a page; it is checked when its value may reach the level."""
        self._heap.push(slot, self._pages.due(slot, self._level))

    def push_visited(self, slot: int) -> None:
        """Add a page that was visited just now."""
        if self._level == 0.0 and len(self._heap) <= _SMALL:
            self._shortlist.put(slot, 0.0)
        else:
            self.push(slot)

    def recheck(self, slot: int, now: float) -> None:
        """Mark a page for valuation at the next pick, whether it was waiting or not."""
        self._shortlist.discard(slot)
        self._heap.push(slot, now)

    def restore_new(self, slot: int) -> None:
        """Put a removed new page back in its place."""
        self._heap.push(slot, self._heap.key(slot))

    def remove(self, slot: int) -> None:
        """Remove a page; do nothing if it does not wait."""
        if not self._shortlist.discard(slot):
            self._heap.remove(slot)

    def reorder(self, slots: Slots, new: Floats) -> None:
        """Rekey distinct slots, waiting or not, whose models have changed; `new` as in `load`."""
        due = self._pages.dues(slots, self._level)
        self._heap.move(slots, np.where(np.isnan(new), due, new))
        # The level may now be far from the values.
        self._refresh_at, self._picks_since_rekey = -math.inf, len(self)

    def revalue(self) -> None:
        """Value all waiting pages at the next pick, and find a new level."""
        self._refresh_at, self._level = -math.inf, 0.0
        if len(self) > _SMALL:
            slots = self._shortlist.take_all()
            self._heap.add(slots, self._pages.dues(slots, self._level))

    # --- selection ------------------------------------------------------------------------------

    def first_new(self) -> int:
        """Return the first of the new pages, or `ABSENT`."""
        self._picks_since_rekey += 1
        slot = self._heap.first()
        return slot if slot != ABSENT and self._heap.key(slot) <= NEW / 2 else ABSENT

    def best(self, at: float) -> tuple[int, float]:
        """Return the page of highest value and the value; (-1, −inf) if none waits.

        Call it only when there is no new page.
        """
        if self._level == 0.0 and len(self._heap) > _SMALL:
            self._rekey(at)
        if self._swept is not None:
            self._sweep(at)
        self._promote_due(at)
        if at >= self._refresh_at:
            self._refresh(at)
        slot, value = self._shortlist.best()
        if len(self._heap):
            if slot < 0 or value < _NEAR * self._level:
                return self._lower_level(at)
            if len(self._shortlist) < _SHORTLIST_LEAST:
                self._sweep_ahead(at)
        return slot, value

    def _promote_due(self, at: float) -> None:
        """Move due pages from the heap to the shortlist."""
        heap, pages = self._heap, self._pages
        admitted = self._level * self._admitted()
        for _ in range(_MAX_PROMOTED):
            slot = heap.first()
            if slot == ABSENT or heap.key(slot) > at:
                break
            value = pages.value(slot, at)
            if value < admitted:
                heap.push(slot, self._recheck_at(slot, value, at))
            else:
                heap.remove(slot)
                self._shortlist.put(slot, value)
        if len(self) > _SMALL and len(self._shortlist) > self._shortlist_size():
            self._raise_level(at)

    def _admitted(self) -> float:
        """Return the share of the level at which a page enters the shortlist."""
        if len(self) > _MANY:
            return _NEAR
        is_filling = 2 * len(self._shortlist) <= self._shortlist_size()
        return _ADMITTED if is_filling else _ADMITTED_LATER

    def _refresh(self, at: float) -> None:
        """Update the values of the shortlist, and set when that is due again."""
        slots = self._shortlist.slots
        if len(slots) == 0:
            return
        self._shortlist.values[:] = values = self._pages.values(slots, at)
        since = np.maximum(at - self._pages.visited_at[slots], 0.0)
        # A page visited just now is far from the best, and need not be looked at before it is near.
        grown = (values.max() / np.maximum(values, 1e-300)) ** _SLOWEST - 1.0
        self._refresh_at = at + float((since * np.maximum(grown, _REFRESH_SHARE)).min())

    def _raise_level(self, at: float) -> None:
        """Raise the level to the best values of a full shortlist; return the rest to the heap."""
        self._refresh(at)
        slots, values = self._shortlist.slots.copy(), self._shortlist.values.copy()
        count = self._shortlist_size() // 2
        kept = np.argpartition(-values, count)
        self._level = float(values[kept[count]])
        for place in kept[count:].tolist():
            slot = int(slots[place])
            self._shortlist.discard(slot)
            self._heap.push(slot, self._recheck_at(slot, float(values[place]), at))

    def _recheck_at(self, slot: int, value: float, at: float) -> float:
        """Return a time before which a page below the level stays below it.

        The later of what the tables say, and of a time at which the value is below the level, found
        by halving the time in which it would reach the level if it went on growing as it did.
        """
        due, since = self._pages.due(slot, self._level), at - self._pages.state(slot)[0]
        if value <= 0.0 or since <= 0.0:
            return max(due, at + _PAUSE_S)
        step_s = since * min(self._level / value - 1.0, _FARTHEST)
        least_s = max(since * _PAUSE, due - at)
        while step_s > least_s and self._pages.value(slot, at + step_s) > self._level:
            step_s *= 0.5
        return at + max(step_s, least_s)

    def _recheck_times(self, slots: Slots, values: Floats, at: float) -> Floats:
        """Return `_recheck_at` of many pages."""
        if self._level == 0.0:
            return np.full(len(slots), at)
        since = np.minimum(at - self._pages.visited_at[slots], LONGEST_S)
        with np.errstate(divide="ignore"):
            ratio = np.where(values > 0.0, self._level / np.maximum(values, 1e-300), 1.0)
        grown = np.maximum(ratio**_SLOWEST - 1.0, _PAUSE)
        return np.asarray(at + np.maximum(since * grown, _PAUSE_S))

    def _shortlist_size(self) -> int:
        return min(max(_SHORTLIST_LEAST, len(self) // _SHORTLIST_SHARE), _SHORTLIST_MOST)

    # --- lowering the level ---------------------------------------------------------------------

    def _lower_level(self, at: float) -> tuple[int, float]:
        """Return the best page when nothing in the shortlist reaches the level."""
        if self._swept is None and self._picks_since_rekey * _REKEY_SHARE >= len(self):
            self._rekey(at)
        elif len(self._shortlist) == 0:
            for _ in range(min(_TAKEN_IF_EMPTY, len(self._heap))):
                slot = self._heap.first()
                self._heap.remove(slot)
                self._shortlist.put(slot, self._pages.value(slot, at))
        return self._shortlist.best()

    def _rekey(self, at: float) -> None:
        """Value all waiting pages, at once or in parts from now on.

        The best fill half of the shortlist; the least of their values is the new level.
        """
        self._picks_since_rekey = 0
        waiting = self._heap.members()
        wanted = min(self._shortlist_size() // 2, len(waiting))
        if len(waiting) > _AT_ONCE:
            # Every n-th page, so that pages of all ages are included.
            sample = waiting[:: -(-len(waiting) // _SWEEP_PAGES)]
            self._begin_sweep(sample, wanted * len(sample) // len(waiting), at)
            return
        values = self._pages.values(waiting, at)
        best = np.argpartition(-values, wanted - 1)[:wanted]
        self._level = float(values[best].min()) if len(self) > _SMALL else 0.0
        self._rekey_slots(waiting, values, best, at)

    def _rekey_slots(self, slots: Slots, values: Floats, best: Slots, at: float) -> None:
        """Rekey waiting pages by the level and move the best of them to the shortlist."""
        due = self._pages.dues(slots, self._level)
        self._heap.move(slots, np.maximum(due, self._recheck_times(slots, values, at)))
        for slot, value in zip(slots[best].tolist(), values[best].tolist(), strict=True):
            self._heap.remove(slot)
            self._shortlist.put(slot, value)

    def _begin_sweep(self, sample: Slots, wanted: int, at: float) -> None:
        values = self._pages.values(sample, at)
        best = np.argpartition(-values, wanted)[: wanted + 1]
        self._level, self._swept = float(values[best].min()), 0
        self._rekey_slots(sample, values, best, at)

    def _sweep(self, at: float) -> None:
        """Rekey the next part of the pages."""
        first = self._swept or 0
        waiting = self._heap.members(first, first + _SWEEP_PAGES)
        self._swept = first + _SWEEP_PAGES if first + _SWEEP_PAGES < len(self._pages) else None
        values = self._pages.values(waiting, at)
        self._rekey_slots(waiting, values, np.flatnonzero(values >= self._level), at)

    def _sweep_ahead(self, at: float) -> None:
        """Start a sweep before the shortlist is used up, so that no pick must wait for it."""
        due = self._picks_since_rekey * _REKEY_SHARE >= len(self)
        if due and self._swept is None and len(self._heap) > _AT_ONCE:
            self._rekey(at)
