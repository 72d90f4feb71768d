"""The index of a renewal page: closed forms, and the gain of the policy that follows it."""

import numpy as np
import pytest

from crawld.core.change.renewal import Renewal
from crawld.core.change.scale import SHAPE_EDGES
from crawld.core.revisit.renewal_index import AGES, WAITS, index_values

PERIODIC = Renewal(np.array([0.0, 0.97, 1.03, 2.0]), np.array([1e-9, 1.0 - 2e-9, 1e-9]))
YOUNG = AGES < 0.9


def shape_of(density):
    """Return a shape with the edges of the fits, from its survival."""
    survival = density(SHAPE_EDGES)
    survival[-1] = 0.0
    mass = survival[:-1] - survival[1:]
    return Renewal(SHAPE_EDGES, mass / mass.sum())


def at(index, age, wait):
    row, column = np.abs(age - AGES).argmin(), np.abs(wait - WAITS).argmin()
    return float(index[row, column]), float(WAITS[column])


@pytest.mark.parametrize("age", [0.0, 0.1, 1.0])
def test_a_poisson_page_has_the_known_index_at_every_age(age):
    edges = np.concatenate(([0.0], np.geomspace(0.01, 40.0, 150)))
    survival = np.exp(-edges)
    survival[-1] = 0.0
    index = index_values(Renewal(edges, survival[:-1] - survival[1:]))
    for wait in (0.2, 0.5, 1.0, 2.0, 5.0):
        found, exact_wait = at(index, age, wait)
        known = 1.0 - np.exp(-exact_wait) * (1.0 + exact_wait)
        assert found == pytest.approx(known, rel=0.12)


def test_a_periodic_page_is_worth_a_period_once_it_has_changed_whenever_the_last_visit_was():
    index = index_values(PERIODIC)
    for row, age in enumerate(AGES[YOUNG].tolist()):
        before, after = np.searchsorted(WAITS, (0.97 - age, 1.4 * (1.05 - age)))
        assert index[row, :before].max() < 0.1
        assert index[row, after] == pytest.approx(1.0, abs=0.13)


def test_the_index_does_not_fall_while_a_page_waits_and_is_zero_at_once():
    index = index_values(shape_of(lambda x: (1.0 + 3.0 * x) ** -1.2))
    assert np.all(np.diff(index, axis=1) >= -1e-12)
    assert np.all(index[:, 0] == 0.0)
    assert np.all(np.isfinite(index))


def test_after_a_burst_began_a_late_visit_is_worth_the_calm_and_not_the_burst():
    """Half of the intervals are a hundredth, half about two: a page at age 0 changes again soon."""
    index = index_values(shape_of(lambda x: 0.5 * np.exp(-x / 0.01) + 0.5 * np.exp(-x / 2.0)))
    mean, square = 0.5 * 0.01 + 0.5 * 2.0, 0.5 * 2 * 0.01**2 + 0.5 * 2 * 2.0**2
    residual = square / (2.0 * mean)
    found, _ = at(index, 0.0, 10.0)
    # The last copy was fresh for `mean` on average; the next one will be for the residual life.
    assert found > 0.5 * (mean + residual)


def wolf_waits(renewal, price):
    """Return the waits at which Wolf's value, conditioned on the age, reaches a price."""
    alive = np.maximum(renewal.survival(AGES), 1e-12)[:, None]
    grown = renewal.integrated_survival(AGES[:, None] + WAITS)
    fresh = grown - renewal.integrated_survival(AGES)[:, None]
    value = (fresh - WAITS * renewal.survival(AGES[:, None] + WAITS)) / alive
    return np.where((value >= price).any(axis=1), WAITS[(value >= price).argmax(axis=1)], WAITS[-1])


def gain(draw, waits, price, seed):
    """Return the fresh time per time, less the price of visits, of a simulated page."""
    rng = np.random.default_rng(seed)
    changes = np.cumsum(draw(rng, 40_000))
    now, fresh, visits, next_change = 0.0, 0.0, 0, 0
    while now < changes[-1] * 0.9:
        last = changes[next_change - 1] if next_change else 0.0
        wait = float(np.interp(now - last, AGES, waits))
        fresh += min(changes[next_change] - now, wait)
        now += wait
        visits += 1
        next_change = int(np.searchsorted(changes, now, side="right"))
    return (fresh - price * visits) / now


@pytest.mark.parametrize(("price", "least"), [(0.3, 0.05), (0.6, 0.05)])
def test_visits_at_the_index_gain_more_than_at_the_fresh_time_of_the_last_copy(price, least):
    index = index_values(PERIODIC)
    waits = np.where((index >= price).any(axis=1), WAITS[(index >= price).argmax(axis=1)], 50.0)

    def draw(rng, count):
        return rng.uniform(0.97, 1.03, count)

    ours = gain(draw, waits, price, 1)
    theirs = gain(draw, np.minimum(wolf_waits(PERIODIC, price), 50.0), price, 1)
    assert ours > theirs + least
