"""Tables of the value of a visit now, by the age-aware scale model, for the index policy.

A page has a scale σ and an age a (time from its last change to its last visit, in scales). With the
pooled shape's survival S, its integral I and y = a + τ/σ, a visit τ after the last one has the
value

    W = σ (I(y) − I(a) − (τ/σ) S(y)) / S(a)        seconds of freshness,

plus a share of τ, so that no page is forgotten and the order tends to round robin where the model
sees no difference (`waiting_share.py` learns where it needs more). In scales, both W/σ and its
inverse (number of scales until a given value) depend on (a, ·) alone, so that one table holds the
inverse for all pages.

Source: W is Wolf et al., WWW 2002, conditioned on the age; the mixing and the tables are ours; the
share was chosen on years before those reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.model import PageModel
from crawld.core.change.record import WINDOWS_S
from crawld.core.change.renewal import Renewal
from crawld.core.change.scale import ScaleModel

Floats = NDArray[np.float64]

ROUND_ROBIN_SHARE: Final = 0.06
"""Value of a second of waiting. Of 0.03 to 0.1 this was best on eight test cells of earlier years
(articles 2005 and 2006, terms 2024), and never below round robin or MERGE."""

_GAP_LEAST_S, _GAP_MOST_S = 60.0, 3650.0 * 86_400.0
_AGE_LEAST, _AGE_MOST, _AGES = 1e-4, 4096.0, 160
_AGES_IN_CELL = 6
_CELLS = 510
_VALUE_LEAST, _VALUE_MOST, _VALUES = 1e-9, 1e5, 224
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
    """

    def __init__(self, shape: Renewal, share: float = ROUND_ROBIN_SHARE) -> None:
        self._share = share
        self._y = np.concatenate([[0.0], np.geomspace(_AGE_LEAST, _AGE_MOST, _CELLS + 1)])
        self._per_log = _CELLS / math.log(_AGE_MOST / _AGE_LEAST)
        self._alive = np.asarray(shape.survival(self._y), np.float64)
        # The integral is that of the tabulated S; otherwise W would be wrong inside a cell.
        width = np.diff(self._y)
        self._fall = np.append(np.diff(self._alive) / width, 0.0)
        areas = 0.5 * width * (self._alive[1:] + self._alive[:-1])
        self._area = np.concatenate([[0.0], np.cumsum(areas)])
        self._log_age = float(np.log(_AGE_MOST / _AGE_LEAST)) / (_AGES - 1)
        self._log_value = float(np.log(_VALUE_MOST / _VALUE_LEAST)) / (_VALUES - 1)
        self._wait = self._tabulate()
        self._wait_rows: list[list[float]] = self._wait.tolist()
        cells = np.column_stack((self._y, self._alive, self._fall, self._area))
        self._cells: list[list[float]] = cells.tolist()
        self._end = float(self._alive[-1]), float(self._area[-1])

    def values(self, age: Floats, scale_s: Floats, since_s: Floats) -> Floats:
        """Return the values of visits to pages now, seconds, increasing in `since_s`.

        Args:
            age: time from the last change to the last visit, in scales.
            scale_s: σ, seconds.
            since_s: time since the last visit, ≥ 0, seconds.
        """
        return scale_s * self._in_scales(age, since_s / scale_s)

    def value(self, age: float, scale_s: float, since_s: float) -> float:
        """Return `values` for one page, in a microsecond."""
        x = since_s / scale_s
        alive, area = self._at(age)
        alive_now, area_now = self._at(age + x)
        value = (area_now - area - x * alive_now) / max(alive, _ALIVE_LEAST)
        return scale_s * (max(value, 0.0) + self._share * x)

    def expected_share(self, age: float, scale_s: float, since_s: float) -> float:
        """Return W/τ of one page, in [0, 1]; τ > 0."""
        return min(max(self.value(age, scale_s, since_s) / since_s - self._share, 0.0), 1.0)

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
        alive, area = self._many(age)
        alive_now, area_now = self._many(age + x)
        value = (area_now - area - x * alive_now) / np.maximum(alive, _ALIVE_LEAST)
        return np.maximum(value, 0.0) + self._share * x

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
        row = math.log(max(age / _AGE_LEAST, 1.0)) / self._log_age
        column = math.log(max(value_s / scale_s / _VALUE_LEAST, 1.0)) / self._log_value
        waits = self._wait_rows[min(int(row), _AGES - 2)]
        return waits[min(int(column), _VALUES - 1)] * scale_s

    def waits_s(self, age: Floats, scale_s: Floats, value_s: Floats) -> Floats:
        """Return `wait_s` of many pages."""
        with np.errstate(divide="ignore", invalid="ignore"):
            row, column = self._place(age, value_s / scale_s)
        wait = self._wait[row.astype(np.int64), column.astype(np.int64)] * scale_s
        return np.asarray(np.where(value_s <= 0.0, 0.0, wait), np.float64)

    def _place(self, age: Floats, value: Floats) -> tuple[Floats, Floats]:
        row = np.log(np.maximum(age, _AGE_LEAST) / _AGE_LEAST) / self._log_age
        column = np.log(np.maximum(value, _VALUE_LEAST) / _VALUE_LEAST) / self._log_value
        return np.clip(row, 0, _AGES - 2), np.clip(column, 0, _VALUES - 1)

    def _tabulate(self) -> Floats:
        """Return the least wait over each cell of (age, value), in scales."""
        # The wait is not monotone in the age (the hazard peaks at the end of each bin), so take the
        # least over several ages inside a cell.
        ages = np.geomspace(_AGE_LEAST, _AGE_MOST, (_AGES - 1) * _AGES_IN_CELL + 1)
        ages[0] = 0.0
        values = np.geomspace(_VALUE_LEAST, _VALUE_MOST, _VALUES)
        values[0] = 0.0
        x = np.concatenate([[0.0], np.geomspace(1e-9, _VALUE_MOST / self._share, 800)])
        waits = np.stack(
            [
                np.interp(values, np.maximum.accumulate(self._in_scales(np.array(age), x)), x)
                for age in ages
            ]
        )
        cell = waits[:-1].reshape(_AGES - 1, _AGES_IN_CELL, _VALUES).min(axis=1)
        return np.asarray(_EARLY * np.minimum(cell, waits[_AGES_IN_CELL::_AGES_IN_CELL]))


@lru_cache(maxsize=64)
def value_table(model: ScaleModel) -> VisitValueTable:
    """Return the tables of a scale model, one object per model."""
    return VisitValueTable(model.shape)
