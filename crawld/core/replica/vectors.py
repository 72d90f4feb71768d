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
WeightFunction = Callable[[Keys, Ids], Floats]


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
    host: Ids, value: Keys, hosts: int, weight: WeightFunction, *, longest: int = 0
) -> Vectors:
    """Return the vectors of some hosts.

    Args:
        host: host of each entry; an entry may be given twice.
        weight: returns the weights of distinct values, given the number of hosts of each.
        longest: values of more hosts than this are dropped; 0 keeps all.
    """
    order = order_by(host, value)
    host, value = host[order], value[order]
    first = np.ones(len(host), dtype=bool)
    first[1:] = (host[1:] != host[:-1]) | (value[1:] != value[:-1])
    host, value = host[first], value[first]
    values, number = np.unique(value, return_inverse=True)
    df = np.bincount(number, minlength=len(values))
    keep = (df <= longest) if longest else np.ones(len(values), dtype=bool)
    weights = np.zeros(len(values))
    weights[keep] = weight(values[keep], df[keep])
    entry_weight = weights[number]
    norm = np.sqrt(np.bincount(host, entry_weight**2, minlength=hosts))
    use = keep[number] & (df[number] > 1)
    entry = (host[use] << 32) | number[use]
    order = np.argsort(entry)
    begin = np.searchsorted(host[use], np.arange(hosts + 1))
    return Vectors(entry[order], entry_weight[use][order], begin, norm)


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
