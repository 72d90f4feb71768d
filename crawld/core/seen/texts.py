"""Many texts as one block of bytes with their lengths, and comparison of texts of two blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]

_LENGTH: Final = np.dtype("<u4")


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
            octets = whole.encode()
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            return cls._by_lengths(octets, lengths)
        return cls.of_octets([text.encode("utf-8", "surrogatepass") for text in texts])

    @classmethod
    def of_octets(cls, texts: Sequence[bytes]) -> Self:
        """Return the block of texts that are encoded already."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls._by_lengths(b"".join(texts), lengths)

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


def decoded(octets: bytes) -> str:
    """Return a text of a block."""
    return octets.decode("utf-8", "surrogatepass")


def differing(
    one: TextBlock, one_at: Positions, other: TextBlock, other_at: Positions
) -> NDArray[np.bool_]:
    """Return for each pair of positions whether the texts differ."""
    differs = one.ends[one_at] - one.starts[one_at] != other.ends[other_at] - other.starts[other_at]
    same_length = np.flatnonzero(~differs)
    pairs = zip(one.take(one_at[same_length]), other.take(other_at[same_length]), strict=True)
    differs[same_length] = np.fromiter((a != b for a, b in pairs), bool, len(same_length))
    return np.asarray(differs)
