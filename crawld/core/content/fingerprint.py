"""Fingerprints of contents: exact digest, cleaned digest, and near-duplicate sketch.

The sketch is a min-hash with one permutation. Every shingle (four words in a row) is hashed once,
the upper seven bits choose one of 128 bins, and each bin keeps its smallest hash, of which one byte
is stored (0 = empty bin). Two texts of resemblance r agree in a bin with probability r + (1 - r) /
255. The estimate divides the agreements by the bins that are not empty on both sides, and removes
the chance agreements; its standard error is sqrt(r (1 - r) / 128), at most 0.044. Tokenizing by a
regular expression would cost more than everything else, so the words are found and hashed with
numpy, up to 16 bytes of each.

Invariants: equal texts have equal sketches on every machine; `resemblance` is symmetric and in [0,
1]; a text without words has an empty sketch, which resembles only another empty one.

Source: Broder 1997, On the resemblance and containment of documents (shingles, resemblance); Li,
Owen and Zhang 2012, One permutation hashing (bins, their estimator); Li and König 2010, b-bit
minwise hashing (few bits a value, chance agreements).
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 16
SKETCH_BYTES = 128
SHINGLE_WORDS = 4

MAX_SKETCH_BYTES = 4 * 2**20
"""Bytes of text in a sketch; the arrays take about ten times as much."""

_BIN_SHIFT = np.uint64(64 - 7)

# Odd multipliers without visible structure: fractions of the golden ratio and of square roots.
_MIX = np.array(
    [0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B],
    dtype=np.uint64,
)
_FOLD = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_WORD_MASK = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


def _byte_classes() -> bytes:
    """Return the class of each byte: 1 in a word, 2 where a one-character word begins, else 0.

    Scripts without spaces (U+3000 to U+D7FF: lead bytes E3 to ED) are cut into characters.
    """
    classes = bytearray(256)
    classes[0x80:] = b"\1" * 0x80
    for letter in b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz":
        classes[letter] = 1
    classes[0xE3:0xEE] = b"\2" * 11
    return bytes(classes)


_CLASSES = _byte_classes()


def digest(body: bytes) -> bytes:
    """Return the exact digest of a body: BLAKE2b, 16 bytes."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def cleaned_digest(cleaned: str) -> bytes:
    """Return the digest of a cleaned text (`volatile.cleaned`), 16 bytes.

    It is as strong as the exact one, because equal texts on two hosts may suspend one of them.
    """
    return blake2b(cleaned.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def sketch(text: str) -> bytes:
    """Return the sketch of the first `MAX_SKETCH_BYTES` of a text; only words in order count."""
    body = text[:MAX_SKETCH_BYTES].encode("utf-8", "surrogatepass")[:MAX_SKETCH_BYTES]
    words = _word_hashes(body)
    if not words.size:
        return bytes(SKETCH_BYTES)
    shingles = _shingles(words)
    bins = (shingles >> _BIN_SHIFT).astype(np.uint8)
    # numpy sorts bytes by counting, wider integers by comparing.
    shingles = shingles[np.argsort(bins, kind="stable")]
    sizes = np.bincount(bins, minlength=SKETCH_BYTES)
    used = np.flatnonzero(sizes)
    least = np.minimum.reduceat(shingles, (np.cumsum(sizes) - sizes)[used])
    stored = np.zeros(SKETCH_BYTES, np.uint8)
    # The upper bits of a minimum are small by selection; the lower ones are uniform.
    stored[used] = least % np.uint64(255) + np.uint64(1)
    return stored.tobytes()


def _word_hashes(body: bytes) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each word, in order."""
    classes = np.frombuffer(b"\0" + body.translate(_CLASSES) + b"\0", dtype=np.uint8)
    inside = classes.view(np.bool_) if classes.max() < 2 else classes != 0
    # A boundary lies between a word byte and a non-word byte; each character of a script without
    # spaces is also a word.
    bounds = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = bounds[::2], bounds[1::2]
    if classes.max() == 2:
        starts = np.flatnonzero(inside[1:] & (~inside[:-1] | (classes[1:] == 2)))
        ends = np.minimum(
            np.append(starts[1:], len(body)), ends[np.searchsorted(ends, starts, "right")]
        )
    lengths = ends - starts
    # Sixteen bytes of padding let every word be read as two integers of eight bytes.
    view = np.ndarray(shape=(len(body) + 9,), dtype="<u8", buffer=body + bytes(16), strides=(1,))
    hashes: NDArray[np.uint64] = lengths.astype(np.uint64)
    hashes ^= (view[starts] & _WORD_MASK[np.minimum(lengths, 8)]) * _MIX[0]
    long = np.flatnonzero(lengths > 8)
    rest = view[starts[long] + 8] & _WORD_MASK[np.minimum(lengths[long] - 8, 8)]
    hashes[long] ^= (rest * _MIX[1]) >> np.uint64(7)
    hashes *= _MIX[2]
    hashes ^= hashes >> _HALF
    return hashes


def _shingles(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of every run of `SHINGLE_WORDS` words; of all words if they are fewer."""
    width = min(SHINGLE_WORDS, len(words))
    count = len(words) - width + 1
    mixed = np.zeros(count, dtype=np.uint64)
    for offset in range(width):
        mixed = (mixed ^ words[offset : offset + count]) * _MIX[offset]
    mixed ^= mixed >> _HALF
    mixed *= _FOLD
    return mixed ^ (mixed >> _HALF)


def resemblance(a: bytes, b: bytes) -> float:
    """Estimate the share of shingles that two texts have in common, from their sketches.

    Returns:
        |A ∩ B| / |A ∪ B| in [0, 1], standard error sqrt(r (1 - r) / 128).

    Source: Broder 1997, section 2; Li, Owen and Zhang 2012, estimator of section 3.
    """
    left, right = np.frombuffer(a, dtype=np.uint8), np.frombuffer(b, dtype=np.uint8)
    used = int(np.count_nonzero(left | right))
    if not used:
        return 1.0
    agreed = int(np.count_nonzero((left == right) & (left != 0)))
    return max(0.0, (agreed / used - 1 / 255) / (1 - 1 / 255))
