"""RANDOM, MERGE and DELAYED: shares of the slots, phases, and changes of frequency."""

from collections import Counter

import numpy as np
import pytest

from crawld.core.revisit.freshness import Order, mean_freshness
from crawld.core.revisit.policies_frequency import (
    DelayedPolicy,
    MergePolicy,
    RandomPolicy,
    merge_schedule,
    phase,
)
from crawld.core.revisit.registry import FACTORIES
from tests.unit.core.revisit.visits import visit_slots


def allocated(policy, pages, frequency):
    policy.load(pages)
    policy.set_frequencies(pages, frequency)
    return policy


@pytest.mark.parametrize("make", [MergePolicy, lambda: RandomPolicy(by_frequency=True, seed=3)])
def test_slots_are_shared_as_allocated(make):
    policy = allocated(make(), [1, 2, 3], [0.1, 0.2, 0.7])
    count = Counter(visit_slots(policy, 3000))
    # A page in flight cannot be drawn, but only one is in flight at a time.
    assert count[2] / 3000 == pytest.approx(0.2, abs=0.04)
    assert count[3] / 3000 == pytest.approx(0.7, abs=0.04)


def test_bulk_schedule_equals_page_by_page_selection():
    pages = np.arange(50)
    frequency = np.random.default_rng(0).lognormal(0, 1, 50)
    policy = allocated(MergePolicy(), pages, frequency)
    assert (
        visit_slots(policy, 400)
        == merge_schedule(pages, frequency.astype(np.float32), 400).tolist()
    )


def test_merge_of_random_phases_is_nearly_equally_spaced():
    # One page at twice the frequency of forty others: equal phases kept .594, hashed ones .999.
    pages = np.arange(41)
    frequency = np.where(pages == 0, 2.0, 1.0)
    slot = 1.0 / frequency.sum()
    at = np.flatnonzero(merge_schedule(pages, frequency, 42_000) == 0) * slot
    rate = 2.0
    fresh = (1 - np.exp(-rate * np.diff(at))).sum() / (rate * (at[-1] - at[0]))
    assert fresh / mean_freshness(Order.FIXED, rate, 2.0) > 0.99


def spacing_ratio(at, frequency, rate):
    """Return the freshness of visits relative to equally spaced ones, given changes per second."""
    gaps = np.diff(at)
    fresh = -np.expm1(-rate * gaps).sum() / (rate * gaps.sum())
    return fresh / float(mean_freshness(Order.FIXED, rate, frequency))


def test_merge_beside_many_slow_pages_keeps_92_7_percent_of_equal_spacing():
    # Between two visits of the page, a Poisson number of others is visited, m on average. The least
    # ratio over m and the change rate is .92725, at 1.6 changes a visit.
    least = []
    for others in (0.6, 1.2, 2.4):
        pages = np.arange(6001)
        frequency = np.where(pages == 0, 1.0, others / 6000)
        order = merge_schedule(pages, frequency, 40_000)
        at = np.flatnonzero(order == 0) / frequency.sum()
        least.append(min(spacing_ratio(at, 1.0, rate) for rate in np.linspace(0.8, 3.2, 25)))
        # The same from the Poisson distribution itself.
        slot = 1.0 / (1.0 + others)
        rates = np.linspace(0.8, 3.2, 25)
        unchanged = np.exp(-rates * slot - others * -np.expm1(-rates * slot))
        limit = (1.0 - unchanged) / rates / mean_freshness(Order.FIXED, rates, 1.0)
        assert least[-1] == pytest.approx(limit.min(), abs=0.004)
    assert min(least) == pytest.approx(0.92725, abs=0.003)


def test_merge_of_unequal_frequencies_keeps_92_7_percent_of_equal_spacing():
    pages = np.arange(2000)
    frequency = np.random.default_rng(2).lognormal(0.0, 1.5, 2000)
    order = merge_schedule(pages, frequency, 200_000)
    at = np.arange(len(order)) / frequency.sum()
    ratios = [
        spacing_ratio(at[order == page], frequency[page], 1.6 * frequency[page])
        for page in np.flatnonzero(frequency > np.quantile(frequency, 0.5)).tolist()
    ]
    assert min(ratios) > 0.92
    assert np.mean(ratios) > 0.99


def test_phases_are_repeatable_and_uniform():
    phases = np.array([phase(page) for page in range(10_000)])
    assert phase(17) == phases[17]
    assert 0 < phases.min() < 0.001 < 0.999 < phases.max() < 1
    assert phases.mean() == pytest.approx(0.5, abs=0.01)


def test_a_new_frequency_scales_the_current_interval():
    policy = allocated(MergePolicy(), [1, 2], [1.0, 1.0])
    visit_slots(policy, 10)
    policy.set_frequencies([1], [4.0])
    count = Counter(visit_slots(policy, 500))
    assert count[1] == pytest.approx(400, abs=10)


def test_given_up_pages_come_after_all_others():
    policy = allocated(MergePolicy(), [1, 2], [1.0, 0.0])
    assert 2 not in visit_slots(policy, 50)
    policy.remove(1)
    assert policy.select(0.0) == 2


def test_delayed_never_runs_ahead_and_idles_when_nothing_is_due():
    policy = allocated(DelayedPolicy(), np.arange(5), np.full(5, 0.01))
    order = visit_slots(policy, 2000)
    assert order.count(None) == pytest.approx(1900, abs=6)
    busy = allocated(DelayedPolicy(), np.arange(5), np.full(5, 1.0))
    assert None not in visit_slots(busy, 200, start=50.0)[10:]


def test_random_draws_uniformly_and_repeatably():
    first, second = RandomPolicy(seed=5), RandomPolicy(seed=5)
    for policy in (first, second):
        policy.load(np.arange(10))
    drawn = visit_slots(first, 5000)
    assert drawn == visit_slots(second, 5000)
    assert min(Counter(drawn).values()) > 400


@pytest.mark.parametrize("policy", ["merge", "delayed"])
def test_an_allocation_in_parts_gives_the_same_order(policy):
    chance = np.random.default_rng(5)
    pages, frequency = np.arange(200), chance.lognormal(-5.0, 1.0, 200)
    orders = []
    for parts in (1, 100):
        held = FACTORIES[policy]()
        held.load(pages, np.full(200, 500.0))
        for numbers in np.array_split(chance.permutation(200), parts):
            held.set_frequencies(pages[numbers], frequency[numbers])
        orders.append(visit_slots(held, 1100, start=1000.5, step=0.5))
    assert orders[0] == orders[1]
    assert sum(page is not None for page in orders[0]) >= 1000


@pytest.mark.parametrize("policy", ["merge", "delayed", "random-f"])
def test_an_allocation_does_not_select_a_page_in_flight(policy):
    held = FACTORIES[policy]()
    held.load(np.arange(3), np.zeros(3))
    flying = held.select(1000.0)
    held.set_frequencies(np.arange(3), np.full(3, 1e-9))
    held.set_frequencies(np.arange(3), np.full(3, 10.0))
    later = [held.select(2000.0 + second) for second in range(5)]
    assert flying not in later
    assert sorted(page for page in later if page is not None) == sorted({0, 1, 2} - {flying})


def test_pages_without_a_frequency_have_the_mean_of_the_others():
    held = FACTORIES["random-f"]()
    held.load(np.arange(100), np.zeros(100))
    held.set_frequencies(np.arange(99), np.full(99, 1e-6))
    assert 5 <= visit_slots(held, 2000).count(99) <= 40


@pytest.mark.parametrize(("frequency", "picks"), [([0.0, 0.0], 5), ([], 5), ([1.0], 0)])
def test_a_schedule_without_visits_is_empty(frequency, picks):
    assert len(merge_schedule(np.arange(len(frequency)), frequency, picks)) == 0
