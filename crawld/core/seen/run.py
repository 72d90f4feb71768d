"""The run of a repository: keys in ascending order, each with the number and mark of its URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.event import MARK_BITS, Events
from crawld.core.seen.keys import Keys

ENTRY_BYTES: Final = 12
"""Of a URL in a run: its key, and four bytes of number and mark."""

MAX_NUMBER: Final = (1 << (32 - MARK_BITS)) - 1
"""A repository has at most 537 million URLs."""

CHUNK_ENTRIES: Final = 32_768
"""Entries of a chunk when it is split, .4 MB: a few thousand chunks at 100 million URLs, each of
which a batch of a million touches anyway; a small batch rewrites little."""

Refs = NDArray[np.uint32]
Positions = NDArray[np.int64]

_KEY: Final = np.dtype("<u8")
_REF: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Run:
    """Entries in the order of their keys; different URLs may have equal keys.

    Attributes:
        refs: number of the URL in its repository, in order of admission to the run, and its mark.
    """

    keys: Keys
    refs: Refs

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the run that `pack` wrote."""
        count = len(packed) // ENTRY_BYTES
        return cls(
            np.frombuffer(packed, _KEY, count),
            np.frombuffer(packed, _REF, count, count * _KEY.itemsize),
        )

    @classmethod
    def empty(cls, count: int) -> Self:
        """Return room for some entries, to be filled in the form of `pack`."""
        return cls(np.empty(count, _KEY), np.empty(count, _REF))

    def pack(self) -> NDArray[np.uint8]:
        """Return the run as bytes."""
        parts = self.keys.astype(_KEY, copy=False), self.refs.astype(_REF, copy=False)
        return np.concatenate([part.view(np.uint8) for part in parts])

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, start: int, end: int) -> Self:
        """Return the entries from `start` to before `end`."""
        return type(self)(self.keys[start:end], self.refs[start:end])

    def insert(self, at: Positions, added: Self) -> Self:
        """Return the run with the entries of another, each before the position `at` of this one."""
        to = at + np.arange(len(at))
        kept = np.ones(len(self) + len(added), bool)
        kept[to] = False
        keys, refs = np.empty(len(kept), np.uint64), np.empty(len(kept), np.uint32)
        keys[to], refs[to] = added.keys, added.refs
        keys[kept], refs[kept] = self.keys, self.refs
        return type(self)(keys, refs)

    def cuts(self) -> list[int]:
        """Return where a chunk of these entries is cut; equal keys stay together."""
        if len(self) <= 2 * CHUNK_ENTRIES:
            return []
        wanted = np.arange(CHUNK_ENTRIES, len(self) - CHUNK_ENTRIES // 2, CHUNK_ENTRIES)
        at = np.unique(np.searchsorted(self.keys, self.keys[wanted], side="left"))
        return [int(cut) for cut in at if cut]


def refs_of(numbers: Positions, marks: Events) -> Refs:
    """Return the entries' second part."""
    return numbers.astype(np.uint32) << np.uint32(MARK_BITS) | marks.astype(np.uint32)


def numbers_of(refs: Refs) -> Positions:
    """Return the numbers of URLs."""
    return (refs >> np.uint32(MARK_BITS)).astype(np.int64)


def marks_in(refs: Refs) -> Events:
    """Return the marks of URLs."""
    return (refs & np.uint32((1 << MARK_BITS) - 1)).astype(np.uint8)
