"""Keys of URLs: a repository by host, 64 bits that cluster the URLs of a host, and 32 that decide.

Of the hash of the host, six bits select one of 64 repositories and the next sixteen are the upper
bits of the key; the lower 48 are of the hash of the whole URL. So the URLs of a host are neighbours
in one repository, and a batch sorted by key touches each host's run once. A key only selects: two
URLs are the same if they share 32 more bits of the hash, the check, too.

Mathematics: the hashes are strongly universal (`crawld.core.seen.universal`): any two different
URLs have the same key with probability 2^-48 on one host and 2^-70 on two, and the same key and
check with 2^-80 and 2^-102. A host of 10^7 URLs has 0.18 expected pairs of one key. Of 350 million
URLs on hosts of at most 10^7, below 6.3 pairs share a key, and below 1.5e-9 are taken for one URL.
An attacker who does not know the seed cannot aim at a collision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.texts import Positions, TextBlock
from crawld.core.seen.universal import universal_hash

REPOSITORIES: Final = 64
"""As many as the published VEUNI has (50), to a power of two."""

URL_BITS: Final = 48

CHECK_BITS: Final = 32

CLUSTER_SHIFT: Final = np.uint64(URL_BITS)
"""What is above in a key belongs to the host."""

_CLUSTER_BITS: Final = 64 - URL_BITS
_REPOSITORY_BITS: Final = 6
_HASH_BITS: Final = 32
_HOST, _URL = slice(0, 1), slice(1, 4)  # purposes: a URL takes three hashes
_PURPOSES: Final = 4
_SLASH: Final = ord("/")
_COLON: Final = ord(":")

Keys = NDArray[np.uint64]
Checks = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class UrlKeys:
    """Keys of some URLs, in their order.

    Attributes:
        repository: 0 to `REPOSITORIES` - 1.
        key: unique up to collisions inside its repository.
        check: tells URLs of one key apart.
    """

    repository: NDArray[np.uint8]
    key: Keys
    check: Checks

    def take(self, positions: Positions) -> UrlKeys:
        """Return the keys of the URLs at some positions."""
        return UrlKeys(self.repository[positions], self.key[positions], self.check[positions])


def keys_of(texts: TextBlock, seed: int, *, url_bits: int = URL_BITS) -> UrlKeys:
    """Return the keys of texts that should be URLs; any text has a key.

    Args:
        seed: 64 bits that the file chose at random.
        url_bits: how many bits of the URL's hash are used; tests take few, so that keys collide.
    """
    hashing = universal_hash(seed, _PURPOSES)
    host = hashing.of(texts.octets, *_hosts(texts), _HOST)[:, 0]
    halves = hashing.of(texts.octets, texts.starts, texts.ends, _URL)
    unused = np.uint64(2 * _HASH_BITS - URL_BITS)
    used = halves[:, 0] << np.uint64(_HASH_BITS) - unused | halves[:, 1] >> unused
    if url_bits < URL_BITS:
        used &= np.uint64((1 << url_bits) - 1)
    repository = (host >> np.uint64(_HASH_BITS - _REPOSITORY_BITS)).astype(np.uint8)
    cluster = host >> np.uint64(_HASH_BITS - _REPOSITORY_BITS - _CLUSTER_BITS)
    # Bits of the repository are shifted out.
    return UrlKeys(repository, cluster << CLUSTER_SHIFT | used, halves[:, 2].astype(np.uint32))


def _hosts(texts: TextBlock) -> tuple[Positions, Positions]:
    """Return where each URL's host begins and ends: between its second and third slash.

    A text with fewer than two slashes counts as a host.
    """
    found = np.flatnonzero(np.frombuffer(texts.octets, np.uint8) == _SLASH)
    slashes = np.append(found, [len(texts.octets)] * 3)
    first = np.searchsorted(found, texts.starts)
    second, third = slashes[first + 1], slashes[first + 2]
    has_host = second < texts.ends
    return (
        np.where(has_host, second + 1, texts.starts),
        np.where(has_host, np.minimum(third, texts.ends), texts.ends),
    )


def names_port(texts: TextBlock) -> NDArray[np.bool_]:
    """Return which URLs have more than a host name there: a port, or an IPv6 address.

    Those of one host may be in several repositories.
    """
    if texts.octets.count(b":") == len(texts):  # one a URL, behind its scheme
        return np.zeros(len(texts), bool)
    colons = np.flatnonzero(np.frombuffer(texts.octets, np.uint8) == _COLON)
    starts, ends = _hosts(texts)
    return np.searchsorted(colons, ends) > np.searchsorted(colons, starts)


def by_repository(keys: UrlKeys) -> tuple[Positions, list[tuple[int, int, int]]]:
    """Return positions by repository, and where each repository's begin and end there.

    Those of a repository are in their order.
    """
    return np.argsort(keys.repository, kind="stable"), _parts(keys)


def by_cluster(keys: UrlKeys) -> tuple[Positions, list[tuple[int, int, int]]]:
    """Return the same, but positions of a repository by cluster of hosts.

    Neighbours of one host compress well; URLs of one key are in their order.
    """
    cluster = keys.repository.astype(np.uint64) << np.uint64(_CLUSTER_BITS)
    return stable_order(cluster | keys.key >> CLUSTER_SHIFT), _parts(keys)


def _parts(keys: UrlKeys) -> list[tuple[int, int, int]]:
    ends = np.cumsum(np.bincount(keys.repository, minlength=REPOSITORIES)).tolist()
    bounds = enumerate(pairwise([0, *ends]))
    return [(repository, start, end) for repository, (start, end) in bounds if start < end]


def stable_order(numbers: Keys) -> NDArray[np.int64]:
    """Return where numbers below 2^32 are in their order; equal ones come in order of position.

    A third of the time of a stable argsort: the position is part of what is sorted.
    """
    ordered = np.sort(numbers << np.uint64(32) | np.arange(len(numbers), dtype=np.uint64))
    return (ordered & np.uint64(0xFFFFFFFF)).astype(np.int64)


def begins_of(ordered: Keys) -> NDArray[np.bool_]:
    """Return where a key differs from the one before it."""
    begins = np.ones(len(ordered), bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return begins


def distinct(keys: Keys) -> Keys:
    """Return each key once, in ascending order."""
    ordered = np.sort(keys)
    return ordered[begins_of(ordered)]


def expected_collisions(urls_of_a_host: int, *, url_bits: int = URL_BITS) -> float:
    """Return the expected number of pairs of a host's URLs that share a key.

    >>> round(expected_collisions(10_000_000), 2)
    0.18
    >>> f"{35 * expected_collisions(10_000_000, url_bits=URL_BITS + CHECK_BITS):.1e}"
    '1.4e-09'
    """
    return math.comb(urls_of_a_host, 2) / (1 << url_bits)
