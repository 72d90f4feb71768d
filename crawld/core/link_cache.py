"""Canonicalizes the links of pages, and remembers those of recent pages.

Most pages of a site have the same links: navigation, footers. What a link names depends on the
directory of its page alone, except for a few forms (`_depends_on_page`), so a link that was seen in
the same directory is looked up instead of parsed: 0.1 instead of 1.2 µs.

Invariants: the results are those of `url.resolve`; memory is bounded, in links and in their length.
Threads may share a cache: the worst that can happen is that a link is parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from crawld.core.url import resolver

GENERATION: Final = 16_384
"""Links in the younger of two generations: 6 MB at the usual length."""

MAX_LENGTH: Final = 300
"""Characters of a link that is remembered; longer ones are rarely seen twice."""

_UNKNOWN: Final = ""
_WEB: Final = ("http://", "https://")

_Links = dict[tuple[str, str], str | None]


class LinkCache:
    """Recent links and what they name, in two generations."""

    __slots__ = ("_generation", "_old", "_young")

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: _Links = {}
        self._old: _Links = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def resolve(self, base: str, hrefs: Iterable[str]) -> list[str]:
        """Return the canonical URLs of links, as `url.resolve` does.

        Args:
            base: the canonical URL of the page, or of its `<base>`.
        """
        directory = directory_of(base)
        join: Callable[[str], str | None] | None = None
        found: dict[str, None] = {}
        for href in dict.fromkeys(hrefs):
            key = directory, href
            url = self._young.get(key, _UNKNOWN)
            if url == _UNKNOWN:
                url = self._old.get(key, _UNKNOWN)
                if url == _UNKNOWN:
                    join = join or resolver(base)
                    url = join(href)
                if len(href) <= MAX_LENGTH and not _depends_on_page(href):
                    self._add(key, url)
            if url is not None:
                found[url] = None
        return list(found)

    def _add(self, key: tuple[str, str], url: str | None) -> None:
        self._young[key] = url
        if len(self._young) >= self._generation:
            self._old, self._young = self._young, {}


def directory_of(base: str) -> str:
    """Return a canonical URL up to the last slash of its path.

    >>> directory_of("https://a.org/b/c?d/e"), directory_of("https://a.org/")
    ('https://a.org/b/', 'https://a.org/')
    """
    path = base.partition("?")[0]
    return path[: path.rindex("/") + 1]


def _depends_on_page(href: str) -> bool:
    """Whether the last part of the page's path, or its query, may decide what a link names.

    They do for an empty link, a query and a fragment, also after white space and control
    characters, which are ignored, and after the page's own scheme (`https:?a`).
    """
    first = href[:1]
    if not (first.isalnum() or first in ("/", ".")) or not first:
        return True
    return ":" in href and not href.startswith(_WEB)


LINKS: Final = LinkCache()
"""The links of all visits."""
