"""Find the sitemaps, feeds, listings and event streams of each site, in the config and robots.txt.

Sitemaps come from the cached robots.txt files of the site's origins. One on a host of another
registrable domain is used only if the config names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from crawld.core.url import canonicalize, split_url
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.hints.documents import DocumentFetcher
from crawld.daemon.hints.events import EventStream
from crawld.daemon.hints.feeds import FeedSource, ListingSource
from crawld.daemon.hints.gap import GapSource
from crawld.daemon.hints.sitemaps import SitemapSource
from crawld.daemon.hints.source import AcceptPoll, Source, Stream
from crawld.errors import InvalidUrlError
from crawld.store.changes import hint_source
from crawld.store.changes.hint_source import SourceRow
from crawld.store.frontier import host as host_rows

log = structlog.get_logger(__name__)

MAX_SITEMAPS: Final = 100
"""Most sitemaps of one site: a robots.txt may name a thousand."""


class DocumentFinder(BackgroundWork):
    """Finds documents and streams that list changes."""

    def __init__(
        self,
        context: CrawlContext,
        robots: RobotsCache,
        documents: DocumentFetcher,
        accept: AcceptPoll,
    ) -> None:
        """Create a finder; `accept` stores results for sources other than the one polled."""
        super().__init__(context)
        self._robots = robots
        self._documents = documents
        self._accept = accept
        self._known: dict[int, SitemapSource] = {}
        self._named: dict[str, tuple[str, ...]] = {}

    async def find(self) -> Sequence[Source | Stream]:
        """Return every source that the config or a robots.txt names."""
        found: list[Source | Stream] = []
        for site in list(self._state.sites.values()):
            if site.paused:
                continue
            found += [await self._sitemap(site, url) for url in await self._sitemaps(site)]
            for url in site.config.feeds:
                row = await self._ensure(site, url, "feed")
                found.append(FeedSource(self._context, row, self._documents))
            for url in site.config.listings:
                row = await self._ensure(site, url, "listing")
                found.append(ListingSource(self._context, row, self._documents))
            if site.config.event_stream is not None:
                found.append(await self._stream(site, site.config.event_stream))
        # A site that is gone or paused must not keep a sitemap in memory.
        present = {source.row.hint_source_id for source in found}
        for number in self._known.keys() - present:
            del self._known[number]
        return [*found, *await self._gaps()]

    async def _gaps(self) -> list[GapSource]:
        """Return all gap sources, finished ones included."""
        rows = await self._database.read(hint_source.list_sources)
        return [
            GapSource(row, self._database, self._clock)
            for row in rows
            if row.kind == GapSource.kind and self._state.sites.keys() & row.site_ids
        ]

    async def _ensure(
        self, site: ActiveSite, url: str, kind: str, host: str | None = None
    ) -> SourceRow:
        """Return the source row: on the URL's host if the site has it, else on its first host."""
        own = sorted(site.own_hosts)
        name = host or split_url(url).host
        if host is None and name not in site.scope.hosts and own:
            name = own[0]
        known = self._database.look_up(hint_source.find, site.site_id, name, kind, url)
        if known is not None:
            return known
        now = self._clock.now()
        host_id = await self._database.write(host_rows.ensure, name, now)
        return await self._database.write(hint_source.ensure, site.site_id, host_id, kind, url, now)

    async def _sitemap(self, site: ActiveSite, url: str) -> SitemapSource:
        """Return the sitemap source, always the same object: it may be in the middle of a file."""
        row = await self._ensure(site, url, "sitemap")
        known = self._known.get(row.hint_source_id)
        if known is None:
            often = partial(self._ensure, site, url, "changefreq")
            known = SitemapSource(self._context, row, often, self._documents, self._accept)
            self._known[row.hint_source_id] = known
        return known

    async def _stream(self, site: ActiveSite, url: str) -> EventStream:
        hosts = [name for name in sorted(site.scope.hosts) if name in self._state.hosts]
        beside = {name: await self._ensure(site, url, "event_stream", name) for name in hosts}
        # Prefer the row with a cursor: an earlier host may have been found since.
        by_use = sorted(beside.values(), key=lambda row: row.cursor is None)
        first = next(iter(by_use), None) or await self._ensure(site, url, "event_stream")
        rows = beside or {first.host: first}
        return EventStream(self._context, first, rows, self._documents, self._accept)

    async def _sitemaps(self, site: ActiveSite) -> list[str]:
        named = list(site.config.sitemap_urls)
        if site.config.sitemaps:
            for origin in await self._origins(site):
                named += _trusted_sitemaps(await self._of_robots(origin), origin, site)
        return list(dict.fromkeys(named))[:MAX_SITEMAPS]

    async def _of_robots(self, origin: str) -> tuple[str, ...]:
        """Return the sitemaps of a robots.txt; while it is too old to be used, those it had."""
        robots = await self._robots.fresh(origin)
        if robots is not None:
            self._named[origin] = tuple(robots.sitemaps)
        return self._named.get(origin, ())

    async def _origins(self, site: ActiveSite) -> list[str]:
        origins: list[str] = []
        for host in list(self._state.hosts.values()):
            if site.site_id in host.pages and host.slot.host in site.scope.hosts:
                rows = self._database.look_up(host_rows.list_origins, host.host_id)
                await trio.lowlevel.checkpoint()
                origins += [origin for _, origin in rows]
        return origins


def _trusted_sitemaps(written: Iterable[str], origin: str, site: ActiveSite) -> Iterator[str]:
    for each in written:
        try:
            url = canonicalize(each, origin + "/")
        except InvalidUrlError:
            continue
        if site.trusts(url, origin + "/"):
            yield url
        else:
            log.warning("sitemap_on_foreign_domain", origin=origin, sitemap=url)
