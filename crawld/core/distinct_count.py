"""How many different texts were seen, from a sketch of 4 KB: a HyperLogLog.

The hash of a text selects a register, which keeps the most zeros that the rest of a hash began
with. A text that comes again changes nothing. The count is off by 1.6 % in the mean (standard
error), whatever the number.

Source: Flajolet, Fusy, Gandouet and Meunier 2007, "HyperLogLog"; the estimate is that of Ertl 2017,
"New cardinality estimation algorithms for HyperLogLog sketches", without bias for small numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from xxhash import xxh3_64_intdigest

_INDEX_BITS: Final = 12
_REGISTERS: Final = 1 << _INDEX_BITS
_REST_BITS: Final = 64 - _INDEX_BITS
_REST: Final = (1 << _REST_BITS) - 1

STANDARD_ERROR: Final = 1.04 / math.sqrt(_REGISTERS)
"""Of the count, as a share of it."""


class DistinctCount:
    """A sketch of a set of texts.

    >>> count = DistinctCount()
    >>> for number in range(3_000):
    ...     count.add(f"/page/{number % 1_000}")
    >>> abs(count.estimate() - 1_000) < 50
    True
    """

    def __init__(self) -> None:
        self._registers = bytearray(_REGISTERS)

    def add(self, text: str) -> None:
        """Add a text; one that was added before changes nothing."""
        hashed = xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
        register, rank = hashed >> _REST_BITS, _REST_BITS + 1 - (hashed & _REST).bit_length()
        if rank > self._registers[register]:
            self._registers[register] = rank

    def merge(self, other: DistinctCount) -> None:
        """Add all texts of another sketch."""
        self._registers = bytearray(map(max, self._registers, other._registers))

    def estimate(self) -> float:
        """Return how many different texts were added, about."""
        counts = Counter(self._registers)
        z = _REGISTERS * _tau(1.0 - counts[_REST_BITS + 1] / _REGISTERS)
        for rank in range(_REST_BITS, 0, -1):
            z = 0.5 * (z + counts[rank])
        z += _REGISTERS * _sigma(counts[0] / _REGISTERS)
        return _REGISTERS**2 / (2.0 * math.log(2.0) * z)


def _sigma(x: float) -> float:
    """Return the sum of x and of all 2^(k-1) x^(2^k), k from 1 on; infinite at 1."""
    if x == 1.0:
        return math.inf
    total, factor, before = x, 1.0, -1.0
    while total != before:
        before = total
        x *= x
        total += x * factor
        factor *= 2.0
    return total


def _tau(x: float) -> float:
    """Return the correction for registers that are full."""
    if x in (0.0, 1.0):
        return 0.0
    total, factor, before = 1.0 - x, 1.0, -1.0
    while total != before:
        x, before = math.sqrt(x), total
        factor *= 0.5
        total -= (1.0 - x) ** 2 * factor
    return total / 3.0
