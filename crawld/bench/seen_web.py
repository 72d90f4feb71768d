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

Numbers = NDArray[np.int64]

HOSTS: Final = 500_000
FETCHED_SHARE: Final = 0.1
NEW_SHARE: Final = 0.3

_EXPONENT: Final = 0.8
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_WORDS: Final = np.frombuffer(
    b"articleshistory-makers--overviewcategoryexamplescolumns-practice"
    b"museums-science-culture-profilesresearchlandmarkpicturesreporter",
    np.uint8,
).reshape(16, 8)


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
        """Return the URLs, 68 characters each."""
        rows = np.empty((len(self), len(_TEMPLATE)), np.uint8)
        rows[:] = np.frombuffer(_TEMPLATE, np.uint8)
        salt = (mixed(self.number.astype(np.uint64)) >> np.uint64(24)).astype(np.int64)
        _write_hex(rows, _TEMPLATE.index(b"HHHHHH"), 6, self.host)
        rows[:, _FIRST : _FIRST + 8] = _WORDS[(self.number >> 9) & 15]
        rows[:, _SECOND : _SECOND + 8] = _WORDS[salt & 15]
        _write_hex(rows, _TEMPLATE.index(b"SSSSSSSS"), 8, salt)
        _write_hex(rows, _TEMPLATE.index(b"NNNNNNNN"), 8, self.number)
        text, length = rows.tobytes().decode("ascii"), len(_TEMPLATE)
        return [text[at : at + length] for at in range(0, len(text), length)]


_TEMPLATE: Final = b"https://www.hHHHHHH.example/FFFFFFFF/GGGGGGGG-SSSSSSSS-NNNNNNNN.html"
_FIRST: Final = _TEMPLATE.index(b"FFFFFFFF")
_SECOND: Final = _TEMPLATE.index(b"GGGGGGGG")


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return splitmix64 of each integer: bits that look random; no two integers share one."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def _write_hex(rows: NDArray[np.uint8], at: int, digits: int, values: Numbers) -> None:
    for place in range(digits):
        rows[:, at + place] = _HEX[values >> 4 * (digits - 1 - place) & 15]


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
