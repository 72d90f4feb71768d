"""Finds the page of highest value among those of a shortlist, many times for one valuation.

The value of a page grows steadily between two points of its table (`visit_value.py`), that is while
the time since its visit grows by up to a seventh. So the values of the best few pages, the *front*,
follow straight lines for some time. A pick is the highest of these lines now: three steps over an
array. A page that comes to the next point of its table gets a new line. A line is up to a percent
off, of a host of few pages two, and such a host has so few that each pick values them all.

No page outside the front exceeds `floor` before `until`, since values do not fall. When the best of
the front has less than that, or the time is over, the front is chosen again. It is planned to last
until three quarters of it are used.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.index_pages import IndexPages, floats_of

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

_SIZE, _MOST = 4.0, 512
"""The front has so many times the root of the number of waiting pages: the more it has, the more of
their lines end, and the seldomer it is chosen."""

_FEW = 48
"""So few pages are valued at each pick: those of a host of up to 144."""

_USED = 0.75
"""Share of the front that is to be used before it is chosen again."""

_CHANGE = 4.0
"""The time that a front is planned for is at most so many times that of the one before."""

_TRIES = 6
"""How often the time is halved until the best page reaches the floor; then it is for now only."""

_RANKED, _COMPARED, _SAME = 32, 4, 0.015
"""The pages of the next picks, up to so many, are ranked at once by their values halfway; a pick is
the best of the next few. No value may grow by more than this share of the best until halfway."""

_GONE = np.array([[-math.inf], [0.0]])
"""The line of a place without a page."""

_NO_LINES = np.zeros((2, 0))


class IndexFront:
    """The best pages of a shortlist, and the lines that their values follow.

    Attributes:
        until: time until which it may be used. floor: value of no other page is above this until
            then.
    """

    __slots__ = (
        "_begun",
        "_ends",
        "_lasts_s",
        "_line",
        "_lines",
        "_pages",
        "_place",
        "_ranked",
        "_ranked_until",
        "_slot",
        "_used",
        "floor",
        "until",
    )

    def __init__(self, pages: IndexPages) -> None:
        self._pages = pages
        self._slot: list[int] = []
        self._place: dict[int, int] = {}
        # The line of a place is values + slopes (at - _begun); a row of each.
        self._lines = _NO_LINES
        self._line: memoryview[float] | Floats = _NO_LINES  # the same, read and written quickly
        self._ends: list[tuple[float, int]] = []
        self._begun, self._used, self._lasts_s = -math.inf, 0, 0.0
        self._ranked: list[tuple[int, float, float]] = []
        self._ranked_until = -math.inf
        self.until, self.floor = -math.inf, -math.inf

    def best(self, at: float) -> tuple[int, float]:
        """Return the slot of highest value and the value; (-1, −inf) if there is none."""
        if self._place and len(self._slot) <= _FEW:
            return self._highest_valued(at)
        if at < self._ranked_until:
            ranked, places = self._ranked, self._place
            while ranked and ranked[-1][0] not in places:
                ranked.pop()
            best, value, since_s = -1, -math.inf, at - self._begun
            for slot, begun, slope in ranked[-_COMPARED:]:
                now = begun + slope * since_s
                if now > value and slot in places:
                    best, value = slot, now
            if best >= 0:
                return best, value
        return self._highest(at) if self._place else (-1, -math.inf)

    def _highest_valued(self, at: float) -> tuple[int, float]:
        """Return `best` without lines."""
        slots = np.fromiter(self._place, np.int64, len(self._place))
        values = self._pages.values(slots, at)
        best = int(values.argmax())
        return int(slots[best]), float(values[best])

    def _highest(self, at: float) -> tuple[int, float]:
        """Return `best` of all pages of the front; rank the next ones where they rise slowly."""
        self._redraw(at, at)
        since_s = at - self._begun
        begun, slopes = self._lines
        values = slopes * since_s
        values += begun
        place = int(values.argmax())
        value = values.item(place)
        self._ranked_until = -math.inf
        if self._used and since_s > 0.0:
            step_s = since_s / self._used
            count = min(self._steady_s(value) / step_s, _RANKED, len(self._place) - 1.0)
            if count >= _COMPARED and self._redraw(at, at + count * step_s):
                count = min(self._steady_s(value) / step_s, count)
            if count >= _COMPARED:
                np.multiply(slopes, since_s + 0.5 * count * step_s, out=values)
                values += begun
                self._rank(values, int(count))
                self._ranked_until = at + count * step_s
        return self._slot[place], value

    def _steady_s(self, value: float) -> float:
        """Return how long no value grows by more than twice `_SAME` of the best, seconds."""
        slopes = self._lines[1]
        return 2.0 * _SAME * value / max(float(slopes[slopes.argmax()]), 1e-300)

    def _redraw(self, at: float, until: float) -> bool:
        """Draw again the lines that end before then, to reach it; return whether there are any."""
        ended: list[int] = []
        while self._ends and self._ends[0][0] <= until:
            ended.append(heappop(self._ends)[1])
        for slot in ended:
            self._draw(slot, at, until)
        return bool(ended)

    def _rank(self, values: Floats, count: int) -> None:
        best = values.argpartition(-count)[-count:].tolist()
        slot, line, halfway = self._slot, self._line, floats_of(values)
        ranked = sorted([(halfway[place], slot[place], place) for place in best])
        self._ranked = [(slot, line[0, place], line[1, place]) for _, slot, place in ranked]

    def close(self) -> None:
        """Let the front be chosen again at the next pick."""
        self.until = -math.inf

    def planned_until(self, at: float) -> float:
        """Return until when a front that is chosen now should last."""
        lasted_s = at - self._begun
        if not math.isfinite(lasted_s):
            return at
        before_s = self._lasts_s or lasted_s
        wanted_s = lasted_s * _USED * max(len(self._slot), 1) / max(self._used, 1)
        return at + min(max(wanted_s, before_s / _CHANGE), before_s * _CHANGE)

    def choose(
        self, slots: Slots, values: Floats, at: float, until: float, *, waiting: int
    ) -> None:
        """Take the best of some pages that are to last until then.

        Many pages may exceed the best by then, more than the front takes. Then it lasts for less.

        Args:
            values: of the pages at `until`.
            waiting: number of all pages, also those that are not among these.
        """
        size = min(int(_SIZE * math.sqrt(waiting)) + 1, _MOST)
        chosen, floor = slots, -math.inf
        for tries in range(_TRIES if len(slots) > size else 0):
            order = (-values).argpartition(size)
            chosen, floor = slots[order[:size]], float(values[order[size]])
            if until == at or floor <= self._pages.value(int(slots[values.argmax()]), at):
                break
            until = at + 0.5 * (until - at) if tries < _TRIES - 2 else at
            values = self._pages.values(slots, until)
        self._begun, self._used, self._lasts_s = at, 0, until - at
        self._ranked_until = -math.inf
        self.until, self.floor = until, floor
        self._draw_many(chosen)

    def enter(self, slot: int, at: float) -> None:
        """Take a page of the shortlist, or one that is added to it, unless it stays below."""
        if at >= self.until or slot in self._place:
            return
        if self._pages.value(slot, self.until) < self.floor:
            return
        place = len(self._slot)
        if place == self._lines.shape[1]:
            self.close()
            return
        self._ranked_until = -math.inf
        self._slot.append(slot)
        self._place[slot] = place
        self._draw(slot, at, at)

    def discard(self, slot: int) -> None:
        """Remove a page; do nothing if it is absent."""
        place = self._place.pop(slot, None)
        if place is not None:
            self._line[0, place], self._line[1, place] = -math.inf, 0.0
            self._used += 1

    def _draw_many(self, slots: Slots) -> None:
        at, until, pages, count = self._begun, self.until, self._pages, len(slots)
        ends = np.minimum(pages.line_ends(slots, at), until)
        times = np.concatenate([np.full(count, at), ends])
        values = pages.values(np.concatenate([slots, slots]), times)
        self._lines = np.repeat(_GONE, count + count // 2 + 2, axis=1)
        self._lines[0, :count] = values[:count]
        if until > at:
            self._lines[1, :count] = (values[count:] - values[:count]) / (ends - at)
        # A view takes as much memory as ten pages, which are valued without lines.
        self._line = floats_of(self._lines) if count > _FEW else self._lines
        self._slot = slots.tolist()
        self._place = dict(zip(self._slot, range(count), strict=True))
        early = np.flatnonzero(ends < until)
        # A sorted list is a heap.
        self._ends = sorted(zip(ends[early].tolist(), slots[early].tolist(), strict=True))

    def _draw(self, slot: int, at: float, until: float) -> None:
        """Draw the line of one page from now on, until then or longer."""
        place = self._place.get(slot)
        if place is None:
            return
        pages = self._pages
        value, end = pages.value(slot, at), max(pages.line_end(slot, at), until)
        end = min(end, self.until)
        slope = (pages.value(slot, end) - value) / (end - at) if end > at else 0.0
        self._line[0, place] = value - slope * (at - self._begun)
        self._line[1, place] = slope
        if end < self.until:
            heappush(self._ends, (end, slot))
