"""When pages change: processes that can be evaluated at any time, forwards or backwards.

A process answers two questions, each the inverse of the other: how many changes happened up to and
including a time, and when change k happens. Random processes are renewal processes that grow
lazily: change times are drawn up to the latest query and kept in one flat array. A repeated query
is one bisection, and a page that nobody asks about costs nothing.

Invariants: the change times of a page strictly increase; equal arguments give equal processes;
`changes_until(change_at(k)) == k + 1`.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from crawld.simweb.stateless_random import uniform

NEVER = math.inf


class ChangeProcess(Protocol):
    """The change times of one page, in Unix seconds."""

    def changes_until(self, at: float) -> int:
        """Return how many changes happened at or before `at`."""
        ...

    def change_at(self, index: int) -> float:
        """Return the time of change `index` (0 is the first); `inf` if it never happens."""
        ...


ProcessOfPage = Callable[[int], ChangeProcess]


def next_change(changes: ChangeProcess, after: float) -> float:
    """Return the time of the first change later than `after`; `inf` if there is none."""
    return changes.change_at(changes.changes_until(after))


def last_change(changes: ChangeProcess, until: float) -> float:
    """Return the time of the last change at or before `until`; `-inf` if there is none."""
    count = changes.changes_until(until)
    return changes.change_at(count - 1) if count else -math.inf


class FixedChanges:
    """Changes at given times; a static page if there are none."""

    __slots__ = ("_times",)

    def __init__(self, times: Iterable[float] = ()) -> None:
        self._times = array("d", sorted(set(times)))
        if not all(map(math.isfinite, self._times)):
            raise ValueError("change times must be finite")

    def changes_until(self, at: float) -> int:
        """Return how many changes happened at or before `at`."""
        return bisect_right(self._times, at)

    def change_at(self, index: int) -> float:
        """Return the time of change `index`; `inf` after the last."""
        return self._times[index] if index < len(self._times) else NEVER


STATIC = FixedChanges()


class RenewalProcess:
    """Independent gaps between changes, drawn on demand.

    The gap before change `index` is `gap_s(index)` seconds, a pure function; the first starts at
    `start_at`.
    """

    __slots__ = ("_gap_s", "_start_at", "_times")

    def __init__(self, gap_s: Callable[[int], float], *, start_at: float) -> None:
        self._gap_s = gap_s
        self._start_at = start_at
        self._times = array("d")

    def changes_until(self, at: float) -> int:
        """Return how many changes happened at or before `at`."""
        if at < self._start_at:
            return 0
        if not math.isfinite(at):
            raise ValueError("a renewal process has infinitely many changes until infinity")
        times = self._times
        while not times or times[-1] <= at:
            self._grow()
        return bisect_right(times, at)

    def change_at(self, index: int) -> float:
        """Return the time of change `index`."""
        while len(self._times) <= index:
            self._grow()
        return self._times[index]

    def _grow(self) -> None:
        last = self._times[-1] if self._times else self._start_at
        drawn = last + self._gap_s(len(self._times))
        # A gap below the clock's resolution would put two changes at one time.
        self._times.append(max(drawn, math.nextafter(last, math.inf)))


def periodic_process(period_s: float, *, start_at: float) -> RenewalProcess:
    """Return a process with a change every `period_s` seconds after `start_at`."""
    _check_interval(period_s)
    return RenewalProcess(lambda _: period_s, start_at=start_at)


def poisson_process(mean_interval_s: float, *, start_at: float, seed: int) -> RenewalProcess:
    """Return a Poisson process with the given mean interval between changes."""
    _check_interval(mean_interval_s)
    return RenewalProcess(
        lambda k: -mean_interval_s * math.log(uniform(seed, k)), start_at=start_at
    )


@dataclass(frozen=True, slots=True)
class BurstShape:
    """Parameters of a page whose edits come in bursts with long gaps between them.

    Attributes:
        edit_interval_s: mean gap inside a burst.
        silence_s: mean gap between bursts.
        edit_share: share of the gaps that lie inside a burst, [0, 1).
    """

    edit_interval_s: float
    silence_s: float
    edit_share: float = 0.7

    def __post_init__(self) -> None:
        _check_interval(self.edit_interval_s)
        _check_interval(self.silence_s)
        if not 0 <= self.edit_share < 1:
            raise ValueError("edit_share must lie in [0, 1)")

    @property
    def mean_interval_s(self) -> float:
        """Mean gap between two changes."""
        return self.edit_share * self.edit_interval_s + (1 - self.edit_share) * self.silence_s


def bursty_process(bursts: BurstShape, *, start_at: float, seed: int) -> RenewalProcess:
    """Return a renewal process whose gaps mix two exponentials (hyperexponential)."""

    def gap_s(index: int) -> float:
        inside = uniform(seed, index, 1) < bursts.edit_share
        mean_s = bursts.edit_interval_s if inside else bursts.silence_s
        return -mean_s * math.log(uniform(seed, index, 2))

    return RenewalProcess(gap_s, start_at=start_at)


@dataclass(frozen=True, slots=True)
class SiteChangeRates:
    """Change rates of a site's pages: mean intervals log-uniform over a range, as on real wikis.

    Attributes:
        shortest_s: smallest mean interval between changes.
        longest_s: largest mean interval.
        static_share: share of pages that never change.
        bursty_share: share of pages that change in bursts (with the same mean interval).
    """

    shortest_s: float
    longest_s: float
    static_share: float = 0.0
    bursty_share: float = 0.0

    def changes(self, *, start_at: float, seed: int) -> ProcessOfPage:
        """Return a function from page number to change process."""

        def process_of(page: int) -> ChangeProcess:
            kind = uniform(seed, page, 1)
            if kind < self.static_share:
                return STATIC
            mean_s = self.mean_interval_s(page, seed=seed)
            page_seed = int(uniform(seed, page, 3) * 2**52)
            if kind < self.static_share + self.bursty_share:
                # 7 of 10 gaps average a twentieth of the mean; the others make up for it.
                bursts = BurstShape(mean_s / 20, mean_s * (1 - 0.7 / 20) / 0.3)
                return bursty_process(bursts, start_at=start_at, seed=page_seed)
            return poisson_process(mean_s, start_at=start_at, seed=page_seed)

        return process_of

    def mean_interval_s(self, page: int, *, seed: int) -> float:
        """Return the mean interval of a page that is not static."""
        return float(self.shortest_s * (self.longest_s / self.shortest_s) ** uniform(seed, page, 2))


def _check_interval(interval_s: float) -> None:
    if not (interval_s > 0 and math.isfinite(interval_s)):
        raise ValueError("an interval between changes must be positive and finite")
