"""Give pages to another site, when they leave the part of a wiki that their own site covers.

A page has one site. If several sites name it, it belongs to the one that found it first, and goes
to another as soon as that one no longer names it or is no longer configured.
"""

from __future__ import annotations

from array import array

from crawld.core.page import PageState
from crawld.core.url import split_url, url_hash
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.page import PageRecord


async def hand_over(
    state: CrawlState, database: Database, page: PageRecord, heir: ActiveSite
) -> None:
    """Give a page to another site, in the file and in the queues."""
    importance = heir.importance(page.url)
    now = await database.write(frontier.take_over, page.page_id, heir.site_id, importance)
    host = state.hosts.get(page.host)
    if host is None:
        return  # at start: the queues are filled later
    if (queue := host.pages.get(page.site_id)) is not None:
        queue.drop(page.page_id)
        queue.mark_recorded(page.page_id)
    if now in (PageState.DISCOVERED, PageState.VISITED, PageState.GONE):
        visited = now is not PageState.DISCOVERED
        state.pages_of(host, heir.site_id).resume({page.page_id: visited})
        state.schedule.wake(host.slot)


async def hand_over_members(state: CrawlState, database: Database) -> int:
    """Give each site the pages of its part of a wiki that their own sites gave up; return how many.

    Titles of a site whose pages another site still names stay with that site.
    """
    if len(await database.read(site_rows.list_sites, retired=True)) < 2:
        return 0
    count, slices = 0, LoopSlices()
    for (site_id, origin), part in state.wiki_scope.parts():
        urls = [url for title in part.members if (url := part.rules.url_of(title, origin))]
        for some in parts_of(urls):
            hashes = array("q", map(url_hash, some))
            name = split_url(f"{origin}/").host
            for page_id in await database.read(frontier.list_of_others, name, site_id, hashes):
                page = await database.read(page_rows.for_visit, page_id)
                heir = state.sites.get(site_id)
                if page is None or heir is None or not _is_free(state, page):
                    continue
                if state.admits(page, heir):
                    await hand_over(state, database, page, heir)
                    count += 1
            await slices.pause()
    return count


def _is_free(state: CrawlState, page: PageRecord) -> bool:
    """Whether the site of a page no longer names it."""
    owner = state.sites.get(page.site_id)
    return owner is None or not state.admits(page, owner)
