"""Decides which pages of a MediaWiki belong to a site: listed titles, categories, prefixes.

Only pages for readers belong to a site: no special pages, old revisions, histories, edit forms and
other views (`oldid=`, `action=`), and no discussions unless configured, or named one by one or by
their prefix. If the site names a part of the wiki, only the titles of that part belong to it,
regardless of links. A title with a configured prefix belongs to it as soon as it is discovered,
other titles once the wiki has listed them (`crawld/sources/mediawiki_members.py`).

Source: MediaWiki, Manual:Namespace (talk namespaces have odd numbers).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crawld.sources.mediawiki_title import TitleRules


@dataclass(frozen=True, slots=True)
class TitleScope:
    """Which titles of one wiki belong to a site.

    Attributes:
        rules: how the wiki spells titles.
        scoped: whether only a part of the wiki belongs to the site.
        prefixes: beginnings of titles, in the wiki's spelling.
        talk: whether discussions belong to the site: in a part, those of its pages.
        members: titles that the wiki listed.
        named_talk: discussions that the operator listed by title.
        redirects: those of them that lead to other titles.
        has_categories: whether the operator named categories.
        followed: categories whose pages belong to the site; None: not known yet.
        follows_moves: whether a page that is renamed stays in the site.
        is_listed: whether the titles are known; false before the first listing.
    """

    rules: TitleRules
    scoped: bool = False
    prefixes: tuple[str, ...] = ()
    talk: bool = False
    members: frozenset[str] = frozenset()
    named_talk: frozenset[str] = frozenset()
    redirects: frozenset[str] = frozenset()
    has_categories: bool = False
    followed: frozenset[str] | None = None
    follows_moves: bool = True
    is_listed: bool = True

    def has(self, title: str) -> bool:
        """Whether a title in the wiki's spelling belongs to the part of the wiki."""
        if not self.scoped or self._names(title):
            return True
        subject = self.rules.subject_of(title) if self.talk else None
        return subject is not None and self._names(subject)

    def _names(self, title: str) -> bool:
        return title in self.members or title.startswith(self.prefixes)

    def _names_talk(self, title: str) -> bool:
        """Whether the operator named a discussion: a category that lists it does not."""
        by_prefix = (each for each in self.prefixes if ":" in each)
        return title in self.named_talk or title.startswith(tuple(by_prefix))

    def with_talk(self, titles: Iterable[str]) -> list[str]:
        """Return titles with their discussions, if these belong to the site."""
        found = list(titles)
        if self.talk:
            found += [talk for title in found if (talk := self.rules.talk_of(title)) is not None]
        return found

    def follows(self, category: str) -> bool:
        """Whether the pages of a category belong to the part; before the first listing, maybe."""
        return self.has_categories and (self.followed is None or category in self.followed)

    def refusal(self, url: str) -> str | None:
        """Return why a canonical URL of the wiki's origin is not a page of the site, else None."""
        title = self.rules.title_of(url)
        if title is None:
            if self.rules.serves(url):
                return "wiki_view"
            return "wiki_part" if self.scoped else None
        is_talk = self.rules.namespace_of(title) % 2 == 1
        if is_talk and not self.talk and not self._names_talk(title):
            return "wiki_talk"
        return None if self.has(title) else "wiki_part"


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
