"""Histories from any timestamps, and what visits see of them."""

import numpy as np
import pytest

from crawld.core.change.history import (
    CLOCK_TOLERANCE_S,
    HISTORY_LIMIT,
    build_history,
    sample_visits,
)

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("timestamps", "changed_at", "refused"),
    [
        ([], [], 0),
        ([5.0, 1.0, 3.0], [1.0, 3.0, 5.0], 0),
        ([2.0, 2.0, 2.0, 1.0], [1.0, 2.0], 0),
        ([1.0, NOW + 10 * CLOCK_TOLERANCE_S], [1.0], 1),
        ([1.0, NOW + 0.5 * CLOCK_TOLERANCE_S], [1.0, NOW], 0),
        ([float("nan"), float("inf"), -float("inf"), 7.0], [7.0], 3),
        ([-86_400.0, 0.0], [-86_400.0, 0.0], 0),
    ],
    ids=["empty", "unordered", "equal", "future", "skew", "not finite", "before 1970"],
)
def test_any_timestamps_become_a_history(timestamps, changed_at, refused):
    history = build_history(timestamps, now=NOW)
    assert history.changed_at.tolist() == changed_at
    assert history.refused == refused
    assert history.changes == len(changed_at)


def test_old_revisions_are_counted_instead_of_kept():
    revisions = (float(t) for t in range(1_000_000, 0, -1))
    history = build_history(revisions, now=NOW)
    assert history.changed_at.size == HISTORY_LIMIT
    assert history.changed_at[-1] == 1_000_000.0
    assert history.changes == 1_000_000
    assert history.first_at == 1.0


def test_a_visit_sees_several_changes_as_one():
    seen = sample_visits(
        np.array([10.0, 11.0, 12.0, 35.0]), np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    )
    assert seen.changed.tolist() == [True, True, False, True]
    assert seen.last_change_at.tolist() == [10.0, 12.0, 12.0, 35.0]
    assert seen.interval_s.tolist() == [10.0] * 4


def test_only_a_last_change_reveals_its_time():
    seen = sample_visits(np.array([15.0]), np.array([0.0, 10.0, 20.0]))
    assert [o.last_change_at for o in seen.observations(with_last_change=True)] == [None, 15.0]
    assert [o.last_change_at for o in seen.observations(with_last_change=False)] == [None, None]
    assert [o.changed for o in seen.observations(with_last_change=False)] == [False, True]
