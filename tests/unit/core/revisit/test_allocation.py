"""Allocation of revisit frequencies: optimality, ceilings and limits."""

from dataclasses import replace

import numpy as np
import pytest

import crawld.core.revisit.allocation as allocation_module
from crawld.core.revisit.allocation import allocate, kkt_residual, objective, proportional, uniform
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.lab.webbase import synthetic_web


def web(hosts=30, pages=2_000, ceiling=1e-3, seed=1, weighted=False):
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(pages, rng.dirichlet(np.full(hosts, 0.3)))
    rate = np.exp(rng.normal(-11, 3, pages))
    weight = rng.lognormal(0, 1, pages) if weighted else None
    return PagesByHost(rate, np.append(0, np.cumsum(sizes)), np.full(hosts, ceiling), weight)


def one_host(rate, weight=None):
    """Return pages of one host without a ceiling."""
    return PagesByHost(np.asarray(rate), np.array([0, len(rate)]), np.array([np.inf]), weight)


@pytest.mark.parametrize("bandwidth", [0.0, 1e-9, 1e-4, 5e-3, 0.02, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_allocation_meets_the_conditions_of_the_optimum(bandwidth, weighted):
    pages = web(weighted=weighted)
    allocation = allocate(pages, bandwidth)
    assert kkt_residual(pages, bandwidth, allocation) <= 1e-6
    assert allocation.frequency.min() >= 0


def held_and_free():
    """Return pages of a host that is held and of one that is not, and their allocation of 1.4."""
    pages = PagesByHost(np.ones(4), np.array([0, 2, 4]), np.array([0.4, np.inf]))
    best = allocate(pages, 1.4)
    assert best.spent == pytest.approx([0.4, 1.0])
    assert best.price[0] > best.price[1] == best.common_price
    assert kkt_residual(pages, 1.4, best) <= 1e-9
    return pages, best


@pytest.mark.parametrize("block", [1, 2, 1 << 16])
@pytest.mark.parametrize("page", range(4))
@pytest.mark.parametrize("frequency", [0.0, 0.1, 0.9])
def test_the_residual_sees_a_page_that_is_not_visited_at_its_price(
    page, frequency, block, monkeypatch
):
    monkeypatch.setattr(allocation_module, "_BLOCK", block)
    pages, best = held_and_free()
    wrong = best.frequency.copy()
    wrong[page] = frequency
    value = 1.0 - (1.0 + 1.0 / frequency) * np.exp(-1.0 / frequency) if frequency else 1.0
    price = best.price[page // 2]
    assert kkt_residual(pages, 1.4, replace(best, frequency=wrong)) == pytest.approx(
        abs(value - price) / price
    )


@pytest.mark.parametrize(
    ("spent", "residual"),
    [
        ([0.9, 1.0], 1.25),  # above a ceiling
        ([0.2, 1.2], 0.5),  # a host with a price of its own that is not held
        ([0.4, 0.6], 0.4 / 1.4),  # bandwidth that is left
        ([0.4, 1.7], 0.5),  # more than the bandwidth
    ],
)
def test_the_residual_sees_sums_that_break_a_limit(spent, residual):
    pages, best = held_and_free()
    wrong = replace(best, spent=np.array(spent))
    assert kkt_residual(pages, 1.4, wrong) == pytest.approx(residual)


def test_a_bandwidth_above_every_ceiling_fills_hosts_worth_a_visit():
    rate = np.array([1e-5, 2e-5, 0.0, 3e-4])
    pages = PagesByHost(rate, np.array([0, 2, 3, 3, 4]), np.array([1e-4, 1e-4, 1e-4, 2e-4]))
    allocation = allocate(pages, np.inf)
    assert allocation.spent == pytest.approx([1e-4, 0.0, 0.0, 2e-4])
    assert allocation.common_price == 0.0
    assert allocation.frequency[2] == 0.0


def test_pages_that_change_too_fast_or_never_are_given_up():
    rate = np.array([0.0, 1e-6, 1e-5, 10.0, np.inf])
    allocation = allocate(one_host(rate), 1e-5)
    assert (allocation.frequency > 0).tolist() == [False, True, True, False, False]


def test_a_page_at_the_point_of_being_given_up_gets_the_rest():
    # Two slow pages need little of the ceiling; the fast page enters with a jump inside rounding.
    rate = np.array([1e-7, 1e-7, 1e-1])
    pages = PagesByHost(rate, np.array([0, 3]), np.array([1e-3]))
    allocation = allocate(pages, 1.0)
    assert allocation.spent[0] == pytest.approx(1e-3)
    assert kkt_residual(pages, 1.0, allocation) <= 1e-6


def test_a_bandwidth_used_up_by_held_hosts_leaves_nothing_to_others():
    weight = np.array([1.0, 1.06, 12.2])
    pages = PagesByHost(np.ones(3), np.array([0, 2, 3]), np.ones(2), weight)
    allocation = allocate(pages, 1.0)
    assert allocation.frequency == pytest.approx([0.0, 0.0, 1.0])
    assert kkt_residual(pages, 1.0, allocation) <= 1e-6


def test_optimum_beats_uniform_and_uniform_beats_proportional():
    pages = web(ceiling=np.inf)
    bandwidth = 0.01
    best = objective(pages, allocate(pages, bandwidth).frequency)
    even = objective(pages, uniform(2_000, bandwidth))
    chasing = objective(pages, proportional(pages.change_rate, bandwidth))
    assert best > even > chasing


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 4.0)])
def test_the_objective_is_the_weighted_mean_freshness_at_fixed_order(weight, monkeypatch):
    rate, frequency = np.array([0.5, 1.0, 4.0]), np.array([1.0, 2.0, 1.0])
    fresh = frequency * (1.0 - np.exp(-rate / frequency)) / rate
    expected = pytest.approx(np.average(fresh, weights=weight), rel=1e-12)
    assert objective(one_host(rate, weight), frequency) == expected
    monkeypatch.setattr(allocation_module, "_BLOCK", 2)
    assert objective(one_host(rate, weight), frequency) == expected


def test_proportional_follows_the_rates_and_is_uniform_without_changes():
    assert proportional([1.0, 3.0], 8.0).tolist() == [2.0, 6.0]
    assert proportional([0.0, 0.0], 3.0).tolist() == [1.5, 1.5]


def test_price_gives_back_the_allocated_frequencies():
    rate, weight = np.array([1e-6, 1e-4]), np.array([1.0, 3.0])
    allocation = allocate(one_host(rate, weight), 1e-4)
    again = revisit_frequency(rate, allocation.common_price, weight)
    assert again == pytest.approx(allocation.frequency, rel=1e-6)


@pytest.mark.parametrize("bandwidth", [-1.0, np.nan])
def test_a_negative_or_nan_bandwidth_is_refused(bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        allocate(web(), bandwidth)


def test_no_pages():
    allocation = allocate(one_host(np.zeros(0)), 1.0)
    assert len(allocation.frequency) == 0
    assert uniform(0, 1.0).tolist() == []
    assert objective(one_host(np.zeros(0)), np.zeros(0)) == 1.0


def test_an_infinite_bandwidth_needs_ceilings():
    with pytest.raises(ValueError, match="ceiling"):
        allocate(one_host([1.0]), np.inf)


def test_offsets_and_ceilings_are_checked():
    with pytest.raises(ValueError, match="one ceiling"):
        PagesByHost(np.ones(2), np.array([0, 2]), np.ones(2))
    with pytest.raises(ValueError, match="cover"):
        PagesByHost(np.ones(2), np.array([0, 1]), np.ones(1))
    with pytest.raises(ValueError, match="negative"):
        PagesByHost(np.ones(2), np.array([0, 2]), np.array([-1.0]))


def bound(web, bandwidth, *, polite):
    """Return the freshness of the optimum with or without the ceilings of the hosts."""
    if not polite:
        web = replace(web, ceiling=np.full(web.hosts, np.inf))
    return objective(web, allocate(web, bandwidth).frequency)


def test_bounds_are_equal_if_no_host_is_held():
    web = synthetic_web(5_000, 5, 3)
    low = 1e-6
    assert bound(web, low, polite=True) == pytest.approx(bound(web, low, polite=False))
    assert bound(web, 1.0, polite=True) < bound(web, 1.0, polite=False)


def test_the_bound_without_ceilings_keeps_the_weights():
    rate, weight = np.array([1.0, 1.0]), np.array([1.0, 1e6])
    web = PagesByHost(rate, np.array([0, 2]), np.array([0.1]), weight)
    # All visits go to the page that counts.
    assert bound(web, 1.0, polite=False) == pytest.approx(1.0 - np.exp(-1.0), rel=1e-4)
