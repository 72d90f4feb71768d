"""Forecasts the freshness that a request budget can maintain, from the histories of the pages.

Everything follows from one function of a page, S(s) = Pr[no change within s of a random time]. It
is computed from the gaps X: S(s) = E[(X − s)⁺] / E[X]. No renewal assumption is needed.

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

Floats = NDArray[np.float64]

GRID_S: Final = np.geomspace(1.0, 20 * 365 * 86_400.0, 180)
"""Grid of waits, seconds: 10 % apart, which costs less than .001 of freshness; from one second on,
since a fast host can be polled that often."""

ROUNDS_MOST: Final = 16.0
_STEPS = 32
_PRICE_LEAST, _PRICE_MOST = 1e-3, 1e12
_SHORT = 1e-9


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
        low, high = math.log(_PRICE_LEAST), math.log(_PRICE_MOST)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            spent = self._at_price(math.exp(middle), visits_per_s, hints)[1].sum()
            low, high = (low, middle) if spent <= visits_per_s else (middle, high)
        within = self._at_price(math.exp(high), visits_per_s, hints)
        beyond = self._at_price(math.exp(low), visits_per_s, hints)
        # The grid is coarse and pages may be few: the rest pays for a part of the next step.
        more = float((beyond[1] - within[1]).sum())
        part = min(max((visits_per_s - float(within[1].sum())) / more, 0.0), 1.0) if more > 0 else 0
        fresh, visits, age = (
            (1.0 - part) * a + part * b for a, b in zip(within, beyond, strict=True)
        )
        total = float(self.weight.sum())
        return FreshnessForecast(
            float(self.weight @ fresh) / total,
            float(self.weight @ age) / total,
            float(visits.sum()),
        )

    def _at_price(
        self, price: float, visits_per_s: float, hints: HintQuality | None
    ) -> tuple[Floats, Floats, Floats]:
        """Return freshness, visits per second and mean age of each page at a price of a visit."""
        most_s = max(ROUNDS_MOST * len(self) / visits_per_s, GRID_S[1])
        waits = slice(0, int(np.searchsorted(GRID_S, most_s, side="right")))
        fresh, age = (table[:, waits] for table in self.periodic)
        weight = self.weight[:, None]
        every = 1.0 / GRID_S[waits]
        pages = np.arange(len(self))
        alone = (weight * fresh - price * every).argmax(axis=1)
        result = fresh[pages, alone], every[alone], age[pages, alone]
        if hints is None or hints.missed_share >= 1.0:
            return result
        rare = hints.missed_share
        beside = (weight * rare * fresh - price * every).argmax(axis=1)
        if rare <= 0.0:
            beside_fresh, beside_visits, beside_age = np.zeros((3, len(self)))
        else:
            beside_fresh, beside_visits = fresh[pages, beside], every[beside]
            beside_age = age[pages, beside]
        # A hinted page is visited once it is unchanged for a wait not shorter than the lag.
        first = int(np.searchsorted(GRID_S, hints.lag_s))
        survival, visits = self.survival[:, first:], self.density[:, first:]
        cost = (1.0 - rare) / hints.trust * visits
        value = weight * (1.0 - rare) * survival - price * cost
        # A wait that almost no gap exceeds would mean that the page is never visited.
        best = np.where(visits * most_s >= 1.0, value, -np.inf).argmax(axis=1)
        hinted = (
            (1.0 - rare) * survival[pages, best] + rare * beside_fresh,
            cost[pages, best] + beside_visits,
            (1.0 - rare) * self._hinted_age(pages, first + best) + rare * beside_age,
        )
        better = self.weight * hinted[0] - price * hinted[1] > (
            self.weight * result[0] - price * result[1]
        )
        better &= visits[pages, best] * most_s >= 1.0
        fresh, spent, aged = (np.where(better, a, b) for a, b in zip(hinted, result, strict=True))
        return fresh, spent, aged

    def _hinted_age(self, pages: NDArray[np.int64], wait: NDArray[np.int64]) -> Floats:
        """Return the mean age of copies that are refreshed after each gap longer than a wait.

        A stale period lasts until such a gap: its mean length is (1 − S)/visits, and beyond the
        wait it is nearly exponential.
        """
        visits = np.maximum(self.density[pages, wait], _SHORT / GRID_S[-1])
        spell = (1.0 - self.survival[pages, wait]) / visits
        waiting = np.minimum(GRID_S[wait], spell)
        beyond = spell - waiting
        return np.asarray(visits * (0.5 * waiting**2 + waiting * beyond + beyond**2))


def survival_curves(
    gaps_s: Sequence[ArrayLike | None], rates: ArrayLike, weights: ArrayLike | None = None
) -> SurvivalCurves:
    """Return the survival curves of pages.

    Args:
        gaps_s: gaps between changes of each page, seconds, the current open one included; None if
            no history is known.
        rates: changes per second of pages without a history, taken as Poisson; same length.
        weights: importance; None: all 1.
    """
    rate = np.maximum(np.asarray(rates, np.float64), 1e-12)[:, None]
    falling = np.exp(-rate * GRID_S)
    survival, density = falling, rate * falling
    integral = -np.expm1(-rate * GRID_S) / rate
    age_integral = np.maximum(0.5 * GRID_S**2 - (GRID_S - integral) / rate, 0.0)
    for page, gaps in enumerate(gaps_s):
        if gaps is not None:
            survival[page], density[page], integral[page], age_integral[page] = _curves_of_gaps(
                np.asarray(gaps, np.float64)
            )
    weight = np.ones(len(rate)) if weights is None else np.asarray(weights, np.float64)
    return SurvivalCurves(survival, density, integral, age_integral, weight)


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
