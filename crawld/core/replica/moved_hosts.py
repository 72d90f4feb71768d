"""What of hosts moved between two searches, so that only pairs that it concerns are measured again.

The features of a pair depend, with one `Background`, on what its hosts are as wholes (their names,
addresses, certificates, paths, links), on what they show under the paths that both have, and there
on how many hosts show as much. So a pair is concerned

- if one of its hosts moved as a whole, or
- if a page moved of which the other host has the path, or
- if more or fewer hosts show the text of such a page, and both texts are equal or resemble.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import HostFeatures
from crawld.core.replica.hosts import Hosts, Ids, Keys, places, ranges

SLICE = 20_000
"""Pairs that are looked at in one step."""

_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class HostPrints:
    """Fingerprints of hosts and of their pages.

    Attributes:
        ids: host numbers, ascending.
        hosts: fingerprint of each as a whole.
        begin: where the pages of each begin, one more than hosts.
        pages: fingerprint of what each page shows; by host, then by path.
        counts: fingerprint of how many hosts show its text.
    """

    ids: Ids
    hosts: Keys
    begin: Ids
    pages: Keys
    counts: Ids

    @classmethod
    def of(cls, ids: Ids, hosts: Hosts, measure: HostFeatures) -> HostPrints:
        """Return those of some hosts; `measure` is made from `hosts`."""
        order = np.argsort(hosts.link_host, kind="stable")
        begin = np.searchsorted(hosts.link_host[order], np.arange(len(hosts) + 1))
        return cls(
            ids,
            _mixed(
                _sums(_mixed(measure.path), measure.page_begin),
                measure.pages.astype(np.uint64),
                _sums(_mixed(hosts.link_target[order]), begin),
                measure.identities.keys,
            ),
            measure.page_begin,
            _mixed(
                measure.signature,
                measure.likeness,
                measure.path_hosts.astype(np.uint64),
                *measure.bins.T,
            ),
            (measure.like_hosts << 16) | measure.text_hosts,
        )


@dataclass(frozen=True, slots=True)
class MovedHosts:
    """What moved between two searches.

    Attributes:
        hosts: which hosts did as wholes, by their indexes now.
        pages: which pages did, of the other hosts.
        counts: of which other pages as many hosts show the text no more.
    """

    hosts: NDArray[np.bool_]
    pages: NDArray[np.bool_]
    counts: NDArray[np.bool_]

    @classmethod
    def between(cls, before: HostPrints, now: HostPrints) -> MovedHosts:
        """Compare two searches."""
        place = places(before.ids, now.ids)
        hosts = place < 0
        hosts[~hosts] = before.hosts[place[~hosts]] != now.hosts[~hosts]
        # A host that stays has the same paths, so that its pages are in the same order.
        stays = np.flatnonzero(~hosts)
        count = np.diff(now.begin)[stays]
        new, old = ranges(now.begin[stays], count), ranges(before.begin[place[stays]], count)
        pages, counts = (np.zeros(len(now.pages), dtype=bool) for _ in range(2))
        pages[new] = before.pages[old] != now.pages[new]
        counts[new] = before.counts[old] != now.counts[new]
        return cls(hosts, pages, counts & ~pages)

    def concerned(self, measure: HostFeatures, one: Ids, other: Ids) -> NDArray[np.bool_]:
        """Return which pairs of hosts are to be measured again."""
        found: NDArray[np.bool_] = self.hosts[one] | self.hosts[other]
        moved = np.flatnonzero(self.pages | self.counts)
        begin = np.searchsorted(moved, measure.page_begin)
        has_moved = begin[1:] > begin[:-1]
        left = np.flatnonzero(~found & (has_moved[one] | has_moved[other]))
        for at in range(0, len(left), SLICE):
            part = left[at : at + SLICE]
            for here, there in ((one[part], other[part]), (other[part], one[part])):
                found[part] |= self._by_pages(measure, moved, begin, here, there)
        return found

    def _by_pages(
        self, measure: HostFeatures, moved: Ids, begin: Ids, here: Ids, there: Ids
    ) -> NDArray[np.bool_]:
        """Return which pairs of hosts a moved page of the first concerns.

        Args:
            measure: of all hosts.
            moved: the moved pages, ascending.
            begin: where those of each host begin among them, one more than hosts.
            here: the first host of each pair.
            there: the second.
        """
        count = begin[here + 1] - begin[here]
        pair = np.repeat(np.arange(len(here)), count)
        at = moved[ranges(begin[here], count)]
        twin, has_twin = measure.twins(at, there[pair])
        pair, at, twin = pair[has_twin], at[has_twin], twin[has_twin]
        concerns = self.pages[at]
        rest = np.flatnonzero(~concerns)
        concerns[rest] = measure.resemble(at[rest], twin[rest])
        return np.bincount(pair[concerns], minlength=len(here)) > 0


def _mixed(*columns: Keys) -> Keys:
    """Return one key of each row (integer arithmetic modulo 2⁶⁴)."""
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, odd in zip(columns, cycle(_ODD)):
        total = (total ^ column) * odd
        total ^= total >> _SHIFT
    return total


def _sums(values: Keys, begin: Ids) -> Keys:
    """Return the sum of the values of each host, modulo 2⁶⁴."""
    total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)))
    found: Keys = total[begin[1:]] - total[begin[:-1]]
    return found
