"""The replica experiment on a small web: every figure is there, and better than chance."""

from dataclasses import replace

import numpy as np
import pytest

from crawld.lab import replica_tables
from crawld.lab.replicas import (
    AMONG,
    accuracy,
    compared_scores,
    detection,
    gated_candidates,
    reliability,
    run_trial,
    url_reduction,
)
from crawld.simweb.replica_parameters import STANDARD, Cause

SMALL = replace(
    STANDARD,
    name="small",
    hosts=2_500,
    groups=dict.fromkeys(Cause, 60),
    languages=12,
    topics=3,
    platforms=2,
    parkings=1,
    families=15,
    broken=15,
)


@pytest.fixture(scope="module")
def trial():
    return run_trial(SMALL, 7)


def test_replicas_are_found_and_none_is_pruned_wrongly(trial):
    found = accuracy(trial)
    assert found["auc_pnu"] > 0.95
    assert found["auc_pnu_five"] > 0.9
    assert found["auc_upper"] >= found["auc_pnu"]
    assert found["candidate_recall"] > 0.9
    assert found["false_prunings"] == 0
    assert found["gated_recall"] > 0.2
    assert {f"candidate_recall_{cause.value}" for cause in Cause} <= set(found)


def test_the_gate_reads_no_truth(trial):
    blind = replace(trial, truth=np.zeros_like(trial.truth))
    assert (gated_candidates(blind) == gated_candidates(trial)).all()


def test_detection_falls_with_the_crowd_and_is_one_for_an_oracle(trial):
    rng = np.random.default_rng(1)
    scores = compared_scores(trial)["PNU"]
    means = [detection(trial, scores, among, rng)[0] for among in AMONG[:3]]
    assert means == sorted(means, reverse=True)
    oracle = trial.truth.astype(float)
    assert detection(trial, oracle, 100, rng) == (1.0, 0.0)
    # Among ties the order is random: one of eleven on average first.
    flat, _ = detection(trial, np.zeros(len(oracle)), 10, rng)
    assert flat == pytest.approx(np.mean(1 / np.arange(1, 12)), abs=0.03)


def test_an_oracle_saves_all_copies_and_more_false_positives_save_no_less(trial):
    saved = [
        url_reduction(trial, compared_scores(trial)["PU"], rate) for rate in (0.0, 0.001, 0.005)
    ]
    assert 0 <= saved[0] <= saved[1] <= saved[2] <= 1
    assert url_reduction(trial, trial.truth.astype(float), 0.0) > saved[0] / 2


def test_probabilities_are_counted_by_range_and_not_too_sure(trial):
    rows = reliability(trial)
    assert sum(count for count, _, _ in rows.values()) == trial.judged.sum()
    for count, mean, share in rows.values():
        if count >= 50:
            assert share > mean - 0.1


def test_texts_bring_replicas_before_what_only_ranks_so(trial):
    scores = compared_scores(trial)
    assert trial.auc(scores["probability"]) >= trial.auc(scores["PNU, all"]) - 0.001
    rng = np.random.default_rng(1)
    by_rank, by_texts = (
        detection(trial, scores[who], 1_000, rng)[0] for who in ("PNU, all", "probability")
    )
    assert by_texts > by_rank + 0.1


def test_tables_print(trial):
    text = replica_tables.as_markdown(replica_tables.report(SMALL, [7], lambda _: None))
    assert "| auc_pnu |" in text
    assert "k = 10,000" in text
