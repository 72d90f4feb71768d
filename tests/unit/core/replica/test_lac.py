"""The lazy associative classifier, computed by hand."""

import numpy as np
import pytest

from crawld.core.replica.lac import DistinctVectors, Rules


def test_score_is_the_mean_vote_of_the_rules():
    vectors = np.array([[1, 1], [1, 2]])
    rules = Rules(vectors)
    rules.count(np.array([4, 6]), np.array([3, 0]))
    # {1,.}: 3/10, {.,1}: 3/4, {1,1}: 3/4; {1,.}: 3/10, the other two 0.
    assert rules.scores().tolist() == pytest.approx([(0.3 + 0.75 + 0.75) / 3, 0.1])


def test_a_label_change_updates_only_the_rules_of_its_vector():
    vectors = np.array([[1, 1], [1, 2], [2, 2]])
    rules = Rules(vectors)
    rules.count(np.array([4, 6, 2]), np.zeros(3, dtype=np.int64))
    rules.add_positive(1, 6)
    again = Rules(vectors)
    again.count(np.array([4, 6, 2]), np.array([0, 6, 0]))
    assert rules.positive.tolist() == again.positive.tolist()
    assert rules.scores().tolist() == again.scores().tolist()


def test_vectors_never_seen_are_scored_by_the_rules_they_share():
    rules = Rules(np.array([[1, 1], [2, 2]]))
    rules.count(np.array([2, 2]), np.array([2, 0]))
    seen = rules.score(np.array([[1, 1], [1, 2], [7, 7]]))
    assert seen.tolist() == [1.0, 0.5, 0.0]


def test_distinct_vectors_and_their_counts():
    vectors = DistinctVectors.of(np.array([[1, 2], [0, 5], [1, 2]]))
    assert vectors.vectors.tolist() == [[0, 5], [1, 2]]
    assert vectors.number.tolist() == [1, 0, 1]
    assert vectors.count_among(np.array([True, True, False])).tolist() == [1, 1]
