"""Select the page for a turn: refill the look-ahead, check the scope, skip closed origins."""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from crawld.core.page import Failure, PageState
from crawld.core.url import split_url
from crawld.core.value_type import value_type
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.hand_over import hand_over
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.look_ahead import LOOK_AHEAD
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.pacing import LoopSlices
from crawld.store.engine.database import Database
from crawld.store.frontier import packed, unvisited
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.packed import Portion
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import canonical_urls

MAX_SKIPPED: Final = 100
"""Pages that one turn may skip without a request (excluded, removed) before it ends."""

MAX_DEFERRED: Final = 4 * LOOK_AHEAD
"""Never-visited pages held in memory for a closed origin; beyond that its whole host is shut."""


@value_type
class PageTask:
    """A page taken from its queue."""

    queue: PageQueue
    page: PageRecord
    site: ActiveSite


class PageSelection:
    """Takes pages from the queues of hosts."""

    def __init__(
        self, state: CrawlState, robots: RobotsCache, database: Database, clock: Clock
    ) -> None:
        self._state = state
        self._robots = robots
        self._database = database
        self._clock = clock

    async def take(self, host: HostState) -> PageTask | None:
        """Take the next page in scope, or None; leave out the others until the scopes change."""
        state = self._state
        slices: LoopSlices | None = None  # most turns take the first page
        for _ in range(MAX_SKIPPED):
            if slices is not None:
                await slices.pause()
            await self._refill(host)
            share = state.settings.requisite_share
            taken = host.take(self._clock.now(), state.active, requisite_share=share)
            if taken is None:
                return None
            queue, page_id = taken
            page = self._database.look_up(page_rows.for_visit, page_id)
            site = state.sites.get(queue.site_id)
            if page is not None and page.requisite != queue.requisites:
                slices = slices or LoopSlices()
                # A page that became a requisite waits in the queue of requisites.
                queue.drop(page_id)
                queue.mark_recorded(page_id)
                continue
            if page is not None and site is not None and state.in_scope(page, site):
                return PageTask(queue, page, site)
            slices = slices or LoopSlices()
            heir = state.heir(page) if page is not None else None
            if page is not None and heir is not None:
                await hand_over(state, self._database, page, heir)
            elif page is not None and site is not None and self._is_outside(page, site):
                queue.put_back(page_id)
                queue.left_out.add_all(queue.ahead)
            else:
                queue.leave_out(page_id)
        return None

    def _is_outside(self, page: PageRecord, site: ActiveSite) -> bool:
        """Whether no page of the host of a page is in the scope of its site, or has an heir."""
        if page.requisite or site.site_id != page.site_id or site.scope.has_host(page.host):
            return False
        if self._state.wiki_scope.sites_of(page.origin):
            return False
        return not self._database.look_up(site_rows.has_seed, site.site_id, page.host_id)

    def defer(self, host: HostState, task: PageTask) -> bool:
        """Put back a page if its origin is closed; return whether it was.

        Pages of the host's other origins are still visited.
        """
        closed_until = self._robots.closed_until(task.page.origin)
        if closed_until <= trio.current_time():
            return False
        if len(task.queue.ahead.held) < MAX_DEFERRED:
            task.queue.retry(task.page.page_id, self._clock.to_wall(closed_until))
        else:
            task.queue.put_back(task.page.page_id)
            host.shut_until = closed_until
        return True

    async def exclude(self, task: PageTask) -> None:
        """Record that robots.txt excludes a page."""
        page_id = task.page.page_id
        task.queue.drop(page_id)
        await self._database.write(page_rows.set_state, page_id, PageState.EXCLUDED, Failure.ROBOTS)
        task.queue.mark_recorded(page_id)

    async def _refill(self, host: HostState) -> None:
        for queue in host.queues():
            if queue.ahead.wants_refill and queue.site_id in self._state.active:
                asked = LOOK_AHEAD + len(queue.ahead.held)
                queue.ahead.begin_refill()
                pages = await self._next_pages(queue, asked)
                queue.ahead.refill(pages, asked=asked)
            if queue.ahead.unordered:
                await self._order(queue)

    async def _order(self, queue: PageQueue) -> None:
        """Put the never-visited pages into the order that plug-ins want."""
        site = self._state.sites.get(queue.site_id)
        stage = site.queue if site is not None else None
        queue.ahead.unordered = False
        if stage is None or not stage.orderers or queue.requisites:
            return
        waiting = list(queue.ahead)
        by_url = await self._database.read(page_rows.ids_by_url, waiting)
        queue.ahead.reorder([by_url[url] for url in stage.ordered(list(by_url))])

    async def _next_pages(self, queue: PageQueue, asked: int) -> list[int]:
        """Return the next unvisited pages of a queue; packed ones become rows first."""
        while True:
            found = await self._database.read(
                unvisited.next_pages,
                queue.host_id,
                queue.site_id,
                asked,
                requisites=queue.requisites,
            )
            site = self._state.sites.get(queue.site_id)
            if not found.unpack or site is None:
                return found.page_ids
            portion = Portion(
                queue.host_id,
                queue.site_id,
                site.importance if site.is_weighted else None,
                partial(self._in_force, site),
            )
            [made] = await self._database.write_each(packed.unpack_in_parts, [portion])
            if isinstance(made, Exception):
                raise made

    def _in_force(self, site: ActiveSite, url: str, depth: int) -> str:
        """Return the URL that a packed one has now: by the rules for canonical and for same URLs.

        As for links, a URL that another one stands for becomes no page.
        """
        url = canonical_urls.in_force(url, in_order=site.config.sort_query)
        dust = self._state.admission.dust
        return dust.stand_in(url, split_url(url).origin, site.site_id, depth) or url
