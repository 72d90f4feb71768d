"""Detect which origins are MediaWikis, from stored pages and without a request.

Only sites with `api = true` are checked. The result is stored, negative ones too, so that each
origin is checked at most once a day per site. A wiki that one site found serves all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from crawld.core.content import html
from crawld.core.units import DAY_S
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_sites import update_wiki_sites
from crawld.sources.mediawiki_site import find_api
from crawld.store.changes import wiki
from crawld.store.changes.wiki import SamplePage, WikiRow
from crawld.store.engine.database import Database
from crawld.store.versions import version

log = structlog.get_logger(__name__)

RECHECK_S = DAY_S
"""Pause before an origin that was not a wiki is checked again."""

SAMPLE_PAGES = 12
"""Pages read per host, those visited last."""

PAGES_OF_ORIGIN = 3
"""Of these, pages per origin."""

MAX_SEED_ORIGINS = 100
"""Origins of seeds checked per site; a list of seeds may name 50,000."""


async def find_wikis(
    state: CrawlState, database: Database, clock: Clock, analyser: Analyser
) -> list[WikiRow]:
    """Check hosts that were not checked lately; return every wiki whose API may be used."""
    detector = _Detector(database, clock, analyser)
    for site in _sites_with_api(state):
        for host in list(state.hosts.values()):
            if site.site_id in host.pages:
                samples = await database.read(
                    wiki.sample_pages, host.host_id, site.site_id, limit=SAMPLE_PAGES
                )
                await detector.check(site, samples)
        # The page that a seed names may belong to another site, even to one without the API.
        for origin in sorted(site.seed_origins)[:MAX_SEED_ORIGINS]:
            samples = await database.read(wiki.sample_origin, origin, limit=PAGES_OF_ORIGIN)
            await detector.check(site, samples)
    with_api = {site.site_id for site in _sites_with_api(state)}
    found = await update_wiki_sites(database, state.sites)
    return [row for row in found if row.api_url and with_api.intersection(row.site_ids)]


async def has_unseen_sites(state: CrawlState, database: Database) -> bool:
    """Whether a site with `api = true` has no stored page to check yet."""
    rows = await database.read(wiki.list_wikis)
    checked = {site_id for row in rows for site_id in row.site_ids}
    return any(site.site_id not in checked for site in _sites_with_api(state))


def _sites_with_api(state: CrawlState) -> list[ActiveSite]:
    return [site for site in state.sites.values() if site.config.api and not site.paused]


@dataclass(frozen=True, slots=True)
class _Detector:
    """Checks which origins show a wiki."""

    database: Database
    clock: Clock
    analyser: Analyser

    async def check(self, site: ActiveSite, samples: Sequence[SamplePage]) -> None:
        """Check the origins of some pages for a site, and let it join the wikis."""
        for origin_id in dict.fromkeys(sample.origin_id for sample in samples):
            row = await self.database.read(wiki.of_origin, origin_id)
            joined = row is not None and site.site_id in row.site_ids
            if row is not None and row.api_url and not joined:
                await self._record(site, origin_id, row.looked_at, row.api_url)
            recent = row is not None and self.clock.now() - row.looked_at < RECHECK_S
            if (row is not None and row.api_url) or (joined and recent):
                continue
            pages = [sample for sample in samples if sample.origin_id == origin_id]
            api_url = await self._find_api(pages[:PAGES_OF_ORIGIN])
            if api_url is not None and not site.trusts(api_url, pages[0].url):
                log.warning("wiki_api_on_foreign_domain", origin=pages[0].origin, api=api_url)
                api_url = None
            if api_url is not None:
                log.info("wiki_detected", origin=pages[0].origin, api=api_url)
            await self._record(site, origin_id, self.clock.now(), api_url)

    async def _record(
        self, site: ActiveSite, origin_id: int, at: float, api_url: str | None
    ) -> None:
        await self.database.write(wiki.record_detection, origin_id, site.site_id, at, api_url)

    async def _find_api(self, samples: Iterable[SamplePage]) -> str | None:
        """Return the API that stored pages name."""
        for sample in samples:
            api_url = await self._read_api(sample)
            if api_url is not None:
                return api_url
        return None

    async def _read_api(self, sample: SamplePage) -> str | None:
        size_bytes = self.database.look_up(version.body_bytes, sample.version_id)
        async with self.analyser.memory.copy(size_bytes) as memory:
            if memory is None:
                return None
            copy = await self.database.read(version.readable_copy, sample.version_id)
            if copy is None:
                return None
            find = partial(_api_of, url=sample.url)
            return await self.analyser.read_copy(find, copy.body, memory, url=sample.url)


def _api_of(body: bytes, url: str) -> str | None:
    return find_api(html.parse(body), url)
