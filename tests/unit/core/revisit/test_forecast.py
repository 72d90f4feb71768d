"""The outlook: closed forms, what hints add, the inverse question."""

import math
from itertools import pairwise

import numpy as np
import pytest

from crawld.core.revisit.forecast import GRID_S, Told, budget_for, pages_of
from crawld.core.revisit.freshness import Order, mean_age, mean_freshness

DAY = 86_400.0


def alike(count=20, rate=1 / DAY):
    return pages_of([None] * count, np.full(count, rate))


@pytest.mark.parametrize("visits_per_change", [0.2, 0.6, 1.0, 3.0, 10.0])
def test_poisson_pages_alike_are_visited_equally(visits_per_change):
    frequency = visits_per_change / DAY
    got = alike().outlook(20 * frequency)
    if visits_per_change >= 0.6:
        fresh = float(mean_freshness(Order.FIXED, 1 / DAY, frequency))
        age = float(mean_age(Order.FIXED, 1 / DAY, frequency))
        assert got.freshness == pytest.approx(fresh, abs=2e-3)
        assert got.age_s == pytest.approx(age, rel=0.03)
    assert got.visits_per_s == pytest.approx(20 * frequency, rel=1e-6)


def test_exact_gaps_say_what_a_count_over_the_history_says():
    rng = np.random.default_rng(0)
    changes = np.sort(rng.uniform(0, 100 * DAY, 40) ** 2 / (100 * DAY))
    pages = pages_of([np.diff(changes, prepend=0.0, append=100 * DAY)], [1.0])
    starts = np.linspace(0, 100 * DAY, 400_001)[:-1]
    following = np.append(changes, 100 * DAY)[np.searchsorted(changes, starts, side="right")]
    for index in (60, 90, 110):
        wait = GRID_S[index]
        calm = float((following - starts > wait).mean())
        area = float(np.minimum(following - starts, wait).mean())
        stale = np.maximum(wait - (following - starts), 0.0)
        assert pages.calm[0, index] == pytest.approx(calm, abs=1e-3)
        assert pages.area[0, index] == pytest.approx(area, rel=2e-3)
        assert pages.aging[0, index] == pytest.approx(float((stale**2 / 2).mean()), rel=2e-2, abs=1)


def test_hints_hold_all_but_the_lag_where_visits_are_enough():
    pages = alike()
    outlook = pages.outlook(100 / DAY, Told(3600.0))
    assert outlook.freshness == pytest.approx(math.exp(-3600.0 / DAY), abs=5e-3)


def test_better_hints_are_worth_more_and_none_are_worth_nothing():
    pages = pages_of([None] * 40, np.geomspace(0.01, 10, 40) / DAY)
    held = [
        pages.outlook(20 / DAY, told).freshness
        for told in (
            None,
            Told(60.0, 1.0, 0.5),
            Told(60.0, 0.5, 0.3),
            Told(3600.0, 0.1, 0.9),
            Told(60.0, 0.1, 0.9),
            Told(60.0),
        )
    ]
    assert held[0] == held[1]
    assert held[1:] == sorted(held[1:])
    assert held[-1] > held[0] + 0.05


def test_more_visits_hold_more():
    pages = pages_of([None] * 30, np.geomspace(0.01, 10, 30) / DAY)
    budgets = np.geomspace(0.1, 1000, 25) / DAY
    for told in (None, Told(60.0), Told(600.0, 0.2, 0.8)):
        held = [pages.outlook(budget, told) for budget in budgets]
        assert all(b.freshness >= a.freshness - 1e-3 for a, b in pairwise(held))
        for one, budget in zip(held, budgets, strict=True):
            assert one.visits_per_s <= budget * (1 + 1e-6)


def test_importance_decides_who_is_held():
    rates = [1 / DAY] * 2
    pages = pages_of([None] * 2, rates, [10.0, 1.0])
    alone = pages_of([None] * 2, rates)
    assert pages.outlook(1 / DAY).freshness > alone.outlook(1 / DAY).freshness


def test_the_budget_for_a_freshness_holds_it():
    pages = pages_of([None] * 30, np.geomspace(0.01, 10, 30) / DAY)
    budget = budget_for(pages, 0.95)
    assert pages.outlook(budget).freshness == pytest.approx(0.95, abs=2e-3)
    assert budget_for(pages, 0.95, Told(60.0)) < 0.7 * budget
    assert budget_for(pages, 0.99, Told(3 * DAY), most_per_s=1e-4) is None


def test_no_pages_are_as_fresh_as_can_be():
    assert pages_of([], []).outlook(1.0).freshness == 1.0
