"""Decide which pages of a wiki belong to a site, at admission and before visits.

Derived from the file: how each wiki spells titles, and the titles of sites that cover a part of a
wiki. Loaded at start, after a reload, and when the facts of a wiki change.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

import apsw

from crawld.core.url import split_url, url_hash
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_sites import update_wiki_sites
from crawld.daemon.pacing import parts_of
from crawld.sources.mediawiki_scope import TitleScope, normalize_prefixes
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import wiki_listed, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_member import Part
from crawld.store.engine.database import Database


class WikiScope:
    """The parts of wikis under crawl, by site and origin."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, str], TitleScope] = {}

    def refusal(self, site: ActiveSite, url: str) -> str | None:
        """Return why a wiki's titles exclude a canonical URL from a site; None: they do not."""
        if not site.config.api:
            return None
        part = self._parts.get((site.site_id, split_url(url).origin))
        if part is not None:
            return part.refusal(url)
        return "wiki_part" if site.config.wiki_scoped else None

    def part(self, site_id: int, origin: str) -> TitleScope | None:
        """Return the part of a wiki that a site covers; None if it is not known yet."""
        return self._parts.get((site_id, origin))

    def parts(self) -> list[tuple[tuple[int, str], TitleScope]]:
        """Return all known parts of wikis, by site and origin."""
        return sorted(self._parts.items(), key=itemgetter(0))

    def sites_of(self, origin: str) -> list[int]:
        """Return the sites with a known part of the wiki of an origin, the first added first."""
        return sorted(site_id for site_id, of in self._parts if of == origin)

    def parts_of(self, row: WikiRow) -> dict[int, TitleScope]:
        """Return the known parts of a wiki by site."""
        found = {site_id: self.part(site_id, row.origin) for site_id in row.site_ids}
        return {site_id: part for site_id, part in found.items() if part is not None}

    async def load(self, database: Database, sites: dict[int, ActiveSite]) -> bool:
        """Load from the file; return whether anything changed."""
        loaded: dict[tuple[int, str], TitleScope] = {}
        for row in await update_wiki_sites(database, sites):
            for site_id in row.site_ids if row.facts is not None else ():
                part = Part(site_id, row.wiki_id)
                stored = await database.read(_stored_part, part)
                if (site := sites.get(site_id)) is not None:
                    loaded[site_id, row.origin] = _part_of(site, row, stored)
        changed = loaded != self._parts
        self._parts = loaded
        return changed

    def add_titles(self, site_id: int, origin: str, titles: frozenset[str]) -> bool:
        """Add titles to a part; return whether some are new. A whole wiki has no members.

        Discussions belong to it with the pages that they discuss.
        """
        part = self._parts.get((site_id, origin))
        if part is not None and part.talk:
            titles = frozenset(
                title
                for title in titles
                if part.rules.subject_of(title) is None or not part.has(title)
            )
        if part is None or not part.scoped or titles <= part.members:
            return False
        self._parts[site_id, origin] = replace(part, members=part.members | titles)
        return True


def keys_of_titles(part: TitleScope, origin: str, titles: Iterable[str]) -> Iterator[array[int]]:
    """Yield the keys of the URLs of titles of a part, with their discussions, a slice at a time."""
    urls = [url for title in part.with_talk(titles) if (url := part.rules.url_of(title, origin))]
    for some in parts_of(urls):
        yield array("q", map(url_hash, some))


class _StoredPart(NamedTuple):
    """What the file has of a part.

    Attributes:
        listed_spaced: those of the members that the operator listed, with a namespace.
        redirects: those of the members that redirect.
        followed: the categories followed, None before the first listing.
        has_list: whether it has the operator's list of titles.
    """

    members: frozenset[str]
    listed_spaced: tuple[str, ...]
    redirects: frozenset[str]
    followed: frozenset[str] | None
    has_list: bool


def _stored_part(connection: apsw.Connection, part: Part) -> _StoredPart:
    categories = wiki_member.list_categories(connection, part)
    return _StoredPart(
        frozenset(wiki_member.list_titles(connection, part)),
        tuple(wiki_member.list_spaced(connection, part)),
        frozenset(wiki_member.list_redirects(connection, part)),
        frozenset(categories) if categories else None,
        wiki_listed.has_rows(connection, part),
    )


def _part_of(site: ActiveSite, row: WikiRow, stored: _StoredPart) -> TitleScope:
    """Return the part of an identified wiki that a site covers."""
    assert row.facts is not None
    rules, config = WikiFacts.from_json(row.facts).titles, site.config
    return TitleScope(
        rules,
        scoped=config.wiki_scoped,
        prefixes=normalize_prefixes(config.wiki_prefixes, rules),
        talk=config.wiki_talk,
        members=stored.members,
        named_talk=frozenset(
            title for title in stored.listed_spaced if rules.namespace_of(title) % 2 == 1
        ),
        redirects=stored.redirects,
        has_categories=bool(config.wiki_categories),
        followed=stored.followed,
        follows_moves=config.wiki_moved == "follow",
        is_listed=(stored.followed is not None or not config.wiki_categories)
        and (stored.has_list or not (config.wiki_titles or config.lists_titles)),
    )
