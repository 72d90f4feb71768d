"""Input of the replica search: hosts, their addresses, pages and links.

The daemon builds it from the store, the benchmarks from the simulated web. Paths and signatures are
64-bit keys: two hosts share a path if the keys are equal. Signature 0 means that there is no
content to compare (never fetched, empty, an error, a redirect).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from crawld.core.url import target_of

Keys = NDArray[np.uint64]
Ids = NDArray[np.int64]
NumberArray = TypeVar("NumberArray", Ids, Keys)

NO_SIGNATURE = np.uint64(0)
"""The signature of a page without content to compare."""


BIN_WORDS = 2
"""64-bit words of the beginning of a sketch: 16 of its bins tell how far two texts resemble."""


def path_key(path: str) -> int:
    """Return the 64-bit key of a path with its query, never 0."""
    return xxhash.xxh3_64_intdigest(path.encode()) or 1


def location_key(url: str) -> int:
    """Return the 64-bit key of where a page is on its server, never 0."""
    return path_key(target_of(url))


def sketch_keys(sketch: bytes | None) -> tuple[int, ...]:
    """Return the 64-bit key of a sketch and its first `BIN_WORDS` words; zeros for no text."""
    if not sketch or not any(sketch):
        return (0,) * (1 + BIN_WORDS)
    words = (sketch[at : at + 8] for at in range(0, 8 * BIN_WORDS, 8))
    return xxhash.xxh3_64_intdigest(sketch) or 1, *(
        int.from_bytes(word, "little") for word in words
    )


def signature_key(digest: bytes) -> int:
    """Return the 64-bit key of a cleaned digest, never 0."""
    return xxhash.xxh3_64_intdigest(digest) or 1


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts and their pages; a host is an index into `names`.

    Attributes:
        addresses: the address each was last fetched from, dotted or with colons; empty: unknown.
        page_host: host of each page; pages in any order.
        page_path: key of its path.
        page_signature: key of its cleaned content, `NO_SIGNATURE` if there is none.
        link_host: host of each link to another host.
        link_target: key of the host name it links to.
        redirects: number of pages, keyed by (from, to), of `from` that redirect to the same path of
            `to`; the root counts like any page.
        canonicals: the same for rel=canonical links.
        certificates: the names on each host's certificate; empty if unknown.
        roots: keys of the paths of root pages.
        page_likeness: key of the sketch of each page's visible text, `NO_SIGNATURE` for none; it
            is equal where the cleaned texts differ by the targets of links alone. None: no page has
            a sketch.
        page_bins: the beginning of that sketch, shape (pages, `BIN_WORDS`).
        unvisited: pages of each host that were never visited; None: there are none.
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    page_host: Ids
    page_path: Keys
    page_signature: Keys
    link_host: Ids
    link_target: Keys
    redirects: Mapping[tuple[int, int], int] = field(default_factory=dict)
    canonicals: Mapping[tuple[int, int], int] = field(default_factory=dict)
    certificates: tuple[frozenset[str], ...] = ()
    roots: frozenset[int] = frozenset((path_key("/"),))
    page_likeness: Keys | None = None
    page_bins: Keys | None = None
    unvisited: Ids | None = None

    def __len__(self) -> int:
        return len(self.names)


def order_by(first: NDArray[Any], *then: NDArray[Any]) -> Ids:
    """Return the order of rows by a first column, then by others.

    `np.lexsort` does the same but holds the interpreter lock throughout, which would stall the
    crawl.
    """
    order = np.arange(len(first))
    for column in (*reversed(then), first):
        order = order[np.argsort(column[order], kind="stable")]
    return order


def distinct(values: NumberArray) -> NumberArray:
    """Return the distinct values, ascending.

    For mostly distinct values this takes a tenth of the time of the hash table of `np.unique`.
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def with_values(ascending: Ids, more: Ids) -> Ids:
    """Return the union of distinct ascending values and some more, ascending."""
    more = distinct(more)
    place = np.searchsorted(ascending, more)
    known = place < len(ascending)
    known[known] = ascending[place[known]] == more[known]
    return np.insert(ascending, place[~known], more[~known])


def places(ascending: Ids, wanted: Ids) -> Ids:
    """Return where each wanted number is among ascending ones; -1: nowhere."""
    if not len(ascending):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[place] == wanted, place, -1)


def pair_keys(one: Ids, other: Ids) -> Ids:
    """Return one integer per pair of hosts: smaller index in the high bits, larger in the low."""
    return (np.minimum(one, other) << 32) | np.maximum(one, other)


def pair_hosts(keys: Ids) -> tuple[Ids, Ids]:
    """Return the two hosts of each pair key, the smaller index first."""
    return keys >> 32, keys & 0xFFFFFFFF


def ranges(begin: Ids, count: Ids) -> Ids:
    """Return the indices begin, begin + 1, … of each range, one range after the other."""
    offset = np.repeat(begin - np.concatenate(([0], np.cumsum(count)[:-1])), count)
    return np.arange(int(count.sum())) + offset
