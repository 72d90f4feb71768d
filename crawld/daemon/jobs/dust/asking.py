"""Ask for visits of pages that are to be compared, through their queues like any other visit."""

from __future__ import annotations

from crawld.core.page import PageState
from crawld.core.revisit.due import AT_ONCE
from crawld.daemon.crawl.context import BackgroundWork
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.pacing import parts_of
from crawld.store.frontier import dust_page
from crawld.store.frontier.dust_page import SeenPage
from crawld.store.replica import pages as suspended_pages


class PageAsking(BackgroundWork):
    """Asks for visits of pages of an origin."""

    async def find(self, url: str, *, site_id: int, depth: int = 1) -> SeenPage | None:
        """Return the page of a URL, admitted if it is new; None: its site does not cover it."""
        page = self._database.look_up(dust_page.seen_page, url)
        site = self._state.sites.get(site_id)
        if page is None and site is not None:
            await self._state.admit(site, [url], Referrer(None, depth))
            page = self._database.look_up(dust_page.seen_page, url)
        return page

    def visit(self, host_name: str, page: SeenPage) -> None:
        """Let a page be visited in one of the next turns of its host."""
        host = self._state.hosts.get(host_name)
        if host is None or page.site_id not in self._state.sites:
            return
        queue = self._state.pages_of(host, page.site_id)
        if page.state is PageState.DISCOVERED:
            queue.add_new([page.page_id], soon=True)
        elif page.state is PageState.VISITED:
            queue.visit_until(page.page_id, AT_ONCE)
        self._state.schedule.wake(host.slot)

    async def resume(self, host_name: str, page_ids: list[int]) -> None:
        """Let hidden pages be visited again."""
        for some in parts_of(page_ids, suspended_pages.SLICE):
            resumed = await self._database.write(suspended_pages.resume, some)
            self._state.resume_pages(host_name, resumed)
