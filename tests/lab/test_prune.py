"""Pruning on a small web: visits saved and freshness gained."""

import pytest

from crawld.lab.prune import compare_pruning


def test_pruning_saves_visits_and_gains_freshness():
    found = compare_pruning(hosts=1_500, replicated=0.3, visits_per_page_day=0.05, seed=11)
    assert found.replicated == pytest.approx(0.3, abs=0.06)
    assert found.wrongly == 0
    assert 0 < found.pruned < 0.3 * found.hosts
    assert found.saved == pytest.approx(found.resting / found.pages)
    assert found.kept_after > found.before
    assert found.only_there > 0
    # After a fetch from a replica the own host is next: at most twice the visits.
    assert 0 < found.lent.idle < found.pruned
    assert 1.0 < found.lent.faster <= 2.0
    assert found.lent.together > found.lent.alone


def test_without_replicas_nothing_rests():
    found = compare_pruning(hosts=800, replicated=0.0, visits_per_page_day=0.05, seed=3)
    assert (found.pruned, found.resting, found.saved) == (0, 0, 0.0)
    assert found.after == pytest.approx(found.before)
    assert (found.lent.idle, found.lent.helped) == (0, 0)
