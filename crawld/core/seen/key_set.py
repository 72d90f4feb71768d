"""All keys of a file in memory, eight bytes a URL, for answers at once.

That a URL's key is not among them proves that the URL is new. That it is says that the URL is known
but for collisions (`crawld.core.seen.keys`), which the turn of its repository finds: such a URL is
new later. So no URL is lost, and none is new twice.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.keys import REPOSITORIES, Keys, UrlKeys, begins_of, by_repository, distinct

RECENT_SHARE: Final = 1 / 8
"""Recent keys are merged when they are more than this share of the others: a key is copied about
eight times while a set doubles, and a batch copies an eighth of it at most."""

KEY_BYTES: Final = 8

_MIN_RECENT: Final = 4_096


class KeySet:
    """A set of keys: per repository one large sorted array, and a small one of recent keys."""

    def __init__(self) -> None:
        self._keys: list[Keys] = [np.zeros(0, np.uint64)] * REPOSITORIES
        self._recent: list[Keys] = [np.zeros(0, np.uint64)] * REPOSITORIES

    def __len__(self) -> int:
        return sum(map(len, self._keys)) + sum(map(len, self._recent))

    @property
    def octets(self) -> int:
        """Memory of the keys, bytes."""
        return KEY_BYTES * len(self)

    def missing(self, keys: UrlKeys) -> NDArray[np.bool_]:
        """Return which URLs are certainly new; of several with one key only the first."""
        found = np.zeros(len(keys.key), bool)
        order, parts = by_repository(keys)
        key = keys.key[order]
        for repository, start, end in parts:
            found[start:end] = self._missing_in(repository, key[start:end])
        new = np.zeros(len(keys.key), bool)
        new[order[found]] = True
        return new

    def _missing_in(self, repository: int, keys: Keys) -> NDArray[np.bool_]:
        order = np.argsort(keys)
        ordered = keys[order]
        starts = np.flatnonzero(begins_of(ordered))
        unique, first = ordered[starts], np.minimum.reduceat(order, starts)
        found = np.zeros(len(keys), bool)
        found[first[self._absent(repository, unique)]] = True
        return found

    def _absent(self, repository: int, keys: Keys) -> NDArray[np.int64]:
        """Return which keys, in ascending order, are not here; most are among the large array."""
        absent = np.flatnonzero(~_contains(self._keys[repository], keys))
        return absent[~_contains(self._recent[repository], keys[absent])]

    def load(self, repository: int, ordered: Keys) -> None:
        """Set the keys of a repository, which are in ascending order."""
        self._keys[repository] = ordered

    def add_missing(self, keys: UrlKeys) -> None:
        """Add keys that are `missing`, each once."""
        order, parts = by_repository(keys)
        key = keys.key[order]
        for repository, start, end in parts:
            self._insert(repository, np.sort(key[start:end]))

    def merge(self, others: KeySet) -> None:
        """Add the keys of another set, none of which is in this one."""
        for repository in range(REPOSITORIES):
            for keys in (others._keys[repository], others._recent[repository]):
                self._insert(repository, keys)

    def add_to(self, repository: int, keys: Keys) -> None:
        """Add keys of one repository; those that are in it stay."""
        new = distinct(keys)
        self._insert(repository, new[self._absent(repository, new)])

    def _insert(self, repository: int, new: Keys) -> None:
        if not len(new):
            return
        recent = _merged(self._recent[repository], new)
        if len(recent) > max(_MIN_RECENT, RECENT_SHARE * len(self._keys[repository])):
            self._keys[repository] = _merged(self._keys[repository], recent)
            recent = np.zeros(0, np.uint64)
        self._recent[repository] = recent


def _merged(one: Keys, other: Keys) -> Keys:
    """Return two ordered arrays as one: the stable sort merges runs that it finds in order."""
    merged = np.concatenate([one, other])
    merged.sort(kind="stable")
    return merged


def _contains(ordered: Keys, keys: Keys) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[at] == keys)
