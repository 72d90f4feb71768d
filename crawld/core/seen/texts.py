"""Many texts as one block of bytes with their lengths; selection of its texts.

Texts of one length are copied together, as items of an array: that takes a third of the time of one
text after another where blocks are large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]

_LENGTH: Final = np.dtype("<u4")

_MIN_TOGETHER: Final = 32
"""Texts of a length, on average, from which on they are worth the cost of a call of numpy."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Texts in UTF-8, one after another.

    Attributes:
        octets: all texts.
        starts: where each begins in `octets`.
        ends: where each ends.
    """

    octets: bytes
    starts: Positions
    ends: Positions

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Return the block of some texts; a lone surrogate takes three bytes."""
        whole = "".join(texts)
        if whole.isascii():
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            return cls._by_lengths(whole.encode(), lengths)
        return cls.of_octets([encoded(text) for text in texts])

    @classmethod
    def of_octets(cls, texts: Sequence[bytes]) -> Self:
        """Return the block of texts that are encoded already."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls._by_lengths(b"".join(texts), lengths)

    @classmethod
    def of_empty(cls, count: int) -> Self:
        """Return the block of some empty texts."""
        return cls._by_lengths(b"", np.zeros(count, np.int64))

    @classmethod
    def unpack(cls, packed: bytes, count: int) -> Self:
        """Return the block that `pack` wrote for `count` texts."""
        lengths = np.frombuffer(packed, _LENGTH, count).astype(np.int64)
        return cls._by_lengths(packed[count * _LENGTH.itemsize :], lengths)

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return the texts of all blocks, in order."""
        if len(blocks) == 1:
            return blocks[0]
        lengths = [block.lengths() for block in blocks]
        octets = b"".join([block.octets for block in blocks])
        return cls._by_lengths(octets, np.concatenate([np.zeros(0, np.int64), *lengths]))

    @classmethod
    def _by_lengths(cls, octets: bytes, lengths: Positions) -> Self:
        ends = np.cumsum(lengths)
        return cls(octets, ends - lengths, ends)

    def pack(self) -> bytes:
        """Return lengths and texts as bytes."""
        return self.lengths().astype(_LENGTH).tobytes() + self.octets

    def __len__(self) -> int:
        return len(self.ends)

    def lengths(self) -> Positions:
        """Return the length of each text, bytes."""
        return self.ends - self.starts

    def take(self, positions: Positions) -> list[bytes]:
        """Return the texts at some positions."""
        octets = self.octets
        starts, ends = self.starts[positions].tolist(), self.ends[positions].tolist()
        return [octets[start:end] for start, end in zip(starts, ends, strict=True)]

    def select(self, positions: Positions) -> Self:
        """Return the block of the texts at some positions, in their order."""
        starts = self.starts[positions]
        lengths = self.ends[positions] - starts
        groups = _by_length(lengths)
        if groups is None:
            return self.of_octets(self.take(positions))
        ends = np.cumsum(lengths)
        to = ends - lengths
        selected = np.empty(int(ends[-1]), np.uint8)
        for length, of in groups:
            _items(selected, length)[to[of]] = _items(self.octets, length)[starts[of]]
        return type(self)(selected.tobytes(), to, ends)

    def without(self, emptied: NDArray[np.bool_]) -> Self:
        """Return the block with some texts empty; only `select` and `take` may read it."""
        return type(self)(self.octets, self.starts, np.where(emptied, self.starts, self.ends))

    def picked(self, positions: Positions) -> Self:
        """Return the texts at ascending positions, without a copy.

        The bytes of the others stay: only `select`, `take`, `part` and `decoded` may read it.
        """
        return type(self)(self.octets, self.starts[positions], self.ends[positions])

    def part(self, start: int, end: int) -> Self:
        """Return the texts from position `start` to before `end`."""
        if start == end:
            return self.of_octets([])
        first, last = int(self.starts[start]), int(self.ends[end - 1])
        return type(self)(
            self.octets[first:last], self.starts[start:end] - first, self.ends[start:end] - first
        )

    def decoded(self) -> list[str]:
        """Return all texts."""
        text = decoded(self.octets) if self.octets.isascii() else None
        if text is None:
            return [decoded(octets) for octets in self.take(np.arange(len(self)))]
        ranges = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [text[start:end] for start, end in ranges]


def encoded(text: str) -> bytes:
    """Return a text as a block keeps it: in UTF-8, where a lone surrogate takes three bytes."""
    return text.encode("utf-8", "surrogatepass")


def decoded(octets: bytes) -> str:
    """Return a text of a block."""
    return octets.decode("utf-8", "surrogatepass")


def _by_length(lengths: Positions) -> Iterator[tuple[int, Positions]] | None:
    """Return each length above 0 and where it is; None if few texts share one."""
    # Radix sort: the longest come in any order, and perhaps in more groups than lengths.
    order = np.argsort(np.minimum(lengths, 0xFFFF).astype(np.uint16), kind="stable")
    ordered = lengths[order]
    bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
    if len(lengths) <= _MIN_TOGETHER * len(bounds):
        return None
    return (
        (int(ordered[start]), order[start:end])
        for start, end in pairwise(bounds.tolist())
        if ordered[start]
    )


def _items(octets: bytes | NDArray[np.uint8], length: int) -> NDArray[np.void]:
    """Return the `length` bytes that begin at each position, as items of an array."""
    return np.ndarray((len(octets) - length + 1,), f"V{length}", octets, strides=(1,))
