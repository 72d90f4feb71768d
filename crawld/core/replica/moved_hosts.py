"""Fingerprints of hosts, which tell between two searches whether a host moved.

A fingerprint covers all that the features of a pair take from one of its hosts: its pages and their
texts, how many hosts have each text and path, the hosts it links to, its name, address and
certificate. With one `Background`, a pair of two hosts with unchanged fingerprints has unchanged
features.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np
import xxhash

from crawld.core.replica.features import HostFeatures
from crawld.core.replica.hosts import Hosts, Ids, Keys

_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_SHIFT = np.uint64(29)


def host_fingerprints(hosts: Hosts, measure: HostFeatures) -> Keys:
    """Return the fingerprint of each host; `measure` is made from `hosts`."""
    counts = (measure.like_hosts << 16) | (measure.text_hosts << 2) | measure.path_hosts
    page = _mixed(
        measure.path,
        measure.signature,
        counts.astype(np.uint64),
        measure.likeness,
        *measure.bins.T,
    )
    pages = _sums(page, measure.page_begin)
    order = np.argsort(hosts.link_host, kind="stable")
    begin = np.searchsorted(hosts.link_host[order], np.arange(len(hosts) + 1))
    links = _sums(_mixed(hosts.link_target[order]), begin)
    return _mixed(pages, links, _identities(hosts))


def _identities(hosts: Hosts) -> Keys:
    certificates = hosts.certificates or (frozenset[str](),) * len(hosts)
    return np.array(
        [
            xxhash.xxh3_64_intdigest("\n".join((name, address, *sorted(covered))).encode())
            for name, address, covered in zip(
                hosts.names, hosts.addresses, certificates, strict=True
            )
        ],
        dtype=np.uint64,
    )


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
