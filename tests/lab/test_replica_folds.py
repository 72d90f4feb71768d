"""Cross-validation of replica classifiers, their curves, and NU with few obvious negatives."""

from dataclasses import replace

import numpy as np
import pytest

from crawld.core.replica.features import FIVE
from crawld.lab.replica_folds import (
    FALSE_RATE_GRID,
    FOLDS,
    RECALL_GRID,
    collection,
    fold_areas,
    folds_of,
    held_out_upper,
    precision_points,
    roc_points,
    scarce_negatives,
    signed_rank_test,
)
from crawld.lab.replicas import compared_scores, url_reduction
from tests.lab.test_replicas import SMALL, small_trial


@pytest.fixture
def trial():
    return small_trial()


def test_every_pair_is_in_one_fold_with_its_share_of_the_replicas(trial):
    fold = folds_of(trial, 1)
    assert np.ptp(np.bincount(fold[trial.truth], minlength=FOLDS)) <= 1
    assert np.ptp(np.bincount(fold[~trial.truth], minlength=FOLDS)) <= 1


def test_the_upper_bound_does_not_know_the_truth_of_its_own_fold(trial):
    fold = folds_of(trial, 1)
    known = held_out_upper(trial, FIVE, fold)
    assert 0.85 < trial.auc(known) <= trial.auc(trial.upper(FIVE)) + 0.002
    lied = replace(trial, truth=np.where(fold == 4, ~trial.truth, trial.truth))
    again = held_out_upper(lied, FIVE, fold)
    assert (again[fold == 4] == known[fold == 4]).all()
    assert (again[fold != 4] != known[fold != 4]).any()


def test_each_fold_has_an_area(trial):
    areas = fold_areas(trial, compared_scores(trial)["PNU"], folds_of(trial, 1))
    assert len(areas) == FOLDS
    assert np.mean(areas) == pytest.approx(trial.auc(compared_scores(trial)["PNU"]), abs=0.02)
    assert fold_areas(trial, trial.truth.astype(float), folds_of(trial, 1)) == [1.0] * FOLDS


def test_wilcoxons_test_gives_the_published_probabilities():
    # Ten differences of one sign: 2/1024; one of the smallest rank against: 4/1024.
    up = np.arange(1.0, 11.0)
    assert signed_rank_test(up, np.zeros(10)) == pytest.approx(2 / 1024)
    assert signed_rank_test(np.append(-1.0, up[1:]), np.zeros(10)) == pytest.approx(4 / 1024)
    # Wilcoxon (1945): n = 8, sum of ranks 3 of the rarer sign.
    eight = np.array([1.0, 2, 3, 4, 5, 6, 7, 8]) * [-1, -1, 1, 1, 1, 1, 1, 1]
    assert signed_rank_test(eight, np.zeros(8)) == pytest.approx(10 / 256)
    assert signed_rank_test(up, up) == 1.0


def test_curves_are_those_of_the_scores(trial):
    oracle, blind = trial.truth.astype(float), np.zeros(len(trial.truth))
    assert roc_points(trial, oracle) == [1.0] * len(FALSE_RATE_GRID)
    assert precision_points(trial, oracle) == [1.0] * len(RECALL_GRID)
    base = trial.truth[trial.judged].mean()
    assert roc_points(trial, blind) == [0.0] * len(FALSE_RATE_GRID)
    assert precision_points(trial, blind) == pytest.approx([base] * len(RECALL_GRID))
    found = roc_points(trial, compared_scores(trial)["PNU"])
    assert found == sorted(found)
    assert found[-1] > 0.9


def test_nu_leaves_more_pairs_positive_the_fewer_negatives_it_knows(trial):
    found = scarce_negatives(trial, 1)
    counts, areas, _, left = zip(*found.values(), strict=True)
    assert list(counts) == sorted(counts, reverse=True)
    assert areas[0] > areas[-1]
    assert left[-1] >= left[0]


def test_the_share_of_compared_hosts_is_no_smaller(trial):
    scores = compared_scores(trial)["PNU, all"]
    of_all = url_reduction(trial, scores, 0.005)
    assert url_reduction(trial, scores, 0.005, of_compared=True) >= of_all > 0
    assert collection(trial)["hosts"] == SMALL.hosts
