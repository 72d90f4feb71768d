"""Baselines for the classifiers: NormPaths, and the area under a ROC curve.

Source: NormPaths, Bharat, Broder, Dean & Henzinger 2000, in the version of Carvalho 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.candidates import comparable_signatures
from crawld.core.replica.hosts import NO_SIGNATURE, Hosts, Ids, pair_keys
from crawld.core.replica.vectors import Floats

_LONGEST = 1_000
"""Longer lists add less than a thousandth to each pair."""


def normpaths(hosts: Hosts, keys: Ids) -> Floats:
    """Return rsim of each pair: the sum of 1/|L| over lists L of hosts with an equal ⟨path, text⟩.

    `keys` are ascending.
    """
    signature = comparable_signatures(hosts)
    real = signature != NO_SIGNATURE
    rows = np.column_stack((hosts.page_path[real], signature[real], hosts.page_host[real]))
    rows = np.unique(rows.astype(np.uint64), axis=0)
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    begin = np.flatnonzero(begins)
    length = np.diff(np.append(begin, len(rows)))
    host = rows[:, 2].astype(np.int64)
    similarity = np.zeros(len(keys))
    for size in np.unique(length[(length > 1) & (length <= _LONGEST)]).tolist():
        at = begin[length == size][:, None] + np.arange(size)
        one, other = np.triu_indices(size, 1)
        pairs = pair_keys(host[at[:, one].ravel()], host[at[:, other].ravel()])
        place = np.minimum(np.searchsorted(keys, pairs), len(keys) - 1)
        np.add.at(similarity, place[keys[place] == pairs], 1.0 / size)
    return similarity


def area_under_roc(scores: Floats | Ids, positive: NDArray[np.bool_]) -> float:
    """Return the probability that a positive scores above a negative; ties count half.

    >>> area_under_roc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    _, number, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2.0)[number]
    many = int(positive.sum())
    rest = len(positive) - many
    if not many or not rest:
        return float("nan")
    return float((rank[positive].sum() - many * (many + 1) / 2.0) / (many * rest))
