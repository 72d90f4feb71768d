"""Sparse vectors of hosts over paths, links or name segments, and the cosine of pairs of them.

The entries are in one array ordered by host and value, so that a value of one host is looked up in
the other by bisection. Values of a single host count in the norm, but match nothing and are not
looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Ids, Keys, order_by, ranges

Floats = NDArray[np.float64]
WeightFunction = Callable[[Keys, Ids, int], Floats]
"""Returns the weights of some values, from the number of hosts of each and the greatest of all."""


@dataclass(frozen=True, slots=True)
class Commonness:
    """How many hosts have each value, counted at one time.

    Pairs that are measured later with the same counts can be compared with those measured before.

    Attributes:
        values: ascending.
        df: number of hosts of each.
        longest: values of more hosts than this are dropped; 0 keeps all.
        most: greatest number of hosts of a value that is not dropped.
    """

    values: Keys
    df: Ids
    longest: int
    most: int

    @classmethod
    def of(cls, host: Ids, value: Keys, *, longest: int = 0) -> Commonness:
        """Count the hosts of each value; an entry may be given twice."""
        _, value = _distinct(host, value)
        values, df = np.unique(value, return_counts=True)
        kept = df[df <= longest] if longest else df
        return cls(values, df, longest, int(kept.max(initial=1)))

    def of_values(self, values: Keys) -> Ids:
        """Return the number of hosts of some values; 1 for a value that was not counted."""
        if not len(self.values):
            return np.ones(len(values), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, self.df[place], 1)


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector per host.

    Attributes:
        entry: host · 2³² + number of the value, ascending; only values shared by two hosts or more.
        begin: where the entries of each host begin, one more than hosts.
        norm: length of each host's vector.
    """

    entry: Ids
    weight: Floats
    begin: Ids
    norm: Floats


def weighted_vectors(
    host: Ids, value: Keys, hosts: int, weight: WeightFunction, common: Commonness
) -> Vectors:
    """Return the vectors of some hosts.

    Args:
        host: host of each entry; an entry may be given twice.
        weight: returns the weights of distinct values.
        common: how many hosts have each value.
    """
    host, value = _distinct(host, value)
    values, number = np.unique(value, return_inverse=True)
    return numbered_vectors(host, values, number, hosts, weight, common)


def numbered_vectors(
    host: Ids, values: Keys, number: Ids, hosts: int, weight: WeightFunction, common: Commonness
) -> Vectors:
    """Return the vectors of some hosts from distinct entries.

    Args:
        host: host of each entry, ascending.
        values: distinct values.
        number: index of the value of each entry, ascending within a host.
        hosts: number of hosts.
        weight: returns the weights of distinct values.
        common: how many hosts have each value.
    """
    df = common.of_values(values)
    keep = (df <= common.longest) if common.longest else np.ones(len(values), dtype=bool)
    weights = np.zeros(len(values))
    weights[keep] = weight(values[keep], df[keep], common.most)
    entry_weight = weights[number]
    norm = np.sqrt(np.bincount(host, entry_weight**2, minlength=hosts))
    use = keep[number] & (np.bincount(number, minlength=len(values))[number] > 1)
    begin = np.searchsorted(host[use], np.arange(hosts + 1))
    return Vectors((host[use] << 32) | number[use], entry_weight[use], begin, norm)


def _distinct(host: Ids, value: Keys) -> tuple[Ids, Keys]:
    """Return the entries without repeats, by host and value."""
    order = order_by(host, value)
    host, value = host[order], value[order]
    first = np.ones(len(host), dtype=bool)
    first[1:] = (host[1:] != host[:-1]) | (value[1:] != value[:-1])
    return host[first], value[first]


def match_entries(
    entry: Ids, begin: Ids, one: Ids, other: Ids
) -> tuple[Ids, Ids, Ids, NDArray[np.bool_]]:
    """Look up each entry of the smaller host of a pair among those of the larger host.

    `entry` and `begin` are as in `Vectors`.

    Returns:
        One element a lookup: index of the pair, index of the entry, index of the entry found, and
        whether both entries have the same value.
    """
    count = begin[1:] - begin[:-1]
    swap = count[one] > count[other]
    short, long = np.where(swap, other, one), np.where(swap, one, other)
    pair = np.repeat(np.arange(len(one)), count[short])
    at = ranges(begin[short], count[short])
    wanted = (entry[at] & 0xFFFFFFFF) | (long[pair] << 32)
    found = np.minimum(np.searchsorted(entry, wanted), len(entry) - 1)
    return pair, at, found, entry[found] == wanted


def cosine(vectors: Vectors, one: Ids, other: Ids) -> Floats:
    """Return the cosine of each pair of hosts, in [0, 1]; 0 where a vector is empty."""
    if not len(vectors.entry) or not len(one):
        return np.zeros(len(one))
    pair, at, found, equal = match_entries(vectors.entry, vectors.begin, one, other)
    product = np.where(equal, vectors.weight[at] * vectors.weight[found], 0.0)
    dot = np.bincount(pair, product, minlength=len(one))
    length = vectors.norm[one] * vectors.norm[other]
    return np.minimum(np.divide(dot, length, out=np.zeros(len(one)), where=length > 0), 1.0)
