"""The `plugin_pages` job: add pages that plug-ins name to the sites, as scope and robots allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
import trio

from crawld.core.url import canonicalize
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.errors import InvalidUrlError
from crawld.plugin_host.plugin import Hook
from crawld.plugin_host.queue_stage import found_urls

log = structlog.get_logger(__name__)

THREADS: Final = 2
"""Calls at once, abandoned ones included."""

DEPTH: Final = 0
"""Depth of pages that a plug-in names: like those of sitemaps they are no links."""

ADMITTED_AT_ONCE: Final = 500


class PluginPagesJob(BackgroundWork):
    """The `plugin_pages` job."""

    name = "plugin_pages"
    every_s = 600.0

    def __init__(self, context: CrawlContext, hooks: Sequence[Hook]) -> None:
        super().__init__(context)
        self._hooks = tuple(hooks)
        self._limiter = trio.CapacityLimiter(THREADS)
        self._named = self._admitted = 0

    async def run(self) -> str:
        """Ask each plug-in about each site, and add what is admitted."""
        self._named = self._admitted = 0
        for hook in self._hooks:
            for site in list(self._state.sites.values()):
                if hook.plugin.serves(site.name) and not site.paused:
                    await self._ask(hook, site)
        return f"{self._named} URLs named, {self._admitted} admitted"

    async def progress(self) -> dict[str, int]:
        """Return the result of the run so far."""
        return {"named": self._named, "admitted": self._admitted}

    async def _ask(self, hook: Hook, site: ActiveSite) -> None:
        began_at = trio.current_time()
        urls: list[str] | None = None
        with trio.move_on_after(hook.plugin.max_s):
            urls = await self._workers.run(
                found_urls, hook, site.name, limiter=self._limiter, abandon_on_cancel=True
            )
        if urls is None:
            hook.abandoned(site.name, trio.current_time() - began_at)
            return
        self._named += len(urls)
        await self._add(site, hook, _canonical(urls))

    async def _add(self, site: ActiveSite, hook: Hook, urls: Sequence[str]) -> None:
        source = Referrer(None, DEPTH)
        for start in range(0, len(urls), ADMITTED_AT_ONCE):
            part = urls[start : start + ADMITTED_AT_ONCE]
            self._admitted += len((await self._state.admit(site, part, source)).found)
        log.info("plugin_pages", plugin=hook.plugin.name, site=site.name, named=len(urls))


def _canonical(urls: Sequence[str]) -> list[str]:
    found = []
    for url in urls:
        try:
            found.append(canonicalize(url))
        except InvalidUrlError:
            continue
    return list(dict.fromkeys(found))
