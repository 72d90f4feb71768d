"""Aligns the blocks of two readings of a page to find where they differ.

Equal blocks that occur once in each reading are candidate anchors. The longest sequence of them in
the same order in both is kept (patience sorting) and extended over equal neighbors. The blocks
between anchors form gaps. The cost is n log n, never n². Unlike a longest common subsequence, it
does not match a new page with an old one by their blank rows.

Invariants: gaps are disjoint and in order in both readings; outside them the blocks are equal, one
to one and in order.

Source: patience sorting for differences is Bram Cohen's; Fredman 1975 for the longest run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawld.core.content.blocks import Blocks

Gap = tuple[int, int, int, int]
"""Blocks [0:1] of the old reading are replaced by blocks [2:3] of the new one."""


def find_gaps(old: Blocks, new: Blocks) -> list[Gap]:
    """Return the gaps between two readings, in order; none if they are equal."""
    left, right = old.hashes().tolist(), new.hashes().tolist()
    gaps: list[Gap] = []
    i = j = 0
    # A virtual anchor after both ends closes the last gap.
    for i_anchor, j_anchor in [*_anchors(left, right), (len(left), len(right))]:
        if i_anchor < i or j_anchor < j:
            continue
        i, j = _skip_equal(left, right, i, j, i_anchor, j_anchor)
        i_end, j_end = i_anchor, j_anchor
        while i_end > i and j_end > j and left[i_end - 1] == right[j_end - 1]:
            i_end, j_end = i_end - 1, j_end - 1
        if i < i_end or j < j_end:
            gaps.append((i, i_end, j, j_end))
        i, j = i_anchor + 1, j_anchor + 1
    return gaps


def _skip_equal(
    left: list[int], right: list[int], i: int, j: int, i_stop: int, j_stop: int
) -> tuple[int, int]:
    while i < i_stop and j < j_stop and left[i] == right[j]:
        i, j = i + 1, j + 1
    return i, j


def _anchors(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    """Return the longest ordered run of pairs of equal, unique blocks."""
    once = {block for block, count in Counter(left).items() if count == 1}
    where = {block: i for i, block in enumerate(left) if block in once}
    counts = Counter(right)
    pairs = [(where[b], j) for j, b in enumerate(right) if b in where and counts[b] == 1]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (i, _) in enumerate(pairs):
        length = bisect_left(ends, i)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(i)
            last.append(index)
        else:
            ends[length], last[length] = i, index
    run = []
    index = last[-1] if last else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]
