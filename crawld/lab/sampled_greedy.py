"""GREEDY as the dissertation ran it: three simulated renewals for each page at each pick.

With u = last visit, b = last change known before u and t = now, an interval X is drawn from the
page's histogram. If it ends in (u − b, t − b], the page has changed, and intervals are added until
one ends after t; the draw is worth the time from t to that end. If it ends later, the draw is worth
nothing. One that ends before the visit contradicts what is known: as printed it is worth nothing;
the definition asks for another draw. The page with the largest mean of its draws is selected.

The histograms grow with visits, which the author names as an advantage: each interval between two
changes found by visits is counted.

Only for the laboratory: a pick draws for all pages. `core/revisit/policies_greedy.py` has the exact
expectation.

Source: PUC-Rio dissertation, 6.2.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.renewal import EDGES_S, bin_counts
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.slots import FREE
from crawld.lab.unvisited import UnvisitedPages

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

DRAWS = 3
"""Simulated renewals of a page at a pick."""

_MOST_STEPS = 10_000
"""Intervals added to one draw: a page of short intervals that waits for years stops here."""

_MOST_REDRAWS = 64


class SampledGreedy(UnvisitedPages):
    """Selects the page with the largest mean gain of a few simulated renewals.

    Args:
        counts: intervals in each bin of `EDGES_S`, shape (pages, bins), each row with a sum > 0;
            the index of a row is the page.
        conditional: draw again where an interval contradicts the last visit; False: as printed.
        seed: of the draws.
    """

    def __init__(self, counts: Floats, *, conditional: bool, seed: int) -> None:
        super().__init__()
        self._counts = counts.copy()
        self._cumulated = np.cumsum(self._counts, axis=1)
        self._conditional = conditional
        self._rng = np.random.default_rng([seed, 11])
        pages = len(counts)
        self._in_flight = np.zeros(pages, dtype=bool)
        self._visited_at = np.full(pages, np.nan)
        self._changed_at = np.full(pages, np.nan)
        self._new: list[int] = []

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page; importance has no effect."""
        if page not in self._slots:
            self._slots.add(page)
            if last_visit_at is None:
                self._new.append(page)
            else:
                self._visited_at[page] = self._changed_at[page] = last_visit_at

    def remove(self, page: int) -> None:
        """Remove a page."""
        if self._slots.remove(page) == FREE:
            return
        self._in_flight[page] = False
        self._visited_at[page] = np.nan
        if page in self._new:
            self._new.remove(page)

    def select(self, now: float) -> int | None:
        """Return a new page, else the page whose draws gain the most."""
        if self._new:
            page = self._new.pop(0)
        else:
            waiting = np.flatnonzero(~self._in_flight & ~np.isnan(self._visited_at))
            if len(waiting) == 0:
                return None
            # Equal gains are usual, since most are 0: a random page of those.
            gains = self._gains(waiting, now) + 1e-6 * self._rng.random(len(waiting))
            page = int(waiting[np.argmax(gains)])
        self._in_flight[page] = True
        return page

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Count the intervals that the visit found, and start a new one."""
        if page not in self._slots:
            return
        self._in_flight[page] = False
        if page in self._new:
            self._new.remove(page)
        if observation is not None and observation.changed:
            found = list(observation.changed_at) or [now]
            known = [] if np.isnan(self._visited_at[page]) else [float(self._changed_at[page])]
            self._counts[page] += bin_counts(np.diff([*known, *found]))
            self._cumulated[page] = np.cumsum(self._counts[page])
            self._changed_at[page] = found[-1]
        elif np.isnan(self._visited_at[page]):
            self._changed_at[page] = now
        self._visited_at[page] = now

    def release(self, page: int) -> None:
        """Put a selected page back."""
        if page not in self._slots:
            return
        self._in_flight[page] = False
        if np.isnan(self._visited_at[page]):
            self._new.insert(0, page)

    def _gains(self, pages: Ids, now: float) -> Floats:
        owners = np.repeat(pages, DRAWS)
        known_s = self._visited_at[owners] - self._changed_at[owners]
        waited_s = now - self._changed_at[owners]
        ends = self._draw(owners)
        if self._conditional:
            for _ in range(_MOST_REDRAWS):
                wrong = np.flatnonzero(ends <= known_s)
                if len(wrong) == 0:
                    break
                ends[wrong] = self._draw(owners[wrong])
        changed = (ends > known_s) & (ends <= waited_s)
        late = np.flatnonzero(changed)
        for _ in range(_MOST_STEPS):
            late = late[ends[late] <= waited_s[late]]
            if len(late) == 0:
                break
            ends[late] += self._draw(owners[late])
        gain = np.where(changed, np.maximum(ends - waited_s, 0.0), 0.0)
        return np.asarray(gain.reshape(len(pages), DRAWS).mean(axis=1))

    def _draw(self, pages: Ids) -> Floats:
        """Return one interval of each page, seconds, uniform inside the bin that is drawn."""
        sums = self._cumulated[pages]
        at = self._rng.random(len(pages)) * sums[:, -1]
        bins = (sums <= at[:, None]).sum(axis=1)
        width = np.diff(EDGES_S)[bins]
        return np.asarray(EDGES_S[bins] + self._rng.random(len(pages)) * width)
