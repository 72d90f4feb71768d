"""Renewal distributions compared with Poisson closed forms, numeric integrals and simulation."""

import numpy as np
import pytest

from crawld.core.change import renewal
from crawld.core.change.renewal import (
    EDGES_S,
    Renewal,
    exponential_edges,
    exponential_mass,
    fit,
    renewal_function,
)

BURSTY = Renewal(renewal.EDGES_S, np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0]))
FINE = exponential_edges(400, 0.02, 1.01)
POISSON = Renewal(FINE, renewal.exponential_mass(np.array(1.0), FINE))
"""A Poisson page of rate 1, in fine bins."""


def test_ten_bins_of_exponentially_growing_width():
    widths = np.diff(renewal.EDGES_S)
    assert len(widths) == 10
    assert widths[1:] / widths[:-1] == pytest.approx(4.0)


@pytest.mark.parametrize("tau", [0.05, 0.5, 1.793, 4.0, 9.0])
def test_a_poisson_page_has_the_closed_forms(tau):
    kept = np.exp(-tau)
    assert float(POISSON.mean()) == pytest.approx(1.0, rel=1e-3)
    assert float(POISSON.survival(tau)) == pytest.approx(kept, abs=1e-3)
    assert float(POISSON.equilibrium_survival(tau)) == pytest.approx(kept, abs=1e-3)
    assert float(POISSON.visit_value(tau)) == pytest.approx(1 - kept * (1 + tau), abs=2e-3)
    assert float(POISSON.residual_mean(tau)) == pytest.approx(1.0, rel=0.02)


def test_integrals_agree_with_quadrature():
    for tau in (500.0, 3e4, 5e5, 4e6):
        s = np.linspace(0.0, tau, 200_001)
        middle = 0.5 * (s[1:] + s[:-1])
        step = s[1]
        survival = BURSTY.survival(middle).sum() * step
        equilibrium = BURSTY.equilibrium_survival(middle).sum() * step
        assert float(BURSTY.integrated_survival(tau)) == pytest.approx(survival, rel=1e-5)
        value = equilibrium - tau * float(BURSTY.equilibrium_survival(tau))
        assert float(BURSTY.visit_value(tau)) == pytest.approx(value, rel=1e-4)


def test_the_value_of_a_visit_has_its_published_limit():
    limit = float(BURSTY.second_moment() / (2.0 * BURSTY.mean()))
    assert float(BURSTY.visit_value(renewal.EDGES_S[-1])) == pytest.approx(limit, rel=1e-9)


def test_the_renewal_function_of_a_poisson_page_is_linear():
    table = renewal_function(POISSON, horizon=20.0, points=256)
    y = np.array([0.1, 1.0, 3.0, 8.0])
    assert table.residual_life(y) == pytest.approx(np.ones(4), abs=0.03)


def test_wald_agrees_with_simulated_renewals():
    rng = np.random.default_rng(6)
    mean = float(BURSTY.mean())
    table = renewal_function(BURSTY, horizon=10 * mean, points=256)
    cumulative = np.concatenate(([0.0], BURSTY.mass.cumsum()))
    gaps = np.interp(rng.random((20_000, 120)), cumulative, BURSTY.edges)
    walks = gaps.cumsum(axis=1)
    for y in (1e3, 1e5, 1e6):
        next_change = np.array([walk[np.searchsorted(walk, y, side="right")] for walk in walks])
        spread = (next_change - y).std() / np.sqrt(len(walks))
        residual = float(table.residual_life(y))
        assert abs((next_change - y).mean() - residual) < 4.0 * spread + 0.01 * residual
    assert float(table.residual_life(1e12)) == pytest.approx(float(table.excess))


def test_a_stack_gives_the_same_as_its_pages():
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 9, (5, 10)).astype(float)
    ages = rng.uniform(0.0, 1e6, 5)
    stack = renewal.fit_counts(counts, ages, prior=np.full(10, 0.1))
    tau = rng.uniform(1e3, 1e7, 5)
    grid = rng.uniform(1e3, 1e7, (5, 3))
    table = renewal_function(stack, horizon=1e8, points=64)
    for page in range(5):
        alone = Renewal(stack.edges, stack.mass[page])
        for name in ("survival", "visit_value", "residual_mean", "equilibrium_survival"):
            whole = getattr(stack, name)
            assert whole(tau)[page] == pytest.approx(float(getattr(alone, name)(tau[page])))
            assert whole(grid)[page] == pytest.approx(getattr(alone, name)(grid[page]))
        single = renewal_function(alone, horizon=1e8, points=64)
        assert table.residual_life(tau)[page] == pytest.approx(
            float(single.residual_life(tau[page]))
        )


def test_an_open_gap_moves_mass_beyond_it():
    gaps = [100.0] * 10 + [1e5] * 10
    without = fit(gaps)
    with_open = fit(gaps, open_gaps=[5e4] * 10)
    assert float(with_open.survival(5e4)) > float(without.survival(5e4)) + 0.1
    assert with_open.mass.sum() == pytest.approx(1.0)


def test_censored_gaps_are_estimated_without_bias():
    rng = np.random.default_rng(9)
    gaps = rng.exponential(1.0, 20_000)
    horizon = rng.exponential(1.0, 20_000)
    closed, open_ = gaps[gaps <= horizon], horizon[gaps > horizon]
    edges = exponential_edges(40, 0.02, 1.15)
    fitted = fit(closed, edges=edges, open_gaps=open_)
    for x in (0.2, 0.7, 1.5, 2.5):
        assert float(fitted.survival(x)) == pytest.approx(np.exp(-x), abs=0.02)


@pytest.mark.parametrize("age", [0.0, 1.0, 1e9, 1e12])
def test_any_age_gives_valid_results(age):
    """Including a page older than any gap in its histogram."""
    assert 0.0 <= float(BURSTY.conditional_survival(age, 1e5)) <= 1.0
    assert 0.0 < float(BURSTY.residual_mean(age)) < np.inf


def test_a_page_without_any_gap_still_has_a_distribution():
    blank = fit([])
    assert blank.mass.sum() == pytest.approx(1.0)
    assert float(blank.mean()) > 0


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-5])
def test_the_renewal_function_of_a_fast_page_stays_near_its_limit(rate):
    page = Renewal(EDGES_S, exponential_mass(np.array([rate])))
    table = renewal_function(page, horizon=2 * 365 * 86_400.0, points=96)
    mean = float(table.mean[0])
    assert np.all(np.diff(table.expected) > 0.0)
    late = table.grid > 3.0 * mean
    limit = table.grid / mean + float(table.excess[0]) / mean - 1.0
    assert table.expected[0, late] == pytest.approx(limit[late], rel=0.1)
