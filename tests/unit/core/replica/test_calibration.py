"""Probabilities from ranks and texts."""

import numpy as np
import pytest

from crawld.core.replica.calibration import Calibration, agreement_kinds
from crawld.core.replica.features import SharedContent


def content_of(equal, compared=10):
    equal, compared = np.array(equal), np.full(len(equal), compared)
    none = np.zeros(len(equal), dtype=np.int64)
    return SharedContent(
        common=compared,
        compared=compared,
        equal=equal,
        expected=compared,
        partial=np.zeros(len(equal)),
        weight=equal.astype(float),
        rare=none,
        rare_equal=none,
        root=none - 1,
        agreeing=equal,
        telling=equal.astype(float),
        sampled=np.column_stack((none, none, none)),
        sample_agreeing=np.column_stack((none, none, none)),
    )


def test_probability_rises_with_the_rank_and_with_the_texts():
    # Of certain replicas 6 in 10 are alike. At the upper rank 600 of 1,000 pairs are replicas too,
    # the rest only looks so; at the lower one nothing is.
    like_replicas = [9] * 6 + [2] * 2 + [0] * 2
    equal = np.array(like_replicas * 40 + like_replicas * 60 + [0] * 400 + [0] * 1_000)
    share = np.repeat([1.0, 0.9, 0.1], [400, 1_000, 1_000])
    certain = np.arange(len(equal)) < 400
    calibration = Calibration.of(share, content_of(equal), certain)

    def at(rank, equal, compared=10):
        return calibration.probability(np.array([rank]), content_of([equal], compared))[0]

    assert at(0.9, 9) > 0.95
    assert at(0.9, 0) == pytest.approx(120 / 520, abs=0.03)
    assert at(0.9, 0, compared=0) == pytest.approx(0.6, abs=0.03)
    assert at(0.1, 0) < 0.01
    assert at(0.05, 9) == 0.0
    for equal in range(11):
        assert at(0.1, equal) <= at(0.9, equal) <= at(0.9, min(equal + 1, 10))


def test_calibration_without_pairs_gives_0():
    none = np.zeros(0)
    calibration = Calibration.of(none, content_of([]), none.astype(bool))
    assert calibration.probability(np.array([0.5]), content_of([9])).tolist() == [0.0]


def test_agreement_kinds_rise_with_the_agreement():
    content = content_of([0, 0, 1, 0, 3, 9], compared=[0, 3, 3, 9, 9, 9])
    kinds = agreement_kinds(content).tolist()
    assert kinds == sorted(set(kinds))
