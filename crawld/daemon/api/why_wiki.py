"""What the file tells about a URL as a page of a wiki; read once for all sites."""

from __future__ import annotations

from functools import cached_property

import apsw

from crawld.core.url import split_url
from crawld.core.why.facts import PartFacts
from crawld.daemon.frontier.site import ActiveSite
from crawld.sources.mediawiki_members import MemberReason, Membership
from crawld.sources.mediawiki_scope import TitleScope, normalize_prefixes
from crawld.sources.mediawiki_site import WikiFacts
from crawld.sources.mediawiki_title import TitleRules
from crawld.store.changes import wiki, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_member import MemberRow, Part


class WikiOfUrl:
    """The wiki of a URL, as far as it is known."""

    def __init__(self, connection: apsw.Connection, url: str) -> None:
        self._connection = connection
        self._url = url

    @cached_property
    def _row(self) -> WikiRow | None:
        return wiki.by_origin(self._connection, split_url(self._url).origin)

    @cached_property
    def _rules(self) -> TitleRules | None:
        row = self._row
        if row is None or row.facts is None:
            return None
        return WikiFacts.from_json(row.facts).titles

    def refusal(self, site: ActiveSite) -> str | None:
        """Return why the titles of the wiki refuse the URL, as `WikiScope.refusal` does."""
        if not site.config.api:
            return None
        found = self._scope(site)
        if found is not None:
            return found.refusal(self._url)
        return "wiki_part" if site.config.wiki_scoped else None

    def part(self, site: ActiveSite) -> PartFacts | None:
        """Return why the URL belongs to the part that a site covers; None: it covers no part."""
        if not site.config.wiki_scoped:
            return None
        scope = self._scope(site)
        if scope is None:
            return PartFacts(title=None, known=False)
        title = scope.rules.title_of(self._url)
        if title is None:
            return PartFacts(title=None, known=True)
        found = self._reasons(site, title)
        reasons = [
            Membership(each.title, MemberReason(each.reason), each.via).text for each in found
        ]
        if not reasons and title.startswith(scope.prefixes):
            reasons = ["by its prefix"]
        if not reasons and scope.has(title):
            reasons = [f"discusses '{scope.rules.subject_of(title)}'"]
        return PartFacts(title=title, known=True, reasons=tuple(reasons))

    def _scope(self, site: ActiveSite) -> TitleScope | None:
        """Return the part that a site covers; its members are this title and what it discusses."""
        rules, row = self._rules, self._row
        if rules is None or row is None or site.site_id not in row.site_ids:
            return None
        title = rules.title_of(self._url)
        subject = rules.subject_of(title) if title is not None else None
        reasons = {each: self._reasons(site, each) for each in (title, subject) if each is not None}
        return TitleScope(
            rules,
            scoped=site.config.wiki_scoped,
            prefixes=normalize_prefixes(site.config.wiki_prefixes, rules),
            talk=site.config.wiki_talk,
            members=frozenset(each for each, found in reasons.items() if found),
            named_talk=frozenset(
                each
                for each, found in reasons.items()
                if any(row.reason == MemberReason.TITLE for row in found)
            ),
        )

    def _reasons(self, site: ActiveSite, title: str) -> list[MemberRow]:
        assert self._row is not None
        part = Part(site.site_id, self._row.wiki_id)
        return wiki_member.reasons_of(self._connection, part, title)
