"""Optimal revisit frequencies for any renewal process, continuous or in whole visits.

With equally spaced visits τ apart a page is fresh for a share (1/τ)∫₀^τ S_e(s) ds of the time, and
one more visit has the value W(τ). The optimum has w W(τ) = μ for every page visited, Σ 1/τ = C, and
gives up the pages with w W(∞) ≤ μ. A page that may not be given up has a least frequency and gets
more only if that is worth μ. W is an increasing cubic inside each bin of a histogram, so that a
price gives an interval by finding the bin and solving the cubic, all pages at once; the price is
found by false position, and by bisection where that does not halve the bracket.

Source: Wolf et al., WWW 2002 (whole visits in a finite horizon); PUC-Rio dissertation, chapter 6.
The least frequencies are ours.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.renewal import Renewal

Floats = NDArray[np.float64]
Pages = NDArray[np.int64]

_PRICE_STEPS = 60
_PRICE_TOLERANCE = 1e-8
"""Relative error of the bandwidth at which the search for the price ends."""

_PRICE_RANGE = 200.0
"""How far below the highest price it is searched, as a logarithm: there no frequency grows more."""

_NO_VISIT = 1e-9
"""Visits relative to the bandwidth that count as none."""

_INTERVAL_STEPS = 14
_INTERVAL_TOLERANCE = 1e-12
_BLOCK = 1 << 15
"""Pages whose cubics are in memory at once, 350 bytes each."""


@dataclass(frozen=True, slots=True)
class RenewalAllocation:
    """Revisit frequencies and their price.

    Attributes:
        frequency: f of each page, per second, in the order of the input.
        price: μ, weighted fresh seconds a visit; inf if the least frequencies use all visits.
    """

    frequency: Floats
    price: float


def allocate_renewal(
    renewal: Renewal, bandwidth: float, weights: ArrayLike = 1.0, least: ArrayLike = 0.0
) -> RenewalAllocation:
    """Return the optimal frequencies of pages with given interval distributions.

    Args:
        renewal: a stack of distributions, shape (pages, bins), seconds.
        bandwidth: C, visits per second, ≥ 0 and finite.
        weights: importance of each page, ≥ 0.
        least: lowest frequency of each page, per second, ≥ 0; all are lowered by one factor if they
            exceed the bandwidth together.

    Returns:
        f per page, per second; Σ f = C unless no page is worth a visit.

    Source: Wolf et al., WWW 2002; the continuous form, PUC-Rio dissertation, chapter 6.
    """
    if not 0 <= bandwidth < np.inf:
        raise ValueError("the bandwidth must be finite and not negative")
    pages = len(renewal.mass)
    weight = np.broadcast_to(np.asarray(weights, np.float64), (pages,))
    floor = np.broadcast_to(np.asarray(least, np.float64), (pages,))
    needed = float(floor.sum())
    if needed >= bandwidth:
        return RenewalAllocation(floor * (bandwidth / needed if needed else 0.0), np.inf)
    # W at the last edge, where a page is given up.
    worth = weight * renewal.second_moment() / (2.0 * renewal.mean())
    if worth.max(initial=0.0) <= 0:
        return RenewalAllocation(floor.copy(), 0.0)

    def at(log_price: float) -> Floats:
        return renewal_frequency(renewal, float(np.exp(log_price)), weight, floor)

    low, high = _bracket(at, bandwidth, float(np.log(worth.max())))
    more, less = at(low), at(high)
    # A page given up drops from 1/(last edge) to its least frequency at one price: mix both sides.
    gap = more.sum() - less.sum()
    mixed = less + (more - less) * ((bandwidth - less.sum()) / gap) if gap > 0 else more
    return RenewalAllocation(np.asarray(mixed * (bandwidth / mixed.sum())), float(np.exp(high)))


def _bracket(at: Callable[[float], Floats], bandwidth: float, high: float) -> tuple[float, float]:
    """Return two logarithms of prices, nearly equal, between which the bandwidth is spent.

    Args:
        at: gives the frequencies at the logarithm of a price.
        high: logarithm of a price at which no page gets more than its least frequency.
    """

    # The interval is at most the last edge and the value grows from 0, so that ln μ is bracketed.
    def excess(log_price: float) -> float:
        """Return the logarithm of the visits relative to the bandwidth: nearly linear in ln μ."""
        return math.log(max(float(at(log_price).sum()) / bandwidth, _NO_VISIT))

    least = high - _PRICE_RANGE
    low, under = high - 1.0, math.log(_NO_VISIT)
    while (over := excess(low)) < 0:
        if low <= least:  # no page has a use for so many visits
            return low, low
        high, under = low, over
        low -= 4.0
    halves = True
    for _ in range(_PRICE_STEPS):
        if over <= _PRICE_TOLERANCE:
            return low, low
        width = high - low
        middle = low + width * (0.5 if halves else over / (over - under))
        found = excess(middle)
        if found > 0:
            low, over = middle, found
        else:
            high, under = middle, found
        if -under <= _PRICE_TOLERANCE:
            return high, high
        halves = high - low > 0.5 * width  # false position stays on one side of a jump
    return low, high


def renewal_frequency(
    renewal: Renewal, price: float, weights: ArrayLike = 1.0, least: ArrayLike = 0.0
) -> Floats:
    """Return the frequencies at which one more visit to a page is worth the price.

    Args:
        renewal: a stack of distributions, shape (pages, bins), seconds.
        price: μ, weighted fresh seconds a visit, > 0.
        weights: importance of each page, ≥ 0.
        least: lowest frequency of each page, per second, ≥ 0.

    Returns:
        f per page, per second.
    """
    pages = len(renewal.mass)
    weight = np.broadcast_to(np.asarray(weights, np.float64), (pages,))
    found = np.zeros(pages)
    for first in range(0, pages, _BLOCK):
        part = slice(first, first + _BLOCK)
        cubics = _Cubics.of(Renewal(renewal.edges, renewal.mass[part]))
        found[part] = cubics.frequencies(weight[part], price)
    return np.maximum(found, np.asarray(least, np.float64))


def renewal_freshness(renewal: Renewal, frequency: ArrayLike) -> Floats:
    """Return (1/τ)∫₀^τ S_e of each page at equally spaced visits, in [0, 1]; 0 where f = 0.

    Source: Wolf et al., WWW 2002 (staleness = 1 − freshness).
    """
    f = np.asarray(frequency, dtype=np.float64)
    with np.errstate(divide="ignore"):
        tau = np.minimum(1.0 / f, 1e300)
    fresh = renewal.visit_value(tau) / tau + renewal.equilibrium_survival(tau)
    return np.where(f > 0, fresh, 0.0)


def allocate_whole_visits(
    renewal: Renewal, visits: int, horizon_s: float, weights: ArrayLike = 1.0
) -> NDArray[np.int64]:
    """Return the optimal whole numbers of visits, greedily by the gain of each visit.

    Args:
        renewal: a stack of distributions, shape (pages, bins), seconds.
        visits: number of visits in the horizon, ≥ 0.
        horizon_s: length of the horizon, seconds, > 0.
        weights: importance of each page, ≥ 0.

    Returns:
        Visits of each page. Greedy is optimal, because freshness is concave in the visits.

    Source: Wolf et al., WWW 2002; Fox, Operations Research 1966.
    """
    count = np.zeros(len(renewal.mass), dtype=np.int64)
    weight = np.broadcast_to(np.asarray(weights, np.float64), count.shape)
    first = weight * renewal_freshness(renewal, np.full(len(count), 1.0 / horizon_s))
    queue = [(-gain, page) for page, gain in enumerate(first.tolist()) if gain > 0]
    heapq.heapify(queue)
    for _ in range(visits):
        if not queue:
            break
        _, page = queue[0]
        count[page] += 1
        one = Renewal(renewal.edges, renewal.mass[page])
        held, more = renewal_freshness(one, (count[page] + np.array([0.0, 1.0])) / horizon_s)
        heapq.heapreplace(queue, (-float(weight[page] * (more - held)), page))
    return count


@dataclass(frozen=True, slots=True)
class _Cubics:
    """W of every page inside every bin, as m W = begun + into (low S + into (…)).

    Attributes:
        edges: of the bins, seconds.
        begun: m W at the edges, shape (pages, bins + 1).
        survival: S at the lower edges, density: mass / width; both (pages, bins).
        mean: mean interval of each page.
    """

    edges: Floats
    begun: Floats
    survival: Floats
    density: Floats
    mean: Floats

    @staticmethod
    def of(renewal: Renewal) -> _Cubics:
        return _Cubics(
            renewal.edges,
            renewal.moment_at_edges(),
            renewal.survival_at_edges()[:, :-1],
            renewal.mass / np.diff(renewal.edges),
            renewal.mean(),
        )

    def frequencies(self, weight: Floats, price: float) -> Floats:
        """Return f per page at a price; 0 where even the last edge is worth less."""
        with np.errstate(divide="ignore"):
            target = price / weight * self.mean
        page = np.flatnonzero(target < self.begun[:, -1])
        target = target[page]
        cell = (self.begun[page] <= target[:, None]).sum(axis=1) - 1
        f = np.zeros(len(weight))
        f[page] = 1.0 / self._intervals(page, cell, target)
        return f

    def _intervals(self, page: Pages, cell: Pages, target: Floats) -> Floats:
        """Solve m W(τ) = target inside the given bins by Newton, inside a bracket."""
        edge, begun = self.edges[cell], self.begun[page, cell]
        alive, density = self.survival[page, cell], self.density[page, cell]
        low, high = edge.copy(), self.edges[cell + 1].copy()
        tau = high.copy()
        for _ in range(_INTERVAL_STEPS):
            into = tau - edge
            bend = 0.5 * (alive - density * edge) - into * density / 3.0
            gap = begun + into * (edge * alive + into * bend) - target
            low, high = np.where(gap < 0, tau, low), np.where(gap < 0, high, tau)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = tau - gap / (tau * (alive - density * into))
            last, tau = tau, np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
            if np.all(np.abs(tau - last) <= _INTERVAL_TOLERANCE * tau):
                break
        return tau
