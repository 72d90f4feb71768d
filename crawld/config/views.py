"""Reads how often pages are read, from a file: a title or URL and a count per line.

Wikimedia publishes such counts as dumps; `zcat pageviews-*.gz | awk '$1 == "en" { print $2, $3 }'`
makes a file of one hour. Lines of one page are added up, so that files of many hours can be joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

import numpy as np
import numpy.typing as npt

from crawld.config.seeds import BadSeed, seed_of, text_lines, title_seed
from crawld.config.site import SiteConfig
from crawld.core.url import url_hash

LEAST_WEIGHT = 0.01
"""Smallest weight: a page that nobody reads is still kept, though rarely visited."""

MAX_COUNT_DIGITS = 15

_CHUNK = 100_000
"""Pages that are collected before they become an array."""


@dataclass(frozen=True, slots=True, eq=False)
class PageViews:
    """Weights of pages by how often they are read; the mean over the pages of the file is 1.

    Attributes:
        hashes: (n,) int64, ascending, hashes of canonical URLs.
        weights: (n,) float32, weight of each, at least `LEAST_WEIGHT`.
        others: weight of a page that the file does not name: that of the page read least.
        bad: lines that could not be used, the first few.
        bad_count: how many they are.
        digest: of hashes and weights, 16 bytes.
    """

    hashes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    others: float = 1.0
    bad: tuple[BadSeed, ...] = field(default=())
    bad_count: int = 0
    digest: bytes = b""

    def weight(self, url: str) -> float:
        """Return the weight of a canonical URL."""
        key = url_hash(url)
        at = int(np.searchsorted(self.hashes, key))
        if at < len(self.hashes) and int(self.hashes[at]) == key:
            return float(self.weights[at])
        return self.others


def read_views(
    site: SiteConfig, *, max_lines: int | None = None, max_bad: int = 5
) -> PageViews | None:
    """Return the views of a site's pages; None if it has no file of views.

    At most `max_lines` lines are read; None: all.

    Raises:
        ConfigError: the file cannot be read.
    """
    if site.views_file is None:
        return None
    bad: list[BadSeed] = []
    bad_count = 0
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []
    keys: list[int] = []
    counts: list[int] = []
    for found in _read_lines(site, max_lines):
        if isinstance(found, BadSeed):
            bad_count += 1
            if len(bad) < max_bad:
                bad.append(found)
            continue
        keys.append(found[0])
        counts.append(found[1])
        if len(keys) == _CHUNK:
            parts.append((np.array(keys, np.int64), np.array(counts, np.float64)))
            keys, counts = [], []
    parts.append((np.array(keys, np.int64), np.array(counts, np.float64)))
    hashes, views = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    hashes, inverse = np.unique(hashes, return_inverse=True)
    if not len(hashes):
        return PageViews(hashes, np.empty(0, np.float32), bad=tuple(bad), bad_count=bad_count)
    totals = np.bincount(inverse, weights=views)
    shares = np.maximum(totals / max(float(totals.mean()), 1.0), LEAST_WEIGHT)
    weights = shares.astype(np.float32)
    digest = blake2b(hashes.tobytes(), digest_size=16)
    digest.update(weights.tobytes())
    return PageViews(hashes, weights, float(weights.min()), tuple(bad), bad_count, digest.digest())


def _read_lines(site: SiteConfig, max_lines: int | None) -> Iterator[tuple[int, int] | BadSeed]:
    """Yield the URL hash and the count of each line."""
    path = site.views_file
    assert path is not None
    for line, text in islice(text_lines(path, "views_file"), max_lines):
        name, _, number = text.replace("\t", " ").rpartition(" ")
        if not number.isdecimal() or len(number) > MAX_COUNT_DIGITS:
            yield BadSeed(text[:80], "no count at its end", str(path), line)
            continue
        name, source = name.strip(), str(path)
        is_url = name.startswith(("http://", "https://"))
        found = seed_of(name, source, line) if is_url else title_seed(name, site, source, line)
        yield found if isinstance(found, BadSeed) else (url_hash(found.url), int(number))
