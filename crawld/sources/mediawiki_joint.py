"""Several queries to a MediaWiki API in one request: a list of changes, and the state of titles.

A request may name several modules; the response has the rows of each under its own key. The
parameters of a module, and what continues it, begin with its prefix of two letters.

Source: MediaWiki, API:Query, API:Continue, API:Etiquette ("combine things into one request").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crawld.sources.mediawiki_api import ApiResponse, Parameters

_LISTS_OF_MODULES: Final = frozenset({"list", "prop", "meta"})
"""Parameters whose values are joined."""

_OF_ALL_MODULES: Final = _LISTS_OF_MODULES | {"continue", "curtimestamp"}
"""Parameters without a prefix."""

_OF_PAGES: Final = frozenset({"prop", "titles", "pageids", "generator"})
"""Parameters of a query whose response has rows of pages."""

_NAMES_OF_PAGES: Final = frozenset({"titles", "pageids"})
"""Parameters that name pages; a request has one of them."""

_PREFIX_LENGTH: Final = 2


def join_queries(first: Parameters, second: Parameters) -> Parameters | None:
    """Return a query for both, None if they contradict each other.

    Both are at their beginning: one that continues skips modules which the other needs. The pages
    of a generator are told apart only where the other query names no page.
    """
    if "continue" in first or "continue" in second:
        return None
    both_of_pages = not (_OF_PAGES.isdisjoint(first) or _OF_PAGES.isdisjoint(second))
    named = [_NAMES_OF_PAGES & query.keys() for query in (first, second)]
    if both_of_pages and ("generator" in {*first, *second} or named[0] != named[1]):
        return None
    joined = dict(first)
    for key, value in second.items():
        if key not in joined:
            joined[key] = value
        elif key in _LISTS_OF_MODULES:
            joined[key] = f"{joined[key]}|{value}"
        elif joined[key] != value:
            return None
    return joined


def part_of(response: ApiResponse, query: Parameters) -> ApiResponse:
    """Return the response to a joint query with the cursor of one of its queries only.

    The rows of the other are beside those of this one.
    """
    own = _continued(response, query)
    cursor = response.cursor or {}
    kept = {key: value for key, value in cursor.items() if key in own or key == "continue"}
    return replace(response, cursor=kept if own else None)


def is_whole(response: ApiResponse, *queries: Parameters) -> bool:
    """Whether each part of the cursor of a response belongs to one of its queries."""
    known = frozenset[str]().union(*(_continued(response, query) for query in queries))
    return known == (response.cursor or {}).keys() - {"continue"}


def _continued(response: ApiResponse, query: Parameters) -> frozenset[str]:
    """Return the parameters that continue a query."""
    prefixes = {key[:_PREFIX_LENGTH] for key in query if key not in _OF_ALL_MODULES}
    names = (response.cursor or {}).keys() - {"continue"}
    return frozenset(name for name in names if name[:_PREFIX_LENGTH] in prefixes)
