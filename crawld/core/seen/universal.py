"""Strongly universal hashes of many texts at once, by factors that a seed chooses.

For two different texts of at most `_MAX_BYTES` the 32-bit hashes are equal with probability 2^-32
over the choice of the factors, whatever the texts are: who does not know the seed cannot aim at a
collision, and a structure of the texts makes none likelier. Longer texts are hashed by keyed
BLAKE2b first.

Source: Lemire and Kaser 2014, "Strongly universal string hashing is fast" (Multilinear).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, shake_128
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.texts import Positions

Hashes = NDArray[np.uint64]

_MAX_BYTES: Final = 2_048
_WORD_BYTES: Final = 4
_FACTORS: Final = 2 + _MAX_BYTES // _WORD_BYTES  # a constant, the length, the words
_SEED_BYTES: Final = 8
_DIGEST_BYTES: Final = 16

_TOGETHER: Final = 4_096
"""Texts at a time: their words stay in the cache."""

_WIDE_BELOW: Final = 16_384
_WIDE_WORDS: Final = 16
"""Fewer texts than `_WIDE_BELOW` are padded to so many words: less work a call, and more a text."""

_KEPT_BYTES: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)


class UniversalHash:
    """A hash function for each of some purposes; those of one seed are independent."""

    def __init__(self, seed: int, purposes: int) -> None:
        self._key = seed.to_bytes(_SEED_BYTES, "little")
        octets = shake_128(self._key).digest(8 * _FACTORS * purposes)
        self._factors = np.frombuffer(octets, "<u8").reshape(_FACTORS, purposes)

    def of(self, octets: bytes, starts: Positions, ends: Positions, purposes: slice) -> Hashes:
        """Return the hashes of texts in a block, below 2^32: a row each, a column for a purpose."""
        factors = np.ascontiguousarray(self._factors[:, purposes])
        lengths = ends - starts
        sums = self._of_words(octets, starts, lengths, factors[2:])
        for at in np.flatnonzero(lengths > _MAX_BYTES).tolist():
            text = octets[starts[at] : ends[at]]
            digest = blake2b(text, key=self._key, digest_size=_DIGEST_BYTES).digest()
            words = np.frombuffer(digest, "<u4").astype(np.uint64)
            sums[at] = words @ factors[2 : 2 + len(words)]
        sums += factors[0] + lengths.astype(np.uint64)[:, None] * factors[1]
        return sums >> np.uint64(32)

    @staticmethod
    def _of_words(octets: bytes, starts: Positions, lengths: Positions, factors: Hashes) -> Hashes:
        """Return the sums of the words' products; 0 for a text that is too long."""
        sums = np.zeros((len(lengths), factors.shape[1]), np.uint64)
        step = _WIDE_WORDS if len(lengths) < _WIDE_BELOW else 1
        widths = (-(-lengths // (step * _WORD_BYTES)) * step).astype(np.uint16)
        widths[lengths > _MAX_BYTES] = 0
        order = np.argsort(widths, kind="stable")
        bounds = np.flatnonzero(np.diff(widths[order].astype(np.int64), prepend=-1, append=-1))
        padded = octets + bytes(_MAX_BYTES)
        for start, end in pairwise(bounds.tolist()):
            width = int(widths[order[start]])
            for begin in range(start, end if width else start, _TOGETHER):
                at = order[begin : min(begin + _TOGETHER, end)]
                words = _words(padded, starts[at], lengths[at], width, step).astype(np.uint64)
                for purpose in range(factors.shape[1]):
                    sums[at, purpose] = words @ factors[:width, purpose]
        return sums


@lru_cache(maxsize=4)
def universal_hash(seed: int, purposes: int) -> UniversalHash:
    """Return the functions of a seed, 64 bits."""
    return UniversalHash(seed, purposes)


def _words(
    padded: bytes, starts: Positions, lengths: Positions, width: int, step: int
) -> NDArray[np.uint32]:
    """Return the words of texts, a row each; bytes after a text are 0."""
    octets = width * _WORD_BYTES
    items = np.ndarray((len(padded) - octets + 1,), f"V{octets}", padded, strides=(1,))
    words = items[starts].view("<u4").reshape(-1, width)
    columns = np.arange(width - step, width) * _WORD_BYTES
    words[:, width - step :] &= _KEPT_BYTES[np.clip(lengths[:, None] - columns, 0, _WORD_BYTES)]
    return words
