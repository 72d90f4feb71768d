"""Mark pages that left the part of a wiki that their site covers; visit those that return.

A copy that nobody updates any more must not look like the page as it is now. The mark is set in the
update of the part that lets the page leave, after other sites took the pages that they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from crawld.core.url import split_url
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import keys_of_titles
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.sources.mediawiki_scope import TitleScope
from crawld.store.engine.database import Database
from crawld.store.frontier import left_pages
from crawld.store.frontier.left_pages import PartPage

READ_AT_ONCE: Final = 1_000
"""Pages read in one query."""


async def mark_left_pages(
    state: CrawlState, database: Database, clock: Clock, only: frozenset[str] | None = None
) -> int:
    """Mark the pages that left their parts; return how many. Those that came back are visited.

    Args:
        only: titles that entered parts or left them; None: check all pages of all parts.
    """
    count = 0
    if only is None:
        whole = [site_id for site_id, site in state.sites.items() if not site.config.wiki_scoped]
        await database.write(left_pages.forget, whole)
    for (site_id, origin), part in state.wiki_scope.parts():
        site = state.sites.get(site_id)
        if site is None or not part.scoped:
            continue
        if only is not None:
            host = split_url(f"{origin}/").host
            for hashes in keys_of_titles(part, origin, only):
                pages = await database.read(left_pages.by_hash, site_id, host, hashes)
                count += await _mark(state, database, clock, site, part, pages)
            continue
        count += await _mark_all(state, database, clock, site, origin, part)
    return count


async def _mark_all(
    state: CrawlState,
    database: Database,
    clock: Clock,
    site: ActiveSite,
    origin: str,
    part: TitleScope,
) -> int:
    count, after, host = 0, 0, split_url(f"{origin}/").host
    while True:
        pages = await database.read(left_pages.list_held, site.site_id, host, after, READ_AT_ONCE)
        of_wiki = [page for page in pages if page.url.startswith(f"{origin}/")]
        count += await _mark(state, database, clock, site, part, of_wiki)
        if len(pages) < READ_AT_ONCE:
            return count
        after = pages[-1].page_id


async def _mark(
    state: CrawlState,
    database: Database,
    clock: Clock,
    site: ActiveSite,
    part: TitleScope,
    pages: Sequence[PartPage],
) -> int:
    left, slices = [], LoopSlices()
    for some in parts_of(pages):
        for page in some:
            is_in = page.seed or part.refusal(page.url) is None
            if is_in and page.left_at is not None:
                _visit(state, site, page, clock.now())
            elif not is_in and page.left_at is None:
                left.append(page.page_id)
        await slices.pause()
    if left:
        await database.write(left_pages.put, left, clock.now())
    return len(left)


def _visit(state: CrawlState, site: ActiveSite, page: PartPage, now: float) -> None:
    """Let a page that came back be visited as soon as edited pages are."""
    host = state.hosts.get(split_url(page.url).host)
    if host is not None and (queue := host.pages.get(site.site_id)) is not None:
        queue.add_hint(page.page_id, now, 1.0)
        host.hinted_at = trio.current_time()
        state.schedule.wake(host.slot)
