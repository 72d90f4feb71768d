"""Give pages to another site, when they leave the part of a wiki that their own site covers.

A page has one site. If several sites name it, it belongs to the one that found it first, and the
others share it: they list it, and it is visited once. It goes to one of them as soon as its own
site no longer names it or is no longer configured.
"""

from __future__ import annotations

from array import array
from collections import defaultdict

import apsw

from crawld.core.page import PageState
from crawld.core.url import split_url
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import keys_of_titles
from crawld.daemon.pacing import LoopSlices
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import page_heir, page_share
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.page import PageRecord


async def hand_over(
    state: CrawlState, database: Database, page: PageRecord, heir: ActiveSite
) -> None:
    """Give a page to another site, in the file and in the queues."""
    importance = heir.importance(page.url)
    now = await database.write(page_heir.take_over, page.page_id, heir.site_id, importance)
    host = state.hosts.get(page.host)
    if host is None:
        return  # at start: the queues are filled later
    if (queue := host.pages.get(page.site_id)) is not None:
        queue.drop(page.page_id)
        queue.mark_recorded(page.page_id)
    if now is PageState.GONE and page.retry_at is not None:
        state.pages_of(host, heir.site_id).load_retry(page.page_id, page.retry_at)
    elif now in (PageState.DISCOVERED, PageState.VISITED, PageState.GONE):
        visited = now is not PageState.DISCOVERED
        state.pages_of(host, heir.site_id).resume({page.page_id: visited})
        state.schedule.wake(host.slot)


async def hand_over_members(
    state: CrawlState, database: Database, only: frozenset[str] | None = None
) -> int:
    """Give each site the pages of its part of a wiki that their own sites gave up; return how many.

    It shares those that another site still names.

    Args:
        only: titles that entered parts or left them; None: check all titles of all parts.
    """
    if len(await database.read(site_rows.list_sites, retired=True)) < 2:
        return 0
    count, slices, shared = 0, LoopSlices(), defaultdict[int, set[int]](set)
    checked = defaultdict[int, set[int]](set)
    for (site_id, origin), part in state.wiki_scope.parts():
        heir, of_others = state.sites.get(site_id), shared[site_id]
        if heir is None:
            continue
        name = split_url(f"{origin}/").host
        for hashes in keys_of_titles(part, origin, part.members if only is None else only):
            for page in await database.read(_pages_of_others, name, site_id, hashes):
                checked[site_id].add(page.page_id)
                if not state.admits(page, heir):
                    continue
                if not _is_free(state, page):
                    if part.scoped:
                        of_others.add(page.page_id)
                    continue
                await hand_over(state, database, page, heir)
                count += 1
            await slices.pause()
    if only is None:
        await database.write(page_share.replace_all, shared)
    else:
        await database.write(page_share.replace_checked, shared, checked)
    return count


def _pages_of_others(
    connection: apsw.Connection, host: str, site_id: int, url_hashes: array[int]
) -> list[PageRecord]:
    """Return those pages of other sites on a host; on a reader's thread."""
    page_ids = page_heir.list_of_others(connection, host, site_id, url_hashes)
    found = (page_rows.for_visit(connection, page_id) for page_id in page_ids)
    return [page for page in found if page is not None]


def _is_free(state: CrawlState, page: PageRecord) -> bool:
    """Whether the site of a page no longer names it."""
    owner = state.sites.get(page.site_id)
    return owner is None or not state.admits(page, owner)
