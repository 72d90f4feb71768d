"""GREEDY selects by the expected fresh time of a renewal process, compared with simulation."""

import numpy as np
import pytest

from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.policies_greedy import GreedyPolicy

HOUR_S, DAY_S = 3600.0, 86_400.0
NOW = 2e9

EXPONENTIAL = Renewal(EDGES_S, exponential_mass(np.array([1 / DAY_S])))
"""A page that changes once a day."""

BURSTY = Renewal(EDGES_S, np.array([[0.5, 0.1, 0.05, 0.05, 0.05, 0.1, 0.15, 0.0, 0.0, 0.0]]))
"""Half of the intervals are below 15 minutes, a sixth longer than two weeks."""

REGULAR = Renewal(EDGES_S, np.array([[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]))
"""All intervals are between 21 hours and 3.6 days."""


def slow(days):
    """Return the distribution of a page that changes every `days` at random."""
    return Renewal(EDGES_S, exponential_mass(np.array([1 / (days * DAY_S)])))


def selected(*pages, conditional=True):
    """Return which page GREEDY selects.

    Each page is (distribution, seconds since its visit, seconds from its change to that visit).
    """
    policy = GreedyPolicy(conditional=conditional)
    numbers = np.arange(len(pages))
    policy.load(numbers, np.full(len(pages), NOW - 3650 * DAY_S))
    stack = np.concatenate([renewals.mass for renewals, _, _ in pages])
    policy.set_renewals(numbers, Renewal(EDGES_S, stack))
    for number, (_, waited_s, age_s) in sorted(
        enumerate(pages), key=lambda page: page[1][1], reverse=True
    ):
        visited_at = NOW - waited_s
        found = VisitObservation(changed=True, changed_at=(visited_at - age_s,))
        policy.record_visit(number, visited_at, found)
    return policy.select(NOW)


def simulated_gain(renewals, waited_s, age_s, *, conditional=True, draws=150_000):
    """Return E[A − t | ε]·Pr[ε] from simulated intervals, seconds: A is the first change after t.

    The page changed `age_s` before its visit, and the visit was `waited_s` ago.
    """
    rng = np.random.default_rng(11)

    def intervals(count):
        bins = rng.choice(len(EDGES_S) - 1, count, p=renewals.mass[0])
        return rng.uniform(EDGES_S[:-1][bins], EDGES_S[1:][bins])

    first = intervals(draws)
    changed_at = first[(first > age_s) & (first <= age_s + waited_s)] - age_s
    share = len(changed_at) / (np.count_nonzero(first > age_s) if conditional else draws)
    following = changed_at.copy()
    while (late := np.flatnonzero(following <= waited_s)).size:
        following[late] += intervals(late.size)
    return float((following - waited_s).mean()) * share if len(changed_at) else 0.0


PAGES = [
    (EXPONENTIAL, 2 * HOUR_S, 0.0),
    (EXPONENTIAL, 2 * DAY_S, 12 * HOUR_S),
    (slow(0.1), 12 * HOUR_S, 0.0),
    (slow(30), 3 * DAY_S, 0.0),
    (slow(30), 3 * DAY_S, 60 * DAY_S),
    (BURSTY, 1 * HOUR_S, 60.0),
    (BURSTY, 1 * HOUR_S, 3 * DAY_S),
    (BURSTY, 5 * DAY_S, 1 * HOUR_S),
    (REGULAR, 1 * HOUR_S, 30 * HOUR_S),
    (REGULAR, 10 * HOUR_S, 1 * HOUR_S),
]


@pytest.mark.parametrize("conditional", [True, False])
def test_the_page_of_the_largest_simulated_gain_is_selected(conditional):
    gains = [simulated_gain(*page, conditional=conditional) for page in PAGES]
    checked = 0
    for one in range(len(PAGES)):
        for other in range(one):
            more, less = (one, other) if gains[one] > gains[other] else (other, one)
            if gains[more] > 1.25 * gains[less] + 60.0:  # the grid of waits is coarse
                chosen = selected(PAGES[more], PAGES[less], conditional=conditional)
                assert chosen == 0, (PAGES[more], PAGES[less])
                checked += 1
    assert checked > 30


def test_a_change_long_before_the_visit_counts_only_as_printed():
    # What happened before the visit says little where changes are independent. As printed, an
    # interval that lasts long is improbable, and so is the gain.
    quiet, lively = (slow(1), 12 * HOUR_S, 2 * DAY_S), (slow(1), 4 * HOUR_S, 0.0)
    assert selected(quiet, lively) == 0
    assert selected(quiet, lively, conditional=False) == 1


def test_the_oldest_visit_is_not_selected_for_its_age():
    assert selected((slow(0.05), 3 * DAY_S, 0.0), (slow(2), 1 * DAY_S, 0.0)) == 1


def test_the_most_certain_change_is_not_selected_for_its_certainty():
    # It has surely changed, and will change again within the hour.
    assert selected((slow(0.05), 1 * DAY_S, 0.0), (slow(5), 1 * DAY_S, 0.0)) == 1


def test_the_release_of_a_page_that_is_not_held_changes_nothing():
    policy = GreedyPolicy(conditional=True)
    policy.load(np.arange(3), np.array([np.nan, NOW - 3 * DAY_S, NOW - 9 * DAY_S]))
    policy.release(0)
    assert policy.select(NOW) == 0
    policy.record_visit(0, NOW, None)
    assert policy.select(NOW) == 2
    policy.release(77)
    assert policy.select(NOW) == 1
