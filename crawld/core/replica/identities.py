"""What hosts are known by: names, addresses and certificates, prepared again only where they moved.

Two features come from these alone: whether hosts share an address or a network (`ip4`, `ip3`), and
whether a certificate names both (`certificate`); see `features.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xxhash

from crawld.core.replica.hosts import Hosts, Ids, Keys, NumberArray
from crawld.core.replica.vectors import Floats

UNKNOWN_SIZE = 2
"""Hosts that an address counts as that was in no host when addresses were counted."""


class Grouping(NamedTuple):
    """Hosts in groups.

    Attributes:
        group: key of the group of each host, at least 0; below 0: a group of its own.
        size: hosts in it, as counted at one time.
    """

    group: Ids
    size: Ids

    def similarity(self, one: Ids, other: Ids) -> Floats:
        """Return 1/(size − 1) of the common group of each pair of hosts, 0 without one."""
        same = self.group[one] == self.group[other]
        return np.where(same, 1.0 / np.maximum(self.size[one] - 1, 1), 0.0)


@dataclass(frozen=True, slots=True)
class PairValues:
    """Sparse values of pairs; most pairs have none.

    Attributes:
        keys: pair keys, ascending.
        values: the value of each, above 0.
    """

    keys: Ids
    values: Floats

    @classmethod
    def of(cls, values: Iterable[tuple[tuple[int, int], float]]) -> PairValues:
        """Return the greatest value of each pair, given with its hosts in either order."""
        greatest: dict[int, float] = {}
        for (a, b), value in values:
            key = min(a, b) << 32 | max(a, b)
            greatest[key] = max(value, greatest.get(key, 0.0))
        keys = np.array(sorted(greatest), dtype=np.int64)
        return cls(keys, np.array([greatest[key] for key in keys.tolist()], dtype=np.float64))

    def at(self, keys: Ids) -> Floats:
        """Return the value of each pair; 0 if it has none."""
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.values[place], 0.0)


_Label = tuple[str, str, frozenset[str]]
"""Name, address and the names on the certificate of a host."""


@dataclass(frozen=True, slots=True)
class Identities:
    """What hosts are known by.

    Attributes:
        labels: of each host, by its index.
        keys: one key of each label.
        addresses, networks: the groups of hosts at one address, and in one network.
        certified: 1/(names − 1) of a certificate that names both hosts of a pair.
    """

    labels: tuple[_Label, ...]
    keys: Keys
    addresses: Grouping
    networks: Grouping
    certified: PairValues

    @classmethod
    def of(
        cls,
        hosts: Hosts,
        addresses: Mapping[str, int],
        networks: Mapping[str, int],
        before: Identities | None = None,
    ) -> Identities:
        """Return those of some hosts.

        Args:
            hosts: the hosts.
            addresses: number of hosts at each address; an unknown one has `UNKNOWN_SIZE`.
            networks: the same of networks.
            before: what was returned before with the same counts; it may be of other hosts.
        """
        old = before or _NOBODY
        certificates = hosts.certificates or (frozenset[str](),) * len(hosts)
        labels = tuple(zip(hosts.names, hosts.addresses, certificates, strict=True))
        if labels == old.labels:
            return old
        known = len(old.labels)
        moved = [at for at, label in enumerate(labels) if at >= known or label != old.labels[at]]
        keys = _resized(old.keys, len(labels))
        keys[moved] = np.array([_key(labels[at]) for at in moved], dtype=np.uint64)
        at_address = {at: labels[at][1] for at in moved}
        in_network = {at: network_of(address) for at, address in at_address.items()}
        return cls(
            labels,
            keys,
            _regrouped(old.addresses, len(labels), at_address, addresses),
            _regrouped(old.networks, len(labels), in_network, networks),
            _certified(hosts),
        )


_NONE: Ids = np.zeros(0, dtype=np.int64)
_NOBODY = Identities(
    labels=(),
    keys=np.zeros(0, dtype=np.uint64),
    addresses=Grouping(_NONE, _NONE),
    networks=Grouping(_NONE, _NONE),
    certified=PairValues(_NONE, np.zeros(0)),
)


def network_of(address: str) -> str:
    """Return the network of an address: three octets, or the first three groups of IPv6."""
    if ":" in address:
        return ":".join(address.split(":")[:3])
    return address.rpartition(".")[0]


def _key(label: _Label) -> int:
    name, address, covered = label
    return xxhash.xxh3_64_intdigest("\n".join((name, address, *sorted(covered))).encode())


def _regrouped(
    old: Grouping, count: int, moved: Mapping[int, str], common: Mapping[str, int]
) -> Grouping:
    """Return groups in which some hosts are in those of their labels; an empty label has none."""
    group, size, at = _resized(old.group, count), _resized(old.size, count), list(moved)
    group[at] = [
        xxhash.xxh3_64_intdigest(label.encode()) >> 1 if label else -1 - host
        for host, label in moved.items()
    ]
    size[at] = [common.get(label, UNKNOWN_SIZE) for label in moved.values()]
    return Grouping(group, size)


def _resized(values: NumberArray, count: int) -> NumberArray:
    """Return a copy of the first values, filled with zeros."""
    found = np.zeros(count, dtype=values.dtype)
    found[: len(values)] = values[:count]
    return found


def _certified(hosts: Hosts) -> PairValues:
    """Return 1/(names − 1) of the smallest certificate of either host that names both."""
    place = {name: host for host, name in enumerate(hosts.names)} if hosts.certificates else {}
    return PairValues.of(
        ((host, other), 1.0 / (len(names) - 1))
        for host, names in enumerate(hosts.certificates)
        if hosts.names[host] in names
        for name in names
        if (other := place.get(name, host)) != host
    )
