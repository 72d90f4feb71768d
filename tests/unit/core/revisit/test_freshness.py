"""Closed forms of freshness and age, compared with published figures, limits and simulation."""

import numpy as np
import pytest

from crawld.core.revisit.freshness import (
    Order,
    mean_age,
    mean_freshness,
    random_slot_freshness,
    visit_share,
)


def simulate(visits, rate, horizon, rng):
    """Return the fresh share and mean age of one page for given visit times."""
    changes = np.sort(rng.uniform(0, horizon, rng.poisson(rate * horizon)))
    following = np.append(visits[1:], horizon)
    first = np.append(changes, np.inf)[np.searchsorted(changes, visits)]
    stale = np.clip(following - first, 0, None)
    span = horizon - visits[0]
    return 1 - stale.sum() / span, (stale**2 / 2).sum() / span


def visits_in(order, horizon, rng):
    if order is Order.FIXED:
        return np.arange(0.0, horizon)
    if order is Order.RANDOM:
        return np.arange(0.0, horizon) + rng.uniform(size=int(horizon))
    return np.sort(rng.uniform(0, horizon, rng.poisson(horizon)))


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("rate", [0.2, 1.7, 6.0])
def test_closed_forms_agree_with_simulation(order, rate):
    rng = np.random.default_rng(7)
    fresh, age = simulate(visits_in(order, 200_000.0, rng), rate, 200_000.0, rng)
    assert mean_freshness(order, rate, 1.0) == pytest.approx(fresh, abs=4e-3)
    assert mean_age(order, rate, 1.0) == pytest.approx(age, rel=2e-2)


def test_published_figures():
    assert mean_freshness(Order.RANDOM, 1.7, 1.0) == pytest.approx(0.45227, abs=5e-6)
    assert mean_age(Order.RANDOM, 1.7, 1.0) == pytest.approx(0.26114, abs=5e-6)
    r = np.linspace(0.5, 4, 35_001)
    ratio = mean_freshness(Order.PURELY_RANDOM, r, 1.0) / mean_freshness(Order.FIXED, r, 1.0)
    assert ratio.min() == pytest.approx(0.7702, abs=5e-5)
    assert r[ratio.argmin()] == pytest.approx(1.793, abs=1e-3)


@pytest.mark.parametrize("order", list(Order))
def test_limits(order):
    fresh = mean_freshness(order, [0.0, 0.0, 1.0, np.inf], [0.0, 1.0, 0.0, 1.0])
    assert fresh.tolist() == [1.0, 1.0, 0.0, 0.0]
    age = mean_age(order, [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    assert age.tolist() == [0.0, 0.0, np.inf]
    for rate, frequency in [(-1.0, 1.0), (1.0, -1.0)]:
        with pytest.raises(ValueError, match="negative"):
            mean_freshness(order, rate, frequency)


def test_the_age_of_a_page_that_always_changes():
    ages = [float(mean_age(order, np.inf, 0.5)) for order in Order]
    assert ages == pytest.approx([1.0, 7 / 6, 2.0])
    assert ages == pytest.approx([float(mean_age(order, 1e9, 0.5)) for order in Order])


def test_a_small_change_rate_loses_no_digits():
    r = np.array([1e-12, 1e-6, 1e-3])
    assert mean_age(Order.FIXED, r, 1.0) == pytest.approx(r / 6 - r**2 / 24, rel=1e-6)
    assert mean_age(Order.RANDOM, r, 1.0) == pytest.approx(r / 4 - 31 / 360 * r**2, rel=1e-6)
    assert visit_share(r) == pytest.approx(r**2 / 2 - r**3 / 3, rel=1e-6)
    assert visit_share([1.0, np.inf]) == pytest.approx([1.0 - 2.0 / np.e, 1.0])


def test_a_page_drawn_at_random_slots():
    rng = np.random.default_rng(3)
    rate, share, slot = 0.4, 0.25, 1.0
    visits = np.flatnonzero(rng.uniform(size=400_000) < share) * slot
    fresh, _ = simulate(visits, rate, 400_000.0, rng)
    assert random_slot_freshness(rate, share, slot) == pytest.approx(fresh, abs=4e-3)
    fine = random_slot_freshness(rate, 1e-5, 1e-5 / 0.25)
    assert fine == pytest.approx(mean_freshness(Order.PURELY_RANDOM, rate, 0.25), rel=1e-4)
    assert random_slot_freshness([0.0, 1.0], 0.0, 1.0).tolist() == [1.0, 0.0]
    assert random_slot_freshness([0.0, np.inf], 0.5, 1.0).tolist() == [1.0, 0.0]
