"""Policies that follow allocated revisit frequencies: RANDOM, MERGE and DELAYED.

The ideal visit times of a page are (k + φ)/f, k = 0, 1, …, with a phase φ in (0, 1) hashed from the
page key, so that it is the same after a restart. MERGE visits in the order of the ideal times of
all pages, one a slot, and never idles. DELAYED moves each ideal time to the first slot at or after
it, and idles when no page is due. RANDOM draws a page, with probability ∝ f or uniformly.

Phases are independent because visits cluster under equal phases (one page at 2f beside 40 at f kept
.594 of its equally spaced freshness; with random phases .999).

A page without a frequency is new: it is visited at once, in order of arrival, and then has the mean
frequency of the others until the next allocation. A page with f = 0 is given up: it is selected
only when no other page waits. 37 bytes a page of a million.

Source: PUC-Rio dissertation, chapters 4 (DELAYED) and 5 (RANDOM, MERGE).
"""

from __future__ import annotations

import math
import random
from array import array

import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

from crawld.core.revisit.fenwick import Fenwick
from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.partial_heap import PartialHeap
from crawld.core.revisit.policies import NEVER, PageSet, VisitObservation
from crawld.core.revisit.slots import FREE

Floats = NDArray[np.float64]

_UNKNOWN = -1.0
"""Frequency of a page that no allocation has included."""

_GIVEN_UP, _GIVEN_UP_STEP = 1e18, 256.0
"""Due time of the first page with f = 0, and its distance to the next, so that such pages take
turns. All other due times are earlier; at 1e18, floats are 128 apart."""

_LEAST_SHARE = 1e-9
"""Weight of a page with f = 0, relative to the mean: it is drawn only when no other page waits."""

_PART = 8
"""An allocation to less than this fraction (1/n) of the pages moves them one by one."""

_CLOCK_STEP_S = 60.0
"""A clock that falls back by more than this was set; a smaller step is jitter between callers."""


def phase(page: int) -> float:
    """Return the phase of a page in (0, 1): the same in every process and on every machine."""
    return (xxhash.xxh3_64_intdigest(page.to_bytes(8, "little", signed=True)) + 0.5) / 2.0**64


def merge_schedule(pages: ArrayLike, frequency: ArrayLike, picks: int) -> NDArray[np.int64]:
    """Return the first picks of MERGE in bulk: the ideal times of all pages in order.

    Args:
        frequency: visits per second of each, ≥ 0.

    Returns:
        Page keys in order of visit; empty if all frequencies are 0.
    """
    keys, f = np.asarray(pages, dtype=np.int64), np.asarray(frequency, dtype=np.float64)
    keys, f = keys[f > 0], f[f > 0]
    if len(keys) == 0 or picks <= 0:
        return np.zeros(0, np.int64)
    phases = np.array([phase(page) for page in keys.tolist()])
    # Σ floor(f t − φ + 1) is within one visit a page of t Σf: slightly too many, then cut.
    span = (picks + len(keys)) / f.sum()
    count = np.maximum(np.floor(f * span - phases) + 1, 0).astype(np.int64)
    page = np.repeat(np.arange(len(keys)), count)
    k = np.arange(len(page)) - np.repeat(np.cumsum(count) - count, count)
    order = np.argsort((k + phases[page]) / f[page])
    return keys[page[order[:picks]]]


class _DueTimePolicy(PageSet):
    """Base of MERGE and DELAYED: frequencies of pages and a heap of due times."""

    def __init__(self) -> None:
        super().__init__()
        self._heap = PartialHeap()
        self._frequency = array("f")
        self._new_count = 0
        self._known, self._sum = 0, 0.0
        self._given_up = 0
        self._virtual = 0.0

    @property
    def _mean(self) -> float:
        """Mean of the allocated frequencies, per second."""
        return max(self._sum, 0.0) / self._known if self._known else 0.0

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page; its importance is part of its frequency."""
        if page in self._slots:
            return
        slot = self._slots.add(page)
        if slot == len(self._frequency):
            self._frequency.append(_UNKNOWN)
        self._frequency[slot] = _UNKNOWN
        self._new_count += 1
        self._heap.push(
            slot, NEVER + self._new_count if last_visit_at is None else self._first_due(slot)
        )

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages, oldest last visit first."""
        slots = self._slots.load(pages)
        self._frequency.frombytes(np.full(len(slots), _UNKNOWN, np.float32).tobytes())
        keys = NEVER + self._new_count + np.arange(len(slots), dtype=np.float64)
        self._new_count += len(slots)
        if last_visit_at is not None:
            visited = ~np.isnan(np.asarray(last_visit_at, dtype=np.float64))
            keys = np.where(visited, self._virtual, keys)
        self._heap.load(keys)

    def set_frequencies(self, pages: ArrayLike, frequency: ArrayLike) -> None:
        """Set the visits per second of pages from an allocation; unknown pages are ignored.

        A page that had a frequency keeps its position in the current interval, scaled to the new
        length; a page that had none starts at its phase. Other pages are unchanged, so that a large
        allocation can be applied in parts. About 4 µs a page.
        """
        keys = np.asarray(pages, dtype=np.int64)
        slots = self._slots.find_many(keys)
        given = np.asarray(frequency, dtype=np.float64)[slots != FREE]
        keys, slots = keys[slots != FREE], slots[slots != FREE]
        if len(slots) == 0:
            return
        old = np.frombuffer(self._frequency, dtype=np.float32)[slots].astype(np.float64)
        self._known += int(np.count_nonzero(old < 0))
        self._sum += float(given.sum() - old[old >= 0].sum())
        if _PART * len(slots) < len(self._slots):
            self._move(slots, self._rescaled(keys, self._dues(slots), old, given), given)
            return
        due = self._heap.keys()
        due[slots] = self._rescaled(keys, due[slots], old, given)
        new = np.frombuffer(self._frequency, dtype=np.float32).copy()
        new[slots] = given
        self._frequency = array("f", new.tobytes())
        self._heap.rekey(due)

    def _dues(self, slots: NDArray[np.int64]) -> Floats:
        return np.array([self._heap.key(slot) for slot in slots.tolist()])

    def _move(self, slots: NDArray[np.int64], due: Floats, frequency: Floats) -> None:
        for slot, given in zip(slots.tolist(), frequency.tolist(), strict=True):
            self._frequency[slot] = given
        self._heap.move(slots, due)

    def _rescaled(
        self, pages: NDArray[np.int64], due: Floats, old: Floats, frequency: Floats
    ) -> Floats:
        phases = np.array([phase(page) for page in pages.tolist()])
        with np.errstate(divide="ignore", invalid="ignore"):
            started = self._virtual + phases / frequency
            stretched = self._virtual + (due - self._virtual) * (old / frequency)
        moved = np.where((old > 0) & (due < _GIVEN_UP), stretched, started)
        last = _GIVEN_UP + _GIVEN_UP_STEP * (self._given_up + np.arange(len(pages)))
        self._given_up += len(pages)
        return np.where(frequency > 0, np.minimum(moved, _GIVEN_UP / 2), last)

    def frequency(self, page: int) -> float:
        """Return the visits per second of a page; the mean if no allocation included it."""
        slot = self._slots.find(page)
        given = self._frequency[slot] if slot != FREE else 0.0
        return self._mean if given < 0 else given

    def remove(self, page: int) -> None:
        """Remove a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._heap.remove(slot)
            if self._frequency[slot] >= 0:
                self._known -= 1
                self._sum -= self._frequency[slot]

    def release(self, page: int) -> None:
        """Put a selected page back in its place in the schedule."""
        slot = self._slots.find(page)
        if slot != FREE and slot not in self._heap:
            self._heap.push(slot, self._heap.key(slot))

    def _interval(self, slot: int) -> float:
        given = self._frequency[slot]
        frequency = self._mean if given < 0 else given
        return min(1.0 / frequency, _GIVEN_UP / 16) if frequency > 0 else math.inf

    def _given_up_due(self) -> float:
        """Return the due time of another page with f = 0: after all others."""
        self._given_up += 1
        return _GIVEN_UP + _GIVEN_UP_STEP * self._given_up

    def _first_due(self, slot: int) -> float:
        """Return the due time of a page that joins the schedule: one phase from now."""
        interval = self._interval(slot)
        if math.isinf(interval) and self._frequency[slot] < 0:
            interval = 1.0  # before the first allocation all pages are equal
        return self._virtual + phase(self._slots.page_at[slot]) * interval


class MergePolicy(_DueTimePolicy):
    """MERGE: the ideal times of all pages in one order, one a slot, on a virtual clock.

    The virtual clock is the last due time reached. It does not depend on the wall clock, so that
    neither idle hours nor clock jumps change the shares of the pages.
    """

    def select(self, now: float) -> int | None:
        """Return the page with the earliest virtual due time."""
        slot = self._heap.first()
        if slot == ABSENT:
            return None
        due = self._heap.key(slot)
        if self._virtual < due < _GIVEN_UP:
            self._virtual = due
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Set the next due time, one interval after the previous one."""
        slot = self._slots.find(page)
        if slot == FREE:
            return
        due, interval = self._heap.key(slot), self._interval(slot)
        if math.isinf(interval) or due >= _GIVEN_UP:
            due = self._given_up_due() if self._frequency[slot] == 0 else self._virtual + len(self)
        elif due < NEVER / 2:
            due = self._first_due(slot)
        elif slot not in self._heap:
            due += interval
        # An unscheduled visit (requested by the operator) does not change the schedule.
        self._heap.push(slot, due)


class DelayedPolicy(_DueTimePolicy):
    """DELAYED: each ideal time moves to the first polite slot at or after it.

    One visit serves all ideal times of a page that passed while it waited.
    """

    def __init__(self) -> None:
        super().__init__()
        self._started = False

    def select(self, now: float) -> int | None:
        """Return the page that has been due longest; None if no page is due."""
        self._advance(now)
        slot = self._heap.first()
        if slot == ABSENT or self._heap.key(slot) > now:
            return None
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Set the next ideal time after now."""
        if now > self._virtual:  # a late report must not move the clock back
            self._advance(now)
        slot = self._slots.find(page)
        if slot == FREE or slot in self._heap:
            return
        due, interval = self._heap.key(slot), self._interval(slot)
        if math.isinf(interval):
            due = self._given_up_due() if self._frequency[slot] == 0 else now + 1.0
        elif due < NEVER / 2 or due >= _GIVEN_UP:
            due = self._first_due(slot)
        else:
            due += interval * max(1.0, math.ceil((now - due) / interval))
        self._heap.push(slot, due)

    def next_due_at(self) -> float:
        """Return the next ideal time of any page, Unix seconds; inf if there is none."""
        slot = self._heap.first()
        due = math.inf if slot == ABSENT else self._heap.key(slot)
        return due if due < _GIVEN_UP else math.inf

    def _advance(self, now: float) -> None:
        """Follow the clock; a backward step, and the first call, shift all due times with it."""
        if not self._started or now < self._virtual - _CLOCK_STEP_S:
            due = self._heap.keys()
            moving = (due > NEVER / 2) & (due < _GIVEN_UP)
            due[moving] += now - self._virtual
            self._heap.rekey(due)
            self._started = True
            self._virtual = now
        self._virtual = max(self._virtual, now)


class RandomPolicy(PageSet):
    """RANDOM: each slot draws one of the waiting pages, uniformly or with probability ∝ f.

    Args:
        by_frequency: draw ∝ the allocated frequency (the mean of the others if unknown).
        seed: seed of the draws; equal seeds and calls select equal pages.
    """

    def __init__(self, *, by_frequency: bool = False, seed: int = 0) -> None:
        super().__init__()
        self._by_frequency = by_frequency
        self._random = random.Random(seed)
        self._frequency = array("f")
        self._waiting = Fenwick()
        self._in_flight: set[int] = set()
        self._known, self._sum = 0, 0.0
        self._mean = 1.0

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page with the mean weight of the others."""
        if page in self._slots:
            return
        slot = self._slots.add(page)
        if slot == len(self._frequency):
            self._frequency.append(_UNKNOWN)
        self._frequency[slot] = _UNKNOWN
        self._waiting.set(slot, self._mean)

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages."""
        slots = self._slots.load(pages)
        self._frequency.frombytes(np.full(len(slots), _UNKNOWN, np.float32).tobytes())
        self._rebuild()

    def set_frequencies(self, pages: ArrayLike, frequency: ArrayLike) -> None:
        """Set the frequencies of pages; no effect where pages are drawn uniformly.

        Other pages keep theirs, so that a large allocation can be applied in parts.
        """
        if not self._by_frequency:
            return
        given = np.asarray(frequency, dtype=np.float64).tolist()
        for page, f in zip(np.asarray(pages).tolist(), given, strict=True):
            slot = self._slots.find(page)
            if slot == FREE:
                continue
            self._forget_frequency(slot)
            self._known, self._sum = self._known + 1, self._sum + f
            self._frequency[slot] = f
            if slot not in self._in_flight:
                self._waiting.set(slot, self._chance(f))
        mean = self._sum / self._known if self._known and self._sum > 0 else 1.0
        if not 0.5 < mean / self._mean < 2.0:
            self._mean = mean
            self._rebuild()

    def _forget_frequency(self, slot: int) -> None:
        if self._frequency[slot] >= 0:
            self._known, self._sum = self._known - 1, self._sum - self._frequency[slot]

    def remove(self, page: int) -> None:
        """Remove a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._forget_frequency(slot)
            self._in_flight.discard(slot)
            self._waiting.set(slot, 0.0)

    def select(self, now: float) -> int | None:
        """Draw a page."""
        slot = self._waiting.find(self._random.random())
        if slot == ABSENT:
            return None
        self._waiting.set(slot, 0.0)
        self._in_flight.add(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Let the page be drawn again."""
        self.release(page)

    def release(self, page: int) -> None:
        """Let the page be drawn again."""
        slot = self._slots.find(page)
        if slot != FREE:
            self._in_flight.discard(slot)
            self._waiting.set(slot, self._chance(self._frequency[slot]))

    def _chance(self, frequency: float) -> float:
        return self._mean if frequency < 0 else max(frequency, _LEAST_SHARE * self._mean)

    def _rebuild(self) -> None:
        chance = np.zeros(self._slots.capacity)
        slots = np.fromiter(self._slots, np.int64, len(self._slots))
        frequency = np.frombuffer(self._frequency, dtype=np.float32)[slots]
        least = _LEAST_SHARE * self._mean
        chance[slots] = np.where(frequency < 0, self._mean, np.maximum(frequency, least))
        chance[list(self._in_flight)] = 0.0
        self._waiting.load(chance)
