"""The tree for weighted draws."""

import numpy as np

from crawld.core.revisit.fenwick import Fenwick


def test_fenwick_finds_by_share_and_skips_zero_weights():
    tree = Fenwick()
    for slot, weight in enumerate([0.0, 1.0, 0.0, 3.0]):
        tree.set(slot, weight)
    assert [tree.find(share) for share in (0.0, 0.24, 0.26, 0.999999)] == [1, 1, 3, 3]
    tree.set(3, 0.0)
    tree.set(1, 0.0)
    assert tree.find(0.5) == -1
    tree.load(np.array([0.0, 2.0]))
    assert tree.find(0.0) == 1
