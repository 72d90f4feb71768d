"""The policy interface, and round robin."""

import numpy as np
import pytest

from crawld.core.revisit.policies import UniformPolicy
from tests.unit.core.revisit.visits import visit_slots

START = 1e9


def test_new_pages_come_first_then_the_oldest_visit():
    policy = UniformPolicy()
    policy.add(1, 500.0)
    policy.add(2, 300.0)
    policy.add(3, None)
    policy.add(4, None)
    assert visit_slots(policy, 8, start=START) == [3, 4, 2, 1, 3, 4, 2, 1]


def test_a_page_in_flight_is_not_selected_again():
    policy = UniformPolicy()
    policy.load([5, 6])
    assert (policy.select(1.0), policy.select(1.0), policy.select(1.0)) == (5, 6, None)
    policy.release(6)
    assert policy.select(2.0) == 6


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_clock_jump_does_not_change_the_order(jump):
    policy = UniformPolicy()
    policy.load([1, 2, 3])
    assert visit_slots(policy, 4, start=START) == [1, 2, 3, 1]
    assert visit_slots(policy, 4, start=START + jump) == [2, 3, 1, 2]
    assert visit_slots(policy, 4, start=START + 10) == [3, 1, 2, 3]


def test_a_last_visit_in_the_future_waits_only_one_round():
    policy = UniformPolicy()
    policy.load([1, 2], [1e9 + 86_400, 1e9 - 5])
    assert visit_slots(policy, 5, start=START) == [2, 1, 2, 1, 2]


def test_a_slot_is_reused_and_a_page_is_held_once():
    policy = UniformPolicy()
    policy.load(np.arange(3))
    policy.remove(1)
    policy.add(9, None)
    policy.add(9, 7.0)
    assert sorted(visit_slots(policy, 3, start=START)) == [0, 2, 9]
    with pytest.raises(ValueError, match="twice"):
        policy.load([9])
