"""The value of waiting: learned from what visits expected and found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.revisit.visit_value import ROUND_ROBIN_SHARE
from crawld.core.revisit.waiting_share import SHARES, WaitingShare


def learn(waiting, rng, visits, found):
    """Record visits that find `found(expected)` on average; each finds nothing or all."""
    for expected in rng.uniform(0.0, 0.8, visits).tolist():
        waiting.record(expected, float(rng.random() < found(expected)))


def test_a_model_that_is_right_lowers_the_share_to_an_eighth():
    waiting = WaitingShare()
    assert waiting.share == ROUND_ROBIN_SHARE
    for expected in np.random.default_rng(1).uniform(0.0, 0.8, 3_000).tolist():
        waiting.record(expected, expected)
    assert waiting.share <= ROUND_ROBIN_SHARE / 8


def test_chance_does_not_keep_the_share_of_a_right_model_up():
    for seed in range(8):
        waiting = WaitingShare()
        learn(waiting, np.random.default_rng(seed), 3_000, lambda expected: expected)
        assert waiting.share < ROUND_ROBIN_SHARE


def test_a_few_visits_tell_little_of_the_share():
    for seed in range(8):
        waiting = WaitingShare()
        learn(waiting, np.random.default_rng(seed), 20, lambda expected: 0.3)
        assert waiting.share <= 2 * ROUND_ROBIN_SHARE


def test_a_model_that_says_nothing_gives_way_to_round_robin():
    waiting = WaitingShare()
    learn(waiting, np.random.default_rng(2), 1_500, lambda expected: 0.4)
    assert waiting.share == SHARES[-1]


def test_the_share_is_what_the_model_leaves_over_its_slope():
    waiting = WaitingShare()
    learn(waiting, np.random.default_rng(3), 20_000, lambda expected: 0.2 + 0.5 * expected)
    assert waiting.estimate() == pytest.approx(0.4, rel=0.3)
    assert waiting.share in (SHARES[6], SHARES[7])


def test_a_model_that_is_right_again_is_followed_again():
    waiting, rng = WaitingShare(), np.random.default_rng(4)
    learn(waiting, rng, 6_000, lambda expected: 0.4)
    learn(waiting, rng, 6_000, lambda expected: expected)
    assert waiting.share < ROUND_ROBIN_SHARE


def test_the_share_changes_seldom_where_the_model_says_nothing():
    waiting, rng = WaitingShare(), np.random.default_rng(6)
    changed = [
        visit
        for visit in range(10_000)
        if waiting.record(float(rng.uniform(0.3, 0.4)), float(rng.random() * (rng.random() < 0.4)))
    ]
    assert len(changed) > 1
    assert np.diff(changed).min() > 250


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=60))
def test_any_visits_give_a_share(visits):
    waiting = WaitingShare()
    for expected, found in visits:
        waiting.record(expected, found)
        assert waiting.share in SHARES
        assert waiting.estimate() >= SHARES[0]
