"""Decides which pages of a MediaWiki belong to a site: listed titles, categories, prefixes.

Only pages for readers belong to a site: no special pages, old revisions, histories, edit forms and
other views (`oldid=`, `action=`), and no discussions unless configured. If the site names a part of
the wiki, only the titles of that part belong to it, regardless of links. A title with a configured
prefix belongs to it as soon as it is discovered, other titles once the wiki has listed them.

Source: MediaWiki, API:Categorymembers, API:Allpages, Manual:Namespace (talk namespaces have odd
numbers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import rows_of, text_of
from crawld.sources.mediawiki_title import TitleRules

CATEGORY_SPACE = 14

MAX_CATEGORIES = 10_000
"""Categories that are followed per site; they may contain each other in cycles."""


@dataclass(frozen=True, slots=True)
class TitleScope:
    """Which titles of one wiki belong to a site.

    Attributes:
        rules: how the wiki spells titles.
        scoped: whether only a part of the wiki belongs to the site.
        prefixes: beginnings of titles, in the wiki's spelling.
        talk: whether discussions belong to the site.
        members: titles that the wiki listed.
    """

    rules: TitleRules
    scoped: bool = False
    prefixes: tuple[str, ...] = ()
    talk: bool = False
    members: frozenset[str] = frozenset()

    def refusal(self, url: str) -> str | None:
        """Return why a canonical URL of the wiki's origin is not a page of the site, else None."""
        title = self.rules.title_of(url)
        if title is None:
            if self.rules.serves(url):
                return "wiki_view"
            return "wiki_part" if self.scoped else None
        if not self.talk and self.rules.namespace_of(title) % 2 == 1:
            return "wiki_talk"
        if self.scoped and title not in self.members and not title.startswith(self.prefixes):
            return "wiki_part"
        return None


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
        space = rules.namespaces[CATEGORY_SPACE].name if CATEGORY_SPACE in rules.namespaces else ""
        named = [rules.normalize(each) for each in categories]
        whole = [
            title if title.startswith(f"{space}:") else f"{space}:{title}"
            for title in named
            if title is not None
        ]
        titles = normalize_prefixes(prefixes, rules)
        return cls(tuple((title, depth) for title in whole), frozenset(whole), titles)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to query."""
        return not self.categories and not self.prefixes

    def query(self, rules: TitleRules) -> Parameters:
        """Return the next request."""
        if self.categories:
            parameters: dict[str, str | int] = {
                "list": "categorymembers",
                "cmtitle": self.categories[0][0],
                "cmprop": "title|type",
                "cmlimit": "max",
            }
        else:
            prefix = self.prefixes[0]
            number = rules.namespace_of(prefix)
            name = rules.namespaces[number].name if number in rules.namespaces else ""
            parameters = {
                "list": "allpages",
                "apprefix": prefix.removeprefix(f"{name}:") if name else prefix,
                "apnamespace": number,
                "apfilterredir": "nonredirects",
                "aplimit": "max",
            }
        return {**parameters, **(self.cursor or {})}

    def read(self, response: ApiResponse) -> tuple[list[str], MemberWalk]:
        """Return the titles in a response, and the rest of the walk."""
        if not self.categories:
            found = [text_of(row, "title") for row in rows_of(response.query, "allpages")]
            rest = self.prefixes if response.cursor else self.prefixes[1:]
            return [title for title in found if title], replace(
                self, prefixes=rest, cursor=response.cursor
            )
        (category, depth), *others = self.categories
        titles, below = [], []
        for row in rows_of(response.query, "categorymembers"):
            title = text_of(row, "title")
            if title and text_of(row, "type") == "subcat":
                below.append(title)
            elif title:
                titles.append(title)
        fresh = [each for each in dict.fromkeys(below) if depth and each not in self.seen]
        fresh = fresh[: max(MAX_CATEGORIES - len(self.seen), 0)]
        first = [(category, depth)] if response.cursor else []
        left = (*first, *others, *((each, depth - 1) for each in fresh))
        seen = self.seen.union(fresh)
        return titles, replace(self, categories=left, seen=seen, cursor=response.cursor)

    def skip(self) -> MemberWalk:
        """Return the walk without its current category or prefix, which the wiki lacks."""
        if self.categories:
            return replace(self, categories=self.categories[1:], cursor=None)
        return replace(self, prefixes=self.prefixes[1:], cursor=None)


def normalize_prefixes(prefixes: Sequence[str], rules: TitleRules) -> tuple[str, ...]:
    """Return beginnings of titles in the wiki's spelling: `help:inst` becomes `Help:Inst`."""
    normalized = []
    for prefix in prefixes:
        written = prefix.replace("_", " ").lstrip(" ")
        # A namespace alone is not a title; a letter after it makes it one.
        is_space = written.endswith(":")
        title = rules.normalize(f"{written}x" if is_space else written)
        if title is not None:
            ends_blank = written.endswith(" ") and not title.endswith(" ")
            normalized.append(title[:-1] if is_space else title + " " * ends_blank)
    return tuple(normalized)
