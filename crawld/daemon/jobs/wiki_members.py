"""The `members` job: query which titles belong to a site that covers only part of a wiki.

The API of every wiki of a site with `wiki_titles`, `wiki_categories` or `wiki_prefixes` is walked
within the politeness of its host. New titles enter the frontier at once. Titles that a complete
walk did not list leave the site: their pages are no longer visited, their copies stay. An
interrupted walk removes nothing and starts over.

A walk starts every hour, and soon after the wiki reports a change of a category that was followed,
or that a listed title was moved, deleted or restored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import structlog
import trio
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from crawld.core.politeness import MAX_RETRY_AFTER_S
from crawld.daemon.crawl.api_client import Api, ApiClient, api_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.hand_over import hand_over_members
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, TroubleKind
from crawld.sources.mediawiki_changes import TitleChange
from crawld.sources.mediawiki_scope import CATEGORY_SPACE, MemberWalk, TitleScope
from crawld.store.changes import wiki, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_member import Part

log = structlog.get_logger(__name__)

EVERY_S: Final = 3_600.0
"""Pause between two walks; hints also admit titles of a prefix."""

WAIT_S: Final = 20.0
"""Pause while a site has no wiki with known siteinfo."""

REST_FACTOR: Final = 5.0
"""Rest after a walk, as a multiple of its duration: a busy category takes a sixth of the slots."""

MIN_REST_S: Final = 5.0
"""Least rest after a walk."""

RETRY_S: Final = 1_800.0
"""Longest time to retry a request; then the walk waits for the next run."""

ADMITTED_AT_ONCE: Final = 500
"""Titles admitted in one transaction."""


class WikiMembersJob(BackgroundWork):
    """The `members` job."""

    name = "members"

    def __init__(self, context: CrawlContext, client: ApiClient) -> None:
        super().__init__(context)
        self._client = client
        self._waits = False
        self._followed: dict[Part, frozenset[str]] = {}
        self._rested_at = -math.inf

    def concerns(self, row: WikiRow, changed: Sequence[TitleChange]) -> bool:
        """Whether changes on a wiki may add titles to its sites, or remove some.

        Before the first walk since the start every category counts as followed.
        """
        return any(self._concerns_site(row, site_id, changed) for site_id in row.site_ids)

    def _concerns_site(self, row: WikiRow, site_id: int, changed: Sequence[TitleChange]) -> bool:
        part = self._state.wiki_scope.part(site_id, row.origin)
        site = self._state.sites.get(site_id)
        if part is None or site is None or not _is_walked(site):
            return False
        followed = self._followed.get(Part(site_id, row.wiki_id))
        return any(
            (each.space == CATEGORY_SPACE and (followed is None or each.title in followed))
            or (each.entry is not None and each.title in part.members)
            for each in changed
        )

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return WAIT_S if self._waits else EVERY_S

    async def run(self) -> str:
        """Walk every wiki that a site covers in part."""
        await trio.sleep_until(self._rested_at)
        began_at = trio.current_time()
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
        results = [await self._walk(row, site_id) for row, site_id in walked]
        now = trio.current_time()
        self._rested_at = now + max(REST_FACTOR * (now - began_at), MIN_REST_S)
        return "; ".join(results) if results else f"{len(scoped)} sites wait for their wikis"

    async def progress(self) -> dict[str, int]:
        """Return the number of titles of such sites."""
        rows = await self._database.read(wiki.list_wikis)
        parts = [Part(site_id, row.wiki_id) for row in rows for site_id in row.site_ids]
        titles = [await self._database.read(wiki_member.list_titles, part) for part in parts]
        return {"titles": sum(map(len, titles))}

    async def load(self) -> None:
        """Load the stored titles; check pages again that were checked without them."""
        if await self._state.wiki_scope.load(self._database, self._state.sites):
            self._reconsider_pages()
        await hand_over_members(self._state, self._database)

    def _reconsider_pages(self) -> None:
        self._state.admission.forget()
        for host in self._state.hosts.values():
            for pages in host.queues():
                pages.reconsider()
            self._state.schedule.wake(host.slot)

    # --- one wiki --------------------------------------------------------------------------------

    async def _walk(self, row: WikiRow, site_id: int) -> str:
        site, began_at = self._state.sites.get(site_id), self._clock.now()
        part = self._state.wiki_scope.part(site_id, row.origin)
        api = api_of(row, self._state.sites)
        if site is None or part is None or api is None:
            return f"{row.origin}: siteinfo not known yet"
        name = f"{site.name} on {row.origin}"
        config, rules = site.config, part.rules
        listed = [title for each in config.wiki_titles if (title := rules.normalize(each))]
        await self._add_titles(row, site, listed, began_at)
        walk = MemberWalk.start(
            config.wiki_categories, config.wiki_category_depth, config.wiki_prefixes, rules
        )
        requests = 0
        while not walk.is_done:
            response = await self._ask(api, walk, part)
            if response is None:
                return f"{name}: interrupted after {requests} requests"
            requests += 1
            if isinstance(response, ApiTrouble):
                log.warning("wiki_scope_query_skipped", wiki=row.origin, why=response.detail)
                walk = walk.skip()
                continue
            titles, walk = walk.read(response)
            await self._add_titles(row, site, titles, began_at)
        stored = Part(site_id, row.wiki_id)
        self._followed[stored] = walk.seen
        gone = await self._database.write(wiki_member.delete_before, stored, began_at)
        await self.load()
        return f"{name}: {requests} requests, {gone} titles removed"

    async def _ask(
        self, api: Api, walk: MemberWalk, part: TitleScope
    ) -> ApiResponse | ApiTrouble | None:
        """Query until the wiki answers; return its response or a request error, else None."""
        with trio.move_on_after(RETRY_S):
            response: ApiResponse | ApiTrouble = await AsyncRetrying(
                retry=retry_if_result(_is_worth_a_retry), wait=_pause_s, sleep=trio.sleep
            )(self._client.ask, api, walk.query(part.rules))
            return response
        return None

    async def _add_titles(
        self, row: WikiRow, site: ActiveSite, titles: Sequence[str], began_at: float
    ) -> None:
        """Add titles to the site, the database and the frontier."""
        part = self._state.wiki_scope.part(site.site_id, row.origin)
        if part is None or not titles:
            return
        normalized = [title for each in titles if (title := part.rules.normalize(each))]
        stored = Part(site.site_id, row.wiki_id)
        await self._database.write(wiki_member.put_titles, stored, normalized, began_at)
        new_titles = frozenset(normalized) - part.members
        if not new_titles:
            return
        self._state.wiki_scope.set_titles(site.site_id, row.origin, part.members | new_titles)
        self._reconsider_pages()
        urls = [url for title in normalized if (url := part.rules.url_of(title, row.origin))]
        for start in range(0, len(urls), ADMITTED_AT_ONCE):
            some = urls[start : start + ADMITTED_AT_ONCE]
            await self._state.admit(site, some, Referrer(None, 0))


_REQUEST_TROUBLES: Final = frozenset({TroubleKind.BROKEN, TroubleKind.BAD_CURSOR})
"""Errors of the request itself: for example, there is no such category."""


def _is_worth_a_retry(response: ApiResponse | ApiTrouble) -> bool:
    return isinstance(response, ApiTrouble) and response.trouble not in _REQUEST_TROUBLES


def _pause_s(state: RetryCallState) -> float:
    """Return the pause before the next attempt, seconds, within bounds."""
    trouble = state.outcome.result() if state.outcome else None
    assert isinstance(trouble, ApiTrouble)
    return min(max(trouble.pause_s(state.attempt_number), 1.0), MAX_RETRY_AFTER_S)


def _is_walked(site: ActiveSite) -> bool:
    return site.config.wiki_scoped and not site.paused
