"""Beliefs about hinted pages: Bayes' rule, the value of a visit, and the effect of silence."""

import numpy as np
import pytest

from crawld.core.change.hawkes import KERNELS_S, SHARED, Hawkes
from crawld.core.revisit.hint_belief import (
    Coverage,
    KnownChange,
    hinted_values,
    update_belief,
)

DAY = 86_400.0
NOW = 1.7e9
KNOWN = KnownChange(NOW - 5 * DAY, (1.0, 1.0, 2.0, 6.0))
COVERAGE = Coverage(0.1, 0.0)
MODEL = Hawkes(1e-7, (0.4, 0.1, 0.1, 0.4))
MEAN_HAZARD = 4e-7


def hinted(*hints, **more):
    belief = None
    usual = {"trust": 0.5, "known": KNOWN, "is_stale": False, "mean_hazard": MEAN_HAZARD}
    usual |= {"coverage": COVERAGE, "model": MODEL}
    for at in hints:
        belief = update_belief(belief, at, **usual | more)
    return belief


def value_of(belief, at, unhinted=0.0, known=KNOWN, coverage=COVERAGE):
    one = np.array([belief.as_row()]).T
    return hinted_values(
        one,
        np.array([unhinted]),
        at,
        known_at=np.array([known.at]),
        known_excitement=np.array([known.excitement]).T,
        coverage=coverage,
        model=MODEL,
    )[0]


def hazard_at(wait_s, excitement=KNOWN.excitement):
    return MODEL.hazard(np.array([excitement]).T, np.array([wait_s]))[0]


def test_a_hint_of_trust_1_leaves_only_its_reading():
    belief = hinted(NOW, trust=1.0)
    assert belief[:4] == (NOW, 0.0, 0.0, pytest.approx(1.0))
    decayed = [
        c * np.exp(-5 * DAY / tau) for c, tau in zip(KNOWN.excitement, KERNELS_S, strict=True)
    ]
    assert belief.excitement == pytest.approx([x + 1.0 for x in decayed])


def test_a_page_that_surely_changed_is_worth_the_inverse_of_its_hazard():
    """Not the mean time to its next change: after a burst, that counts the calm to come."""
    belief = hinted(NOW - 3600.0, NOW, trust=1.0)
    for wait_s in (0.0, 600.0, 6 * 3600.0, 3 * DAY):
        expected = 1.0 / hazard_at(wait_s, belief.excitement)
        assert value_of(belief, NOW + wait_s) == pytest.approx(expected, rel=1e-6)
    assert value_of(belief, NOW) < 3600.0 < DAY < value_of(belief, NOW + 6 * 3600.0)


def test_a_hint_of_trust_0_does_not_change_the_value():
    value = value_of(hinted(NOW, trust=1e-12), NOW + DAY, unhinted=777.0)
    assert value == pytest.approx(777.0, rel=1e-5)


def test_weights_follow_bayes_rule():
    hazard = hazard_at(5 * DAY)
    for trust in (0.2, 0.5, 0.9):
        true, false = hazard * trust, MEAN_HAZARD * (1.0 - trust)
        assert hinted(NOW, trust=trust).latest == pytest.approx(true / (true + false))


def test_hints_of_one_change_confirm_each_other():
    once, twice = hinted(NOW), hinted(NOW, NOW + 5.0)
    assert twice.latest == pytest.approx(1.0 - 0.5 * (1.0 - once.latest))
    assert twice.known < once.known
    assert twice.excitement[0] - once.excitement[0] == pytest.approx(twice.latest - once.latest)


def test_an_earlier_hint_stays_true_if_the_latest_is_false():
    first, second = hinted(NOW), hinted(NOW, NOW + 3 * DAY)
    assert second.known < first.known
    assert second.earlier > 0.0
    assert second.known + second.earlier + second.latest == pytest.approx(1.0)


def test_missing_hints_lower_a_hint_where_changes_come_in_bursts():
    bursty, row = Hawkes(1e-7, (3.0, 0.0, 0.0, 0.0)), hinted(NOW)
    later = [
        update_belief(
            row,
            NOW + wait_s,
            trust=1e-9,
            known=KNOWN,
            is_stale=False,
            mean_hazard=MEAN_HAZARD,
            coverage=COVERAGE,
            model=bursty,
        ).known
        for wait_s in (120.0, 600.0, 3600.0)
    ]
    assert row.known < later[0] < later[1] < later[2]


def test_a_page_without_hints_for_years_keeps_a_value():
    assert value_of(hinted(NOW), NOW + 4000 * DAY, unhinted=5.0) > DAY


def test_missing_hints_within_the_lag_have_no_effect():
    coverage = Coverage(0.2, 3600.0)
    changed = np.array([0.0, 0.3, 0.9])
    assert coverage.silence_factor(changed, np.zeros(3)) == pytest.approx(1.0)
    assert Coverage(0.2, 0.0).silence_factor(changed, changed)[1:] == pytest.approx(
        0.2 / (1 - 0.8 * changed[1:])
    )
    assert Coverage(1.0, 0.0).silence_factor(changed, changed) == pytest.approx(1.0)


def test_a_page_never_visited_is_certainly_stale():
    unknown = KnownChange(-np.inf, (0.0,) * 4)
    belief = hinted(NOW, NOW + DAY, trust=0.3, known=unknown, is_stale=True)
    assert belief.known == 0.0
    assert belief.earlier + belief.latest == pytest.approx(1.0)
    assert hinted(KNOWN.at, trust=0.3, is_stale=True).excitement == KNOWN.excitement


def test_late_reports_do_not_move_the_latest_change_back():
    belief = hinted(NOW, NOW - 3 * DAY)
    assert belief.at == NOW
    assert np.isfinite(value_of(belief, NOW + 60.0))


def test_the_shared_model_expects_bursts():
    """A page edited a minute ago is worth less than one edited a day ago."""
    belief = update_belief(
        None,
        NOW,
        trust=1.0,
        known=KNOWN,
        is_stale=False,
        mean_hazard=MEAN_HAZARD,
        coverage=COVERAGE,
        model=SHARED,
    )
    assert 30 * value_of(belief, NOW + 60.0) < value_of(belief, NOW + DAY)


def test_a_second_hint_of_the_same_change_leaves_the_doubt_that_both_are_false():
    before = hinted(NOW - DAY, NOW, trust=0.4)
    assert before.earlier > 0.05
    after = hinted(NOW - DAY, NOW, NOW + 30.0, trust=0.4)
    doubt = 0.6 * (before.known + before.earlier)
    assert after.latest == pytest.approx(1.0 - doubt)
    assert sum(after[1:4]) == pytest.approx(1.0)
    grown = np.array(after.excitement) - before.excitement
    assert grown == pytest.approx(0.4 * (before.known + before.earlier))
