"""Change which titles belong to the part of a wiki that a site covers: file, memory, frontier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.hand_over import hand_over_members
from crawld.daemon.crawl.left_pages import mark_left_pages
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.sources.mediawiki_listed import TitleAnswer, TitleOutcome
from crawld.sources.mediawiki_members import MemberReason, Membership
from crawld.sources.mediawiki_scope import TitleScope
from crawld.store.changes import wiki_listed, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_listed import ListedRow
from crawld.store.changes.wiki_member import Part

ADMITTED_AT_ONCE: Final = 500
"""Titles admitted in one transaction."""


class PartMembers(BackgroundWork):
    """The titles of the parts of wikis."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._is_stale = False
        self._touched: set[str] = set()
        self._left = defaultdict[Part, set[str]](set)

    async def refresh(self) -> None:
        """Load the stored titles if some left, or if redirects changed; hand their pages over.

        Those of no part are marked.
        """
        for part, left in self._left.items():
            while left:  # redirects lead out of the part, and these may redirect as well
                left = await self._database.write(wiki_member.remove_unfounded, part, left)
                self._touched |= left
        self._left.clear()
        if self._is_stale:
            await self.load()
        if self._touched:
            touched, self._touched = frozenset(self._touched), set()
            await hand_over_members(self._state, self._database, touched)
            await mark_left_pages(self._state, self._database, self._clock, touched)

    async def settle(self) -> None:
        """Load the stored titles and compare all pages of all parts with them.

        Sites get the pages of their parts that other sites gave up; pages of no part are marked.
        """
        await self.load()
        self._touched.clear()
        self._left.clear()
        await hand_over_members(self._state, self._database)
        await mark_left_pages(self._state, self._database, self._clock)

    async def load(self) -> None:
        """Load the stored titles; check pages again that were checked without them."""
        self._is_stale = False
        if await self._state.wiki_scope.load(self._database, self._state.sites):
            self._reconsider_pages()

    def _reconsider_pages(self) -> None:
        self._state.admission.forget()
        for host in self._state.hosts.values():
            for pages in host.queues():
                pages.reconsider()
            self._state.schedule.wake(host.slot)

    async def put(
        self, row: WikiRow, site_id: int, members: Sequence[Membership], at: float
    ) -> None:
        """Let titles belong to a part, from a time on (Unix seconds); they enter the frontier.

        A list that was asked for before now does not end that.
        """
        if not members:
            return
        part = Part(site_id, row.wiki_id)
        await self._database.write(wiki_member.put, part, members, at, self._clock.now())
        await self.admit(row, site_id, [member.title for member in members])

    async def admit(self, row: WikiRow, site_id: int, titles: Iterable[str]) -> None:
        """Add titles of a part to memory and to the frontier."""
        site = self._state.sites.get(site_id)
        scope = self._state.wiki_scope.part(site_id, row.origin)
        whole = list(dict.fromkeys(titles))
        self._touched.update(whole)
        if site is None or scope is None:
            return
        if self._state.wiki_scope.add_titles(site_id, row.origin, frozenset(whole)):
            self._reconsider_pages()
        await self._enter(row, site, scope, whole)

    async def admit_talk(self, row: WikiRow, site_id: int, titles: Iterable[str]) -> None:
        """Add the discussions of some pages of a part to the frontier, if they belong to it."""
        site = self._state.sites.get(site_id)
        scope = self._state.wiki_scope.part(site_id, row.origin)
        if site is not None and scope is not None and scope.talk:
            found = {talk for title in titles if (talk := scope.rules.talk_of(title)) is not None}
            await self._enter(row, site, scope, sorted(found))

    async def _enter(
        self, row: WikiRow, site: ActiveSite, scope: TitleScope, titles: Sequence[str]
    ) -> None:
        urls = [url for title in titles if (url := scope.rules.url_of(title, row.origin))]
        for start in range(0, len(urls), ADMITTED_AT_ONCE):
            some = urls[start : start + ADMITTED_AT_ONCE]
            await self._state.admit(site, some, Referrer(None, 0))

    async def remove(self, row: WikiRow, site_id: int, members: Sequence[Membership]) -> None:
        """Let reasons end; `refresh` lets the titles leave whose last one did."""
        if members:
            self._is_stale = True
            part = Part(site_id, row.wiki_id)
            titles = {member.title for member in members}
            self._touched |= titles
            self._left[part] |= titles
            await self._database.write(wiki_member.remove, part, members)

    async def set_redirects(
        self, row: WikiRow, site_id: int, found: Mapping[str, TitleAnswer], at: float
    ) -> None:
        """Store where titles of a part lead to; the targets belong to the part too.

        Args:
            found: what the wiki says about each title; one that does not redirect leads nowhere.
            The target of a page that was renamed and left the part stays outside of it.
        """
        part, scope = Part(site_id, row.wiki_id), self._state.wiki_scope.part(site_id, row.origin)
        targets = {
            source: answer.steps if answer.outcome is TitleOutcome.REDIRECT else ()
            for source, answer in found.items()
        }
        if scope is not None and not scope.follows_moves:
            former = await self._database.read(
                wiki_member.list_by_reason, part, MemberReason.FORMER
            )
            targets |= {each.title: () for each in former if each.title in targets}
        self._is_stale = True
        ended = await self._database.write(wiki_member.set_redirects, part, targets, at)
        self._touched |= ended
        self._left[part] |= ended
        await self.admit(row, site_id, [title for titles in targets.values() for title in titles])
        await self.admit_talk(
            row, site_id, [answer.end for answer in found.values() if answer.has_talk]
        )

    async def store_listed(
        self,
        row: WikiRow,
        site_id: int,
        asked: Sequence[ListedRow],
        found: Mapping[str, TitleAnswer],
        at: float,
    ) -> list[ListedRow]:
        """Store what the wiki says about listed titles; those that are there enter the frontier.

        Return them as they are stored now.
        """
        part = Part(site_id, row.wiki_id)
        done = [
            each._replace(
                title=None if _is_none(answer) else answer.title,
                outcome=str(answer.outcome),
                detail=answer.detail,
                resolved_at=at,
            )
            for each in asked
            if each.title is not None and (answer := found.get(each.title)) is not None
        ]
        await self._database.write(wiki_listed.set_resolved, part, done)
        there = [
            Membership(each.title, MemberReason.TITLE)
            for each in done
            if each.title is not None and each.outcome in (TitleOutcome.PAGE, TitleOutcome.REDIRECT)
        ]
        await self.put(row, site_id, there, at)
        await self.set_redirects(
            row, site_id, {answer.title: answer for answer in found.values()}, at
        )
        return done


def _is_none(answer: TitleAnswer) -> bool:
    return answer.outcome in (TitleOutcome.INVALID, TitleOutcome.INTERWIKI)
