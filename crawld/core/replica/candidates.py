"""Phase 1: candidate pairs of hosts, in time linear in the pages.

Two families of inverted lists: path to hosts and signature to hosts. Two hosts are a candidate pair
if a list of at most `cap` hosts holds both; a longer list (`/index.html`) is no evidence and makes
no pairs. Pages may come in any batches: the lists of a batch are looked up, their new pairs added,
and the pairs of a list that exceeds its cap removed, so that the result is that of one batch.

Rules:
1. A list keeps at most `LONGEST + 1` hosts; above that it is only known to be too long, and more
   hosts cost nothing.
2. Above the pair budget lists make no pairs, the longest first; the number of pairs left out is
   counted. Only then does the order of the batches matter.
3. A signature that one host has on `TRIVIAL_PATHS` paths or more is its error page or its empty
   page, and is ignored for that host.

Source: Carvalho 2014, phase 1; the caps and the batches are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import NO_SIGNATURE, Hosts, Ids, Keys, order_by, pair_keys, ranges

CAP = 50
"""Hosts in a list that still makes candidates: 1,225 pairs at most."""

LONGEST = 100
"""Values in more hosts than this are dropped everywhere (the published df limit)."""

PAIR_BUDGET = 20_000_000
"""Most pairs in memory: 16 bytes each."""

TRIVIAL_PATHS = 5
"""A text that a host has on this many paths counts as its error page."""

_ODD = np.uint64(0x9E3779B97F4A7C15)

_MERGE_RATIO = 4
"""A run is merged into the previous one once it is a quarter of its size."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs that share a path or a signature.

    Attributes:
        keys: pair keys, ascending.
        shared: for each pair, number of lists with both hosts.
        dropped: pairs left out because of the budget, counted once per list.
        long_lists: lists above the cap.
    """

    keys: Ids
    shared: Ids
    dropped: int
    long_lists: int


def comparable_signatures(hosts: Hosts) -> Keys:
    """Return the signature of each page, `NO_SIGNATURE` where its host shows it on many paths."""
    return without_trivial(hosts.page_host, hosts.page_signature)


def without_trivial(page_host: Ids, signatures: Keys) -> Keys:
    """Return signatures of pages, `NO_SIGNATURE` where a host shows one on many paths."""
    # Two pages of equal key have the same host and signature; sorting keys takes a tenth of the
    # time of sorting the pages.
    mixed = (signatures ^ (page_host.astype(np.uint64) * _ODD)) * _ODD
    ordered = np.sort(mixed)
    begin = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    length = np.diff(np.append(begin, len(ordered)))
    often = ordered[begin[length >= TRIVIAL_PATHS]] if len(ordered) else ordered
    cleaned: Keys = np.where(np.isin(mixed, often), NO_SIGNATURE, signatures)
    return cleaned


class InvertedLists:
    """Lists from value to hosts, in sorted runs, each a few times larger than the next."""

    def __init__(self, cap: int = CAP) -> None:
        """Set the length of the longest list that makes pairs."""
        self._cap = cap
        self._runs: list[tuple[Keys, Ids]] = []
        self._over_budget: set[int] = set()
        self.long_lists = 0

    def add(self, hosts: Ids, values: Keys, room: int) -> tuple[Ids, Ids, int]:
        """Add pages.

        Args:
            hosts: host of each.
            values: its path or signature; `NO_SIGNATURE` is left out.
            room: pairs that may still be added.

        Returns:
            Keys of the pairs gained and of those lost, each once per list, and the number left out
            for lack of room.
        """
        real = values != NO_SIGNATURE
        if not real.any():
            return _NO_PAIRS, _NO_PAIRS, 0
        value, host, new = self._lists_of(values[real], hosts[real].astype(np.int64))
        begin = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
        length = np.diff(np.append(begin, len(value)))
        fresh = np.add.reduceat(new.astype(np.int64), begin)
        old = length - fresh
        saturated = old > LONGEST
        new &= ~np.repeat(saturated, length)
        self._store(value[new], host[new])
        self.long_lists += int(((length > self._cap) & (old <= self._cap)).sum())
        grown = (fresh > 0) & (length <= self._cap)
        outgrown = (old <= self._cap) & (length > self._cap) & (old > 1)
        if self._over_budget:
            unspent = ~np.isin(
                value[begin], np.fromiter(self._over_budget, np.uint64, len(self._over_budget))
            )
            grown &= unspent
            outgrown &= unspent
        within, dropped = self._within_budget(
            value[begin], np.where(grown, _pairs(length) - _pairs(old), 0), length, room
        )
        gained = _list_pairs(host, new, begin[grown & within], length[grown & within])
        kept_old = ~new
        lost = _list_pairs(
            host[kept_old],
            np.ones(int(kept_old.sum()), dtype=bool),
            (np.cumsum(kept_old) - kept_old)[begin[outgrown]],
            old[outgrown],
        )
        return gained, lost, dropped

    def long_list_pairs(self, most: int, seed: int) -> Ids:
        """Return keys of random pairs in lists above the cap but within `LONGEST`.

        These negatives are informative: random pairs of hosts share nothing and would be separated
        by that alone.
        """
        value, host = self._merged()
        begin = np.flatnonzero(np.concatenate(([True], value[1:] != value[:-1])))
        length = np.diff(np.append(begin, len(value)))
        use = (length > self._cap) & (length <= LONGEST)
        if not use.any():
            return _NO_PAIRS
        rng = np.random.default_rng(seed)
        which = rng.choice(np.flatnonzero(use), size=most)
        one = begin[which] + (rng.random(most) * length[which]).astype(np.int64)
        other = begin[which] + (rng.random(most) * length[which]).astype(np.int64)
        different = host[one] != host[other]
        return np.unique(pair_keys(host[one], host[other])[different])

    def _merged(self) -> tuple[Keys, Ids]:
        if not self._runs:
            return np.zeros(0, dtype=np.uint64), _NO_PAIRS
        while len(self._runs) > 1:
            self._merge_last()
        return self._runs[0]

    def _lists_of(self, values: Keys, hosts: Ids) -> tuple[Keys, Ids, NDArray[np.bool_]]:
        """Return the lists of the values in full, by value and host, and which entries are new."""
        wanted = np.unique(values)
        value_parts, host_parts = [], []
        for run_values, run_hosts in self._runs:
            left = np.searchsorted(run_values, wanted)
            count = np.searchsorted(run_values, wanted, side="right") - left
            at = ranges(left, count)
            value_parts.append(run_values[at])
            host_parts.append(run_hosts[at])
        known = sum(len(part) for part in value_parts)
        value = np.concatenate([*value_parts, values])
        host = np.concatenate([*host_parts, hosts])
        new = np.arange(len(value)) >= known
        order = order_by(value, host, new)
        value, host, new = value[order], host[order], new[order]
        first = np.ones(len(value), dtype=bool)
        first[1:] = (value[1:] != value[:-1]) | (host[1:] != host[:-1])
        return value[first], host[first], new[first]

    def _store(self, value: Keys, host: Ids) -> None:
        """Store new entries; a list that is too long keeps only enough to show it."""
        if not len(value):
            return
        self._runs.append((value, host))
        while len(self._runs) > 1 and len(self._runs[-1][0]) * _MERGE_RATIO >= len(
            self._runs[-2][0]
        ):
            self._merge_last()
        if len(self._runs) == 1:
            self._runs[0] = _shorten(*self._runs[0])

    def _merge_last(self) -> None:
        (large_values, large_hosts), (values, hosts) = self._runs[-2:]
        value = np.concatenate((large_values, values))
        order = np.argsort(value, kind="stable")
        self._runs[-2:] = [(value[order], np.concatenate((large_hosts, hosts))[order])]

    def _within_budget(
        self, value: Keys, cost: Ids, length: Ids, room: int
    ) -> tuple[NDArray[np.bool_], int]:
        """Return which lists fit the room, the shortest first, and how many pairs do not."""
        fits = np.ones(len(value), dtype=bool)
        if int(cost.sum()) <= room:
            return fits, 0
        order = order_by(length, value)
        fits[order] = np.cumsum(cost[order]) <= room
        self._over_budget.update(value[~fits].tolist())
        return fits, int(cost[~fits].sum())


class CandidateIndex:
    """Both families of lists and the pairs they make."""

    def __init__(self, *, cap: int = CAP, pair_budget: int = PAIR_BUDGET) -> None:
        """Set the length of the longest list that makes pairs, and the limit of pairs."""
        self.paths = InvertedLists(cap)
        self.signatures = InvertedLists(cap)
        self._budget = pair_budget
        self._keys, self._shared, self._dropped = _NO_PAIRS, _NO_PAIRS, 0

    def add(self, hosts: Ids, paths: Keys, signatures: Keys) -> None:
        """Add pages: their hosts, path keys and signatures (`comparable_signatures`)."""
        for lists, values in ((self.paths, paths), (self.signatures, signatures)):
            room = self._budget - len(self._keys)
            gained, lost, dropped = lists.add(hosts, values, room)
            self._dropped += dropped
            if len(gained) or len(lost):
                self._count(gained, lost)

    def candidates(self) -> Candidates:
        """Return the current pairs."""
        long_lists = self.paths.long_lists + self.signatures.long_lists
        return Candidates(self._keys, self._shared, self._dropped, long_lists)

    def _count(self, gained: Ids, lost: Ids) -> None:
        keys, counts = np.unique(gained, return_counts=True)
        lost_keys, lost_counts = np.unique(lost, return_counts=True)
        every = np.concatenate((self._keys, keys, lost_keys))
        change = np.concatenate((self._shared, counts, -lost_counts))
        if not len(self._keys) and not len(lost_keys):
            self._keys, self._shared = keys, counts
            return
        order = np.argsort(every, kind="stable")
        begin = np.flatnonzero(np.diff(every[order], prepend=-1))
        total = np.add.reduceat(change[order], begin)
        self._keys, self._shared = every[order][begin][total > 0], total[total > 0]


def find_candidates(
    hosts: Hosts, *, cap: int = CAP, pair_budget: int = PAIR_BUDGET
) -> CandidateIndex:
    """Return the index of all pages of some hosts."""
    index = CandidateIndex(cap=cap, pair_budget=pair_budget)
    index.add(hosts.page_host, hosts.page_path, comparable_signatures(hosts))
    return index


_NO_PAIRS: Ids = np.zeros(0, dtype=np.int64)


def _pairs(count: Ids) -> Ids:
    return count * (count - 1) // 2


def _list_pairs(host: Ids, new: NDArray[np.bool_], begin: Ids, length: Ids) -> Ids:
    """Return the keys of the pairs of each list that include a new host."""
    parts = []
    for size in np.unique(length).tolist():
        if size < 2:
            continue
        at = begin[length == size][:, None] + np.arange(size)
        one, other = np.triu_indices(size, 1)
        first, second = at[:, one].ravel(), at[:, other].ravel()
        use = new[first] | new[second]
        parts.append(pair_keys(host[first[use]], host[second[use]]))
    return np.concatenate(parts) if parts else _NO_PAIRS


def _shorten(value: Keys, host: Ids) -> tuple[Keys, Ids]:
    """Return a run with at most `LONGEST + 1` hosts in each list."""
    begins = np.concatenate(([True], value[1:] != value[:-1]))
    begin = np.flatnonzero(begins)
    place = np.arange(len(value)) - begin[np.cumsum(begins) - 1]
    keep = place <= LONGEST
    return (value, host) if keep.all() else (value[keep], host[keep])
