"""GREEDY: visit the page whose copy gains the most fresh time, by the exact renewal expectation.

With u = last visit, b = last change known before u, t = now and ε = "changed in (u, t]", GREEDY
selects the page of largest E[A − t | ε]·Pr[ε], A the first change after t. With a = u − b, x = t −
b and R the mean residual life of the renewal process that starts at a change,

    gain(t) = ∫_a^x R(x − v) dF(v) / S(a).

The published text omits the condition X > a, that is the division by S(a); both forms are
implemented. On a grid of waits s = t − u the integral is the product of a matrix, fixed for each
page, with the masses of F between the grid points from a on. Between grid points the gain is
linear, so that a pick is one multiplication and one maximum over all pages; a page is updated only
when it crosses a grid point.

A research policy: 6.6 KB a page, no hints; new pages first, in order of arrival. The gain of a page
is multiplied by its importance (an addition to the thesis).

Source: PUC-Rio dissertation, 6.2.2, which estimates the expectation from three simulated renewals
per page and pick.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass, renewal_function
from crawld.core.revisit.heap import ABSENT, SlotHeap
from crawld.core.revisit.policies import NEVER, MonotonicClock, PageSet, VisitObservation
from crawld.core.revisit.slots import FREE
from crawld.core.units import DAY_S, YEAR_S

Value = TypeVar("Value", np.float32, np.float64)

_WAITS = np.concatenate([[0.0], np.geomspace(60.0, 4 * YEAR_S, 40)])
"""Grid of waits since the last visit, seconds."""

_GRID: list[float] = _WAITS.tolist()

_MIDDLES = 0.5 * (_WAITS[1:] + _WAITS[:-1])
_RENEWAL_HORIZON_S = 2 * YEAR_S
_RENEWAL_POINTS = 96
_PAGES_AT_ONCE = 2_000
_ALIVE_LEAST = 1e-12
_UNKNOWN_RATE = 1.0 / (30 * DAY_S)


def residual_matrix(renewals: Renewal) -> NDArray[np.float32]:
    """Return R(s_j − m_k) of each page for all grid waits s_j and earlier cell middles m_k.

    Returns:
        Seconds, shape (pages, waits, waits − 1); 0 where m_k > s_j.
    """
    apart = _WAITS[:, None] - _MIDDLES[None, :]
    out = np.zeros((len(renewals.mass), *apart.shape), dtype=np.float32)
    for first in range(0, len(out), _PAGES_AT_ONCE):
        part = slice(first, first + _PAGES_AT_ONCE)
        stack = Renewal(renewals.edges, renewals.mass[part])
        table = renewal_function(stack, horizon=_RENEWAL_HORIZON_S, points=_RENEWAL_POINTS)
        flat = np.broadcast_to(np.maximum(apart, 0.0).ravel(), (len(stack.mass), apart.size))
        life = table.residual_life(flat).reshape(-1, *apart.shape)
        out[part] = np.where(apart >= 0, life, 0.0)
    return out


class GreedyPolicy(PageSet):
    """Selects the page of largest expected gain.

    Args:
        conditional: divide by S(a), as in the definition; False = as printed.
    """

    def __init__(self, *, conditional: bool = True) -> None:
        super().__init__()
        self._conditional = conditional
        self._new_pages = SlotHeap()
        self._crossings = SlotHeap()
        self._new_count = 0
        self._clock = MonotonicClock()
        usual = Renewal(EDGES_S, exponential_mass(np.array([_UNKNOWN_RATE])))
        self._usual = residual_matrix(usual)[0], usual.survival(EDGES_S[None, :])[0]
        self._visited_at, self._changed_at = np.zeros(0), np.zeros(0)
        self._level, self._slope, self._weight = np.zeros(0), np.zeros(0), np.zeros(0)
        waits = len(_WAITS)
        self._gain = np.zeros((0, waits), np.float32)
        self._alive = np.zeros((0, len(EDGES_S)))
        self._residual = np.zeros((0, waits, waits - 1), np.float32)

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page with the default distribution until `set_renewals` sets its own."""
        if page in self._slots:
            return
        slot = self._slots.add(page)
        if slot >= len(self._visited_at):
            self._extend(max(64, slot // 8))
        self._residual[slot], self._alive[slot] = self._usual
        self._weight[slot] = weight
        self._enter(slot, last_visit_at)

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages."""
        slots = self._slots.load(pages)
        self._extend(self._slots.capacity - len(self._visited_at))
        self._residual[slots], self._alive[slots] = self._usual
        self._weight[slots] = 1.0 if weights is None else weights
        seen = [math.nan] * len(slots) if last_visit_at is None else np.asarray(last_visit_at)
        for slot, at in zip(slots.tolist(), seen, strict=True):
            self._enter(slot, None if math.isnan(at) else float(at))

    def set_renewals(self, pages: ArrayLike, renewals: Renewal) -> None:
        """Set the interval distributions (edges `EDGES_S`) of pages; unknown pages are ignored."""
        slots = self._slots.find_many(pages)
        held = np.flatnonzero(slots != FREE)
        own = Renewal(renewals.edges, renewals.mass[held])
        edges = np.broadcast_to(renewals.edges, (len(held), len(renewals.edges)))
        self._residual[slots[held]] = residual_matrix(own)
        self._alive[slots[held]] = own.survival(edges)
        for slot in slots[held].tolist():
            if slot in self._crossings:
                self._tabulate_gain(slot, float(self._visited_at[slot]))

    def remove(self, page: int) -> None:
        """Remove a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._withdraw(slot)

    def set_weight(self, page: int, weight: float) -> None:
        """Set the importance of a page."""
        slot = self._slots.find(page)
        if slot != FREE:
            self._weight[slot] = weight
            if slot in self._crossings:
                self._update_line(slot, float(self._visited_at[slot]))

    def select(self, now: float) -> int | None:
        """Return the page whose visit gains the most."""
        now = self._clock.advance(now)
        slot = self._new_pages.first()
        if slot == ABSENT:
            slot = self._best(now)
        if slot == ABSENT:
            return None
        self._withdraw(slot)
        return self._slots.page_at[slot]

    def _best(self, now: float) -> int:
        crossings = self._crossings
        while len(crossings) and crossings.key(crossings.first()) <= now:
            self._update_line(crossings.first(), now)
        if len(crossings) == 0:
            return ABSENT
        return int(np.argmax(self._level + self._slope * now))

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Start a new interval of the page."""
        slot = self._slots.find(page)
        if slot == FREE:
            return
        self._withdraw(slot)
        now = self._clock.visit_time(now)
        if observation is not None:
            if observation.changed_at:
                last = observation.changed_at[-1] + self._clock.lead
                self._changed_at[slot] = min(last, now)
            elif observation.changed:
                self._changed_at[slot] = now
            self._visited_at[slot] = now
        elif math.isnan(self._visited_at[slot]):
            self._visited_at[slot] = now
        self._tabulate_gain(slot, now)

    def release(self, page: int) -> None:
        """Put a selected page back in its place."""
        slot = self._slots.find(page)
        if slot == FREE or slot in self._new_pages or slot in self._crossings:
            return
        if math.isnan(self._visited_at[slot]):
            self._new_pages.push(slot, self._new_pages.key(slot))
        else:
            self._update_line(slot, float(self._visited_at[slot]))

    def _enter(self, slot: int, last_visit_at: float | None) -> None:
        self._withdraw(slot)
        if last_visit_at is None:
            self._new_count += 1
            self._visited_at[slot] = self._changed_at[slot] = math.nan
            self._new_pages.push(slot, NEVER + self._new_count)
            return
        self._visited_at[slot] = self._changed_at[slot] = last_visit_at
        self._tabulate_gain(slot, last_visit_at)

    def _tabulate_gain(self, slot: int, now: float) -> None:
        """Tabulate the gain of a page over the waits to come."""
        changed_at = float(self._changed_at[slot])
        age = 0.0 if math.isnan(changed_at) else max(now - changed_at, 0.0)
        alive = np.interp(age + _WAITS, EDGES_S, self._alive[slot])
        gain = self._residual[slot] @ -np.diff(alive)
        if self._conditional:
            gain = gain / max(alive[0], _ALIVE_LEAST)
        # Beyond the last edge nothing is known: half of the time waited orders pages by age.
        self._gain[slot] = gain if alive[0] > _ALIVE_LEAST else 0.5 * _WAITS
        self._update_line(slot, now)

    def _update_line(self, slot: int, now: float) -> None:
        """Set the line that the gain follows from now to the next grid point."""
        visited_at = float(self._visited_at[slot])
        cell = min(max(bisect_right(_GRID, now - visited_at) - 1, 0), len(_GRID) - 2)
        low, high = (self._weight[slot] * self._gain[slot, cell : cell + 2]).tolist()
        begin, end = _GRID[cell], _GRID[cell + 1]
        slope = (high - low) / (end - begin)
        self._slope[slot] = slope
        self._level[slot] = low - slope * (visited_at + begin)
        self._crossings.push(slot, math.inf if cell == len(_GRID) - 2 else visited_at + end)

    def _withdraw(self, slot: int) -> None:
        self._new_pages.remove(slot)
        self._crossings.remove(slot)
        self._level[slot], self._slope[slot] = -math.inf, 0.0

    def _extend(self, more: int) -> None:
        def grown(held: NDArray[Value], value: float) -> NDArray[Value]:
            added = np.full((max(more, 0), *held.shape[1:]), value, held.dtype)
            return np.concatenate([held, added])

        self._visited_at = grown(self._visited_at, math.nan)
        self._changed_at = grown(self._changed_at, math.nan)
        self._level = grown(self._level, -math.inf)
        self._slope = grown(self._slope, 0.0)
        self._weight = grown(self._weight, 1.0)
        self._gain = grown(self._gain, 0.0)
        self._alive = grown(self._alive, 1.0)
        self._residual = grown(self._residual, 0.0)
