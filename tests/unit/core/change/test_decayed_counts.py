"""Counts that decay, of histories of any length."""

import math
import tracemalloc

import numpy as np

from crawld.core.change.decayed_counts import PART, decayed_counts


def test_a_count_decays_and_grows_by_one_at_each_change():
    found = decayed_counts(np.array([0.0, 0.5, 0.5, 0.0, 0.25]))
    assert found.tolist() == [1.0, 1.5, 1.75, 1.0, 1.25]
    assert decayed_counts(np.zeros(0)).size == 0


def test_parts_go_on_where_the_one_before_ended():
    found = decayed_counts(np.full(2 * PART + 1, math.exp(-1e-5)))
    share = math.exp(-1e-5)
    places = np.array([0, PART - 1, PART, 2 * PART])
    np.testing.assert_allclose(found[places], (1.0 - share ** (places + 1)) / (1.0 - share))


def test_a_long_history_takes_eight_bytes_a_change():
    kept = np.full(32 * PART, 0.9)
    decayed_counts(kept)
    tracemalloc.start()
    try:
        found = decayed_counts(kept)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1.2 * found.nbytes + 80 * PART
