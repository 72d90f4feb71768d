"""GREEDY with simulated renewals: what it selects, and how its histograms grow."""

from collections import Counter

import numpy as np

from crawld.core.change.renewal import EDGES_S, exponential_mass
from crawld.core.revisit.policies import VisitObservation
from crawld.lab.sampled_greedy import SampledGreedy

HOUR_S, DAY_S = 3600.0, 86_400.0
NOW = 2e9


def picks(days, waited_s, age_s, *, conditional=True, seeds=300):
    """Return how often each page is selected, by seed.

    Args:
        days: mean interval of each page. waited_s: time since its visit. age_s: from its last
            change to that visit.
    """
    counts = 100.0 * exponential_mass(1.0 / (np.array(days) * DAY_S))
    found = Counter()
    for seed in range(seeds):
        policy = SampledGreedy(counts, conditional=conditional, seed=seed)
        policy.load(np.arange(len(days)))
        for page, (waited, age) in enumerate(zip(waited_s, age_s, strict=True)):
            at = NOW - waited
            policy.record_visit(page, at, VisitObservation(True, (at - age,)))
        found[policy.select(NOW)] += 1
    return found


def test_the_page_of_the_larger_gain_is_selected_more_often():
    # A page that changes every hour has changed, but soon changes again.
    assert picks([0.05, 5.0], [DAY_S, DAY_S], [0.0, 0.0])[1] > 100
    assert picks([2.0, 2.0], [4 * DAY_S, HOUR_S], [0.0, 0.0])[0] > 250


def test_a_change_long_before_the_visit_counts_only_as_printed():
    quiet_first = ([1.0, 1.0], [12 * HOUR_S, 4 * HOUR_S], [2 * DAY_S, 0.0])
    conditional, printed = picks(*quiet_first)[0], picks(*quiet_first, conditional=False)[0]
    assert conditional > printed + 40


def test_histograms_grow_with_the_intervals_that_visits_find():
    flat = np.tile(exponential_mass(np.array([1.0 / (30 * DAY_S)])), (2, 1))
    policy = SampledGreedy(flat, conditional=True, seed=1)
    policy.load([0, 1])
    assert [policy.select(NOW), policy.select(NOW), policy.select(NOW)] == [0, 1, None]
    for page in (0, 1):
        policy.record_visit(page, NOW, VisitObservation(True, (NOW - 1.0,)))
    # The second page changes every two days, and the visits find each change.
    for step in range(1, 40):
        at = NOW + step * 2 * DAY_S
        policy.record_visit(0, at, VisitObservation(False))
        policy.record_visit(1, at, VisitObservation(True, (at - 1.0,)))
    chosen = Counter()
    for _ in range(100):
        chosen[policy.select(at + 3 * DAY_S)] += 1
        policy.release(0)
        policy.release(1)
    assert chosen[1] > 90


def test_intervals_are_drawn_from_the_histogram():
    rng = np.random.default_rng(2)
    counts = rng.random((3, len(EDGES_S) - 1))
    policy = SampledGreedy(counts, conditional=True, seed=4)
    drawn = policy._draw(np.full(60_000, 1))
    share = np.histogram(drawn, EDGES_S)[0] / len(drawn)
    assert np.abs(share - counts[1] / counts[1].sum()).max() < 0.01


def test_pages_are_added_removed_and_released():
    policy = SampledGreedy(np.ones((3, len(EDGES_S) - 1)), conditional=True, seed=0)
    policy.load([0, 1])
    policy.add(2, NOW - DAY_S)
    assert len(policy) == 3
    assert policy.select(NOW) == 0
    policy.release(0)
    policy.remove(1)
    assert policy.select(NOW) == 0
    assert policy.select(NOW) == 2
    assert policy.select(NOW) is None
    policy.remove(2)
    policy.record_visit(2, NOW, None)
    assert policy.contains_many([0, 1, 2]).tolist() == [True, False, False]
    assert 0 in policy
