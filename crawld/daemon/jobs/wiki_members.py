"""The job `members`: asks wikis which titles make up a site that is a part of one.

Every wiki of a site with `wiki_titles`, `wiki_categories` or `wiki_prefixes` is walked through its
API, inside the politeness of its host. Titles enter the frontier as they are named; those that a
whole walk has not named any more leave the site: their pages are visited no longer, their copies
stay. A walk that was broken off drops nothing and begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
import trio
from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from crawld.core.politeness import MAX_RETRY_AFTER_S
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api, ApiClient
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, ApiTroubleKind
from crawld.sources.mediawiki_scope import MemberWalk, TitleScope
from crawld.store.changes import wiki, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, refusal

log = structlog.get_logger(__name__)

EVERY_S: Final = 3_600.0
"""Pause between two walks; titles of a prefix are also let in when hints name them."""

WAIT_S: Final = 20.0
"""Pause while no wiki of such a site has said what it is."""

PATIENCE_S: Final = 1_800.0
"""A walk that meets more trouble than this waits for the next run."""

AT_ONCE: Final = 500
"""Titles admitted between two pauses for others."""


class WikiMembersJob:
    """The job."""

    name = "members"

    def __init__(
        self, crawl: CrawlState, database: Database, client: ApiClient, clock: Clock
    ) -> None:
        self._crawl = crawl
        self._database = database
        self._client = client
        self._clock = clock
        self._waits = False

    @property
    def every_s(self) -> float:
        """The pause between two runs."""
        return WAIT_S if self._waits else EVERY_S

    async def run(self) -> str:
        """Walk every wiki of which only a part is wanted."""
        await self.load()
        scoped = {number for number, site in self._crawl.sites.items() if _walked(site)}
        rows = [row for row in await self._database.read(wiki.list_wikis) if row.facts]
        walked = [row for row in rows if row.site_id in scoped and row.api_url]
        self._waits = scoped != {row.site_id for row in walked}
        said = [await self._walk(row) for row in walked]
        return "; ".join(said) if said else f"{len(scoped)} sites wait for their wikis"

    async def progress(self) -> dict[str, int]:
        """Return how many titles make up such sites."""
        rows = await self._database.read(wiki.list_wikis)
        titles = [await self._database.read(wiki_member.list_titles, row.wiki_id) for row in rows]
        return {"titles": sum(map(len, titles))}

    async def load(self) -> None:
        """Read from the file what belongs to wikis, and judge anew what was judged without it."""
        if await self._crawl.wiki_scope.load(self._database, self._crawl.sites):
            self._judge_anew()

    def _judge_anew(self) -> None:
        self._crawl.admission.forget()
        for host in self._crawl.hosts.values():
            for pages in host.queues():
                pages.reconsider()
            self._crawl.schedule.wake(host.slot)

    # --- one wiki ------------------------------------------------------------------------------

    async def _walk(self, row: WikiRow) -> str:
        site, began_at = self._crawl.sites[row.site_id], self._clock.now()
        part = self._crawl.wiki_scope.part(row.site_id, row.origin)
        if part is None or row.api_url is None:
            return f"{row.origin}: not known yet"
        config, rules = site.config, part.rules
        listed = [title for each in config.wiki_titles if (title := rules.normalize(each))]
        await self._named(row, site, listed, began_at)
        walk = MemberWalk.start(
            config.wiki_categories, config.wiki_category_depth, config.wiki_prefixes, rules
        )
        requests = 0
        while not walk.is_done:
            answer = await self._ask(Api(row.site_id, row.api_url), walk, part)
            if answer is None:
                return f"{row.origin}: broken off after {requests} requests"
            requests += 1
            if isinstance(answer, ApiTrouble):
                log.warning("members_skipped", wiki=row.origin, why=answer.detail)
                walk = walk.skip()
                continue
            titles, walk = walk.read(answer)
            await self._named(row, site, titles, began_at)
        gone = await self._database.write(wiki_member.delete_before, row.wiki_id, began_at)
        await self.load()
        return f"{row.origin}: {requests} requests, {gone} titles left"

    async def _ask(
        self, api: Api, walk: MemberWalk, part: TitleScope
    ) -> ApiResponse | ApiTrouble | None:
        """Return an answer, or trouble of the request's own; None: the wiki does not answer."""
        with trio.move_on_after(PATIENCE_S):
            answer: ApiResponse | ApiTrouble = await AsyncRetrying(
                retry=retry_if_result(_is_worth_a_retry), wait=_pause_s, sleep=trio.sleep
            )(self._client.ask, api, walk.query(part.rules))
            return answer
        return None

    async def _named(
        self, row: WikiRow, site: ActiveSite, titles: Sequence[str], began_at: float
    ) -> None:
        """Take titles into the part, into the file, and into the frontier."""
        part = self._crawl.wiki_scope.part(row.site_id, row.origin)
        if part is None or not titles:
            return
        spelt = [title for each in titles if (title := part.rules.normalize(each))]
        await self._database.write(wiki_member.put_titles, row.wiki_id, spelt, began_at)
        fresh = frozenset(spelt) - part.members
        if not fresh:
            return
        self._crawl.wiki_scope.set_titles(row.site_id, row.origin, part.members | fresh)
        self._judge_anew()
        urls = [url for title in spelt if (url := part.rules.url_of(title, row.origin))]
        for start in range(0, len(urls), AT_ONCE):
            await self._admit(site, urls[start : start + AT_ONCE])

    async def _admit(self, site: ActiveSite, urls: Sequence[str]) -> None:
        admitted = self._crawl.admission.admit(site, urls, Referrer(None, 0), self._clock.now())
        new = await self._database.write(frontier.discover, admitted.found, self._crawl.caps)
        if admitted.refusals:
            await self._database.write(refusal.record, admitted.refusals)
        self._crawl.enter_pages(new)


_REQUEST_TROUBLES: Final = frozenset({ApiTroubleKind.BROKEN, ApiTroubleKind.BAD_CURSOR})
"""Troubles of the request: the wiki has no such category."""


def _is_worth_a_retry(answer: ApiResponse | ApiTrouble) -> bool:
    return isinstance(answer, ApiTrouble) and answer.trouble not in _REQUEST_TROUBLES


def _pause_s(state: RetryCallState) -> float:
    """Return the pause before the next attempt, seconds: as the trouble asks, in bounds."""
    trouble = state.outcome.result() if state.outcome else None
    assert isinstance(trouble, ApiTrouble)
    return min(max(trouble.pause_s(state.attempt_number), 1.0), MAX_RETRY_AFTER_S)


def _walked(site: ActiveSite) -> bool:
    return site.config.wiki_scoped and not site.paused
