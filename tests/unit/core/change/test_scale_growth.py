"""How much longer copies stay fresh after a long wait than the scale promises."""

import numpy as np
import pytest

from crawld.core.change.scale import fit_scale
from crawld.core.change.scale_growth import WAITS, growth_at
from crawld.lab.histories import from_times
from crawld.lab.site_shapes import site

DAY_S = 86_400.0


def growth_of(times, at):
    histories = from_times({str(page): own for page, own in enumerate(times)})
    return fit_scale(histories.changed_at, histories.offsets, at=at).growth


def test_pages_of_a_constant_rate_do_not_grow():
    rng = np.random.default_rng(1)
    means = np.exp(rng.uniform(np.log(0.5), np.log(40.0), 60)) * DAY_S
    times = [np.cumsum(rng.exponential(mean, 4_000)) for mean in means]
    at = 900 * DAY_S
    assert growth_of([own[own < at] for own in times], at).max() < 0.1


def test_pages_that_calm_down_are_fresh_for_longer_the_longer_one_waits():
    scenario = site("young-news", pages=120, seed=4)
    past = scenario.histories.before(scenario.start)
    growth = fit_scale(past.changed_at, past.offsets, at=scenario.start).growth
    assert growth[:2].max() < 0.2  # within two scales a page is still as lively
    assert (np.diff(growth[4:]) >= 0.0).all()
    assert np.exp(growth[8]) > 10.0


def test_a_few_pages_that_fell_silent_tell_little():
    rng = np.random.default_rng(3)
    times = [np.cumsum(rng.exponential(5 * DAY_S, 100)) for _ in range(30)]
    fallen = [np.cumsum(rng.exponential(DAY_S, 10)) for _ in range(2)]
    at = 400 * DAY_S
    few = growth_of([own[own < at] for own in times + fallen], at)
    many = growth_of([own[own < at] for own in times + fallen * 30], at)
    assert few.max() < many.max()


def test_a_site_without_history_does_not_grow():
    model = fit_scale(np.empty(0), np.zeros(1, np.int64), at=0.0)
    assert (model.growth == 0.0).all()
    assert growth_at(model.growth, np.array([0.0, 1.0, 1e5])) == pytest.approx(1.0)


def test_the_growth_is_that_of_the_nearest_waits():
    growth = np.linspace(0.0, 2.0, len(WAITS))
    assert growth_at(growth, WAITS) == pytest.approx(np.exp(growth))
    assert float(growth_at(growth, np.array([1e6]))[0]) == pytest.approx(np.exp(2.0))
    assert float(growth_at(growth + 1.0, np.array([0.1]))[0]) == 1.0
