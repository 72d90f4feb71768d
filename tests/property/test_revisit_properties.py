"""Properties of freshness, prices, allocations and schedules for any input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crawld.core.change.hawkes import SHARED
from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass
from crawld.core.revisit.allocation import allocate, kkt_residual, objective
from crawld.core.revisit.freshness import (
    Order,
    mean_age,
    mean_freshness,
    random_slot_freshness,
    visit_share,
)
from crawld.core.revisit.heap import SlotHeap
from crawld.core.revisit.hint_belief import Coverage, KnownChange, hinted_values, update_belief
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.partial_heap import PartialHeap
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.policies_frequency import merge_schedule
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.price import changes_per_visit, revisit_frequency
from crawld.core.revisit.renewal_allocation import (
    allocate_renewal,
    allocate_whole_visits,
    renewal_freshness,
)
from crawld.core.revisit.slots import FREE, PageSlots

rates = st.floats(1e-12, 1e3)
frequencies = st.floats(1e-9, 1e2)


@given(rates, frequencies)
def test_freshness_falls_and_age_rises_with_disorder(rate, frequency):
    fresh = [float(mean_freshness(order, rate, frequency)) for order in Order]
    age = [float(mean_age(order, rate, frequency)) for order in Order]
    assert 1.0 >= fresh[0] >= fresh[1] - 1e-12
    assert fresh[1] >= fresh[2] - 1e-12
    assert fresh[2] >= 0.0
    assert 0.0 <= age[0] <= age[1] * (1 + 1e-9)
    assert age[1] <= age[2] * (1 + 1e-9)
    # The least ratio over all rates, at r = 1.793.
    assert fresh[2] >= 0.7701 * fresh[0]


@given(rates, frequencies, st.floats(1.0001, 100))
def test_freshness_rises_with_visits_and_falls_with_changes(rate, frequency, factor):
    for order in Order:
        base = mean_freshness(order, rate, frequency)
        assert mean_freshness(order, rate, frequency * factor) >= base - 1e-12
        assert mean_freshness(order, rate * factor, frequency) <= base + 1e-12


@given(st.floats(1e-9, 1e2), st.floats(0.0, 1.0), st.floats(1e-3, 1e6))
def test_random_slot_freshness_is_in_the_unit_interval(rate, share, slot_s):
    fresh = float(random_slot_freshness(rate, share, slot_s))
    assert 0.0 <= fresh <= 1.0 + 1e-12
    if share == 1.0:
        assert fresh == pytest.approx(float(mean_freshness(Order.FIXED, rate, 1 / slot_s)))


@given(st.floats(1e-12, 600.0))
def test_changes_per_visit_inverts_its_equation(x):
    small = x < 0.02
    log_share = x * x / 2 - x**3 / 3 + x**4 / 4 - x**5 / 5 if small else x - np.log1p(x)
    assert float(changes_per_visit(log_share)) == pytest.approx(x, rel=1e-7)


@given(rates, st.floats(1e-6, 0.999), st.floats(0.01, 100))
def test_the_marginal_value_at_the_revisit_frequency_is_the_price(rate, part, weight):
    price = part * weight / rate
    frequency = float(revisit_frequency(rate, price, weight))
    marginal = weight / rate * float(visit_share(rate / frequency))
    assert marginal == pytest.approx(price, rel=1e-8)


@st.composite
def webs(draw):
    hosts = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(0, 8), min_size=hosts, max_size=hosts))
    pages = sum(sizes)
    log_rate = draw(arrays(np.float64, pages, elements=st.floats(-20, 5)))
    rate = np.where(draw(arrays(np.bool_, pages)), np.exp(log_rate), np.exp(log_rate / 10))
    rate[draw(arrays(np.int8, pages, elements=st.integers(0, 9))) == 0] = 0.0
    ceiling = np.exp(draw(arrays(np.float64, hosts, elements=st.floats(-12, 2))))
    weight = np.exp(draw(arrays(np.float64, pages, elements=st.floats(-3, 3))))
    return PagesByHost(rate, np.concatenate([[0], np.cumsum(sizes)]), ceiling, weight)


@settings(max_examples=200)
@given(webs(), st.floats(-15, 4))
def test_an_allocation_meets_the_conditions_of_the_optimum(web, log_bandwidth):
    bandwidth = float(np.exp(log_bandwidth))
    allocation = allocate(web, bandwidth)
    assert kkt_residual(web, bandwidth, allocation) <= 1e-6
    assert np.all(allocation.spent <= web.ceiling * (1 + 1e-9))
    alive = web.best_value_limit() > 0
    asked = min(bandwidth, web.ceiling[alive].sum())
    assert allocation.spent.sum() == pytest.approx(asked, rel=1e-9, abs=1e-300)


@settings(max_examples=60)
@given(webs(), st.integers(0, 2**32 - 1))
def test_no_feasible_allocation_is_better(web, seed):
    bandwidth = 0.3 * float(web.ceiling.sum())
    best = objective(web, allocate(web, bandwidth).frequency)
    rng = np.random.default_rng(seed)
    host = web.host_of_page()
    other = rng.exponential(1.0, len(host))
    spent = np.bincount(host, other, web.hosts)
    other *= np.minimum(1.0, (web.ceiling / np.maximum(spent, 1e-300))[host])
    other *= min(1.0, bandwidth / max(other.sum(), 1e-300))
    assert best >= objective(web, other) - 1e-9


def renewals(seed, pages):
    rng = np.random.default_rng(seed)
    mass = exponential_mass(rng.lognormal(-13, 1.5, pages))
    mass = mass * rng.lognormal(0, 1, mass.shape) + 1e-6
    return Renewal(EDGES_S, mass / mass.sum(axis=1, keepdims=True))


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 30), st.floats(-18, -8))
def test_renewal_allocation_spends_the_bandwidth_at_one_price(seed, pages, log_bandwidth):
    stack, bandwidth = renewals(seed, pages), float(np.exp(log_bandwidth))
    f = allocate_renewal(stack, bandwidth).frequency
    assert f.sum() == pytest.approx(bandwidth)
    worth = stack.visit_value(1.0 / np.maximum(f, 1e-12))
    visited = f > 1.01 / EDGES_S[-1]
    if visited.sum() > 1:
        assert np.ptp(worth[visited]) <= 1e-4 * worth[visited].max()


def test_renewal_allocation_follows_the_weights():
    stack = renewals(1, 4)
    weights = np.array([0.0, 1.0, 1.0, 8.0])
    f = allocate_renewal(stack, 1e-6, weights).frequency
    assert f[0] == 0.0
    worth = weights * stack.visit_value(1.0 / np.maximum(f, 1e-12))
    visited = worth[f > 1.01 / EDGES_S[-1]]
    assert visited == pytest.approx(np.full(len(visited), visited[0]), rel=1e-4)
    assert len(visited) > 1
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="finite"):
            allocate_renewal(stack, wrong)
    count = allocate_whole_visits(stack, 12, 90 * 86_400.0, weights)
    assert (count[0], count.sum()) == (0, 12)
    assert allocate_whole_visits(stack, 3, 90 * 86_400.0, np.zeros(4)).tolist() == [0] * 4


def test_a_page_that_is_given_up_gets_what_the_others_leave_at_its_price():
    last_s = EDGES_S[-1]
    mass = exponential_mass(np.array([1e-8, 1e-5]))
    stack = Renewal(EDGES_S, mass / mass.sum(axis=1, keepdims=True))
    slow, fast = (Renewal(EDGES_S, row[None]) for row in stack.mass)
    price = float(fast.visit_value(np.array([[last_s]]))[0, 0])
    low, high = EDGES_S[0] + 1.0, last_s
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = float(slow.visit_value(np.array([[middle]]))[0, 0]) < price
        low, high = (middle, high) if below else (low, middle)
    bandwidth = 1.0 / high + 0.25 / last_s
    assert allocate_renewal(stack, bandwidth).frequency * last_s == pytest.approx(
        [last_s / high, 0.25], rel=1e-6
    )


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(0, 60))
def test_whole_visits_are_all_used_and_no_other_page_is_worth_more(seed, visits):
    stack, horizon_s = renewals(seed, 6), 90 * 86_400.0
    count = allocate_whole_visits(stack, visits, horizon_s)
    assert count.sum() == visits
    whole = renewal_freshness(stack, count / horizon_s).sum()
    optimum = allocate_renewal(stack, visits / horizon_s).frequency
    best = renewal_freshness(stack, optimum).sum()
    assert best + 1e-6 >= whole
    if visits >= len(count):  # fewer cannot be shared out like parts of visits
        assert whole >= 0.95 * best
    for source, target in itertools.permutations(np.arange(len(count)), 2):
        if count[source]:
            moved = count.copy()
            moved[source] -= 1
            moved[target] += 1
            assert renewal_freshness(stack, moved / horizon_s).sum() <= whole + 1e-9


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=12), st.integers(1, 400))
def test_a_merge_schedule_gives_every_page_its_share(frequency, picks):
    f = np.array(frequency)
    order = merge_schedule(np.arange(len(f)), f, picks)
    assert len(order) == picks
    count = np.bincount(order, minlength=len(f))
    assert np.all(np.abs(count - picks * f / f.sum()) <= 1 + len(f))


@pytest.mark.parametrize("queue", [SlotHeap, PartialHeap])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("prk"), st.integers(0, 15), st.floats(-1e9, 1e9)), max_size=80
    )
)
def test_heap_agrees_with_a_sorted_list(queue, steps):
    heap, model = queue(), {}
    for what, slot, key in steps:
        if what == "r":
            heap.remove(slot)
            model.pop(slot, None)
        else:
            heap.push(slot, key)
            model[slot] = key
        assert len(heap) == len(model)
        if model:
            assert heap.key(heap.first()) == min(model.values())


@given(st.lists(st.tuples(st.booleans(), st.integers(-50, 50)), max_size=120))
def test_slots_agree_with_a_dict(steps):
    slots, model = PageSlots(), {}
    slots.load([1000, -1000])
    for add, page in steps:
        if add and page not in model:
            model[page] = slots.add(page)
        elif not add:
            assert slots.remove(page) == model.pop(page, FREE)
        assert len(slots) == len(model) + 2
    assert all(slots.find(page) == slot for page, slot in model.items())
    asked = [*range(-51, 52), 1000, -1000]
    assert slots.find_many(asked).tolist() == [slots.find(page) for page in asked]
    assert sorted(slots) == sorted([*model.values(), slots.find(1000), slots.find(-1000)])


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.floats(0.0, 1e6))
def test_hints_of_trust_0_do_not_change_the_index_policy(seed, count, lag_s):
    plain, hinted = IndexPolicy(), IndexPolicy()
    for policy in (plain, hinted):
        policy.load(np.arange(count), np.linspace(0.0, 1e5, count))
    hinted.set_coverage(1.0, lag_s)
    rng = np.random.default_rng(seed)
    for k in range(1, 120):
        now = 1e5 + 20_000.0 * k
        for page in rng.integers(0, count + 1, 3).tolist():
            hinted.record_hint(page, now - float(rng.uniform(0, 1e4)), trust=0.0)
        picks = [policy.select(now) for policy in (plain, hinted)]
        assert picks[0] == picks[1]
        seen = VisitObservation(bool(rng.random() < 0.5))
        for policy, page in zip((plain, hinted), picks, strict=True):
            policy.record_visit(page, now, seen)


@given(
    st.lists(st.floats(1.0, 1e6), min_size=1, max_size=6),
    st.floats(0.0, 1e7),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e6),
)
def test_a_hint_of_little_trust_changes_the_value_little(gaps, wait_s, missed_share, unhinted):
    known = KnownChange(-1e5, (1.0, 1.0, 2.0, 5.0))
    belief, at, rest = None, 0.0, {"coverage": Coverage(missed_share, 60.0), "model": SHARED}
    for gap in gaps:
        at += gap
        belief = update_belief(
            belief, at, trust=1e-15, known=known, is_stale=False, mean_hazard=1e-5, **rest
        )
    price = hinted_values(
        np.array([belief.as_row()]).T,
        np.array([unhinted]),
        at + wait_s,
        known_at=np.array([known.at]),
        known_excitement=np.array([known.excitement]).T,
        **rest,
    )[0]
    assert price == pytest.approx(unhinted, rel=1e-4, abs=1.0)
