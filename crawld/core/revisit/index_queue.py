"""Finds the waiting page with the highest visit value, for the index policy.

The value grows with the time since the last visit, so a page needs no check before its value can
reach a *level* near the value of the last picks. A page is in one of two places:

- the **heap**, keyed by a time up to which the value stays below the level (new pages before all
  times, in order of arrival);
- the **shortlist**, the few pages whose value is about the level or more. The best of them are the
  *front* (`index_front.py`), from which hundreds of picks are made; when it is chosen again, the
  pages that are due while it lasts are valued with the shortlist, in one vectorised pass.

A full shortlist raises the level and returns the rest to the heap. When no page reaches the level,
it is lowered and the heap rekeyed in one vectorised pass, at most once in n/32 picks. For very many
pages that pass would stop the daemon for a fifth of a second: there it is a *sweep*, a part of the
pages at each pick, started before the shortlist is used up.

Every page outside the shortlist is below the level, so a pick that reaches the level is the best,
within a percent (for the lines of the front; exactly where it has few pages). With more
than `_AT_ONCE` pages this holds from the end of the first sweep on, some sixty picks for a million
pages; until then the best page seen so far is taken.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.index_front import IndexFront
from crawld.core.revisit.index_pages import LONGEST_S, IndexPages
from crawld.core.revisit.partial_heap import PartialHeap

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

NEW = -(2.0**42)
"""Keys of new pages are within `LONGEST_S` of this: before all times."""

_NEWEST = NEW / 2
"""No key of a new page is larger."""

_SMALL = 512
"""Up to this number, all pages are in the shortlist: exact, and cheaper than any heap."""

_SHORTLIST_LEAST, _SHORTLIST_SHARE, _SHORTLIST_MOST = 256, 8, 8192
"""The shortlist holds up to an eighth of the pages, so that it lasts while values fall."""

_SWEPT_AHEAD = 1024
"""With so few pages in the shortlist a sweep begins: more than a front uses."""

_TAKEN_IF_EMPTY = 8
_MAX_PROMOTED = 512
"""Pages moved to the shortlist in one pick at most, so that a clock jump cannot stall the
daemon."""

_PAUSE, _PAUSE_S = 1e-3, 1e-3
"""Least wait of a page near the level, which would otherwise be due again at once."""

_FARTHEST = 1.0
"""A page is rechecked when the time since its visit has grown by this share, at the latest."""

_HALVED = 2
"""How often the time until the next check of a page is halved, of several pages at once."""

_SLOWEST = 0.1
"""Of many pages at once: a value grows at most with the inverse of this power of the time since the
visit, near the level."""

_ROUNDED = 1.0 + 1e-9
"""A tenth power is rounded by less than this."""

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

    __slots__ = (
        "_front",
        "_heap",
        "_level",
        "_pages",
        "_picks_since_rekey",
        "_shortlist",
        "_swept",
    )

    def __init__(self, pages: IndexPages) -> None:
        self._pages = pages
        self._heap = PartialHeap()
        self._shortlist: dict[int, int] = {}
        self._front = IndexFront(pages)
        self._level = 0.0
        self._picks_since_rekey = 0
        self._swept: int | None = None

    def __len__(self) -> int:
        return len(self._heap) + len(self._shortlist)

    def __contains__(self, slot: int) -> bool:
        return slot in self._shortlist or slot in self._heap

    def is_new(self, slot: int) -> bool:
        """Whether a waiting page is among the new ones."""
        return slot in self._heap and self._heap.key(slot) <= _NEWEST

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

    def push_visited(self, slot: int, at: float) -> None:
        """Add a page that was visited just now."""
        level = self._level
        if level == 0.0 and len(self._heap) <= _SMALL:
            self._shortlist[slot] = slot
            self._front.enter(slot, at)
        else:
            self._heap.push(slot, self._pages.due(slot, level))

    def recheck(self, slot: int, now: float) -> None:
        """Mark a page for valuation at the next pick, whether it was waiting or not."""
        self.remove(slot)
        self._heap.push(slot, now)

    def restore_new(self, slot: int) -> None:
        """Put a removed new page back in its place."""
        self._heap.push(slot, self._heap.key(slot))

    def remove(self, slot: int) -> None:
        """Remove a page; do nothing if it does not wait."""
        if self._shortlist.pop(slot, ABSENT) == ABSENT:
            self._heap.remove(slot)
        else:
            self._front.discard(slot)

    def reorder(self, slots: Slots, new: Floats) -> None:
        """Rekey distinct slots, waiting or not, whose models have changed; `new` as in `load`."""
        due = self._pages.dues(slots, self._level)
        self._heap.move(slots, np.where(np.isnan(new), due, new))
        # The level may now be far from the values.
        self._front.close()
        self._picks_since_rekey = len(self)

    def redraw(self) -> None:
        """Value the shortlist at the next pick: the tables of the pages have changed."""
        self._front.close()

    def revalue(self) -> None:
        """Value all waiting pages at the next pick, and find a new level."""
        self._front.close()
        self._level = 0.0
        if len(self) > _SMALL:
            slots = self._listed()
            self._shortlist.clear()
            self._heap.add(slots, self._pages.dues(slots, self._level))

    # --- selection ------------------------------------------------------------------------------

    def first_new(self) -> int:
        """Return the first of the new pages, or `ABSENT`."""
        self._picks_since_rekey += 1
        heap = self._heap
        if heap.least > _NEWEST:
            return ABSENT
        slot = heap.first()
        return slot if slot != ABSENT and heap.key(slot) <= _NEWEST else ABSENT

    def best(self, at: float) -> tuple[int, float]:
        """Return the page of highest value and the value; (-1, −inf) if none waits.

        Call it only when there is no new page.
        """
        front = self._front
        if self._level == 0.0 and len(self._heap) > _SMALL:
            self._rekey(at)
        if self._swept is not None:
            self._sweep(at)
        if at < front.until and self._heap.least <= at:
            self._promote_due(at)
        if at >= front.until:  # also one that has no room for a promoted page
            self._choose_front(at)
        slot, value = front.best(at)
        if value < front.floor:
            self._choose_front(at)
            slot, value = front.best(at)
        if value < _NEAR * self._level and len(self._heap):
            return self._lower_level(at)
        return slot, value

    def _choose_front(self, at: float) -> None:
        """Choose the front again, among the shortlist and the pages that are due while it lasts."""
        if len(self._shortlist) < _SWEPT_AHEAD:
            self._sweep_ahead(at)
        if self._is_full():
            self._raise_level(at)
        until = self._front.planned_until(at)
        due = self._heap.take_due(until, _MAX_PROMOTED)
        if len(due) == _MAX_PROMOTED and self._heap.least <= until:
            until = max(min(until, self._heap.key(self._heap.first())), at)
        slots = np.concatenate([self._listed(), due])
        values = self._pages.values(slots, until)
        if len(due):
            slots, values = self._admit(slots, values, len(due), until)
        self._front.choose(slots, values, at, until, waiting=len(self))

    def _admit(self, slots: Slots, values: Floats, count: int, at: float) -> tuple[Slots, Floats]:
        """Put the last pages into the shortlist or back into the heap; return the others."""
        stays = values >= self._level * self._admitted()
        stays[:-count] = True
        self._return(slots[~stays], values[~stays], at)
        self._list(slots[-count:][stays[-count:]])
        return slots[stays], values[stays]

    def _promote_due(self, at: float) -> None:
        """Move pages that are due before the front is chosen again to the shortlist."""
        admitted = self._level * self._admitted()
        for slot in self._heap.take_due(at, _MAX_PROMOTED).tolist():
            value = self._pages.value(slot, at)
            if value < admitted:
                self._heap.push(slot, self._recheck_at(slot, value, at))
            else:
                self._shortlist[slot] = slot
                self._front.enter(slot, at)
        if self._is_full():
            self._front.close()

    def _listed(self) -> Slots:
        """Return the slots of the shortlist."""
        return np.fromiter(self._shortlist, np.int64, len(self._shortlist))

    def _list(self, slots: Slots) -> None:
        """Add slots to the shortlist."""
        added = slots.tolist()
        self._shortlist.update(zip(added, added, strict=True))

    def _admitted(self) -> float:
        """Return the share of the level at which a page enters the shortlist."""
        if len(self) > _MANY:
            return _NEAR
        is_filling = 2 * len(self._shortlist) <= self._shortlist_size()
        return _ADMITTED if is_filling else _ADMITTED_LATER

    def _is_full(self) -> bool:
        return len(self) > _SMALL and len(self._shortlist) > self._shortlist_size()

    def _raise_level(self, at: float) -> None:
        """Raise the level to the best values of a full shortlist; return the rest to the heap."""
        slots = self._listed()
        values, count = self._pages.values(slots, at), self._shortlist_size() // 2
        order = np.argpartition(-values, count)
        best, rest = order[:count], order[count:]
        # Not lower: pages of the heap are due when they reach the level of before.
        self._level = max(self._level, float(values[order[count]]))
        self._shortlist.clear()
        self._list(slots[best])
        self._return(slots[rest], values[rest], at)

    def _return(self, slots: Slots, values: Floats, at: float) -> None:
        """Put pages below the level back into the heap."""
        if len(slots):
            self._heap.add(slots, self._recheck_many(slots, values, at))

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

    def _recheck_many(self, slots: Slots, values: Floats, at: float) -> Floats:
        """Return `_recheck_at` of a few pages; it halves a time a few times at most."""
        since = np.minimum(self._pages.since(slots, at), LONGEST_S)
        due_s = self._pages.dues(slots, self._level) - at
        least_s = np.maximum(np.maximum(since * _PAUSE, due_s), _PAUSE_S)
        grown = self._level / np.maximum(values, 1e-300) - 1.0
        step_s = since * np.minimum(grown, _FARTHEST)
        for _ in range(_HALVED):
            reached = self._pages.values(slots, at + step_s) > self._level
            reached &= step_s > least_s
            if not reached.any():
                break
            step_s[reached] *= 0.25
        else:
            step_s[reached] = 0.0
        return np.asarray(at + np.maximum(step_s, least_s))

    def _not_before(self, due: Floats, slots: Slots, values: Floats, at: float) -> Floats:
        """Return the later of what the tables say and of how far a value can grow, of many pages.

        A page whose value is v reaches the level when the time since its visit has grown to
        (level / v) ** _SLOWEST times of it, at the earliest. A root takes longer than all else
        here, so it is computed only where the tenth power of the time until `due` is less.
        """
        if self._level == 0.0:
            return np.maximum(due, at)
        since = np.minimum(at - self._pages.visited_at.take(slots), LONGEST_S)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(values > 0.0, self._level / np.maximum(values, 1e-300), 1.0)
            grown = np.maximum((due - at) / since + 1.0, 1.0)
            squared = grown * grown
            fourth = squared * squared
            later = np.flatnonzero(ratio * _ROUNDED >= fourth * fourth * squared)
        times = np.maximum(due, at + np.maximum(since * _PAUSE, _PAUSE_S))
        root = ratio[later] ** _SLOWEST
        times[later] = np.maximum(times[later], at + since[later] * (root - 1.0))
        return times

    def _shortlist_size(self) -> int:
        return min(max(_SHORTLIST_LEAST, len(self) // _SHORTLIST_SHARE), _SHORTLIST_MOST)

    # --- lowering the level ---------------------------------------------------------------------

    def _lower_level(self, at: float) -> tuple[int, float]:
        """Return the best page when nothing in the shortlist reaches the level."""
        if self._swept is None and self._picks_since_rekey * _REKEY_SHARE >= len(self):
            self._rekey(at)
        elif len(self._shortlist) == 0:
            self._list(self._heap.take_due(math.inf, _TAKEN_IF_EMPTY))
            self._front.close()
        if at >= self._front.until:
            self._choose_front(at)
        return self._front.best(at)

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
        self._heap.move(slots, self._not_before(due, slots, values, at))
        for slot in slots[best].tolist():
            self._heap.remove(slot)
        self._list(slots[best])
        self._front.close()

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
