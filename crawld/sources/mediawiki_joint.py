"""Several queries to a MediaWiki API in one request: a list of changes, and the state of titles.

A request may name several modules; the response has the rows of each under its own key. The
parameters of a module, and what continues it, begin with its prefix of two letters. Queries about
pages name all of them together; each gets the rows of its own.

Source: MediaWiki, API:Query, API:Continue, API:Etiquette ("combine things into one request").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import flag_of, rows_of, text_of

_LISTS_OF_MODULES: Final = frozenset({"list", "prop", "meta"})
"""Parameters whose values are joined."""

_OF_ALL_MODULES: Final = _LISTS_OF_MODULES | {"continue", "curtimestamp"}
"""Parameters without a prefix."""

_OF_PAGES: Final = frozenset({"prop", "titles", "pageids", "generator"})
"""Parameters of a query whose response has rows of pages."""

_NAMES_OF_PAGES: Final = frozenset({"titles", "pageids"})
"""Parameters that name pages; a request has one of them."""

_REDIRECTS: Final = "redirects"
"""The parameter that changes which pages the names stand for."""

_OF_ONE_PAGE: Final = frozenset({"rvlimit"})
"""Parameters that a query about several pages may not have."""

_MAX_NAMED: Final = 50
"""Pages that a client without higher limits may name."""

_PREFIX_LENGTH: Final = 2


def join_queries(first: Parameters, second: Parameters) -> Parameters | None:
    """Return a query for both, None if they contradict each other.

    Both are at their beginning: one that continues skips modules which the other needs. The pages
    of a generator are told apart only where the other query names no page.
    """
    if "continue" in first or "continue" in second:
        return None
    joined = dict(first)
    if not (_OF_PAGES.isdisjoint(first) or _OF_PAGES.isdisjoint(second)):
        names = _join_names(first, second)
        if names is None:
            return None
        joined |= names
        second = {key: value for key, value in second.items() if key not in names}
    for key, value in second.items():
        if key not in joined:
            joined[key] = value
        elif key in _LISTS_OF_MODULES:
            joined[key] = "|".join(dict.fromkeys([*_names(joined, key), *_names(second, key)]))
        elif joined[key] != value:
            return None
    return joined


def _join_names(first: Parameters, second: Parameters) -> Parameters | None:
    """Return the pages that two queries about pages name together; None: one of them cannot."""
    if "generator" in {*first, *second} or (_REDIRECTS in first) != (_REDIRECTS in second):
        return None
    keys = {key for query in (first, second) for key in _NAMES_OF_PAGES & query.keys()}
    if len(keys) != 1:
        return None
    [key] = keys
    names = list(dict.fromkeys([*_names(first, key), *_names(second, key)]))
    if len(names) > _MAX_NAMED or (len(names) > 1 and _OF_ONE_PAGE & {*first, *second}):
        return None
    return {key: "|".join(names)}


def part_of(response: ApiResponse, query: Parameters) -> ApiResponse:
    """Return the response to a joint query with the pages and the cursor of one of its queries.

    The rows of other modules are beside those of this one.
    """
    own = _continued(response, query)
    cursor = response.cursor or {}
    kept = {key: value for key, value in cursor.items() if key in own or key == "continue"}
    rows = response.query
    if "pages" in rows and not _NAMES_OF_PAGES.isdisjoint(query):
        rows = {**rows, "pages": _named_pages(rows, query)}
    return replace(response, query=rows, cursor=kept if own else None)


def _named_pages(rows: Mapping[str, object], query: Parameters) -> list[Mapping[str, object]]:
    """Return the rows of the pages that a query names."""
    pages = rows_of(rows, "pages")
    if "pageids" in query:
        numbers = _names(query, "pageids")
        return [row for row in pages if str(row.get("pageid")) in numbers]
    steps = {
        unquote(start) if flag_of(row, "fromencoded") else start: text_of(row, "to")
        for key in ("normalized", "converted", "redirects")
        for row in rows_of(rows, key)
        if (start := text_of(row, "from"))
    }
    named = set(_names(query, "titles"))
    found = named
    while found := {steps[title] for title in found if title in steps} - named:
        named |= found
    return [row for row in pages if text_of(row, "title") in named]


def _names(query: Parameters, key: str) -> list[str]:
    return str(query[key]).split("|") if key in query else []


def is_whole(response: ApiResponse, *queries: Parameters) -> bool:
    """Whether each part of the cursor of a response belongs to one of its queries."""
    known = frozenset[str]().union(*(_continued(response, query) for query in queries))
    return known == (response.cursor or {}).keys() - {"continue"}


def _continued(response: ApiResponse, query: Parameters) -> frozenset[str]:
    """Return the parameters that continue a query."""
    prefixes = {key[:_PREFIX_LENGTH] for key in query if key not in _OF_ALL_MODULES}
    names = (response.cursor or {}).keys() - {"continue"}
    return frozenset(name for name in names if name[:_PREFIX_LENGTH] in prefixes)
