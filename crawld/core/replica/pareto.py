"""PNU: ranks pairs by how many others they dominate in both scores.

A point (alpha_P, alpha_N) dominates another if it is at least as good in both and not equal to it.
This count is not a probability and depends on the batch, so points are ranked against a reference
that is frozen with the model.

Source: Carvalho 2014, section 3.3.4; counting by Fenwick 1994, "A new data structure for cumulative
frequency tables".
"""

from __future__ import annotations

import numpy as np

from crawld.core.replica.hosts import Ids
from crawld.core.replica.vectors import Floats

_FEW = 16
"""Up to this number of points, each is counted separately."""


def count_dominated(
    first: Floats, second: Floats, reference: tuple[Floats, Floats, Ids] | None = None
) -> Ids:
    """Return how many points of a reference each point dominates, in O(n log n).

    Args:
        reference: both scores of the reference points, and the number of points at each; None: the
            points themselves, once each.

    >>> count_dominated(np.array([1.0, 2.0, 2.0, 0.0]), np.array([1.0, 2.0, 2.0, 3.0])).tolist()
    [0, 1, 1, 0]
    """
    if reference is None:
        reference = (first, second, np.ones(len(first), dtype=np.int64))
    ref_first, ref_second, weight = reference
    if len(first) <= _FEW:
        return _few_dominated(first, second, reference)
    levels = np.unique(ref_second)
    rank = np.searchsorted(levels, ref_second).tolist()
    below = np.searchsorted(levels, second, side="right").tolist()
    tree = [0] * (len(levels) + 1)
    order = np.argsort(ref_first, kind="stable").tolist()
    sorted_first = ref_first[order].tolist()
    weights = weight.tolist()
    equal = _equal(ref_first, ref_second, weight, first, second)
    counts = np.zeros(len(first), dtype=np.int64)
    filled = 0
    for at in np.argsort(first, kind="stable").tolist():
        # Whole groups of equal first scores enter at once.
        while filled < len(order) and sorted_first[filled] <= first[at]:
            _add(tree, rank[order[filled]], weights[order[filled]])
            filled += 1
        counts[at] = _sum(tree, below[at])
    return counts - equal


def _few_dominated(first: Floats, second: Floats, reference: tuple[Floats, Floats, Ids]) -> Ids:
    """Count for each point separately: for a few points O(n) in numpy is faster than the tree."""
    ref_first, ref_second, weight = reference
    beaten = (ref_first <= first[:, None]) & (ref_second <= second[:, None])
    equal = (ref_first == first[:, None]) & (ref_second == second[:, None])
    counts: Ids = ((beaten & ~equal) * weight).sum(axis=1)
    return counts


def rank_sum(first: Floats, second: Floats) -> Floats:
    """Return the sum of the ranks of both scores, ties at their mean rank (a simpler baseline)."""
    return _ranks(first) + _ranks(second)


def _equal(
    ref_first: Floats, ref_second: Floats, weight: Ids, first: Floats, second: Floats
) -> Ids:
    at: dict[tuple[float, float], int] = {}
    for a, b, many in zip(ref_first.tolist(), ref_second.tolist(), weight.tolist(), strict=True):
        at[a, b] = at.get((a, b), 0) + many
    return np.array(
        [at.get(point, 0) for point in zip(first.tolist(), second.tolist(), strict=True)],
        dtype=np.int64,
    )


def _ranks(values: Floats) -> Floats:
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    end = np.cumsum(count)
    ranks: Floats = (end - (count - 1) / 2.0)[number]
    return ranks


def _add(tree: list[int], place: int, many: int) -> None:
    place += 1
    while place < len(tree):
        tree[place] += many
        place += place & -place


def _sum(tree: list[int], count: int) -> int:
    total = 0
    while count > 0:
        total += tree[count]
        count -= count & -count
    return total
