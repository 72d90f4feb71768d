"""Transitions of the page state, and the grace period before a page is gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.page import (
    GONE_GRACE_S,
    GONE_GRACE_VISITS,
    TRANSITIONS,
    Grace,
    Outcome,
    PageState,
    next_state,
)

NOW = 1_780_000_000.0
DAY_S = 86_400.0
LOST = (Outcome.GONE, Outcome.SOFT_GONE)
SILENT = (Outcome.BLOCKED, Outcome.FAILED)
GOOD = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.MOVED)
CRAWLED = (PageState.DISCOVERED, PageState.VISITED, PageState.GONE)


def test_every_state_has_its_transitions():
    assert TRANSITIONS.keys() == set(PageState)
    assert all(targets <= set(PageState) for targets in TRANSITIONS.values())


@pytest.mark.parametrize("state", CRAWLED)
@pytest.mark.parametrize("outcome", GOOD)
def test_a_good_visit_makes_any_page_visited_and_resets_its_grace(state, outcome):
    grace = Grace(9, NOW - 99 * DAY_S).after(outcome, NOW)
    assert grace == Grace()
    assert next_state(state, outcome, grace, NOW) is PageState.VISITED


@pytest.mark.parametrize("outcome", LOST)
def test_a_page_is_gone_after_enough_visits_over_enough_days(outcome):
    state, grace = PageState.VISITED, Grace()
    states = []
    for day in range(5):
        now = NOW + day * DAY_S
        grace = grace.after(outcome, now)
        state = next_state(state, outcome, grace, now)
        states.append(state)
    enough = max(GONE_GRACE_VISITS, int(GONE_GRACE_S / DAY_S) + 1)
    assert states == [PageState.VISITED] * (enough - 1) + [PageState.GONE] * (6 - enough)
    assert grace.since == NOW


def test_many_visits_in_one_day_do_not_retire_a_page():
    grace = Grace()
    for minute in range(100):
        grace = grace.after(Outcome.GONE, NOW + 60.0 * minute)
    assert grace.count == 100
    assert not grace.exhausted(NOW + 6000.0)
    assert grace.exhausted(NOW + GONE_GRACE_S)


def test_two_visits_over_many_days_do_not_retire_a_page():
    grace = Grace().after(Outcome.GONE, NOW).after(Outcome.GONE, NOW + 99 * DAY_S)
    assert not grace.exhausted(NOW + 99 * DAY_S)


@pytest.mark.parametrize("outcome", SILENT)
def test_blocked_and_failed_visits_leave_the_grace_unchanged(outcome):
    grace = Grace(2, NOW - 9 * DAY_S)
    assert grace.after(outcome, NOW) == grace
    nearly = Grace(GONE_GRACE_VISITS, NOW - 9 * DAY_S)
    assert next_state(PageState.VISITED, outcome, nearly, NOW) is PageState.VISITED
    assert next_state(PageState.GONE, outcome, nearly, NOW) is PageState.GONE


@pytest.mark.parametrize("outcome", LOST)
def test_a_retired_page_stays_retired_until_a_good_visit(outcome):
    assert next_state(PageState.GONE, outcome, Grace(1, NOW), NOW) is PageState.GONE


@pytest.mark.parametrize("state", PageState)
@given(
    outcomes=st.lists(
        st.tuples(st.sampled_from(Outcome), st.floats(0, 10 * DAY_S)), min_size=1, max_size=12
    )
)
def test_only_legal_transitions_and_only_confirmed_absence_retires(state, outcomes):
    now, grace = NOW, Grace()
    for outcome, wait_s in outcomes:
        now += wait_s
        before, grace = state, grace.after(outcome, now)
        state = next_state(state, outcome, grace, now)
        assert state in TRANSITIONS[before] | {before}
        if state is PageState.GONE and before is not PageState.GONE:
            assert outcome in LOST
            assert grace.count >= GONE_GRACE_VISITS
            assert now - grace.since >= GONE_GRACE_S
