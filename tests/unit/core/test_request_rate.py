"""Spacing of requests under a limit of requests and bytes per second."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.request_rate import FIRST_BYTES, RequestRate


def most_in_a_window(times, length_s):
    """Return the largest number of times in any half-open window of a length."""
    return max(sum(start <= each < start + length_s for each in times) for start in times)


def times_of(rate, lateness, *, sends=lambda n: True):
    """Return when requests are sent that each begin so late after they may."""
    now, times = 0.0, []
    for n, late_s in enumerate(lateness):
        now = max(now, rate.next_at) + late_s
        taken = rate.take(now)
        if sends(n):
            times.append(now)
            rate.end(taken)
        else:
            rate.give_back(taken)
    return times


@given(
    st.lists(st.floats(0.0, 25.0), min_size=2, max_size=60),
    st.integers(1, 8),
    st.sets(st.integers(0, 59)),
)
def test_no_window_of_n_slots_holds_more_than_n_plus_1_requests(lateness, slots, unsent):
    rate = RequestRate(0.1, None)
    times = times_of(rate, lateness, sends=lambda n: n not in unsent)
    if times:
        # A part of a slot is left out, because the sums of times are rounded.
        assert most_in_a_window(times, 10.0 * slots - 1e-6) <= slots + 1


@given(st.lists(st.floats(0.0, 25.0), min_size=2, max_size=60))
def test_two_requests_are_at_least_half_a_slot_apart(lateness):
    times = times_of(RequestRate(0.1, None), lateness)
    assert all(later - one >= 5.0 - 1e-9 for one, later in itertools.pairwise(times))


def test_requests_that_are_a_little_late_reach_the_full_rate():
    times = times_of(RequestRate(0.1, None), [4.9] * 100)
    assert times[-1] <= 99 * 10.0 + 4.9 + 1e-6


def test_a_turn_without_a_request_gives_its_slot_back():
    rate = RequestRate(0.1, None)
    first = rate.take(0.0)
    rate.end(first)
    at = rate.next_at
    rate.give_back(rate.take(at))
    assert rate.next_at == at


def test_a_slot_is_not_given_back_after_a_later_one_was_taken():
    rate = RequestRate(0.1, None)
    unsent = rate.take(0.0)
    later = rate.take(10.0)
    rate.give_back(unsent)
    rate.end(later)
    assert rate.next_at >= 15.0


def test_the_next_request_waits_until_the_bytes_are_paid_for():
    rate = RequestRate(None, 1_000.0)
    taken = rate.take(0.0)
    rate.receive(60_000)
    rate.end(taken)
    assert rate.next_at == pytest.approx(60.0)
    assert rate.mean_bytes > FIRST_BYTES


def test_bytes_over_a_long_time_stay_within_the_limit():
    rate, now, received = RequestRate(None, 1_000.0), 0.0, 0
    for size in [500, 100_000, 10, 3_000] * 50:
        now = max(now + 0.1, rate.next_at)
        taken = rate.take(now)
        rate.receive(size)
        rate.end(taken)
        received += size
    assert received == pytest.approx(1_000.0 * rate.next_at, rel=0.01)


def test_a_fetch_under_way_reserves_the_mean_of_those_before():
    rate = RequestRate(None, 1_000.0)
    rate.take(0.0)
    assert rate.next_at == pytest.approx(FIRST_BYTES / 1_000.0)


def test_the_narrower_of_both_limits_counts():
    rate = RequestRate(1.0, 1_000.0)
    assert rate.interval_s == pytest.approx(FIRST_BYTES / 1_000.0)
    rate.change(0.001, 1_000_000.0, 0.0)
    assert rate.rate == pytest.approx(0.001)
    assert RequestRate(None, None).rate == math.inf


def test_a_new_limit_counts_at_once():
    rate = RequestRate(1.0 / 86_400.0, None)
    rate.end(rate.take(0.0))
    assert rate.next_at >= 43_200.0
    rate.change(1.0, None, 100.0)
    assert rate.next_at == 101.0
    rate.change(None, None, 100.0)
    assert rate.next_at <= 100.0


def test_a_debt_of_bytes_survives_a_new_limit():
    rate = RequestRate(None, 1_000.0)
    taken = rate.take(0.0)
    rate.receive(100_000)
    rate.end(taken)
    rate.change(None, 10_000.0, 0.0)
    assert rate.next_at == pytest.approx(10.0)


def test_a_held_limit_opens_at_its_time():
    rate = RequestRate(1.0, None)
    rate.hold(50.0)
    rate.hold(40.0)
    assert rate.next_at == 50.0
