"""Which part of a MediaWiki a site is: listed titles, categories, prefixes; and what is no page.

Of every wiki that is known as one, only what shows a page to its readers belongs to a site: not its
special pages, not old revisions, histories, edit forms and other views (`oldid=`, `action=`), and
no discussions unless they are wanted. Where the site names a part of the wiki, only the titles of
that part belong to it, whatever links to others; a title that begins with a named prefix belongs to
it as soon as it is seen, the others once the wiki has named them.

Source: MediaWiki, API:Categorymembers, API:Allpages, Manual:Namespace (talk spaces have odd
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
"""Categories of one site that are followed; they may contain each other in circles."""


@dataclass(frozen=True, slots=True)
class TitleScope:
    """What a site wants of one wiki.

    Attributes:
        rules: how the wiki spells titles.
        scoped: whether only a part of it belongs to the site.
        prefixes: beginnings of titles, as the wiki spells them.
        talk: whether discussions belong to the site.
        members: titles the wiki has named.
    """

    rules: TitleRules
    scoped: bool = False
    prefixes: tuple[str, ...] = ()
    talk: bool = False
    members: frozenset[str] = frozenset()

    def refusal(self, url: str) -> str | None:
        """Return why a canonical URL of the wiki's origin is no page of the site; None: it is."""
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
    """How far the wiki has been asked for the titles of a part.

    Attributes:
        categories: still to be asked for, with how deep each may be followed.
        seen: categories that were seen already.
        prefixes: still to be asked for.
        cursor: where the answer under way goes on, None at its beginning.
    """

    categories: tuple[tuple[str, int], ...] = ()
    seen: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    cursor: Parameters | None = None

    @classmethod
    def start(
        cls, categories: Sequence[str], depth: int, prefixes: Sequence[str], rules: TitleRules
    ) -> MemberWalk:
        """Return the walk through categories and prefixes as an operator wrote them."""
        space = rules.namespaces[CATEGORY_SPACE].name if CATEGORY_SPACE in rules.namespaces else ""
        named = [rules.normalize(each) for each in categories]
        whole = [
            title if title.startswith(f"{space}:") else f"{space}:{title}"
            for title in named
            if title is not None
        ]
        spelt = normalize_prefixes(prefixes, rules)
        return cls(tuple((title, depth) for title in whole), frozenset(whole), spelt)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.categories and not self.prefixes

    def query(self, rules: TitleRules) -> Parameters:
        """Return the next request."""
        if self.categories:
            asked: dict[str, str | int] = {
                "list": "categorymembers",
                "cmtitle": self.categories[0][0],
                "cmprop": "title|type",
                "cmlimit": "max",
            }
        else:
            prefix = self.prefixes[0]
            number = rules.namespace_of(prefix)
            name = rules.namespaces[number].name if number in rules.namespaces else ""
            asked = {
                "list": "allpages",
                "apprefix": prefix.removeprefix(f"{name}:") if name else prefix,
                "apnamespace": number,
                "apfilterredir": "nonredirects",
                "aplimit": "max",
            }
        return {"action": "query", **asked, **(self.cursor or {})}

    def read(self, answer: ApiResponse) -> tuple[list[str], MemberWalk]:
        """Return titles of an answer, and the walk that is left."""
        if not self.categories:
            found = [text_of(row, "title") for row in rows_of(answer.query, "allpages")]
            rest = self.prefixes if answer.cursor else self.prefixes[1:]
            return [title for title in found if title], replace(
                self, prefixes=rest, cursor=answer.cursor
            )
        (category, depth), *others = self.categories
        rows = rows_of(answer.query, "categorymembers")
        titles, below = [], []
        for row in rows:
            title = text_of(row, "title")
            if title and text_of(row, "type") == "subcat":
                below.append(title)
            elif title:
                titles.append(title)
        fresh = [each for each in dict.fromkeys(below) if depth and each not in self.seen]
        fresh = fresh[: max(MAX_CATEGORIES - len(self.seen), 0)]
        first = [(category, depth)] if answer.cursor else []
        left = (*first, *others, *((each, depth - 1) for each in fresh))
        seen = self.seen.union(fresh)
        return titles, replace(self, categories=left, seen=seen, cursor=answer.cursor)

    def skip(self) -> MemberWalk:
        """Return the walk without what is being asked for: the wiki has no such thing."""
        if self.categories:
            return replace(self, categories=self.categories[1:], cursor=None)
        return replace(self, prefixes=self.prefixes[1:], cursor=None)


def normalize_prefixes(prefixes: Sequence[str], rules: TitleRules) -> tuple[str, ...]:
    """Return beginnings of titles as the wiki spells them: `help:inst` becomes `Help:Inst`."""
    spelt = []
    for prefix in prefixes:
        written = prefix.replace("_", " ").lstrip(" ")
        # A name space alone is no title; a letter behind it makes it one.
        title = (
            rules.normalize(f"{written}x") if written.endswith(":") else rules.normalize(written)
        )
        if title is None:
            continue
        ends_blank = written.endswith(" ") and not title.endswith(" ")
        whole = title[:-1] if written.endswith(":") else title + (" " if ends_blank else "")
        spelt.append(whole)
    return tuple(spelt)
