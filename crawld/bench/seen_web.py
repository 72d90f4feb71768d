"""A web of known and new URLs, for the benchmark of uniqueness.

Hosts have sizes by a power law (exponent 0.8: of 100 million URLs on 500,000 hosts the largest host
has 1.6 %). A cycle has a million URLs as in the published experiment: 10 % fetched, 90 % extracted,
70 % of all known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.texts import TextBlock

Numbers = NDArray[np.int64]

HOSTS: Final = 500_000
FETCHED_SHARE: Final = 0.1
NEW_SHARE: Final = 0.3

_EXPONENT: Final = 0.8
_HEX: Final = np.frombuffer(bytes(range(256)).hex().encode(), "V2")
_WORDS: Final = np.frombuffer(
    b"articleshistory-makers--overviewcategoryexamplescolumns-practice"
    b"museums-science-culture-profilesresearchlandmarkpicturesreporter",
    "V8",
)
_TEMPLATE: Final = (
    b"https://www.hHHHHHH.example/FFFFFFFF/NNNNNNNN-GGGGGGGG-SSSSSSSS-of-the-day.html"
)
_ROW: Final = np.dtype(
    {
        "names": ["host", "first", "number", "second", "salt"],
        "formats": [("V2", 3), "V8", ("V2", 4), "V8", ("V2", 4)],
        "offsets": [
            _TEMPLATE.index(part)
            for part in (b"HHHHHH", b"FFFFFFFF", b"NNNNNNNN", b"GGGGGGGG", b"SSSSSSSS")
        ],
        "itemsize": len(_TEMPLATE),
    }
)
_LEAST_CHARACTERS: Final = 48
_MORE_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class SomeUrls:
    """URLs as numbers of their host and in their host."""

    host: Numbers
    number: Numbers

    def __len__(self) -> int:
        return len(self.host)

    def ids(self) -> NDArray[np.uint64]:
        """Return 64 bits that identify each URL, as a hash would (splitmix64, a bijection)."""
        x = self.host.astype(np.uint64) << np.uint64(40) | self.number.astype(np.uint64)
        return mixed(x)

    def texts(self) -> list[str]:
        """Return the URLs."""
        return self.block().decoded()

    def block(self) -> TextBlock:
        """Return the URLs: 48 to 79 characters, 64 on average."""
        salt = mixed(self.number.astype(np.uint64)) >> np.uint64(24)
        rows = np.frombuffer(bytearray(_TEMPLATE * len(self)), _ROW)
        _write_hex(rows["host"], self.host.astype(np.uint64))
        rows["first"] = _WORDS[(self.number >> 9) & 15]
        rows["second"] = _WORDS[(salt & np.uint64(15)).astype(np.int64)]
        _write_hex(rows["salt"], salt)
        _write_hex(rows["number"], self.number.astype(np.uint64))
        lengths = _LEAST_CHARACTERS + (salt >> np.uint64(4)).astype(np.int64) % _MORE_CHARACTERS
        starts = np.arange(len(self)) * len(_TEMPLATE)
        whole = TextBlock(rows.tobytes(), starts, starts + lengths)
        return whole.select(np.arange(len(self)))


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each integer: bits that look random; no two integers share one."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _write_hex(fields: NDArray[np.void], values: NDArray[np.uint64]) -> None:
    """Write the lower bytes of integers, two characters in each column."""
    for column in range(fields.shape[1]):
        octet = values >> np.uint64(8 * (fields.shape[1] - 1 - column)) & np.uint64(0xFF)
        fields[:, column] = _HEX[octet.astype(np.uint8)]


@dataclass(frozen=True, slots=True)
class Cycle:
    """What a cycle offers; the fetched URLs are known, of the others a third is new."""

    fetched: SomeUrls
    extracted: SomeUrls


class SeenWeb:
    """Known URLs, by the number of each host, and cycles that add to them."""

    def __init__(self, known: int, seed: int, hosts: int = HOSTS) -> None:
        self._rng = np.random.default_rng(seed)
        weight = np.arange(1, hosts + 1) ** -_EXPONENT
        self._cumulated = np.cumsum(weight / weight.sum())
        bounds = np.round(self._cumulated * known).astype(np.int64)
        self.sizes: Numbers = np.diff(bounds, prepend=0)

    @property
    def known(self) -> int:
        """How many URLs are known."""
        return int(self.sizes.sum())

    def parts(self, urls: int) -> Iterator[SomeUrls]:
        """Yield the known URLs in the order of discovery, about so many at a time."""
        sizes = self.sizes.copy()
        parts = max(1, round(self.known / urls))
        for part in range(parts):
            low, high = sizes * part // parts, sizes * (part + 1) // parts
            host = np.repeat(np.arange(len(sizes)), high - low)
            begins = np.cumsum(high - low) - (high - low)
            yield SomeUrls(host, np.arange(len(host)) - begins[host] + low[host])

    def cycle(self, urls: int) -> Cycle:
        """Return the next cycle and add its new URLs to the known ones."""
        new = round(urls * NEW_SHARE)
        fetched = round(urls * FETCHED_SHARE)
        known = self._known(urls - new)
        added = self._added(new)
        order = self._rng.permutation(urls - fetched)
        host = np.concatenate([known.host[fetched:], added.host])[order]
        number = np.concatenate([known.number[fetched:], added.number])[order]
        return Cycle(SomeUrls(known.host[:fetched], known.number[:fetched]), SomeUrls(host, number))

    def _hosts(self, urls: int) -> Numbers:
        return np.searchsorted(self._cumulated, self._rng.random(urls)).clip(
            max=len(self.sizes) - 1
        )

    def _known(self, urls: int) -> SomeUrls:
        host = self._hosts(2 * urls + 100)
        host = host[self.sizes[host] > 0]
        host = np.resize(host, urls)
        return SomeUrls(host, (self._rng.random(urls) * self.sizes[host]).astype(np.int64))

    def _added(self, urls: int) -> SomeUrls:
        host = np.sort(self._hosts(urls))
        counts = np.bincount(host, minlength=len(self.sizes))
        begins = np.cumsum(counts) - counts
        number = np.arange(urls) - begins[host] + self.sizes[host]
        self.sizes = self.sizes + counts
        return SomeUrls(host, number)
