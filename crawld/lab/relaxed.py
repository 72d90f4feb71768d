"""Bounds for pages whose every change is reported: visits at any time, a budget only on average.

The slots of a host are given up, and only the number of visits in the whole period is kept, as in
the relaxed problem of Whittle and of Busa-Fekete et al. (2025). Two rows:

    relaxed       each change is answered when its index reaches a price; the price is such that the
                  visits are spent. The model is that of the past, so it is the best that the index
                  policy could do without slots.
    clairvoyant   the gaps that will be longest are visited, each as soon as it is reported: no
                  policy at all does better.

A visit is late by the lag of the hints. All copies are stale at the start, where the change before
it is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.hawkes import KERNELS_S, Hawkes, excitements
from crawld.lab.copies import Copies, Score
from crawld.lab.scenario import Scenario

Floats = NDArray[np.float64]

_STEPS = 48


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps between changes that reach into the period, page after page.

    Attributes:
        page: of each gap. changed_at: the change before it. told_at: when that is reported, or the
            start. ends_at: the next change, or the end.
        excitement: after the change, shape (kernels, gaps).
    """

    page: NDArray[np.int64]
    changed_at: Floats
    told_at: Floats
    ends_at: Floats
    excitement: Floats


def gaps_of(scenario: Scenario, lag_s: float) -> Gaps:
    """Return the gaps of all pages."""
    histories, end = scenario.histories, scenario.end
    page = np.repeat(np.arange(len(histories)), histories.counts)
    times = histories.changed_at
    first = np.zeros(len(times), np.bool_)
    first[histories.offsets[:-1][histories.counts > 0]] = True
    before_s = np.where(first, 0.0, np.diff(times, prepend=0.0))
    next_at = np.append(times[1:], np.inf)
    next_at[np.append(first[1:], True)] = np.inf
    told_at = np.where(times < scenario.start, scenario.start, times + lag_s)
    reaches = (times < end) & (next_at > scenario.start)
    excitement = excitements(before_s, first, KERNELS_S)[reaches].T
    gaps = page[reaches], times[reaches], told_at[reaches], np.minimum(next_at, end)[reaches]
    return Gaps(*gaps, excitement)


def score_clairvoyant(scenario: Scenario, *, lag_s: float, visits: int) -> Score:
    """Return the score of visits to the longest gaps, each as soon as it is reported."""
    gaps = gaps_of(scenario, lag_s)
    left_s = gaps.ends_at - gaps.told_at
    best = np.argsort(-left_s, kind="stable")[:visits]
    return _scored(scenario, gaps, gaps.told_at, best[left_s[best] > 0.0])


def score_relaxed(scenario: Scenario, model: Hawkes, *, lag_s: float, visits: int) -> Score:
    """Return the score of visits at the price at which they are spent."""
    gaps = gaps_of(scenario, lag_s)
    low, high = 0.0, 1.0 / model.base
    for _ in range(_STEPS):
        price_s = 0.5 * (low + high)
        at = _visited_at(gaps, model, price_s)
        low, high = (low, price_s) if int((at < gaps.ends_at).sum()) <= visits else (price_s, high)
    at = _visited_at(gaps, model, high)
    return _scored(scenario, gaps, at, np.flatnonzero(at < gaps.ends_at))


def _visited_at(gaps: Gaps, model: Hawkes, price_s: float) -> Floats:
    """Return when 1/h of each gap reaches a price; at the end of the gap or later: not in it."""
    told_s = gaps.told_at - gaps.changed_at
    low, high = told_s, np.maximum(gaps.ends_at - gaps.changed_at, told_s)
    dear = model.hazard(gaps.excitement, low) * price_s
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        waits = model.hazard(gaps.excitement, middle) * price_s > 1.0
        low, high = np.where(waits, middle, low), np.where(waits, high, middle)
    return np.asarray(gaps.changed_at + np.where(dear <= 1.0, told_s, high))


def _scored(scenario: Scenario, gaps: Gaps, at: Floats, chosen: NDArray[np.int64]) -> Score:
    copies = Copies(scenario)
    for place in chosen[np.lexsort((at[chosen], gaps.page[chosen]))].tolist():
        copies.visit(int(gaps.page[place]), float(at[place]))
    return copies.score()
