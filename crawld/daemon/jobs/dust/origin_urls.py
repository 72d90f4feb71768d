"""The URLs of an origin as the job reads them.

The first ones are searched for likely rewrites; what stands for them may have been found later.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from crawld.core.page import PageState
from crawld.core.url import target_of
from crawld.store.frontier.dust_page import KnownUrl

MOST_URLS: Final = 12_000
"""URLs of an origin that are searched for likely rewrites, the first that were found."""

MOST_READ: Final = 100_000
"""URLs of an origin that are read: 30 MB."""


class OriginUrls:
    """URLs of one origin, by path and query."""

    def __init__(self, pages: Iterable[KnownUrl] = ()) -> None:
        self.by_target = {
            target_of(page.url): page
            for page in pages
            if page.state in (PageState.DISCOVERED, PageState.VISITED, PageState.SUSPENDED)
        }

    def searched(self) -> list[str]:
        """Return the targets that are searched for likely rewrites."""
        return list(islice(self.by_target, MOST_URLS))

    def is_visited(self, target: str) -> bool:
        """Whether the page of a target was visited, and what it shows is known."""
        page = self.by_target.get(target)
        return page is not None and page.visited and page.state is PageState.VISITED
