"""NormPaths and the area under the ROC curve."""

import numpy as np
import pytest

from crawld.core.replica.baselines import area_under_roc, normpaths
from crawld.core.replica.hosts import pair_keys
from tests.unit.core.replica.sample_hosts import hosts_of


def test_area_under_roc_of_chance_and_of_truth():
    positive = np.array([True, False, True, False])
    assert area_under_roc(np.zeros(4), positive) == 0.5
    assert area_under_roc(positive.astype(float), positive) == 1.0


def test_normpaths_adds_one_over_the_length_of_each_list():
    pages = [(0, 1, 5), (1, 1, 5), (2, 1, 5), (0, 2, 6), (1, 2, 6), (2, 2, 9)]
    hosts = hosts_of(("a", "b", "c"), pages)
    keys = pair_keys(np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert normpaths(hosts, keys).tolist() == pytest.approx([1 / 3 + 1 / 2, 1 / 3, 1 / 3])
