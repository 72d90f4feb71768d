"""Stateless random numbers: the same seed and keys give the same draw in every process.

A site of a million pages cannot keep a generator per page (2.5 KB each), and a revision must be the
same whatever was asked before. So nothing here has state: a draw is a hash of its keys by the
finalizer of SplitMix64.

Source: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators", OOPSLA.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(value: int) -> int:
    """Return the 64-bit output of SplitMix64 at the state `value`."""
    z = (value + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def draw(seed: int, *keys: int) -> int:
    """Return 64 uniform bits that depend on the seed and on all keys in order."""
    state = mix(seed & _MASK)
    for key in keys:
        state = mix(state ^ mix(key & _MASK))
    return state


def uniform(seed: int, *keys: int) -> float:
    """Return a uniform number in (0, 1), both ends excluded."""
    return ((draw(seed, *keys) >> 12) + 0.5) * 2.0**-52
