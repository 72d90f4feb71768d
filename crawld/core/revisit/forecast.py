"""Forecasts the freshness that a request budget can maintain, from what is known of the pages.

Everything follows from one function of a page, S(s) = Pr[no change within s of a random time]. It
is that of the self-exciting model by which reported pages are ranked (`change/quiet_time.py`), at
the rate of the page. A page with a history has its own gaps X, too: S(s) = E[(X − s)⁺] / E[X]. The
model then counts for `MODEL_GAPS` of them.

1. With visits τ apart a page is fresh for a share (1/τ) ∫₀^τ S of the time.
2. With hints, a page is visited once no change was reported for δ. It is fresh for a share S(δ) of
   the time, at −S′(δ) visits per second: each gap longer than δ is visited once.
3. If a share m of the changes is never reported and a share 1 − q of the hints is false, a page is
   fresh (1 − m) S(δ) + m (1/τ) ∫₀^τ S of the time, at (1 − m)(−S′(δ))/q + 1/τ visits per second
   (hinted plus periodic visits); or it has periodic visits alone.

Each page takes the better choice at the price of a visit; the price is such that the budget is
spent. The result is the best long-run freshness of any schedule without foresight, for pages that
continue to change as before; the index policy comes close to it. The periodic visits of a page are
at most `ROUNDS_MOST` rounds apart.

Source: 1 and the price form are Wolf et al., WWW 2002; 2 and 3 are this project's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.hawkes import Hawkes
from crawld.core.change.quiet_time import caused_changes, window_exposure_s
from crawld.core.units import YEAR_S

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

GRID_S: Final = np.geomspace(1.0, 20 * YEAR_S, 180)
"""Grid of waits, seconds: 10 % apart, which costs less than .001 of freshness; from one second on,
since a fast host can be polled that often."""

MODEL_GAPS: Final = 10.0
"""Gaps of a page's history that the model counts for. With 30, forecasts are up to .015 higher
where pages have few changes; with none, up to .03 lower."""

MIN_CHANGES: Final = 3
"""A page with no more exact changes is described by its rate and the model of its site."""

ROUNDS_MOST: Final = 16.0
_PRICE_LEAST, _PRICE_MOST = 1e-3, 1e12
_STEPS = 17
"""Each step halves the logarithm of the range: the price is right to a three-thousandth. The
freshness is then right to a millionth, since what a visit gains next is worth the price."""
_SHORT = 1e-9
_RATE_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class HintQuality:
    """Quality of the hints of one or more sources.

    Attributes:
        lag_s: time from a change to its hint, polls included, seconds.
        missed_share: share of changes never reported. trust: share of hints that are true, > 0.
    """

    lag_s: float
    missed_share: float = 0.0
    trust: float = 1.0


@dataclass(frozen=True, slots=True)
class FreshnessForecast:
    """Freshness and mean age for a budget, and the requests used.

    Attributes:
        freshness: share of page time, weighted by importance. age_s: mean age, seconds.
        visits_per_s: requests used; less than the budget if more would gain nothing.
    """

    freshness: float
    age_s: float
    visits_per_s: float


@dataclass(frozen=True, eq=False)
class SurvivalCurves:
    """Survival functions of pages and their integrals on `GRID_S`, arrays of shape (pages, waits).

    Attributes:
        survival: S. density: −S′, 1/s. survival_integral: ∫₀^τ S, seconds.
        age_integral: ∫₀^τ (τ − u)(1 − S(u)) du, seconds².
        weight: importance of each page, shape (pages,).
    """

    survival: Floats
    density: Floats
    survival_integral: Floats
    age_integral: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def periodic(self) -> tuple[Floats, Floats]:
        """Freshness and mean age of periodic visits at each wait, without hints."""
        return self.survival_integral / GRID_S, self.age_integral / GRID_S

    def forecast(self, visits_per_s: float, hints: HintQuality | None = None) -> FreshnessForecast:
        """Return the freshness that a budget can maintain.

        Args:
            visits_per_s: of all pages together, > 0.
        """
        if not len(self):
            return FreshnessForecast(1.0, 0.0, 0.0)
        choices = _Choices(self, visits_per_s, hints)
        low, high = math.log(_PRICE_LEAST), math.log(_PRICE_MOST)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            spent = float(choices.at_price(math.exp(middle)).visits.sum())
            low, high = (low, middle) if spent <= visits_per_s else (middle, high)
        within, beyond = choices.at_price(math.exp(high)), choices.at_price(math.exp(low))
        # The grid is coarse and pages may be few: the rest pays for a part of the next step.
        more = float((beyond.visits - within.visits).sum())
        part = min(max((visits_per_s - float(within.visits.sum())) / more, 0.0), 1.0) if more else 0
        fresh, visits = (
            (1.0 - part) * a + part * b
            for a, b in ((within.fresh, beyond.fresh), (within.visits, beyond.visits))
        )
        age = (1.0 - part) * choices.age(within) + part * choices.age(beyond)
        total = float(self.weight.sum())
        return FreshnessForecast(
            float(self.weight @ fresh) / total,
            float(self.weight @ age) / total,
            float(visits.sum()),
        )

    def hinted_age(self, pages: Places, wait: Places) -> Floats:
        """Return the mean age of copies that are refreshed after each gap longer than a wait.

        A stale period lasts until such a gap: its mean length is (1 − S)/visits, and beyond the
        wait it is nearly exponential.
        """
        visits = np.maximum(self.density[pages, wait], _SHORT / GRID_S[-1])
        spell = (1.0 - self.survival[pages, wait]) / visits
        waiting = np.minimum(GRID_S[wait], spell)
        beyond = spell - waiting
        return np.asarray(visits * (0.5 * waiting**2 + waiting * beyond + beyond**2))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The choice of each page at a price of a visit.

    Attributes:
        alone, beside, hinted: places of waits on `GRID_S`: of periodic visits without hints, of
            those beside hints, and from the last report to the visit that it causes.
        is_hinted: whether the page is visited by hints.
        fresh: share of the time in which it is fresh. visits: per second.
    """

    alone: Places
    beside: Places
    hinted: Places
    is_hinted: NDArray[np.bool_]
    fresh: Floats
    visits: Floats


class _Choices:
    """What the pages can choose from with a budget and hints, whatever a visit costs."""

    def __init__(
        self, curves: SurvivalCurves, visits_per_s: float, hints: HintQuality | None
    ) -> None:
        most_s = max(ROUNDS_MOST * len(curves) / visits_per_s, GRID_S[1])
        waits = slice(0, int(np.searchsorted(GRID_S, most_s, side="right")))
        self._curves = curves
        self._pages = np.arange(len(curves))
        self._fresh = curves.periodic[0][:, waits]
        self._every = 1.0 / GRID_S[waits]
        self._valued = curves.weight[:, None] * self._fresh
        self._has_hints = hints is not None and hints.missed_share < 1.0
        if hints is None or not self._has_hints:
            return
        self._rare = rare = hints.missed_share
        # A hinted page is visited once it is unchanged for a wait not shorter than the lag.
        self._first = int(np.searchsorted(GRID_S, hints.lag_s))
        self._survival = curves.survival[:, self._first :]
        density = curves.density[:, self._first :]
        self._cost = (1.0 - rare) / hints.trust * density
        # A wait that almost no gap exceeds would mean that the page is never visited.
        self._is_visited = density * most_s >= 1.0
        valued = curves.weight[:, None] * (1.0 - rare) * self._survival
        self._hint_value = np.where(self._is_visited, valued, -np.inf)

    def at_price(self, price: float) -> _Chosen:
        """Return what is best at a price of a visit."""
        pages, weight = self._pages, self._curves.weight
        alone = (self._valued - price * self._every).argmax(axis=1)
        fresh, visits = self._fresh[pages, alone], self._every[alone]
        if not self._has_hints:
            return _Chosen(alone, alone, alone, np.zeros(len(pages), bool), fresh, visits)
        rare, beside = self._rare, alone
        hinted = (self._hint_value - price * self._cost).argmax(axis=1)
        by_hints, spent = (1.0 - rare) * self._survival[pages, hinted], self._cost[pages, hinted]
        if rare > 0.0:
            beside = (self._valued - price / rare * self._every).argmax(axis=1)
            by_hints += rare * self._fresh[pages, beside]
            spent += self._every[beside]
        is_better = weight * by_hints - price * spent > weight * fresh - price * visits
        is_better &= self._is_visited[pages, hinted]
        fresh, visits = np.where(is_better, by_hints, fresh), np.where(is_better, spent, visits)
        return _Chosen(alone, beside, hinted, is_better, fresh, visits)

    def age(self, chosen: _Chosen) -> Floats:
        """Return the mean age of each page, seconds."""
        pages, age = self._pages, self._curves.periodic[1]
        alone = age[pages, chosen.alone]
        if not self._has_hints:
            return alone
        rare = self._rare
        hinted = (1.0 - rare) * self._curves.hinted_age(pages, self._first + chosen.hinted)
        return np.where(chosen.is_hinted, hinted + rare * age[pages, chosen.beside], alone)


def survival_curves(
    rates: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    model: Hawkes,
    gaps_s: Sequence[ArrayLike | None] | None = None,
    model_gaps: float = MODEL_GAPS,
) -> SurvivalCurves:
    """Return the survival curves of pages: those of the model, drawn to the gaps of their history.

    Args:
        rates: changes per second of each page.
        weights: importance; None: all 1.
        model: of the site: how changes cause others. `POISSON`: they cause none.
        gaps_s: gaps between changes of each page, seconds, the current open one included; None if
            no history is known.
        model_gaps: how many gaps of a page the model counts for.
    """
    rate = np.maximum(np.asarray(rates, np.float64), _RATE_LEAST)
    result = _curves_of_model(rate, model)
    for page, gaps in enumerate(gaps_s or ()):
        if gaps is None:
            continue
        known = np.asarray(gaps, np.float64)
        share = len(known) / (len(known) + model_gaps)
        for table, own in zip(result, _curves_of_gaps(known), strict=True):
            table[page] += share * (own - table[page])
    weight = np.ones(len(rate)) if weights is None else np.asarray(weights, np.float64)
    return SurvivalCurves(*result, weight)


def _curves_of_model(rate: Floats, model: Hawkes) -> tuple[Floats, Floats, Floats, Floats]:
    """Return S, −S′ and the two integrals on the grid, for pages of these rates."""
    exposure = np.append(0.0, window_exposure_s(model, tuple(GRID_S.tolist())))
    grid = np.append(0.0, GRID_S)
    first = ((1.0 - caused_changes(model)) * rate)[:, None]
    # Between two points of the grid the exposure is linear, so that S falls by a constant hazard.
    step, fall = np.diff(grid), first * np.diff(exposure)
    survival = np.exp(-first * exposure)
    lasting = np.where(fall > _SHORT, -np.expm1(-fall) / np.maximum(fall, _SHORT), 1.0)
    integral = np.cumsum(survival[:, :-1] * step * lasting, axis=1)
    stale = np.maximum(GRID_S - integral, 0.0)
    age = np.cumsum(0.5 * step * (stale + np.pad(stale[:, :-1], ((0, 0), (1, 0)))), axis=1)
    density = first * np.gradient(exposure, grid)[1:] * survival[:, 1:]
    return survival[:, 1:], density, integral, age


def gaps_of_last_year(changed_at: ArrayLike, now: float) -> Floats | None:
    """Return the gaps between changes of a page, seconds, the open one included.

    Those of the last year, or all if that has no more than `MIN_CHANGES`; None if there are no more
    at all.
    """
    known = np.unique(np.minimum(changed_at, now))
    recent = known[known >= now - YEAR_S]
    used = recent if len(recent) > MIN_CHANGES else known
    return np.diff(used, append=now) if len(used) > MIN_CHANGES else None


def _curves_of_gaps(gaps: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return S, −S′ and the two integrals on the grid, exactly, from sums over sorted gaps."""
    gaps = np.sort(gaps[gaps > 0])
    total = gaps.sum()
    first = np.searchsorted(gaps, GRID_S, side="right")
    above = len(gaps) - first
    sums = [np.concatenate([np.cumsum((gaps**k)[::-1])[::-1], [0.0]])[first] for k in (1, 2, 3)]
    s = GRID_S
    survival = (sums[0] - s * above) / total
    beyond2 = sums[1] - 2 * s * sums[0] + s**2 * above
    beyond3 = sums[2] - 3 * s * sums[1] + 3 * s**2 * sums[0] - s**3 * above
    integral = 0.5 * ((gaps**2).sum() - beyond2) / total
    # The age integral is s²/2 − ∫₀^s ∫₀^u S.
    twice = (0.5 * (gaps**2).sum() * s - ((gaps**3).sum() - beyond3) / 6.0) / total
    return np.maximum(survival, 0.0), above / total, integral, np.maximum(0.5 * s**2 - twice, 0.0)


def least_budget(
    freshness_of: Callable[[float], float],
    target: float,
    *,
    least: float,
    most: float,
    precision: float = 1e-3,
) -> float | None:
    """Return the least budget whose freshness reaches a target, by bisection on its logarithm.

    Args:
        freshness_of: freshness of a budget, non-decreasing; the budget in any unit.
        precision: relative error of the result.

    Returns:
        The budget; None if even `most` does not reach the target.
    """
    if freshness_of(most) < target:
        return None
    low, high = math.log(least), math.log(most)
    while high - low > precision:
        middle = 0.5 * (low + high)
        enough = freshness_of(math.exp(middle)) >= target
        low, high = (low, middle) if enough else (middle, high)
    return math.exp(high)
