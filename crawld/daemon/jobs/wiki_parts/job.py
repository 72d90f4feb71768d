"""The `members` job: query which titles belong to a site that covers only part of a wiki.

The API of every wiki of a site with `wiki_titles`, `wiki_categories` or `wiki_prefixes` is walked
within the politeness of its host. Titles that are there enter the frontier at once; redirects stay
redirects, and their targets belong to the part too. Titles that a complete walk did not list leave
the site: their pages are no longer visited, their copies stay. An interrupted walk removes nothing
and starts over.

A walk starts every hour, since some wikis do not report who enters a category, and soon after a
followed category got a subcategory. Listed titles are resolved once, then when the wiki reports
them, and again after a week; what was resolved is stored, so that 50,000 titles survive restarts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import apsw
import structlog
import trio

from crawld.config.seeds import read_wiki_titles
from crawld.core.units import DAY_S
from crawld.daemon.crawl.api_client import ApiClient, api_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.hand_over import hand_over_members
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.jobs.wiki_parts.asking import (
    SHARED_WAIT_S,
    TITLES_AT_ONCE,
    Ask,
    AskOnce,
    ask_patiently,
    resolve_titles,
)
from crawld.daemon.jobs.wiki_parts.members import PartMembers
from crawld.daemon.pacing import LoopSlices
from crawld.sources.mediawiki_api import REFUSALS, ApiTrouble
from crawld.sources.mediawiki_listed import ListedTitle, TitleOutcome, sort_titles
from crawld.sources.mediawiki_members import MemberReason, MemberWalk
from crawld.sources.mediawiki_scope import TitleScope
from crawld.store.changes import wiki, wiki_listed, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_listed import ListedRow
from crawld.store.changes.wiki_member import Part

log = structlog.get_logger(__name__)

EVERY_S: Final = 3_600.0
"""Pause between two walks; the reports of the wiki are applied in between."""

WAIT_S: Final = 20.0
"""Pause while a site has no wiki with known siteinfo, or has titles to resolve."""

REST_FACTOR: Final = 5.0
"""Rest after a walk, as a multiple of its duration: a busy category takes a sixth of the slots."""

MIN_REST_S: Final = 5.0
"""Least rest after a walk."""

RESOLVED_FOR_S: Final = 7 * DAY_S
"""Age from which a listed title is resolved again."""

RESOLVE_S: Final = 600.0
"""Longest time in a run for resolving titles; walks take place in between."""

SORTED_AT_ONCE: Final = 100
"""Titles of a list read without a pause."""

LOGGED_TITLES: Final = 20
"""Titles with a problem that are logged by name; `crawlctl wikis` has more."""


class WikiMembersJob(BackgroundWork):
    """The `members` job."""

    name = "members"

    def __init__(self, context: CrawlContext, client: ApiClient) -> None:
        super().__init__(context)
        self._client = client
        self._members = PartMembers(context)
        self._waits = False
        self._has_unresolved = False
        self._rested_at = self._walked_at = -math.inf

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return WAIT_S if self._waits or self._has_unresolved else EVERY_S

    async def run(self) -> str:
        """Walk every wiki that a site covers in part."""
        await trio.sleep_until(self._rested_at)
        await self.load()
        scoped = {number for number, site in self._state.sites.items() if _is_walked(site)}
        rows = await self._database.read(wiki.list_wikis)
        walked = [
            (row, site_id)
            for row in rows
            if row.facts and row.api_url
            for site_id in row.site_ids
            if site_id in scoped
        ]
        self._waits = scoped != {site_id for _, site_id in walked}
        # What is left of a long list goes on before the next walk is due.
        now = trio.current_time()
        only_titles = self._has_unresolved and now < self._walked_at + EVERY_S
        self._has_unresolved = False
        self._walked_at = self._walked_at if only_titles else now
        # Categories and prefixes that several sites of a wiki have in common are listed once.
        asks = {
            row.wiki_id: AskOnce(
                partial(ask_patiently, partial(self._client.ask, api, waits_s=SHARED_WAIT_S))
            )
            for row, _ in walked
            if (api := api_of(row, self._state.sites)) is not None
        }
        results = [
            await self._cover(row, site_id, asks.get(row.wiki_id), only_titles=only_titles)
            for row, site_id in walked
        ]
        return "; ".join(results) if results else f"{len(scoped)} sites wait for their wikis"

    async def progress(self) -> dict[str, int]:
        """Return the number of titles of such sites, and of those that are not resolved yet."""
        return {
            "titles": await self._database.read(wiki_member.count_titles),
            "unresolved": await self._database.read(wiki_listed.count_unresolved),
        }

    async def load(self) -> None:
        """Load the stored titles; check pages again that were checked without them.

        Sites get the pages of their parts that other sites gave up.
        """
        await self._members.load()
        await hand_over_members(self._state, self._database)
        self._has_unresolved = await self._database.read(wiki_listed.count_unresolved) > 0

    async def _settle(self) -> None:
        await self._members.settle()
        self._has_unresolved = (await self.progress())["unresolved"] > 0

    # --- one part of a wiki ----------------------------------------------------------------------

    async def _cover(
        self, row: WikiRow, site_id: int, ask: Ask | None, *, only_titles: bool
    ) -> str:
        site = self._state.sites.get(site_id)
        scope = self._state.wiki_scope.part(site_id, row.origin)
        if site is None or scope is None or ask is None:
            return f"{row.origin}: siteinfo not known yet"
        part, name = Part(site_id, row.wiki_id), f"{site.name} on {row.origin}"
        await self._read_list(part, site, scope)
        await self._members.load()
        unresolved = await self._resolve_listed(row, part, ask)
        if unresolved:
            self._has_unresolved = True
            if only_titles:
                return f"{name}: {unresolved}"
        walked = await self._walk(row, site, scope, ask)
        await self._settle()
        return f"{name}: {walked}" + (f", {unresolved}" if unresolved else "")

    async def _walk(self, row: WikiRow, site: ActiveSite, scope: TitleScope, ask: Ask) -> str:
        """List categories and prefixes to their ends; return a summary."""
        config, began_at, started_at = site.config, self._clock.now(), trio.current_time()
        part = Part(site.site_id, row.wiki_id)
        walk = MemberWalk.start(
            config.wiki_categories, config.wiki_category_depth, config.wiki_prefixes, scope.rules
        )
        requests, resolved = 0, scope.redirects
        while not walk.is_done:
            response = await ask(walk.query(scope.rules))
            requests += 1
            if isinstance(response, ApiTrouble):
                if response.trouble not in REFUSALS:
                    return f"interrupted after {requests} requests: {response.trouble}"
                log.warning(
                    "wiki_scope_query_skipped",
                    wiki=row.origin,
                    subject=walk.subject,
                    why=response.detail,
                )
                walk = walk.skip()
                continue
            found, walk = walk.read(response)
            await self._members.put(row, part.site_id, found.members, began_at)
            await self._members.admit_talk(row, part.site_id, found.discussed)
            fresh = [title for title in found.redirects if title not in resolved]
            if not await self._resolve(row, part, ask, fresh):
                return f"interrupted after {requests} requests"
        await self._database.write(wiki_member.set_categories, part, walk.seen)
        reasons = (MemberReason.CATEGORY, MemberReason.PREFIX)
        gone = await self._database.write(wiki_member.delete_before, part, began_at, reasons)
        gone += await self._end_moves(part, scope)
        gone += len(await self._database.write(wiki_member.remove_unfounded, part))
        now = trio.current_time()
        self._rested_at = now + max(REST_FACTOR * (now - started_at), MIN_REST_S)
        return f"{requests} requests, {gone} titles removed"

    async def _end_moves(self, part: Part, scope: TitleScope) -> int:
        """Remove the titles of renamed pages whose first title no longer belongs to the part."""
        moved = await self._database.read(wiki_member.list_by_reason, part, MemberReason.MOVE)
        members = frozenset(await self._database.read(wiki_member.list_titles, part))
        ended = [
            (each.title, each.reason, each.via)
            for each in moved
            if not scope.follows_moves
            or not (each.via in members or each.via.startswith(scope.prefixes))
        ]
        await self._database.write(wiki_member.remove, part, ended)
        return len(ended)

    # --- titles ----------------------------------------------------------------------------------

    async def _read_list(self, part: Part, site: ActiveSite, scope: TitleScope) -> None:
        """Store the titles that the operator lists now; what is known of them stays."""
        titles = await _sorted_titles(site, scope)
        # On the thread of a reader: 50,000 titles take a fifth of a second.
        merged = await self._database.read(_merge_list, part, titles)
        if merged is not None:
            rows, problems = merged
            await self._database.write(wiki_listed.replace, part, rows)
            problems.log(site)
        await self._database.write(wiki_member.sync_listed, part, self._clock.now())

    async def _resolve_listed(self, row: WikiRow, part: Part, ask: Ask) -> str | None:
        """Resolve listed titles for a limited time; return what is left, None if nothing is."""
        until = trio.current_time() + RESOLVE_S
        problems = _Problems()
        left: str | None = None
        while True:
            now = self._clock.now()
            asked = await self._database.read(
                wiki_listed.next_unresolved, part, now - RESOLVED_FOR_S, TITLES_AT_ONCE
            )
            if not asked:
                break
            if trio.current_time() >= until:
                left = "titles left to resolve"
                break
            titles = [each.title for each in asked if each.title is not None]
            found = await resolve_titles(ask, titles)
            if isinstance(found, ApiTrouble):
                left = f"titles left to resolve: {found.trouble}"
                break
            done = await self._members.store_listed(row, part.site_id, asked, found, now)
            problems.add(done, asked)
        problems.log(self._state.sites[part.site_id])
        return left

    async def _resolve(self, row: WikiRow, part: Part, ask: Ask, titles: Iterable[str]) -> bool:
        """Admit the targets of redirects; return False if the wiki did not answer."""
        fresh = list(titles)
        if not fresh:
            return True
        found = await resolve_titles(ask, fresh)
        if isinstance(found, ApiTrouble):
            return False
        await self._members.set_redirects(row, part.site_id, found, self._clock.now())
        return True


async def _sorted_titles(site: ActiveSite, scope: TitleScope) -> list[ListedTitle]:
    found: list[ListedTitle] = []
    slices = LoopSlices()
    for title in sort_titles(read_wiki_titles(site.config), scope.rules):
        found.append(title)
        if len(found) % SORTED_AT_ONCE == 0:
            await slices.pause()
    return found


def _merge_list(
    connection: apsw.Connection, part: Part, titles: Sequence[ListedTitle]
) -> tuple[list[ListedRow], _Problems] | None:
    """Return the rows of a list, with what is known of them; None: as stored."""
    stored = wiki_listed.list_titles(connection, part)
    known = {row.written: row for row in stored}
    rows = [_row(position, each, known) for position, each in enumerate(titles)]
    if rows == stored:
        return None
    problems = _Problems()
    problems.add(rows, stored)
    return rows, problems


def _row(position: int, title: ListedTitle, known: dict[str, ListedRow]) -> ListedRow:
    """Return the row of a listed title, with what the wiki said of it before."""
    before = known.get(title.written)
    is_open = title.outcome is TitleOutcome.UNRESOLVED
    if is_open and before is not None and before.outcome != TitleOutcome.DUPLICATE:
        return before._replace(position=position)
    return ListedRow(position, title.written, title.title, title.outcome, title.detail, None)


class _Problems:
    """Titles that the operator should know about: how many, and some of them by name."""

    def __init__(self) -> None:
        self._count = 0
        self._named: list[str] = []

    def add(self, rows: Iterable[ListedRow], before: Iterable[ListedRow]) -> None:
        """Add the problems of titles that they did not have before."""
        known = {(row.written, _problem(row)) for row in before if row.resolved_at is not None}
        for row in rows:
            problem = _problem(row) if row.outcome != TitleOutcome.UNRESOLVED else None
            if problem is not None and (row.written, problem) not in known:
                self._count += 1
                if len(self._named) < LOGGED_TITLES:
                    self._named.append(problem)

    def log(self, site: ActiveSite) -> None:
        """Log them, if there are some."""
        if self._count:
            log.warning("wiki_titles", site=site.name, count=self._count, titles=self._named)


def _problem(row: ListedRow) -> str | None:
    return ListedTitle(row.written, row.title, TitleOutcome(row.outcome), row.detail).problem


def _is_walked(site: ActiveSite) -> bool:
    return site.config.wiki_scoped and not site.paused
