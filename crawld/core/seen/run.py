"""The run of a repository: keys in ascending order, each with the check and place of its URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.keys import Checks, Keys
from crawld.core.seen.place import Places

_KEY: Final = np.dtype("<u8")
_CHECK: Final = np.dtype("<u4")
_PLACE: Final = np.dtype("<u2")

ENTRY_BYTES: Final = _KEY.itemsize + _CHECK.itemsize + _PLACE.itemsize
"""Of a URL in a run."""

CHUNK_ENTRIES: Final = 32_768
"""Entries of a chunk when it is split, .5 MB: a few thousand chunks at 100 million URLs, each of
which a batch of a million touches anyway; a small batch rewrites little."""

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Run:
    """Entries in the order of their keys; different URLs may have equal keys."""

    keys: Keys
    checks: Checks
    places: Places

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the run that `pack` wrote."""
        count = len(packed) // ENTRY_BYTES
        checks_at = count * _KEY.itemsize
        return cls(
            np.frombuffer(packed, _KEY, count),
            np.frombuffer(packed, _CHECK, count, checks_at),
            np.frombuffer(packed, _PLACE, count, checks_at + count * _CHECK.itemsize),
        )

    @classmethod
    def empty(cls, count: int) -> Self:
        """Return room for some entries, to be filled in the form of `pack`."""
        return cls(np.empty(count, _KEY), np.empty(count, _CHECK), np.empty(count, _PLACE))

    def pack(self) -> NDArray[np.uint8]:
        """Return the run as bytes."""
        return np.concatenate(
            [
                self.keys.astype(_KEY, copy=False).view(np.uint8),
                self.checks.astype(_CHECK, copy=False).view(np.uint8),
                self.places.astype(_PLACE, copy=False).view(np.uint8),
            ]
        )

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, start: int, end: int) -> Self:
        """Return the entries from `start` to before `end`."""
        return type(self)(self.keys[start:end], self.checks[start:end], self.places[start:end])

    def insert(self, at: Positions, added: Self) -> Self:
        """Return the run with the entries of another, each before the position `at` of this one."""
        to = at + np.arange(len(at))
        kept = np.ones(len(self) + len(added), bool)
        kept[to] = False
        merged = self.empty(len(kept))
        for whole, own, new in (
            (merged.keys, self.keys, added.keys),
            (merged.checks, self.checks, added.checks),
            (merged.places, self.places, added.places),
        ):
            whole[to], whole[kept] = new, own
        return merged

    def cuts(self) -> list[int]:
        """Return where a chunk of these entries is cut; equal keys stay together."""
        if len(self) <= 2 * CHUNK_ENTRIES:
            return []
        wanted = np.arange(CHUNK_ENTRIES, len(self) - CHUNK_ENTRIES // 2, CHUNK_ENTRIES)
        at = np.unique(np.searchsorted(self.keys, self.keys[wanted], side="left"))
        return [int(cut) for cut in at if cut]
