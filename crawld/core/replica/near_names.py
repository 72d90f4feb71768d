"""Candidate pairs that no number of other hosts can hide: neighbours in two orders of the hosts.

Lists of more than `candidates.CAP` hosts make no pairs, so whoever registers that many names and
copies a site would hide its replicas. These pairs are linear in the hosts instead: each host with
the few that follow it

- by name, among the hosts that have one label before their public suffix, or
- by the smallest key of a page and its text that it shows, then by host number (the older first),
  among the hosts with the same smallest key; keys of `SEEDS` give an order each. There each host is
  paired with the first one, too: a copy that was met after many others still meets the oldest.

Source: Hernández & Stolfo 1995, "The merge/purge problem" (sorted neighbourhood); Broder 1997 for
the smallest key: hosts with the same pages have the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crawld.core.replica.hosts import NO_SIGNATURE, Ids, Keys, distinct, pair_keys

WINDOW = 3
"""Hosts that follow a host in an order and are paired with it."""


SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""Odd factors of the keys. Hosts that share a third of all their pages have an equal smallest key
in one order of three."""

_END = "\x01"
"""Between the labels of a name: less than any character of a label."""

_PART = 4_000
"""Names converted in one call, which holds the interpreter lock."""

_NO_KEY = np.uint64(2**64 - 1)


def near_pairs(
    names: tuple[Ids, Ids], begin: Ids, path: Keys, signature: Keys, window: int = WINDOW
) -> Ids:
    """Return the keys of all pairs of neighbours, ascending.

    Args:
        names: from `name_order`.
        begin: where the pages of each host begin, one more than hosts.
        path: key of the path of each page; `signature` of its text.
    """
    contents = [content_order(begin, path, signature, seed) for seed in SEEDS]
    found = [neighbours(order, group, window) for order, group in (names, *contents)]
    return distinct(np.concatenate([*found, *(with_first(*one) for one in contents)]))


def name_order(names: Sequence[str], labels: Sequence[str]) -> tuple[Ids, Ids]:
    """Return the hosts by name, and the group of each in this order; -1: a group of its own.

    `labels` are those before the public suffixes; empty: the name has none, and no group.
    """
    keys = [
        _END.join((label, *reversed(name.split(".")))).encode("utf-8", "replace")
        for name, label in zip(names, labels, strict=True)
    ]
    longest = max(map(len, keys), default=1)
    parts = [np.array(keys[at : at + _PART], f"S{longest}") for at in range(0, len(keys), _PART)]
    # Sorting objects would hold the interpreter lock: 40 ms for 20,000 names.
    order = np.argsort(np.concatenate(parts), kind="stable").tolist() if parts else []
    numbers: dict[str, int] = {}
    group = [numbers.setdefault(labels[at], len(numbers)) if labels[at] else -1 for at in order]
    return np.array(order, dtype=np.int64), np.array(group, dtype=np.int64)


def content_order(begin: Ids, path: Keys, signature: Keys, seed: int) -> tuple[Ids, Ids]:
    """Return the hosts with a text by their smallest key, and the group of each in this order."""
    key = (path * np.uint64(seed)) ^ signature
    key *= np.uint64(seed)
    key ^= key >> np.uint64(31)
    key[signature == NO_SIGNATURE] = _NO_KEY
    has_pages = np.flatnonzero(begin[1:] > begin[:-1])
    smallest = np.minimum.reduceat(key, begin[has_pages]) if len(has_pages) else key[:0]
    order = np.argsort(smallest, kind="stable")
    order = order[smallest[order] != _NO_KEY]
    ordered = smallest[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return has_pages[order], np.cumsum(begins)


def neighbours(order: Ids, group: Ids, window: int = WINDOW) -> Ids:
    """Return the keys of the pairs at most `window` places apart within one group."""
    parts = []
    for step in range(1, window + 1):
        same = (group[step:] == group[:-step]) & (group[step:] >= 0)
        parts.append(pair_keys(order[:-step][same], order[step:][same]))
    return np.concatenate(parts)


def with_first(order: Ids, group: Ids) -> Ids:
    """Return the keys of the pairs of each host with the first one of its group."""
    if not len(order):
        return order
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = group[1:] != group[:-1]
    first = order[begins][np.cumsum(begins) - 1]
    return pair_keys(first[~begins], order[~begins])
