"""EM on small training sets."""

import numpy as np
import pytest

from crawld.core.replica.em import TrainingVectors, em_passes, initial_rules, run_em


def training_data():
    """Return vectors (all share a value); the first three look like the certain ones."""
    vectors = np.array(
        [[0, 1, 1, 1], [0, 1, 1, 2], [0, 2, 1, 1], [0, 8, 9, 8], [0, 9, 9, 8], [0, 8, 9, 9]]
    )
    certain = np.array([30, 20, 20, 0, 0, 0])
    unlabelled = np.array([3, 4, 5, 400, 300, 500])
    return vectors, certain, unlabelled


@pytest.mark.parametrize("positive", [True, False])
def test_only_vectors_like_the_certain_ones_flip(positive):
    learnt = run_em(TrainingVectors(*training_data(), positive=positive))
    assert learnt.flipped.tolist() == [True, True, True, False, False, False]
    scores = learnt.rules.scores()
    alike, rest = (scores[:3], scores[3:]) if positive else (scores[3:], scores[:3])
    assert alike.min() > rest.max()


def test_flips_are_permanent_and_the_last_pass_has_none():
    training = TrainingVectors(*training_data(), positive=True)
    states = [int(state.flipped.sum()) for state in em_passes(training)]
    assert states == sorted(states)
    assert states[-1] == states[-2]


def test_a_fixed_threshold_flips_the_vectors_below_it():
    training = TrainingVectors(*training_data(), positive=True)
    alpha = 1.0 - initial_rules(training).scores()
    flips = np.sum(alpha <= 0.5)
    assert next(em_passes(training, alpha_min=0.5)).flipped.sum() == flips
    assert not run_em(training, alpha_min=-1.0).flipped.any()


def test_a_single_vector_has_no_cut():
    # One vector alone: every alpha is equal and there is nothing to cut.
    training = TrainingVectors(np.array([[1, 1]]), np.array([5]), np.array([9]), positive=True)
    assert not run_em(training).flipped.any()
