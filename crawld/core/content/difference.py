"""The weighted difference of two texts, by the rsync algorithm: the share that is new.

The old text is cut into blocks of S bytes, each with a strong checksum and a weak one that can be
rolled over the new text byte by byte. From left to right, the first window with the checksums of a
block counts as known, and the search continues after it. The difference d(A|B) is the share of
bytes of A outside such windows. It is 0 if B was only cut (blanked pages), so the difference of two
texts is max(d(A|B), d(B|A)).

The weak checksum of x_1 … x_S is a + 2^16 b with a = Σ x_i and b = Σ (S - i + 1) x_i, both mod
2^16. Windows are summed in slices from cumulative sums, and a bit table selects the few that can be
a block. After a match, equal text is skipped by comparing memory, which gives the same windows as
matching block by block. For two texts that differ in a few words, only the windows near those words
are summed. A slice without a match doubles the size of the next.

Invariants: symmetric; 0 for equal texts, 1 if exactly one is empty; time and memory linear in the
texts. A page can be built so that every window needs a closer look, or that matches are many and
short; these are limited (`MAX_STEPS`), and what lies beyond counts as new.

Source: Tridgell and Mackerras 1996, The rsync algorithm (checksums, search); the weighting is that
of the thesis on adaptive crawling, Oslo, section 6.2.2, extended to count deletions.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

BLOCK_BYTES = 32
"""Default S: one changed digit costs one block on each side."""

MAX_STEPS = 1_000_000
"""Work of one direction, about 2 s: a window looked at costs 1, a match `_MATCH_STEPS`."""

_MATCH_STEPS = 96

_FIRST_SLICE, _LARGEST_SLICE = 2**8, 2**18
_TABLE_BITS = range(12, 19)
"""Range of the bits of the table index; the table has eight entries for each block."""


def difference(
    a: str | bytes,
    b: str | bytes,
    *,
    block_bytes: int = BLOCK_BYTES,
    max_steps: int = MAX_STEPS,
) -> float:
    """Return the weighted difference of two texts, in [0, 1]; a str is compared as UTF-8.

    It is 0 if both are equal, 1 if nothing is shared or one is empty.
    """
    left, right = _as_bytes(a), _as_bytes(b)
    if left == right:
        return 0.0
    if not left or not right:
        return 1.0
    return max(
        one_way(left, right, block_bytes, max_steps), one_way(right, left, block_bytes, max_steps)
    )


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def one_way(
    new: bytes, old: bytes, block_bytes: int = BLOCK_BYTES, max_steps: int = MAX_STEPS
) -> float:
    """Return d(new|old): the share of bytes of a non-empty new text that no block of old covers.

    The last block of old may be shorter than S and then covers only the very end of the new text.
    """
    # A common start is covered block by block, regardless of checksums.
    end = covered = block_bytes * (_common_bytes(new, 0, old, 0) // block_bytes)
    windows = len(new) - block_bytes + 1
    if end < windows and len(old) >= block_bytes:
        blocks = _Blocks(old, block_bytes, max_steps)
        start, slice_bytes = end, _FIRST_SLICE
        while start < windows and blocks.steps_left > 0:
            stop = min(start + slice_bytes, windows)
            end, found = blocks.cover(new, start, stop, end)
            covered += found
            start = max(stop, end)
            slice_bytes = _FIRST_SLICE if found else min(2 * slice_bytes, _LARGEST_SLICE)
    tail = len(old) % block_bytes
    if tail and len(new) - end >= tail and new.endswith(old[-tail:]):
        covered += tail
    return 1 - covered / len(new)


class _Blocks:
    """The blocks of a text, found by weak and then by strong checksum."""

    def __init__(self, text: bytes, block_bytes: int, max_steps: int) -> None:
        self._text, self._size = text, block_bytes
        count = len(text) // block_bytes
        rows = np.frombuffer(text, dtype=np.uint8, count=count * block_bytes)
        self._weak = _weak_of_blocks(rows.reshape(count, block_bytes))
        bits = min(max((8 * count).bit_length(), _TABLE_BITS.start), _TABLE_BITS.stop - 1)
        self._shift = np.uint32(32 - bits)
        self._table = np.zeros(2**bits, dtype=np.bool_)
        self._table[self._index(self._weak)] = True
        self._order = np.argsort(self._weak, kind="stable")
        self._sorted = self._weak[self._order]
        self._strong: dict[int, dict[int, int]] = {}
        self.steps_left = max_steps

    def cover(self, new: bytes, start: int, stop: int, end: int) -> tuple[int, int]:
        """Match the windows that start in [start, stop), from left to right.

        Returns:
            The end of the last match so far, and the bytes covered here.
        """
        weak = weak_checksums(new[start : stop + self._size - 1], self._size)
        hits = np.flatnonzero(self._table[self._index(weak)])
        # The table of a large text is full: only equal checksums need a closer look.
        near = np.minimum(np.searchsorted(self._sorted, weak[hits]), len(self._sorted) - 1)
        hits = hits[self._sorted[near] == weak[hits]]
        positions, values = (hits + start).tolist(), weak[hits].tolist()
        covered = index = 0
        while index < len(positions) and self.steps_left > 0:
            position = positions[index]
            matched = self._matched(new, position, values[index])
            self.steps_left -= _MATCH_STEPS if matched else 1
            if matched:
                covered, end = covered + matched, position + matched
                index = bisect_left(positions, end, index)
            else:
                index += 1
        return end, covered

    def _index(self, weak: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return weak * np.uint32(0x9E3779B1) >> self._shift

    def _matched(self, new: bytes, position: int, weak: int) -> int:
        """Return how many bytes at `position` are whole blocks in a row, 0 if no block is."""
        strong = self._strong.get(weak)
        if strong is None:
            strong = self._strong[weak] = self._strong_of(weak)
        block = strong.get(xxh3_64_intdigest(new[position : position + self._size]))
        if block is None:
            return 0
        common = _common_bytes(new, position, self._text, block * self._size)
        return self._size * (common // self._size)

    def _strong_of(self, weak: int) -> dict[int, int]:
        first = np.searchsorted(self._sorted, weak, side="left")
        last = np.searchsorted(self._sorted, weak, side="right")
        size, text = self._size, self._text
        blocks = self._order[first:last].tolist()
        return {xxh3_64_intdigest(text[b * size : (b + 1) * size]): b for b in reversed(blocks)}


def weak_checksums(text: bytes, block_bytes: int) -> NDArray[np.uint32]:
    """Return the weak checksum of every window of S bytes, by cumulative sums.

    With C_k the sum of the first k bytes, a = C_(k+S) - C_k. b, which counts the first byte S times
    and the last once, is the sum of C_(k+1) … C_(k+S) minus S C_k. Sums may wrap: 2^16 divides
    2^32.

    >>> [hex(checksum) for checksum in weak_checksums(bytes([1, 2, 3, 4]), 3)]
    ['0xa0006', '0x100009']
    """
    sums = np.zeros(len(text) + 1, dtype=np.uint32)
    np.cumsum(np.frombuffer(text, dtype=np.uint8), dtype=np.uint32, out=sums[1:])
    sums_of_sums = np.cumsum(sums, dtype=np.uint32)
    size = np.uint32(block_bytes)
    a = sums[block_bytes:] - sums[:-block_bytes]
    b = sums_of_sums[block_bytes:] - sums_of_sums[:-block_bytes] - size * sums[:-block_bytes]
    return _joined(a, b)


def _weak_of_blocks(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    size = rows.shape[1]
    # Sums of integers below 2^53 are exact in any order, and floats multiply fast.
    factors = np.stack([np.ones(size), np.arange(size, 0, -1.0)], axis=1)
    a, b = (rows.astype(np.float64) @ factors).astype(np.int64).astype(np.uint32).T
    return _joined(a, b)


def _joined(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return (a & np.uint32(0xFFFF)) | b << np.uint32(16)


def _common_bytes(a: bytes, a_start: int, b: bytes, b_start: int) -> int:
    """Return how many bytes are equal from the two starts on."""
    limit = min(len(a) - a_start, len(b) - b_start)
    common, step = 0, 256
    # The step doubles while memory is equal, so each byte is read a constant number of times.
    while common < limit:
        left = a[a_start + common : a_start + min(common + step, limit)]
        right = b[b_start + common : b_start + min(common + step, limit)]
        if left != right:
            differs = np.frombuffer(left, np.uint8) != np.frombuffer(right, np.uint8)
            return common + int(differs.argmax())
        common, step = common + step, 2 * step
    return limit
