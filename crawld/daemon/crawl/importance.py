"""Weigh the known pages of a site again after its weights or its file of views have changed.

New pages are weighed when they are admitted. The file holds by which rules the others were weighed,
so that an ordinary start weighs none; after a kill, all are weighed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.store.engine.database import Database
from crawld.store.frontier import importance
from crawld.store.frontier.importance import WeightedPage
from crawld.workers import Workers

log = structlog.get_logger(__name__)

BATCH: Final = 500
"""Pages weighed in one transaction."""


async def weigh_pages(
    state: CrawlState, database: Database, workers: Workers, site: ActiveSite
) -> int:
    """Weigh all pages of a site if its rules have changed; return how many weights changed."""
    digest = site.importance_rules
    if await database.read(importance.rules_of, site.site_id) == digest:
        return 0
    after = changed = 0
    while True:
        pages = await database.read(importance.list_weights, site.site_id, after=after, limit=BATCH)
        if not pages:
            break
        if not _is_current(state, site):
            return changed  # a reload weighs them by the new rules
        after = pages[-1].page_id
        found = await workers.run(_reweighed, site, pages)
        if found:
            changed += len(found)
            await database.write(
                importance.set_weights, [(page.page_id, weight) for page, weight in found]
            )
            for page, weight in found:
                state.set_weight(site.site_id, page.host, page.page_id, weight)
    await database.write(importance.set_rules, site.site_id, digest)
    log.info("pages_weighed", site=site.name, changed=changed)
    return changed


def _is_current(state: CrawlState, site: ActiveSite) -> bool:
    now = state.sites.get(site.site_id)
    return now is not None and now.views is site.views and now.weights == site.weights


def _reweighed(site: ActiveSite, pages: Sequence[WeightedPage]) -> list[tuple[WeightedPage, float]]:
    """Return the pages whose importance differs, with the new one."""
    weighed = [(page, site.importance(page.url)) for page in pages]
    return [(page, weight) for page, weight in weighed if weight != page.importance]
