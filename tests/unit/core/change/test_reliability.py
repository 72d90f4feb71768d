"""What visits show about a source of hints: shares, intervals, lag and decay."""

import json

import numpy as np
import pytest

from crawld.core.change.reliability import (
    MAX_GROUPS,
    MEMORY,
    TRUST_LEAST,
    HintGroup,
    MatchCounts,
    Reliability,
    Share,
    match_hints,
)


@pytest.mark.parametrize(
    ("hinted", "changed", "found"),
    [
        ([], [], MatchCounts(0, 0, 0, 0)),
        ([100.0], [], MatchCounts(0, 1, 0, 0)),
        ([], [100.0], MatchCounts(0, 0, 0, 1)),
        ([100.0], [130.0], MatchCounts(1, 0, 1, 0)),
        ([100.0], [161.0], MatchCounts(0, 1, 0, 1)),
        ([100.0, 101.0], [100.0], MatchCounts(2, 0, 1, 0)),
        ([100.0, 101.0], [100.0, 101.0], MatchCounts(2, 0, 2, 0)),
        ([500.0, 90.0], [100.0, 300.0], MatchCounts(1, 1, 1, 1)),
    ],
)
def test_hints_are_matched_with_changes(hinted, changed, found):
    assert match_hints(hinted, changed) == found


def test_shares_of_a_source_are_learned_from_exact_histories():
    rng = np.random.default_rng(1)
    source = Reliability()
    for _ in range(400):
        changed = np.sort(rng.uniform(0, 1e6, rng.poisson(3)))
        real = changed[rng.random(len(changed)) >= 0.2]
        false = rng.uniform(0, 1e6, rng.poisson(0.6))
        source.learn_exact(match_hints([*real, *false], changed.tolist(), tolerance_s=1.0))
    assert source.trust == pytest.approx(0.8, abs=0.04)
    assert source.missed_share == pytest.approx(0.2, abs=0.04)
    low, high = source.missing.interval()
    assert low < 0.2 < high


def test_false_hints_are_detected_by_visits_that_only_compare():
    reliable, unreliable = Reliability(), Reliability()
    for _ in range(60):
        reliable.learn_visit(1, changed=True, expected=0.1)
        unreliable.learn_visit(1, changed=False)
    assert reliable.trust > 0.9
    assert unreliable.trust < 0.1


def test_a_new_source_is_believed_soon_and_a_false_one_no_longer():
    """One false hint in 200 may be more than the true ones of a page that seldom changes."""
    reliable, unreliable = Reliability(), Reliability()
    for _ in range(20):
        reliable.learn_visit(1, changed=True)
    for _ in range(10):
        unreliable.learn_visit(1, changed=False)
    assert reliable.trust > 0.995
    assert unreliable.trust < 0.16


def test_an_expected_change_confirms_a_hint_less():
    slow, fast = Reliability(Share(1, 1), Share(1, 1)), Reliability(Share(1, 1), Share(1, 1))
    for _ in range(20):
        slow.learn_visit(1, changed=True, expected=0.0)
        fast.learn_visit(1, changed=True, expected=1.0)
    assert fast.trust < slow.trust


def test_changes_without_hints_raise_the_missed_share():
    source = Reliability()
    before = source.missed_share
    source.learn_visit(0, changed=False)
    assert source.missed_share == before
    source.learn_visit(0, changed=True)
    assert source.missed_share > before


def test_old_evidence_decays():
    source = Reliability()
    for _ in range(5000):
        source.learn_visit(1, changed=True)
    for _ in range(int(MEMORY)):
        source.learn_visit(1, changed=False)
    assert source.trust < 0.5


def test_the_lag_is_a_distribution():
    source = Reliability()
    assert source.lag_s() == 0.0
    for lag in np.random.default_rng(2).lognormal(np.log(60), 0.3, 3000):
        source.learn_lag(lag)
    assert 30 < source.lag_s() < 120
    assert source.lag_s(0.99) > source.lag_s()
    source.learn_lag(1e9)
    assert source.lag_s(1.0) > 1e6


def test_it_survives_storage_and_refuses_another_version():
    source = Reliability()
    source.learn_visit(2, changed=True, expected=0.5)
    source.learn_lag(30.0)
    assert Reliability.from_dict(json.loads(json.dumps(source.as_dict()))) == source
    for broken in ({}, {**source.as_dict(), "lags": [1.0]}, {**source.as_dict(), "real": {"a": 1}}):
        with pytest.raises(ValueError, match="another version"):
            Reliability.from_dict(broken)


def test_a_source_of_false_hints_is_ignored():
    false_source = Reliability()
    false_source.learn_exact(MatchCounts(real=0, false=100, reported=0, missed=10))
    assert 0.0 < false_source.trust < TRUST_LEAST
    assert (false_source.effective_trust, false_source.effective_missed_share) == (0.0, 1.0)
    false_source.learn_exact(MatchCounts(real=10, false=0, reported=10, missed=0))
    assert false_source.effective_trust == false_source.trust
    assert false_source.effective_missed_share == false_source.missed_share < 1.0


def test_a_large_group_is_remembered_while_many_smaller_ones_come():
    known = Reliability()
    for second in range(3 * MAX_GROUPS):
        known.learn_group(1_000.0 + second, changed=False)
        known.learn_group(5.0, changed=True)  # one of its pages at last, visited with an edit
    assert HintGroup(5.0, 3.0 * MAX_GROUPS, 0.0) in known.groups
    assert len(known.groups) == MAX_GROUPS
    assert Reliability.from_dict(known.as_dict()).groups == known.groups
