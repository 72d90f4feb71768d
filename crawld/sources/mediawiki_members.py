"""Lists the titles of a part of a wiki: by category, by prefix, and where they redirect to.

Each title belongs to the part for a reason, which may end: a page leaves one category and is still
in another. A redirect stays a redirect, and the page that it shows belongs to the part too.

Source: MediaWiki, API:Categorymembers, API:Allpages, API:Info, API:Categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import flag_of, rows_of, text_of
from crawld.sources.mediawiki_scope import normalize_prefixes
from crawld.sources.mediawiki_title import CATEGORY_SPACE, TitleRules

MAX_CATEGORIES = 10_000
"""Categories that are followed per site; they may contain each other in cycles."""

NEWEST_PAGES = 20
"""Pages that entered a category last, asked for beside its size."""

MAX_NAMED = 50
"""Values that a parameter may have for a client without higher limits."""


class MemberReason(StrEnum):
    """Why a title belongs to a part of a wiki."""

    TITLE = "title"
    CATEGORY = "category"
    PREFIX = "prefix"
    REDIRECT = "redirect"
    MOVE = "move"
    FORMER = "former"


class Membership(NamedTuple):
    """A reason for which a title belongs to a part of a wiki.

    Attributes:
        via: the category, the prefix, the redirect that leads to it, the former title of a page
            that was moved here, or the new title of one that left a redirect; empty for a title
            that the operator listed.
    """

    title: str
    reason: MemberReason
    via: str = ""

    @property
    def text(self) -> str:
        """The reason for a person: `by category 'Category:Physics'`."""
        return _TEXTS[self.reason].format(self.via)


_TEXTS = {
    MemberReason.TITLE: "by its title",
    MemberReason.CATEGORY: "by category {!r}",
    MemberReason.PREFIX: "by prefix {!r}",
    MemberReason.REDIRECT: "by redirect from {!r}",
    MemberReason.MOVE: "by move from {!r}",
    MemberReason.FORMER: "as the former title of {!r}",
}


class Found(NamedTuple):
    """Titles in a response of a walk.

    Attributes:
        members: the titles with their reasons.
        redirects: titles among them that redirect, so that their targets have to be asked for.
        discussed: titles among them that have a discussion.
    """

    members: list[Membership]
    redirects: list[str]
    discussed: list[str]


@dataclass(frozen=True, slots=True)
class MemberWalk:
    """Progress of listing the titles in categories and with prefixes.

    Attributes:
        categories: categories still to query, each with the depth to follow.
        seen: categories found so far.
        prefixes: prefixes still to query.
        cursor: the API's `continue` object for the current query; None at its beginning.
    """

    categories: tuple[tuple[str, int], ...] = ()
    seen: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    cursor: Parameters | None = None

    @classmethod
    def start(
        cls, categories: Sequence[str], depth: int, prefixes: Sequence[str], rules: TitleRules
    ) -> MemberWalk:
        """Return a walk through the categories and prefixes of a config."""
        whole = normalize_categories(categories, rules)
        titles = normalize_prefixes(prefixes, rules)
        return cls(tuple((title, depth) for title in whole), frozenset(whole), titles)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to query."""
        return not self.categories and not self.prefixes

    @property
    def subject(self) -> str:
        """The category or prefix that is queried now."""
        return self.categories[0][0] if self.categories else self.prefixes[0]

    def query(self, rules: TitleRules) -> Parameters:
        """Return the next request."""
        parameters: dict[str, str | int] = {"prop": "info", "inprop": "talkid"}
        if self.categories:
            parameters |= {
                "generator": "categorymembers",
                "gcmtitle": self.categories[0][0],
                "gcmlimit": "max",
            }
        else:
            prefix = self.prefixes[0]
            number = rules.namespace_of(prefix)
            name = rules.namespaces[number].name if number in rules.namespaces else ""
            parameters |= {
                "generator": "allpages",
                "gapprefix": prefix.removeprefix(f"{name}:") if name else prefix,
                "gapnamespace": number,
                "gaplimit": "max",
            }
        return {**parameters, **(self.cursor or {})}

    def read(self, response: ApiResponse) -> tuple[Found, MemberWalk]:
        """Return the titles in a response, and the rest of the walk."""
        rows = [(text_of(row, "title"), row) for row in rows_of(response.query, "pages")]
        reason = MemberReason.CATEGORY if self.categories else MemberReason.PREFIX
        below = [title for title, row in rows if row.get("ns") == CATEGORY_SPACE and title]
        if not self.categories:
            below = []
        members = [title for title, _ in rows if title and title not in below]
        redirects = [title for title, row in rows if title and flag_of(row, "redirect")]
        named = [Membership(title, reason, self.subject) for title in members]
        found = Found(named, redirects, [title for title, row in rows if title and has_talk(row)])
        if not self.categories:
            rest = self.prefixes if response.cursor else self.prefixes[1:]
            return found, replace(self, prefixes=rest, cursor=response.cursor)
        (category, depth), *others = self.categories
        fresh = [each for each in dict.fromkeys(below) if depth and each not in self.seen]
        fresh = fresh[: max(MAX_CATEGORIES - len(self.seen), 0)]
        first = [(category, depth)] if response.cursor else []
        left = (*first, *others, *((each, depth - 1) for each in fresh))
        seen = self.seen.union(fresh)
        return found, replace(self, categories=left, seen=seen, cursor=response.cursor)

    def skip(self) -> MemberWalk:
        """Return the walk without its current category or prefix, which the wiki lacks."""
        if self.categories:
            return replace(self, categories=self.categories[1:], cursor=None)
        return replace(self, prefixes=self.prefixes[1:], cursor=None)


def normalize_categories(categories: Sequence[str], rules: TitleRules) -> list[str]:
    """Return categories as titles in the wiki's spelling, with their namespace."""
    space = rules.namespaces[CATEGORY_SPACE].name if CATEGORY_SPACE in rules.namespaces else ""
    named = [rules.normalize(each) for each in categories]
    whole = [
        title if title.startswith(f"{space}:") else rules.normalize(f"{space}:{title}")
        for title in named
        if title is not None
    ]
    return list(dict.fromkeys(title for title in whole if title))


def count_query(categories: Iterable[str], newest_of: str | None = None) -> Parameters:
    """Return the request for the sizes of categories, at most `MAX_NAMED`.

    Args:
        newest_of: a category whose newest pages are asked for too, in the same request.
    """
    sizes: Parameters = {"prop": "categoryinfo", "titles": "|".join(categories)}
    if newest_of is None:
        return sizes
    newest: Parameters = {"cmsort": "timestamp", "cmdir": "older", "cmlimit": NEWEST_PAGES}
    return {**sizes, "list": "categorymembers", "cmprop": "title", "cmtitle": newest_of, **newest}


def read_newest(response: ApiResponse) -> list[str]:
    """Return the pages that entered a category last, subcategories left out."""
    rows = rows_of(response.query, "categorymembers")
    titles = (text_of(row, "title") for row in rows if row.get("ns") != CATEGORY_SPACE)
    return [title for title in titles if title]


def read_counts(response: ApiResponse, categories: Iterable[str]) -> dict[str, int]:
    """Return how many pages each category has, subcategories left out; 0 if it is empty."""
    found = dict.fromkeys(categories, 0)
    for row in rows_of(response.query, "pages"):
        sizes, title = row.get("categoryinfo"), text_of(row, "title")
        if isinstance(sizes, dict) and title in found:
            counts = (sizes.get("pages"), sizes.get("files"))
            found[title] = sum(each for each in counts if isinstance(each, int))
    return found


# --- single pages ---------------------------------------------------------------------------------


class MemberPage(NamedTuple):
    """What the wiki says about one page.

    Attributes:
        number: its page id, None if it is missing.
        is_redirect: whether it leads to another title.
        categories: those of the categories asked for that it is in.
        has_talk: whether it has a discussion.
    """

    title: str
    number: int | None
    is_redirect: bool
    categories: frozenset[str]
    has_talk: bool = False


def pages_query(
    categories: Sequence[str],
    *,
    titles: Iterable[str] = (),
    numbers: Iterable[int] = (),
    cursor: Parameters | None = None,
) -> Parameters:
    """Return the request for the state of some pages, by their titles or by their page ids.

    Args:
        categories: the categories to ask for; more than `MAX_NAMED` ask for all.
        cursor: where the response before ended; `read_pages` adds what it continues.
    """
    by_number = "|".join(map(str, numbers))
    parameters: dict[str, str | int] = {"prop": "info", "inprop": "talkid"}
    if categories:
        parameters |= {"prop": "info|categories", "cllimit": "max"}
        if len(categories) <= MAX_NAMED:
            parameters["clcategories"] = "|".join(categories)
    named = {"pageids": by_number} if by_number else {"titles": "|".join(titles)}
    return {**parameters, **named, **(cursor or {})}


def read_pages(response: ApiResponse, before: Sequence[MemberPage] = ()) -> list[MemberPage]:
    """Return the state of the pages in a response, with the categories of the part before."""
    known = {page.title: page.categories for page in before}
    found = []
    for row in rows_of(response.query, "pages"):
        title, number = text_of(row, "title"), row.get("pageid")
        is_there = isinstance(number, int) and number > 0 and not flag_of(row, "missing")
        categories = frozenset(text_of(each, "title") for each in rows_of(row, "categories"))
        categories |= known.get(title, frozenset())
        page_id = number if is_there and isinstance(number, int) else None
        if title or page_id:
            is_redirect = flag_of(row, "redirect")
            found.append(MemberPage(title, page_id, is_redirect, categories, has_talk(row)))
    return found


def has_talk(row: Mapping[str, object]) -> bool:
    """Return whether the page of a row has a discussion (`inprop=talkid`)."""
    number = row.get("talkid")
    return isinstance(number, int) and number > 0
