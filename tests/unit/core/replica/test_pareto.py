"""Domination and rank sums."""

import numpy as np

from crawld.core.replica.pareto import count_dominated, rank_sum


def test_equal_points_do_not_dominate_each_other():
    first = np.array([0.1, 0.1, 0.5, 0.5])
    second = np.array([0.9, 0.9, 0.9, 0.1])
    assert count_dominated(first, second).tolist() == [0, 0, 3, 0]
    weight = np.array([10, 1, 1, 1])
    reference = (first, second, weight)
    assert count_dominated(first, second, reference).tolist() == [0, 0, 12, 0]


def test_rank_sum():
    assert rank_sum(np.array([1.0, 2.0, 2.0]), np.array([3.0, 1.0, 2.0])).tolist() == [4, 3.5, 4.5]
