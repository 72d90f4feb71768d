"""Policies that follow revisit frequencies allocated beforehand: RANDOM, MERGE and DELAYED.

The ideal instants of a page are (k + φ)/f, k = 0, 1, …, with a phase φ in (0, 1) hashed from the
page key, so that a restart repeats it. MERGE visits in the order of the ideal instants of all
pages, one a slot, never idle; DELAYED keeps each ideal instant until the first slot at or after
it, and idles where none has come; RANDOM draws, each page with probability ∝ f or all alike.

Phases are independent on purpose: with equal phases the schedule clumps (one page at 2f beside 40
at f kept .594 of its equally spaced freshness, with random phases .999).

A page without a frequency yet is new: it is visited at once, in order of arrival, and from then on
counts with the mean frequency of the others until the next allocation. f = 0 means given up: the
page is selected only where nobody else waits. A schedule is 44 bytes a page.

Source: PUC-Rio dissertation, chapter 4 (RANDOM, MERGE, DELAYED).
"""

from __future__ import annotations

import math
import random
from array import array

import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

from crawld.core.revisit.fenwick import Fenwick
from crawld.core.revisit.heap import ABSENT, SlotHeap
from crawld.core.revisit.policies import NEVER, PageSet, VisitObservation
from crawld.core.revisit.slots import FREE

Floats = NDArray[np.float64]

_UNKNOWN = -1.0
"""Frequency of a page no allocation has seen."""

_GIVEN_UP, _GIVEN_UP_STEP = 1e18, 256.0
"""Due time of the first page with f = 0, and how much later the next one is: they take turns. Any
other due time is earlier; at 1e18 floats are 128 apart."""

_LEAST_SHARE = 1e-9
"""Chance of a page with f = 0, in means of the others: it is drawn where nobody else waits."""

_FEW = 8
"""An allocation of fewer pages than one in so many moves them one by one, not all in one sweep."""

_CLOCK_STEP_S = 60.0
"""A clock that falls back by more than this was set; less is jitter between callers."""


def phase(page: int) -> float:
    """Return the phase of a page in (0, 1): the same in every process and on every machine."""
    return (xxhash.xxh3_64_intdigest(page.to_bytes(8, "little", signed=True)) + 0.5) / 2.0**64


def merge_schedule(pages: ArrayLike, frequency: ArrayLike, picks: int) -> NDArray[np.int64]:
    """Return the first picks of MERGE at once: the ideal instants of all pages in order.

    Args:
        pages: page keys.
        frequency: visits per second of each, ≥ 0.
        picks: length of the schedule, ≥ 0.

    Returns:
        Page keys in order of visit; empty where no page has a frequency.
    """
    keys, f = np.asarray(pages, dtype=np.int64), np.asarray(frequency, dtype=np.float64)
    keys, f = keys[f > 0], f[f > 0]
    if len(keys) == 0 or picks <= 0:
        return np.zeros(0, np.int64)
    phases = np.array([phase(page) for page in keys.tolist()])
    # Σ floor(f t − φ + 1) is within one visit a page of t Σf: a little more than enough, cut off.
    span = (picks + len(keys)) / f.sum()
    count = np.maximum(np.floor(f * span - phases) + 1, 0).astype(np.int64)
    page = np.repeat(np.arange(len(keys)), count)
    k = np.arange(len(page)) - np.repeat(np.cumsum(count) - count, count)
    order = np.argsort((k + phases[page]) / f[page])
    return keys[page[order[:picks]]]


class _DueTimePolicy(PageSet):
    """What MERGE and DELAYED share: pages, their frequencies, and a heap of due times."""

    def __init__(self) -> None:
        super().__init__()
        self._heap = SlotHeap()
        self._frequency = array("f")
        self._new_count = 0
        self._known, self._sum = 0, 0.0
        self._given_up = 0
        self._virtual = 0.0

    @property
    def _mean(self) -> float:
        """Mean of the frequencies that allocations gave."""
        return max(self._sum, 0.0) / self._known if self._known else 0.0

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Hold a page; its importance is part of the frequency it will be given."""
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
        """Hold many pages, the longest unvisited first."""
        slots = self._slots.load(pages)
        self._frequency.frombytes(np.full(len(slots), _UNKNOWN, np.float32).tobytes())
        keys = NEVER + self._new_count + np.arange(len(slots), dtype=np.float64)
        self._new_count += len(slots)
        if last_visit_at is not None:
            visited = ~np.isnan(np.asarray(last_visit_at, dtype=np.float64))
            keys = np.where(visited, self._virtual, keys)
        self._heap.load(keys)

    def set_frequencies(self, pages: ArrayLike, frequency: ArrayLike) -> None:
        """Take frequencies from an allocation.

        A page that had a frequency keeps its place in the interval under way, stretched to the new
        length; a page that had none starts at its phase. All others stay as they are, so that a
        large allocation can come in parts: some 4 µs a page.

        Args:
            pages: page keys; unknown ones are passed over.
            frequency: visits per second, same length, ≥ 0.
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
        if _FEW * len(slots) < len(self._slots):
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
        moves = zip(slots.tolist(), due.tolist(), frequency.tolist(), strict=True)
        for slot, due_at, given in moves:
            self._frequency[slot] = given
            self._heap.move(slot, due_at)

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
        """Return visits per second of a page; the mean of all where no allocation named it."""
        slot = self._slots.find(page)
        given = self._frequency[slot] if slot != FREE else 0.0
        return self._mean if given < 0 else given

    def remove(self, page: int) -> None:
        """Forget a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._heap.remove(slot)
            if self._frequency[slot] >= 0:
                self._known -= 1
                self._sum -= self._frequency[slot]

    def release(self, page: int) -> None:
        """Put a selected page back where it was."""
        slot = self._slots.find(page)
        if slot != FREE and slot not in self._heap:
            self._heap.push(slot, self._heap.key(slot))

    def _interval(self, slot: int) -> float:
        given = self._frequency[slot]
        frequency = self._mean if given < 0 else given
        return min(1.0 / frequency, _GIVEN_UP / 16) if frequency > 0 else math.inf

    def _given_up_due(self) -> float:
        """Return the due time of one more page with f = 0: behind all others."""
        self._given_up += 1
        return _GIVEN_UP + _GIVEN_UP_STEP * self._given_up

    def _first_due(self, slot: int) -> float:
        """Return the due time of a page that enters the running schedule: one phase from now."""
        interval = self._interval(slot)
        if math.isinf(interval) and self._frequency[slot] < 0:
            interval = 1.0  # before the first allocation: a turn like everybody's
        return self._virtual + phase(self._slots.page_at[slot]) * interval


class MergePolicy(_DueTimePolicy):
    """MERGE: the ideal instants of all pages in one order, one a slot, on a clock of their own.

    The virtual clock is the due time last reached; it needs no wall clock, so that neither idle
    hours nor a clock that jumps disturb the shares of the pages.
    """

    def select(self, now: float) -> int | None:
        """Return the page whose virtual due time comes first."""
        slot = self._heap.first()
        if slot == ABSENT:
            return None
        due = self._heap.key(slot)
        if self._virtual < due < _GIVEN_UP:
            self._virtual = due
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Set the next due time, one interval after the one before."""
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
        # Visited out of turn (an operator asked): the schedule goes on as if nothing had been.
        self._heap.push(slot, due)


class DelayedPolicy(_DueTimePolicy):
    """DELAYED: each ideal instant moved to the first polite one at or after it.

    Ideal instants that passed while one was waiting are served by the same visit.
    """

    def __init__(self) -> None:
        super().__init__()
        self._started = False

    def select(self, now: float) -> int | None:
        """Return the page whose ideal instant has waited longest; None where none has come."""
        self._advance(now)
        slot = self._heap.first()
        if slot == ABSENT or self._heap.key(slot) > now:
            return None
        self._heap.remove(slot)
        return self._slots.page_at[slot]

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Set the next ideal instant after now."""
        if now > self._virtual:  # a visit told late is no clock set back
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
        """Return the ideal instant that comes next, Unix seconds; inf where none will."""
        slot = self._heap.first()
        due = math.inf if slot == ABSENT else self._heap.key(slot)
        return due if due < _GIVEN_UP else math.inf

    def _advance(self, now: float) -> None:
        """Follow the clock; one set back, and the first one told, move all due times with it."""
        if not self._started or now < self._virtual - _CLOCK_STEP_S:
            due = self._heap.keys()
            moving = (due > NEVER / 2) & (due < _GIVEN_UP)
            due[moving] += now - self._virtual
            self._heap.rekey(due)
            self._started = True
            self._virtual = now
        self._virtual = max(self._virtual, now)


class RandomPolicy(PageSet):
    """RANDOM: each slot draws among the pages that wait, all alike or with probability ∝ f.

    Args:
        by_frequency: draw ∝ the allocated frequency (mean of the others where unknown).
        seed: of the draws; the same seed and calls give the same pages.
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
        """Hold a page, as likely as the mean of the others."""
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
        """Hold many pages."""
        slots = self._slots.load(pages)
        self._frequency.frombytes(np.full(len(slots), _UNKNOWN, np.float32).tobytes())
        self._rebuild()

    def set_frequencies(self, pages: ArrayLike, frequency: ArrayLike) -> None:
        """Take frequencies from an allocation; without effect where all pages are drawn alike.

        Pages not named keep theirs, so that a large allocation can come in parts.
        """
        if not self._by_frequency:
            return
        given = np.asarray(frequency, dtype=np.float64).tolist()
        for page, f in zip(np.asarray(pages).tolist(), given, strict=True):
            slot = self._slots.find(page)
            if slot == FREE:
                continue
            self._forget(slot)
            self._known, self._sum = self._known + 1, self._sum + f
            self._frequency[slot] = f
            if slot not in self._in_flight:
                self._waiting.set(slot, self._chance(f))
        mean = self._sum / self._known if self._known and self._sum > 0 else 1.0
        if not 0.5 < mean / self._mean < 2.0:
            self._mean = mean
            self._rebuild()

    def _forget(self, slot: int) -> None:
        if self._frequency[slot] >= 0:
            self._known, self._sum = self._known - 1, self._sum - self._frequency[slot]

    def remove(self, page: int) -> None:
        """Forget a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._forget(slot)
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
        """Put the page back into the urn."""
        self.release(page)

    def release(self, page: int) -> None:
        """Put the page back into the urn."""
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
