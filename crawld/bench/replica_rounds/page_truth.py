"""Which pages of two hosts truly show the same, at the times when they were visited."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from crawld.core.replica.hosts import Ids, Keys
from crawld.simweb.lookalike.pages import Days, Flags
from crawld.simweb.lookalike.web import LookalikeWeb

TOLERATED_DAYS: Final = (0.0, -0.05, -0.5, -1.0, -1.5, -2.0, 0.5, 1.0, 1.5, 2.0)
"""Days from the visit of a page at which its twin may have shown the same: the twin is visited
every second day, and a mirror may be late."""


class PageTruth:
    """Compares the pages of hosts of one web with their twins.

    Attributes:
        web: the web.
    """

    def __init__(self, web: LookalikeWeb) -> None:
        self.web = web
        self._content = lru_cache(maxsize=20_000)(self._content_at)

    def content_at(self, host: int, day: float) -> Keys:
        """Return what each page of a host shows; a redirect shows its target's page."""
        return self._content(host, day)

    def _content_at(self, host: int, day: float) -> Keys:
        pages = self.web.hosts[host].pages
        shown = pages.content_at(host, day)
        for to in np.unique(pages.redirect_to[pages.redirect_to >= 0]).tolist():
            there = self.web.hosts[to].pages
            keys = there.content_at(to, day)
            for at in np.flatnonzero(pages.redirect_to == to).tolist():
                target = there.at.get(pages.paths[at])
                shown[at] = keys[target] if target is not None else np.uint64(1)
        return shown

    @lru_cache(maxsize=4_000)  # noqa: B019 (lives as long as the measurement)
    def twins(self, host: int, canonical: int) -> Ids:
        """Return the index of each page's twin on another host; -1: it has none."""
        there = self.web.hosts[canonical].pages.at
        return np.array([there.get(path, -1) for path in self.web.hosts[host].pages.paths])

    def differs(self, host: int, canonical: int, pages: Ids, days: Days) -> Flags:
        """Return which pages of a host differ from their twins.

        Args:
            pages: indexes of pages of the host.
            days: for each, the day on which it was seen.
        """
        twins = self.twins(host, canonical)[pages]
        found: Flags = np.ones(len(pages), dtype=bool)
        for day in np.unique(days).tolist():
            then = days == day
            here = self.content_at(host, day)[pages[then]]
            same = np.zeros(int(then.sum()), dtype=bool)
            for after in TOLERATED_DAYS:
                there = self.content_at(canonical, day + after)[twins[then]]
                same |= (here == there) & (here != 0)
            found[then] = ~(same & (twins[then] >= 0))
        return found
