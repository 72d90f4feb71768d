"""Which origins are wikis: seen in pages that are stored already, at no request.

Only sites that say `api = true` are looked at. What a look came to is stored, also that an origin
is none, so that a thousand hosts cost one look a day each.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import structlog

from crawld.core.content import html
from crawld.core.url import parse, registrable_domain
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.sources.mediawiki_site import find_api
from crawld.store.changes import wiki
from crawld.store.changes.wiki import SamplePage, WikiRow
from crawld.store.engine.database import Database
from crawld.store.versions import version

log = structlog.get_logger(__name__)

LOOK_AGAIN_S = 86_400.0
"""An origin that was no wiki is looked at again after this."""

SAMPLE_PAGES = 12
"""Pages of a host that a look reads, those visited last."""

PAGES_OF_ORIGIN = 3
"""Of these, pages of one origin."""


async def find_wikis(crawl: CrawlState, database: Database, clock: Clock) -> list[WikiRow]:
    """Look at hosts that were not looked at lately, and return every wiki that may be asked."""
    rows = await database.read(wiki.list_wikis)
    known = {(row.site_id, row.origin_id): row for row in rows}
    for site in _permitting(crawl):
        for host in list(crawl.hosts.values()):
            if site.site_id in host.pages:
                await _look_at_host(database, clock, site, host.host_id, known)
    permitting = {site.site_id for site in _permitting(crawl)}
    found = await database.read(wiki.list_wikis)
    return [row for row in found if row.api_url and row.site_id in permitting]


async def has_unseen_sites(crawl: CrawlState, database: Database) -> bool:
    """Whether a site that permits it has shown no page yet by which a wiki could be told."""
    looked_at = {row.site_id for row in await database.read(wiki.list_wikis)}
    return any(site.site_id not in looked_at for site in _permitting(crawl))


def _permitting(crawl: CrawlState) -> list[ActiveSite]:
    return [site for site in crawl.sites.values() if site.config.api and not site.paused]


async def _look_at_host(
    database: Database,
    clock: Clock,
    site: ActiveSite,
    host_id: int,
    known: dict[tuple[int, int], WikiRow],
) -> None:
    samples = await database.read(wiki.sample_pages, host_id, site.site_id, limit=SAMPLE_PAGES)
    for origin_id in dict.fromkeys(sample.origin_id for sample in samples):
        row = known.get((site.site_id, origin_id))
        if row is not None and (row.api_url or clock.now() - row.looked_at < LOOK_AGAIN_S):
            continue
        pages = [sample for sample in samples if sample.origin_id == origin_id]
        api_url = await database.read(_seen_in, pages[:PAGES_OF_ORIGIN])
        if api_url is not None and not may_use_api(site, pages[0].url, api_url):
            log.warning("api_elsewhere", origin=pages[0].origin, api=api_url)
            api_url = None
        if api_url is not None:
            log.info("wiki_found", origin=pages[0].origin, api=api_url)
        await database.write(wiki.record_detection, site.site_id, origin_id, clock.now(), api_url)


def may_use_api(site: ActiveSite, page_url: str, api_url: str) -> bool:
    """Whether a page may send us to this API: on its own host, domain, or a host of the site."""
    there, here = parse(api_url).host, parse(page_url).host
    if there == here or there in site.scope.hosts:
        return True
    return registrable_domain(there) == registrable_domain(here)


def _seen_in(connection: apsw.Connection, samples: Iterable[SamplePage]) -> str | None:
    """Return the API that stored pages name; runs on a reader's thread, parsing included."""
    for sample in samples:
        body = version.read_body(connection, sample.version_id)
        if body and (api_url := find_api(html.parse(body), sample.url)):
            return api_url
    return None
