"""The policy interface, and round robin."""

import numpy as np
import pytest

from crawld.core.revisit.policies import UniformPolicy, VisitObservation

SEEN = VisitObservation(changed=True)


def turns(policy, count, *, now=1e9, step=1.0):
    order = []
    for k in range(count):
        page = policy.select(now + k * step)
        order.append(page)
        if page is not None:
            policy.record_visit(page, now + k * step, SEEN)
    return order


def test_new_pages_come_first_then_the_oldest_visit():
    policy = UniformPolicy()
    policy.add(1, 500.0)
    policy.add(2, 300.0)
    policy.add(3, None)
    policy.add(4, None)
    assert turns(policy, 8) == [3, 4, 2, 1, 3, 4, 2, 1]


def test_a_page_in_flight_is_not_selected_again():
    policy = UniformPolicy()
    policy.load([5, 6])
    assert (policy.select(1.0), policy.select(1.0), policy.select(1.0)) == (5, 6, None)
    policy.release(6)
    assert policy.select(2.0) == 6


def test_a_page_removed_in_flight_stays_away():
    policy = UniformPolicy()
    policy.load([5, 6])
    assert policy.select(1.0) == 5
    policy.remove(5)
    policy.record_visit(5, 2.0, SEEN)
    policy.release(5)
    assert 5 not in policy
    assert len(policy) == 1
    assert turns(policy, 3) == [6, 6, 6]


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_clock_jump_does_not_change_the_order(jump):
    policy = UniformPolicy()
    policy.load([1, 2, 3])
    assert turns(policy, 4) == [1, 2, 3, 1]
    assert turns(policy, 4, now=1e9 + jump) == [2, 3, 1, 2]
    assert turns(policy, 4, now=1e9 + 10) == [3, 1, 2, 3]


def test_a_last_visit_in_the_future_waits_only_one_round():
    policy = UniformPolicy()
    policy.load([1, 2], [1e9 + 86_400, 1e9 - 5])
    assert turns(policy, 5) == [2, 1, 2, 1, 2]


def test_a_slot_is_reused_and_a_page_is_held_once():
    policy = UniformPolicy()
    policy.load(np.arange(3))
    policy.remove(1)
    policy.add(9, None)
    policy.add(9, 7.0)
    assert sorted(turns(policy, 3)) == [0, 2, 9]
    with pytest.raises(ValueError, match="twice"):
        policy.load([9])


def test_an_empty_policy_selects_nothing():
    policy = UniformPolicy()
    policy.load([])
    policy.remove(1)
    assert policy.select(0.0) is None
