"""Tables of the value of a visit now, by the age-aware scale model, for the index policy.

A page has a scale σ and an age a (time from its last change to its last visit, in scales). A visit
τ after the last one has the value

    W = σ growth(τ/σ) index(a, τ/σ) + share τ        seconds of freshness.

The index (`renewal_index.py`) is the price that the visit deserves by the pooled shape; by the
growth of the scale (`scale_growth.py`) the new copy stays fresh for longer. The share
lets no page be forgotten: the order tends to round robin where the model sees no difference
(`waiting_share.py` learns where it needs more). In scales, the index and the wait until a given
value depend on (a, ·) alone, so that one table of each serves all pages.

Source: as the index; the share and the tables are ours; the share was chosen on years before those
reported.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.model import PageModel
from crawld.core.change.record import WINDOWS_S
from crawld.core.change.renewal import Renewal
from crawld.core.change.scale import ScaleModel
from crawld.core.change.scale_growth import growth_at
from crawld.core.revisit.renewal_index import AGES, WAITS, index_values
from crawld.core.units import DAY_S

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

ROUND_ROBIN_SHARE: Final = 0.06
"""Value of a second of waiting. Of 0.03 to 0.1 this was best on eight test cells of earlier years
(articles 2005 and 2006, terms 2024), and never below round robin or MERGE."""

_GAP_LEAST_S, _GAP_MOST_S = 60.0, 3650.0 * DAY_S
_AGE_LEAST, _AGE_MOST = 1e-4, 4096.0
_CELLS = 510
_FIRST_AGE, _AGES_PER_LOG = float(AGES[1]), 1.0 / math.log(AGES[2] / AGES[1])
_LAST_ROW = len(AGES) - 2
_LAST_AGE, _LAST_WAIT = len(AGES) - 1.001, len(WAITS) - 1.001
_FIRST_WAIT, _WAITS_PER_LOG = float(WAITS[1]), 1.0 / math.log(WAITS[2] / WAITS[1])
_LINE_LEAST = 1.01
"""A line reaches over the next point of the table where that is so near."""

_ENDS = np.append(WAITS, np.inf)
_POINTS: list[float] = _ENDS.tolist()
_VALUE_LEAST, _VALUE_MOST, _VALUES = 1e-9, 1e5, 672
_ALIVE_LEAST = 1e-9
_EARLY = 0.97
"""Waits are shortened by the table's error, so that a page is checked early rather than late."""


def page_scale_s(weights: Sequence[float], model: PageModel) -> float:
    """Return the scale of one page: `ScaleModel.scale_s` in plain floats, for use at a visit.

    The weights are in the order of `scale.FEATURES`.
    """
    short, middle, long = (math.log(max(count, 0.5)) for count in model.counts)
    usual = math.log(WINDOWS_S[-1]) - long
    gap, before = (_log_gap(gap_s, usual) for gap_s in model.gaps_s)
    known_s = max(model.last_change_at - model.first_at, 0.0)
    known = math.log(0.05 - math.expm1(-known_s / WINDOWS_S[-1]))
    row = (1.0, short, middle, long, gap, before, known)
    log_scale = sum(w * value for w, value in zip(weights, row, strict=True))
    return math.exp(min(max(log_scale, 0.0), 25.0))


def _log_gap(gap_s: float, usual: float) -> float:
    return math.log(min(max(gap_s, _GAP_LEAST_S), _GAP_MOST_S)) if gap_s > 0 else usual


class VisitValueTable:
    """The pooled shape, tabulated once per fit.

    Args:
        shape: distribution of gap / scale.
        share: value of a second of waiting.
        growth: logarithm of how the scale grows until the visit; None: it does not.

    Attributes:
        share: as given.
        basis: tables with another share, from which these were made; None: there are none.
    """

    def __init__(
        self, shape: Renewal, share: float = ROUND_ROBIN_SHARE, growth: Floats | None = None
    ) -> None:
        self.share = share
        self.basis: VisitValueTable | None = None
        self._y = np.concatenate([[0.0], np.geomspace(_AGE_LEAST, _AGE_MOST, _CELLS + 1)])
        self._per_log = _CELLS / math.log(_AGE_MOST / _AGE_LEAST)
        self._alive = np.asarray(shape.survival(self._y), np.float64)
        # The integral is that of the tabulated S; otherwise W would be wrong inside a cell.
        width = np.diff(self._y)
        self._fall = np.append(np.diff(self._alive) / width, 0.0)
        areas = 0.5 * width * (self._alive[1:] + self._alive[:-1])
        self._area = np.concatenate([[0.0], np.cumsum(areas)])
        self._index = index_values(shape)
        if growth is not None:
            self._index = np.maximum.accumulate(self._index * growth_at(growth, WAITS), axis=1)
        self._flat = self._index.ravel()
        self._steps = np.diff(self._index, axis=0).ravel()
        self._index_rows: list[list[float]] = self._index.tolist()
        self._log_value = math.log(_VALUE_MOST / _VALUE_LEAST) / (_VALUES - 1)
        self._wait = self._tabulate()
        # A view returns a plain float, and takes a quarter of the memory of a list of floats.
        self._waits = self._wait.data
        cells = np.column_stack((self._y, self._alive, self._fall, self._area))
        self._cells: list[list[float]] = cells.tolist()
        self._end = float(self._alive[-1]), float(self._area[-1])

    def with_share(self, share: float) -> VisitValueTable:
        """Return the tables of the same shape with another value of a second of waiting."""
        other = copy.copy(self)
        other.share, other.basis = share, self
        other._wait = other._tabulate()
        other._waits = other._wait.data
        return other

    def values(self, age: Floats, scale_s: Floats, since_s: Floats) -> Floats:
        """Return the values of visits to pages now, seconds, increasing in `since_s`.

        Args:
            age: time from the last change to the last visit, in scales.
            scale_s: σ, seconds.
            since_s: time since the last visit, ≥ 0, seconds.
        """
        values = self._in_scales(age, since_s / scale_s)
        values *= scale_s
        return values

    def value(self, age: float, scale_s: float, since_s: float) -> float:
        """Return `values` for one page, in a microsecond."""
        x = since_s / scale_s
        place = age / _FIRST_AGE
        if place > 1.0:
            place = 1.0 + math.log(place) * _AGES_PER_LOG
            if place > _LAST_AGE:
                place = _LAST_AGE
        row = int(place)
        low, high = self._index_rows[row], self._index_rows[row + 1]
        into = place - row
        place = x / _FIRST_WAIT
        if place > 1.0:
            place = 1.0 + math.log(place) * _WAITS_PER_LOG
            if place > _LAST_WAIT:
                place = _LAST_WAIT
        at = int(place)
        begun = low[at] + into * (high[at] - low[at])
        ended = low[at + 1] + into * (high[at + 1] - low[at + 1])
        return scale_s * (begun + (place - at) * (ended - begun) + self.share * x)

    def line_s(self, scale_s: float, since_s: float) -> float:
        """Return the time since the visit until which the value is about linear from now on."""
        x = since_s / scale_s * _LINE_LEAST
        return _POINTS[bisect_right(_POINTS, x, hi=len(WAITS))] * scale_s

    def lines_s(self, scale_s: Floats, since_s: Floats) -> Floats:
        """Return `line_s` of many pages."""
        x = since_s / scale_s * _LINE_LEAST
        return np.asarray(_ENDS[WAITS.searchsorted(x, "right")] * scale_s)

    def expected_share(self, age: float, scale_s: float, since_s: float) -> float:
        """Return the share of τ that the last copy was fresh if the page changed since, else 0.

        The mean of that by the shape, W/τ in Wolf et al. 2002; τ > 0.
        """
        x = since_s / scale_s
        alive, area = self._at(age)
        alive_now, area_now = self._at(age + x)
        fresh = area_now - area - x * alive_now
        if fresh <= 0.0:
            return 0.0
        return fresh / x / max(alive, _ALIVE_LEAST)

    def _at(self, y: float) -> tuple[float, float]:
        """Return S (linear in each cell) and its exact integral at an age in scales."""
        if y >= _AGE_MOST:
            return self._end
        cell = 0 if y < _AGE_LEAST else int(math.log(y / _AGE_LEAST) * self._per_log) + 1
        begins, begun, fall, area = self._cells[cell]
        into = y - begins
        alive = begun + into * fall
        return alive, area + 0.5 * into * (begun + alive)

    def _many(self, y: Floats) -> tuple[Floats, Floats]:
        """Return `_at` of many ages."""
        inside = np.minimum(y, _AGE_MOST)
        place = np.log(np.maximum(inside / _AGE_LEAST, 1.0)) * self._per_log
        cell = np.minimum(place, _CELLS - 1).astype(np.int64) + (inside >= _AGE_LEAST)
        into, begun = inside - self._y.take(cell), self._alive.take(cell)
        alive = begun + into * self._fall.take(cell)
        return alive, self._area.take(cell) + 0.5 * into * (begun + alive)

    def _in_scales(self, age: Floats, x: Floats) -> Floats:
        row, into = _places(age, _FIRST_AGE, _AGES_PER_LOG, _LAST_AGE)
        cell, between = _places(x, _FIRST_WAIT, _WAITS_PER_LOG, _LAST_WAIT)
        row *= len(WAITS)
        cell += row
        begun = self._grown(cell, into)
        cell += 1
        ended = self._grown(cell, into)
        ended -= begun
        ended *= between
        ended += begun
        ended += self.share * x
        return ended

    def _grown(self, cell: Slots, into: Floats) -> Floats:
        """Return the index at points of the waits, between two ages."""
        index = self._steps.take(cell)
        index *= into
        index += self._flat.take(cell)
        return index

    def changed(self, age: ArrayLike, scale_s: ArrayLike, since_s: ArrayLike) -> Floats:
        """Return the probability that pages changed since their last visit."""
        y = np.asarray(age, np.float64)
        then, _ = self._many(y)
        now, _ = self._many(y + np.asarray(since_s) / np.asarray(scale_s))
        return np.asarray(1.0 - np.minimum(now / np.maximum(then, _ALIVE_LEAST), 1.0))

    def wait_s(self, age: float, scale_s: float, value_s: float) -> float:
        """Return a time after the visit, seconds, within which the value stays below `value_s`."""
        if value_s <= 0.0:
            return 0.0
        place = age / _FIRST_AGE
        row = int(place if place < 1.0 else 1.0 + math.log(place) * _AGES_PER_LOG)
        if row > _LAST_ROW:
            row = _LAST_ROW
        ratio = value_s / scale_s / _VALUE_LEAST
        column = int(math.log(ratio) / self._log_value) if ratio > 1.0 else 0
        wait: float = self._waits[row, column if column < _VALUES else _VALUES - 1]
        return wait * scale_s

    def waits_s(self, age: Floats, scale_s: Floats, value_s: Floats) -> Floats:
        """Return `wait_s` of many pages."""
        cell, _ = _places(age, _FIRST_AGE, _AGES_PER_LOG, _LAST_AGE)
        with np.errstate(divide="ignore", invalid="ignore"):
            column = value_s / scale_s
        np.maximum(column, _VALUE_LEAST, out=column)
        column /= _VALUE_LEAST
        np.log(column, out=column)
        column /= self._log_value
        np.minimum(column, _VALUES - 1, out=column)
        cell *= _VALUES
        cell += column.astype(np.int64)
        wait = self._wait.take(cell)
        wait *= scale_s
        wait[value_s <= 0.0] = 0.0
        return wait

    def _tabulate(self) -> Floats:
        """Return the least wait until each value, for ages between two neighbours, in scales."""
        # Values between two ages are means of theirs, so the earlier of the two waits is early.
        values = np.geomspace(_VALUE_LEAST, _VALUE_MOST, _VALUES)
        values[0] = 0.0
        x = np.append(WAITS, _VALUE_MOST / self.share)
        index = np.column_stack((self._index, self._index[:, -1]))
        waits = np.stack([np.interp(values, row, x) for row in index + self.share * x])
        return np.asarray(_EARLY * np.minimum(waits[:-1], waits[1:]))


def _places(x: Floats, first: float, per_log: float, last: float) -> tuple[Slots, Floats]:
    """Return between which points of a grid values lie, and how far into the cell.

    Args:
        first: the second point; the first is 0. per_log: points in a factor of e from there on.
        last: the last place, just before the last point.
    """
    place = x / first
    log = np.maximum(place, 1.0)
    np.log(log, out=log)
    log *= per_log
    np.minimum(place, 1.0, out=place)
    place += log
    np.minimum(place, last, out=place)
    at = place.astype(np.int64)
    place -= at
    return at, place


_IN_USE: Final[WeakValueDictionary[tuple[ScaleModel, float], VisitValueTable]] = (
    WeakValueDictionary()
)
"""All tables that somebody has. One takes 0.6 MB, with another value of waiting 0.3 MB more, and a
site has new ones after each fit."""


@lru_cache(maxsize=4)  # policies are built again one after the other
def value_table(model: ScaleModel, share: float = ROUND_ROBIN_SHARE) -> VisitValueTable:
    """Return the tables of a scale model, one object per model and value of waiting."""
    found = _IN_USE.get((model, share))
    if found is None:
        if share == ROUND_ROBIN_SHARE:
            found = VisitValueTable(model.shape, share, model.growth)
        else:
            found = value_table(model, ROUND_ROBIN_SHARE).with_share(share)
        _IN_USE[model, share] = found
    return found
