"""Measured pairs, carried from one search to the next; only pairs that moved are measured again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import HostFeatures, PairFeatures, SharedContent
from crawld.core.replica.hosts import Ids, pair_hosts, places
from crawld.core.replica.moved_hosts import HostPrints, MovedHosts
from crawld.core.replica.vectors import Floats

Declared = Mapping[int, tuple[int, ...]]
"""By pair key: how many pages of each host redirect to, or name as canonical, the other."""


@dataclass(frozen=True, slots=True)
class HostStates:
    """What pairs were measured from.

    Attributes:
        prints: fingerprints of the hosts.
        declared: declarations between them.
    """

    prints: HostPrints
    declared: Declared

    @property
    def ids(self) -> Ids:
        """The host numbers, ascending."""
        return self.prints.ids

    def moved(self, now: HostStates, measure: HostFeatures, keys: Ids) -> NDArray[np.bool_]:
        """Return of which pairs of hosts in `now` what they are measured from moved.

        `measure` is of the hosts in `now`.
        """
        one, other = (np.searchsorted(now.ids, side) for side in pair_hosts(keys))
        declared = [
            key
            for key in {*now.declared, *self.declared}
            if now.declared.get(key) != self.declared.get(key)
        ]
        redeclared = np.isin(keys, np.array(declared, dtype=np.int64))
        moved = MovedHosts.between(self.prints, now.prints).concerned(measure, one, other)
        return moved | redeclared


@dataclass(frozen=True, slots=True)
class MeasuredPairs:
    """Pairs with their features.

    Attributes:
        states: the hosts they were measured from.
        features: its keys are pair keys of host numbers, ascending.
        probability: of each pair; None without a classifier.
        listed: which of them the lists of candidates hold.
    """

    states: HostStates
    features: PairFeatures
    probability: Floats | None
    listed: NDArray[np.bool_]

    def unmoved(
        self, states: HostStates, measure: HostFeatures, keys: Ids, listed: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which of some pairs are known and would be measured and judged alike."""
        place = places(self.features.keys, keys)
        known = place >= 0
        known[known] = self.listed[place[known]] == listed[known]
        clean: NDArray[np.bool_] = known & ~self.states.moved(states, measure, keys)
        return clean

    def carried(
        self, keys: Ids, clean: NDArray[np.bool_], fresh: PairFeatures
    ) -> tuple[PairFeatures, Floats]:
        """Return the features of pairs, and the known probability of the clean ones.

        Args:
            keys: pairs wanted, ascending.
            clean: which of them are taken from here; the others are those of `fresh`, in order.
        """
        place = places(self.features.keys, keys[clean])
        values = np.empty((len(keys), fresh.values.shape[1]))
        values[clean], values[~clean] = self.features.values[place], fresh.values
        columns = []
        for old, new in zip(self.features.content, fresh.content, strict=True):
            column = np.empty((len(keys), *new.shape[1:]), dtype=new.dtype)
            column[clean], column[~clean] = old[place], new
            columns.append(column)
        probability = np.zeros(len(keys))
        if self.probability is not None:
            probability[clean] = self.probability[place]
        return PairFeatures(keys, values, SharedContent._make(columns)), probability
