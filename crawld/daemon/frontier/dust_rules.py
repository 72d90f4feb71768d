"""The rules in force by which URLs of an origin show the same page, for admission.

A URL that a rule replaces is no page, and a page that stands for others may be named by no link. So
that the visits for validation follow the URLs that links name, those of an origin with rules are
counted by a sketch: its pages when the first rule came, and what links named since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from crawld.core.distinct_count import STANDARD_ERROR, DistinctCount
from crawld.core.dust.rules import HostRules

KEPT_URLS: Final = 200
"""URLs of an origin that are remembered until the next run of the job."""


class ReplacedUrl(NamedTuple):
    """A URL for which another one was admitted."""

    url: str
    site_id: int
    depth: int


class DustRules:
    """The rules in force, and the last URLs that they replaced."""

    def __init__(self) -> None:
        self._of: Mapping[str, HostRules] = {}
        self._replaced: dict[str, deque[ReplacedUrl]] = {}
        self._named: dict[str, DistinctCount] = {}

    def set(self, rules: Mapping[str, HostRules]) -> None:
        """Replace all rules, by origin."""
        self._of = rules

    def of(self, origin: str) -> HostRules | None:
        """Return the rules of an origin, None if it has none."""
        return self._of.get(origin)

    def stand_in(
        self, url: str, origin: str, site_id: int, depth: int, *, named: bool = True
    ) -> str | None:
        """Return the URL that stands for a URL of an origin; None: it stands for itself.

        Args:
            named: whether a link names it; False: it stands for one that does.
        """
        rules = self._of.get(origin)
        if rules is None:
            return None
        if named:
            self._count_of(origin).add(url)
        found = rules.apply(url)
        if found is None:
            return None
        replaced = self._replaced.get(origin)
        if replaced is None:
            replaced = self._replaced[origin] = deque(maxlen=KEPT_URLS)
        replaced.append(ReplacedUrl(url, site_id, depth))
        return found.url

    def count_pages(self, origin: str, urls: DistinctCount) -> None:
        """Count URLs of pages of an origin, all of which links have named."""
        self._count_of(origin).merge(urls)

    def named_urls(self, origin: str) -> int:
        """Return how many URLs of an origin are known to be named by links, rather too few.

        By two standard errors: one origin in fifty gets more visits for validation than it may.
        0 before the first rule; after a start those that were replaced before are missing.
        """
        count = self._named.get(origin)
        return 0 if count is None else int((1.0 - 2.0 * STANDARD_ERROR) * count.estimate())

    def _count_of(self, origin: str) -> DistinctCount:
        return self._named.setdefault(origin, DistinctCount())

    def take_replaced(self, origin: str) -> list[ReplacedUrl]:
        """Return the URLs replaced since the last call."""
        return list(self._replaced.pop(origin, ()))
