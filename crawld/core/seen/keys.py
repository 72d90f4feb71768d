"""Keys of URLs: a repository by host, and 64 bits that cluster the URLs of a host.

Of the seeded 64-bit xxh3 of the host, six bits select one of 64 repositories and the next sixteen
are the upper bits of the key; the lower 48 are of the seeded xxh3 of the whole URL. So the URLs of
a host are neighbours in one repository, and a batch sorted by key touches each host's run once.

Mathematics: two different URLs have the same key with probability 2^-48 on one host and 2^-70 on
two. A host of 10^7 URLs has 0.18 expected colliding pairs; 350 million URLs on hosts of at most
10^7 have below 6.3, and the texts of all of them are compared. An attacker who does not know the
seed cannot aim at a collision, and one who knows it delays verdicts but cannot change them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_digest

REPOSITORIES: Final = 64
"""As many as the published VEUNI has (50), to a power of two."""

URL_BITS: Final = 48

_CLUSTER_BITS: Final = 64 - URL_BITS
_REPOSITORY_BITS: Final = 6
_DIGEST_BYTES: Final = 8

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class UrlKeys:
    """Keys of some URLs, in their order.

    Attributes:
        repository: 0 to `REPOSITORIES` - 1.
        key: unique up to collisions inside its repository.
    """

    repository: NDArray[np.uint8]
    key: Keys


def keys_of(urls: Sequence[str], seed: int, *, url_bits: int = URL_BITS) -> UrlKeys:
    """Return the keys of texts that should be URLs; any text has a key.

    Args:
        seed: 64 bits that the file chose at random.
        url_bits: how many bits of the URL's hash are used; tests take few, so that keys collide.
    """
    try:
        hosts = [url.split("/", 3)[2] for url in urls]
        host_digests = _digests(map(str.encode, hosts), seed)
        url_digests = _digests(map(str.encode, urls), seed)
    except (IndexError, UnicodeEncodeError):  # a text without slashes, a lone surrogate
        host_digests = _digests((_octets(_host(url)) for url in urls), seed)
        url_digests = _digests((_octets(url) for url in urls), seed)
    host = _integers(host_digests)
    used = _integers(url_digests) >> np.uint64(_CLUSTER_BITS)
    if url_bits < URL_BITS:
        used &= np.uint64((1 << url_bits) - 1)
    repository = (host >> np.uint64(64 - _REPOSITORY_BITS)).astype(np.uint8)
    cluster = host << np.uint64(_REPOSITORY_BITS) >> np.uint64(URL_BITS) << np.uint64(URL_BITS)
    return UrlKeys(repository, cluster | used)


def by_repository(keys: UrlKeys) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each repository that has any of the URLs, and their positions.

    They come by cluster of hosts, because neighbours of one host compress well; URLs of one key
    come in their order.
    """
    cluster = keys.repository.astype(np.uint64) << np.uint64(_CLUSTER_BITS)
    order = stable_order(cluster | keys.key >> np.uint64(URL_BITS))
    ends = np.cumsum(np.bincount(keys.repository, minlength=REPOSITORIES)).tolist()
    for repository, (start, end) in enumerate(pairwise([0, *ends])):
        if start < end:
            yield repository, order[start:end]


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
    """
    return math.comb(urls_of_a_host, 2) / (1 << url_bits)


def _digests(texts: Iterable[bytes], seed: int) -> bytes:
    return b"".join(map(xxh3_64_digest, texts, repeat(seed)))


def _host(text: str) -> str:
    parts = text.split("/", 3)
    return parts[2] if len(parts) > 2 else text


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _integers(digests: bytes) -> Keys:
    return np.frombuffer(digests, f">u{_DIGEST_BYTES}").astype(np.uint64)
