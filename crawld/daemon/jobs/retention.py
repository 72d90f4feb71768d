"""Keeps the past small: superseded bodies become deltas, old copies go as the sites' rules say.

Both change what bodies rest on, therefore they are one job. It works in slices: read and encode on
a reader's thread, then one short write; after each it rests as long as it worked, so that it never
takes more than half of a core from the crawl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from crawld.config.model import StoreConfig
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.pacing import paced_read
from crawld.store.engine.database import Database
from crawld.store.versions import delta, quota, retention
from crawld.store.versions.retention import RetentionRule

log = structlog.get_logger(__name__)

EVERY_S: Final = 300.0
"""How long a superseded body stays whole: the space of some minutes of crawling."""

THIN_EVERY_S: Final = 3600.0
"""How often all pages are looked at for copies to give up, unless a rule has changed."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class RetentionJob:
    """The job."""

    name = "retention"
    every_s = EVERY_S

    def __init__(
        self,
        crawl: CrawlState,
        database: Database,
        clock: Clock,
        *,
        settings: Callable[[], StoreConfig] = StoreConfig,
    ) -> None:
        """Take the crawl whose sites have the rules; `settings` returns the present ones."""
        self._settings = settings
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._thinned: dict[int, RetentionRule] = {}
        self._thinned_at = 0.0
        self._deltas = self._saved_bytes = self._given_up = 0

    async def run(self) -> str:
        """Catch up with the crawl, and give up what the rules do not keep."""
        deltas, given_up = self._deltas, self._given_up
        await self._compact()
        rules, now = self._rules(), self._clock.now()
        if rules and (rules != self._thinned or now - self._thinned_at >= THIN_EVERY_S):
            await self._thin(rules, now)
            self._thinned, self._thinned_at = rules, now
        for site_id, max_bytes in self._quotas():
            await self._evict(site_id, max_bytes)
        return f"{self._deltas - deltas} deltas, {self._given_up - given_up} copies given up"

    async def progress(self) -> dict[str, int]:
        """Return what was done since the start, and how many versions wait to be looked at."""
        return {
            "deltas": self._deltas,
            "saved_bytes": self._saved_bytes,
            "given_up": self._given_up,
            "waiting": await self._database.read(delta.count_pending),
        }

    def _rules(self) -> dict[int, RetentionRule]:
        rules = {
            site.site_id: RetentionRule(site.config.keep_versions, site.config.keep_days)
            for site in self._crawl.sites.values()
        }
        return {site_id: rule for site_id, rule in rules.items() if rule != RetentionRule()}

    def _quotas(self) -> list[tuple[int | None, int]]:
        """Return the quotas of sites, and that of the file (None)."""
        found: list[tuple[int | None, int]] = [
            (site.site_id, site.config.max_bytes)
            for site in self._crawl.sites.values()
            if site.config.max_bytes is not None
        ]
        most = self._settings().max_bytes
        return found if most is None else [*found, (None, most)]

    async def _evict(self, site_id: int | None, max_bytes: int) -> None:
        """Give up copies in the order of their classes until a quota is kept."""
        used = await self._database.read(quota.used_bytes, site_id)
        for kind in quota.EVICTION_ORDER:
            while used > max_bytes:
                went = await self._database.write(quota.evict, kind, used - max_bytes, site_id)
                if not went.copies:
                    break
                self._given_up += went.copies
                log.info("evicted", site=site_id, what=kind, copies=went.copies)
                used = await self._database.read(quota.used_bytes, site_id)
        if used > max_bytes:
            log.warning("quota_exceeded", site=site_id, used_bytes=used, max_bytes=max_bytes)

    async def _compact(self) -> None:
        while (slice_ := await paced_read(REST_FACTOR, self._database, delta.plan)) is not None:
            for version_id in slice_.unreadable:
                log.error("body_damaged", version=version_id, hint="crawld doctor")
            await self._database.write(delta.apply, slice_)
            self._deltas += len(slice_.deltas)
            self._saved_bytes += slice_.saved_bytes

    async def _thin(self, rules: dict[int, RetentionRule], now: float) -> None:
        after = 0
        while (
            slice_ := await paced_read(
                REST_FACTOR, self._database, retention.plan, rules, now, after=after
            )
        ) is not None:
            if slice_.versions:
                await self._database.write(retention.apply, slice_)
            after = slice_.up_to
            self._given_up += len(slice_.versions)
