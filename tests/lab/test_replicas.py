"""The replica experiment on a small web: all figures exist and are better than chance."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crawld.lab import replica_tables, replicas
from crawld.lab.replicas import (
    CROWD_SIZES,
    accuracy,
    compared_scores,
    detection,
    judged_candidates,
    reliability,
    run_trial,
    url_reduction,
)
from crawld.simweb.replica_parameters import STANDARD, Cause, scale_web

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


@cache
def small_trial():
    """Return the trial that the tests of several files read."""
    return run_trial(SMALL, 7)


@pytest.fixture
def trial():
    return small_trial()


def test_replicas_are_found_and_none_pruned_wrongly(trial):
    found = accuracy(trial)
    assert found["auc_pnu"] > 0.95
    assert found["auc_pnu_five"] > 0.9
    assert found["auc_upper"] >= found["auc_pnu"]
    assert found["candidate_recall"] > 0.9
    assert found["false_prunings"] == 0
    assert found["gated_recall"] > 0.2
    assert {f"candidate_recall_{cause.value}" for cause in Cause} <= set(found)


def test_the_gate_does_not_use_the_truth(trial):
    blind = replace(trial, truth=np.zeros_like(trial.truth))
    for found, expected in zip(judged_candidates(blind), judged_candidates(trial), strict=True):
        assert (found == expected).all()


def test_detection_falls_with_k_and_is_1_for_an_oracle(trial):
    rng = np.random.default_rng(1)
    scores = compared_scores(trial)["PNU"]
    means = [detection(trial, scores, among, rng)[0] for among in CROWD_SIZES[:3]]
    assert means == sorted(means, reverse=True)
    oracle = trial.truth.astype(float)
    assert detection(trial, oracle, 100, rng) == (1.0, 0.0)
    # Among ties the order is random: one of eleven on average first.
    flat, _ = detection(trial, np.zeros(len(oracle)), 10, rng)
    assert flat == pytest.approx(np.mean(1 / np.arange(1, 12)), abs=0.03)


def test_a_higher_false_positive_rate_saves_no_less(trial):
    saved = [
        url_reduction(trial, compared_scores(trial)["PU"], rate) for rate in (0.0, 0.001, 0.005)
    ]
    assert 0 <= saved[0] <= saved[1] <= saved[2] <= 1
    assert url_reduction(trial, trial.truth.astype(float), 0.0) > saved[0] / 2


def test_probabilities_are_not_overconfident(trial):
    rows = reliability(trial)
    assert sum(count for count, _, _ in rows.values()) == trial.judged.sum()
    for count, mean, share in rows.values():
        if count >= 50:
            assert share > mean - 0.1


def test_probability_ranks_replicas_better_than_pnu(trial):
    scores = compared_scores(trial)
    assert trial.auc(scores["probability"]) >= trial.auc(scores["PNU, all"]) - 0.001
    rng = np.random.default_rng(1)
    by_rank, by_texts = (
        detection(trial, scores[who], 1_000, rng)[0] for who in ("PNU, all", "probability")
    )
    assert by_texts > by_rank + 0.1


def test_tables_as_markdown():
    fewer = replace(SMALL, hosts=800, groups=dict.fromkeys(Cause, 20))
    text = replica_tables.as_markdown(replica_tables.report(fewer, [7], lambda _: None))
    assert "| auc_pnu |" in text
    assert "k = 10,000" in text


def test_pairs_that_are_measured_in_parts_are_the_same(monkeypatch):
    web = scale_web(STANDARD, 300, pages=10)
    _, whole, truth = replicas.prepare(web, 3)
    assert len(whole.candidates.keys) > 150
    monkeypatch.setattr(replicas, "_MEASURED_AT_ONCE", 50)
    _, parts, same = replicas.prepare(web, 3)
    assert np.array_equal(parts.candidates.keys, whole.candidates.keys)
    assert np.array_equal(parts.candidates.values, whole.candidates.values)
    for part, column in zip(parts.candidates.content, whole.candidates.content, strict=True):
        assert np.array_equal(part, column)
    assert np.array_equal(same, truth)
