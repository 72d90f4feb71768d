"""State of the pages of one index policy in flat arrays by slot, with their visit values.

48 bytes a page: time of the last visit, age (time from the last change to that visit, in scales),
scale, importance, change rate; and for pages with hints the time of the last change and the
excitement after it (`change/hawkes.py`), 24 bytes. Values of one page are read through memory
views, which return a plain float in a third of the time of an array element.

The visit value is that of `visit_value.py`, with the value of waiting that the pages need
(`waiting_share.py`), times the importance; hints are not included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.hawkes import KERNELS_S
from crawld.core.revisit.hint_belief import KnownChange
from crawld.core.revisit.visit_value import VisitValueTable
from crawld.core.units import DAY_S

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]

UNKNOWN_SCALE_S = 30 * DAY_S
"""Scale of a page without known history."""

UNKNOWN_RATE = 1.0 / UNKNOWN_SCALE_S
"""Change rate of a page without known history, 1/s."""

floats_of: Final[Callable[[NDArray[np.floating[Any]]], memoryview[float]]] = attrgetter("data")
"""Returns a view of an array without a cast, which would cost 200 bytes a view."""

_KERNELS = tuple(enumerate(KERNELS_S))

LONGEST_S = 2.0**41
"""Time since the last visit of a page never visited."""


class IndexPages:
    """The pages of one index policy.

    Attributes:
        table: visit values by age, scale and time since the last visit.
        visited_at, age, scale, weight: one element a slot; visited_at −inf = never visited.
        changed_at: time of the last known change, −inf = none. excitement: after it, by kernel.
        rate: changes per second.
    """

    __slots__ = (
        "_age",
        "_rate",
        "_rates",
        "_scale",
        "_visited_at",
        "_weight",
        "age",
        "changed_at",
        "excitement",
        "rate",
        "scale",
        "table",
        "visited_at",
        "weight",
    )

    def __init__(self, table: VisitValueTable) -> None:
        self.table = table
        self.visited_at = np.zeros(0)
        self.age = np.zeros(0, dtype=np.float32)
        self.scale = np.zeros(0, dtype=np.float32)
        self.weight = np.zeros(0, dtype=np.float32)
        self.changed_at = np.zeros(0)
        self.excitement = np.zeros((0, len(KERNELS_S)), dtype=np.float32)
        self.rate = np.zeros(0, dtype=np.float32)
        self._rates = 0.0
        self._view()

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def rates(self) -> float:
        """Changes of all pages together, 1/s."""
        return max(self._rates, 0.0)

    def extend(self, more: int) -> None:
        """Add room for more slots."""
        if more > 0:
            self.visited_at = np.concatenate([self.visited_at, np.full(more, -np.inf)])
            self.age = np.concatenate([self.age, np.zeros(more, np.float32)])
            self.scale = np.concatenate([self.scale, np.full(more, np.inf, np.float32)])
            self.weight = np.concatenate([self.weight, np.ones(more, np.float32)])
            self.changed_at = np.concatenate([self.changed_at, np.full(more, -np.inf)])
            self.rate = np.concatenate([self.rate, np.zeros(more, np.float32)])
            calm = np.zeros((more, len(KERNELS_S)), np.float32)
            self.excitement = np.concatenate([self.excitement, calm])
            self._view()

    def _view(self) -> None:
        self._visited_at = floats_of(self.visited_at)
        self._age = floats_of(self.age)
        self._scale = floats_of(self.scale)
        self._rate = floats_of(self.rate)
        self._weight = floats_of(self.weight)

    # --- one page -------------------------------------------------------------------------------

    def add(self, slot: int, visited_at: float, weight: float) -> None:
        """Add a page of unknown history."""
        self._visited_at[slot], self._weight[slot] = visited_at, weight
        self._age[slot], self._scale[slot] = 0.0, UNKNOWN_SCALE_S
        self.changed_at[slot], self.excitement[slot] = -math.inf, 0.0
        self.set_rate(slot, UNKNOWN_RATE)

    def remove(self, slot: int) -> None:
        """Remove a page."""
        self.set_rate(slot, 0.0)

    def set_rate(self, slot: int, rate: float) -> None:
        """Set the change rate of a page, 1/s."""
        before = self._rate[slot]
        self._rate[slot] = rate
        self._rates += self._rate[slot] - before

    def set_change(self, slot: int, at: float, excitement: Sequence[float], rate: float) -> None:
        """Set the last known change of a page, its excitement after it and its change rate."""
        self.changed_at[slot], self.excitement[slot] = at, excitement
        self.set_rate(slot, rate)

    def add_changes(self, slot: int, changed_at: Sequence[float]) -> None:
        """Add changes of a page that a visit found, the oldest first."""
        known, excitement, exp = floats_of(self.changed_at), floats_of(self.excitement), math.exp
        last_at = known[slot]
        for at in changed_at:
            gap_s = at - last_at if at > last_at else 0.0
            for kernel, tau_s in _KERNELS:
                held = excitement[slot, kernel] * exp(-gap_s / tau_s)
                excitement[slot, kernel] = held + 1.0
            if at > last_at:
                last_at = at
        known[slot] = last_at

    def known_change(self, slot: int) -> KnownChange:
        """Return the last known change of a page."""
        return KnownChange(float(self.changed_at[slot]), self.excitement[slot].tolist())

    def set_visit(self, slot: int, at: float, age: float, scale: float) -> None:
        """Set the time of the last visit of a page, and its age and scale then."""
        self._visited_at[slot], self._age[slot], self._scale[slot] = at, age, scale

    def state(self, slot: int) -> tuple[float, float, float]:
        """Return last visit, age and scale of a page."""
        return self._visited_at[slot], self._age[slot], self._scale[slot]

    def value(self, slot: int, at: float) -> float:
        """Return the value of a visit to a page now, seconds."""
        since = at - self._visited_at[slot]
        if since < 0.0:
            since = 0.0
        return self.table.value(self._age[slot], self._scale[slot], since) * self._weight[slot]

    def due(self, slot: int, level: float) -> float:
        """Return a time until which the visit value of a page stays below a level."""
        weight = self._weight[slot]
        if weight <= 0.0:
            return math.inf
        wait = self.table.wait_s(self._age[slot], self._scale[slot], level / weight)
        return self._visited_at[slot] + wait

    def line_end(self, slot: int, at: float) -> float:
        """Return until when the value of a page grows about linearly from a time on."""
        visited_at = self._visited_at[slot]
        return visited_at + self.table.line_s(self._scale[slot], max(at - visited_at, 0.0))

    # --- many pages -----------------------------------------------------------------------------

    def add_many(self, first: int, visited_at: Floats, weight: Floats | float) -> None:
        """Add pages of unknown history in the slots from `first` on."""
        part = slice(first, first + len(visited_at))
        self.visited_at[part], self.scale[part] = visited_at, UNKNOWN_SCALE_S
        self.weight[part] = weight
        self.rate[part] = UNKNOWN_RATE
        self._rates += len(visited_at) * UNKNOWN_RATE

    def set_models(self, slots: Slots, age: Floats, scale: Floats) -> None:
        """Set the ages and the scales of distinct pages."""
        self.scale[slots], self.age[slots] = scale, age

    def set_changes(
        self, slots: Slots, changed_at: Floats, excitement: Floats, rate: Floats
    ) -> None:
        """Set the last known changes of distinct pages, and their change rates."""
        before = self.rate[slots].astype(np.float64)
        self.changed_at[slots], self.excitement[slots] = changed_at, excitement
        self.rate[slots] = rate
        self._rates += float((self.rate[slots].astype(np.float64) - before).sum())

    def since(self, slots: Slots, at: float | Floats) -> Floats:
        """Return the time since the last visit of each page, seconds; ≥ 0."""
        since = at - self.visited_at.take(slots)
        return np.asarray(np.maximum(since, 0.0, out=since))

    def ages_and_scales(self, slots: Slots) -> tuple[Floats, Floats]:
        """Return age and scale of each page."""
        return self.age.take(slots).astype(np.float64), self.scale.take(slots).astype(np.float64)

    def line_ends(self, slots: Slots, at: float) -> Floats:
        """Return `line_end` of many pages."""
        scale = self.scale.take(slots).astype(np.float64)
        return self.visited_at.take(slots) + self.table.lines_s(scale, self.since(slots, at))

    def values(self, slots: Slots, at: float | Floats) -> Floats:
        """Return the values of visits now, or each at its time, seconds."""
        age, scale = self.ages_and_scales(slots)
        values = self.table.values(age, scale, self.since(slots, at))
        values *= self.weight.take(slots)
        return values

    def dues(self, slots: Slots, level: float) -> Floats:
        """Return `due` of many pages."""
        weight, visited_at = self.weight.take(slots).astype(np.float64), self.visited_at.take(slots)
        if level == 0.0:
            return np.where(weight > 0.0, visited_at, np.inf)
        age, scale = self.ages_and_scales(slots)
        with np.errstate(divide="ignore", over="ignore"):
            wanted = level / np.maximum(weight, 1e-30)
            wait = self.table.waits_s(age, scale, wanted)
        return np.where(weight > 0.0, visited_at + wait, np.inf)
