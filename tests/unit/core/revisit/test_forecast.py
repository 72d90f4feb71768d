"""Forecasts: closed forms, the effect of hints, the budget for a target."""

import math
from itertools import pairwise

import numpy as np
import pytest

from crawld.core.change.hawkes import POISSON
from crawld.core.revisit.forecast import GRID_S, HintQuality, least_budget, survival_curves
from crawld.core.revisit.freshness import Order, mean_age, mean_freshness

DAY = 86_400.0


def equal_pages(count=20, rate=1 / DAY):
    return survival_curves(np.full(count, rate), model=POISSON)


@pytest.mark.parametrize("visits_per_change", [0.2, 0.6, 1.0, 3.0, 10.0])
def test_equal_poisson_pages_are_visited_equally(visits_per_change):
    frequency = visits_per_change / DAY
    got = equal_pages().forecast(20 * frequency)
    if visits_per_change >= 0.6:
        fresh = float(mean_freshness(Order.FIXED, 1 / DAY, frequency))
        age = float(mean_age(Order.FIXED, 1 / DAY, frequency))
        assert got.freshness == pytest.approx(fresh, abs=2e-3)
        assert got.age_s == pytest.approx(age, rel=0.03)
    assert got.visits_per_s == pytest.approx(20 * frequency, rel=1e-6)


def test_exact_gaps_agree_with_a_count_over_the_history():
    rng = np.random.default_rng(0)
    changes = np.sort(rng.uniform(0, 100 * DAY, 40) ** 2 / (100 * DAY))
    gaps_s = np.diff(changes, prepend=0.0, append=100 * DAY)
    pages = survival_curves([1.0], model=POISSON, gaps_s=[gaps_s], model_gaps=0.0)
    starts = np.linspace(0, 100 * DAY, 400_001)[:-1]
    following = np.append(changes, 100 * DAY)[np.searchsorted(changes, starts, side="right")]
    for index in (60, 90, 110):
        wait = GRID_S[index]
        calm = float((following - starts > wait).mean())
        area = float(np.minimum(following - starts, wait).mean())
        stale = np.maximum(wait - (following - starts), 0.0)
        assert pages.survival[0, index] == pytest.approx(calm, abs=1e-3)
        assert pages.survival_integral[0, index] == pytest.approx(area, rel=2e-3)
        assert pages.age_integral[0, index] == pytest.approx(
            float((stale**2 / 2).mean()), rel=2e-2, abs=1
        )


def test_with_enough_visits_hints_lose_only_the_lag():
    pages = equal_pages()
    outlook = pages.forecast(100 / DAY, HintQuality(3600.0))
    assert outlook.freshness == pytest.approx(math.exp(-3600.0 / DAY), abs=5e-3)


def test_better_hints_give_more_freshness():
    pages = survival_curves(np.geomspace(0.01, 10, 40) / DAY, model=POISSON)
    held = [
        pages.forecast(20 / DAY, hints).freshness
        for hints in (
            None,
            HintQuality(60.0, 1.0, 0.5),
            HintQuality(60.0, 0.5, 0.3),
            HintQuality(3600.0, 0.1, 0.9),
            HintQuality(60.0, 0.1, 0.9),
            HintQuality(60.0),
        )
    ]
    assert held[0] == held[1]
    assert held[1:] == sorted(held[1:])
    assert held[-1] > held[0] + 0.05


def test_more_visits_give_more_freshness():
    pages = survival_curves(np.geomspace(0.01, 10, 30) / DAY, model=POISSON)
    budgets = np.geomspace(0.1, 1000, 25) / DAY
    for hints in (None, HintQuality(60.0), HintQuality(600.0, 0.2, 0.8)):
        held = [pages.forecast(budget, hints) for budget in budgets]
        assert all(b.freshness >= a.freshness - 1e-3 for a, b in pairwise(held))
        for one, budget in zip(held, budgets, strict=True):
            assert one.visits_per_s <= budget * (1 + 1e-6)


def test_important_pages_are_kept_fresher():
    rates = [1 / DAY] * 2
    pages = survival_curves(rates, [10.0, 1.0], model=POISSON)
    alone = survival_curves(rates, model=POISSON)
    assert pages.forecast(1 / DAY).freshness > alone.forecast(1 / DAY).freshness


def test_least_budget_just_reaches_its_target():
    pages = survival_curves(np.geomspace(0.01, 10, 30) / DAY, model=POISSON)

    def budget(target, hints=None, most=1e3):
        def freshness_of(visits_per_s):
            return pages.forecast(visits_per_s, hints).freshness

        return least_budget(freshness_of, target, least=1e-9, most=most)

    assert pages.forecast(budget(0.95)).freshness == pytest.approx(0.95, abs=2e-3)
    assert budget(0.95, HintQuality(60.0)) < 0.7 * budget(0.95)
    assert budget(0.99, HintQuality(3 * DAY), most=1e-4) is None


def test_no_pages_are_fully_fresh():
    assert survival_curves([], model=POISSON).forecast(1.0).freshness == 1.0
