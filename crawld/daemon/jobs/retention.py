"""The `retention` job: store old bodies as deltas, delete copies, events and visits not kept.

Deltas and the deletion of copies both change the bases of deltas, so they are one job. Each slice
is read and encoded on a reader's thread, then written in one short transaction. The job rests as
long as it works, so it takes at most half of a core.
"""

from __future__ import annotations

import math
from typing import Final

import structlog
import trio

from crawld.core.display import plural
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import PacedReader
from crawld.store import visit_thinning
from crawld.store.frontier import event
from crawld.store.versions import delta, quota, retention
from crawld.store.versions.retention import RetentionRule

log = structlog.get_logger(__name__)

EVERY_S: Final = 300.0
"""How long a superseded body stays whole: the space of some minutes of crawling."""

FEW_COPIES, FEW_S = 64, 3600.0
"""While fewer copies are new, their former bodies stay whole for up to so long: each look costs the
same."""

DELETE_EVERY_S: Final = 3600.0
"""How often all pages are checked for copies to delete; a changed rule also starts a check."""

EVENTS_AT_ONCE: Final = 2000
"""Events deleted in one write: some 10 ms."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class RetentionJob(BackgroundWork):
    """The `retention` job."""

    name = "retention"
    every_s = EVERY_S

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._applied_rules: dict[int, RetentionRule] = {}
        self._applied_at = 0.0
        self._looked_at, self._next_look_at = 0, -math.inf
        self._enforced: list[tuple[int | None, int]] = []
        self._events, self._counted_at = math.inf, 0
        self._thinned_at = -math.inf
        self._deltas = self._saved_bytes = self._given_up = self._thinned = 0

    def has_work(self) -> bool:
        """Whether many copies are new, a limit may be exceeded, or a look is due in any case."""
        new, quotas = self._database.changes("version") - self._looked_at, self._quotas()
        return (
            new >= FEW_COPIES
            or trio.current_time() >= self._next_look_at
            or quotas != self._enforced
            or (bool(quotas) and new > 0)
            or self._are_rules_due(self._rules())
            or self._may_have_old_events()
            or self._keep_visit_days_due() is not None
        )

    def _may_have_old_events(self) -> bool:
        inserted = self._database.changes("event") - self._counted_at
        return self._events + inserted > self._config().store.keep_events

    def _keep_visit_days_due(self) -> float | None:
        """Return how long visits are kept, if old ones are wanted away and looked for again."""
        is_due = trio.current_time() - self._thinned_at >= DELETE_EVERY_S
        return self._config().store.keep_visit_days if is_due else None

    def _are_rules_due(self, rules: dict[int, RetentionRule]) -> bool:
        if not rules:
            return False
        since_s = self._clock.now() - self._applied_at
        return rules != self._applied_rules or since_s >= DELETE_EVERY_S

    async def run(self) -> str:
        """Encode new deltas, delete copies by the rules, then enforce the quotas."""
        deltas, given_up, thinned = self._deltas, self._given_up, self._thinned
        self._looked_at = self._database.changes("version")
        self._next_look_at = trio.current_time() + FEW_S
        await self._encode_deltas()
        rules, now = self._rules(), self._clock.now()
        if self._are_rules_due(rules):
            await self._delete_old(rules, now)
            self._applied_rules, self._applied_at = rules, now
        self._enforced = self._quotas()
        for site_id, max_bytes in self._enforced:
            await self._evict(site_id, max_bytes)
        if self._may_have_old_events():  # all rows are counted
            await self._delete_events()
        if (keep_days := self._keep_visit_days_due()) is not None:
            await self._thin_visits(now - keep_days * DAY_S)
        result = f"{self._deltas - deltas} deltas, {self._given_up - given_up} copies deleted"
        thinned = self._thinned - thinned
        return f"{result}, {plural(thinned, 'visit')} deleted" if thinned else result

    async def progress(self) -> dict[str, int]:
        """Return counts since the start, and how many versions wait."""
        return {
            "deltas": self._deltas,
            "saved_bytes": self._saved_bytes,
            "given_up": self._given_up,
            "visits": self._thinned,
            "waiting": await self._database.read(delta.count_pending),
        }

    def _rules(self) -> dict[int, RetentionRule]:
        rules = {
            site.site_id: RetentionRule(site.config.keep_versions, site.config.keep_days)
            for site in self._state.sites.values()
        }
        return {site_id: rule for site_id, rule in rules.items() if rule != RetentionRule()}

    def _quotas(self) -> list[tuple[int | None, int]]:
        """Return (site number, bytes) of each quota; None: the whole file."""
        found: list[tuple[int | None, int]] = [
            (site.site_id, site.config.max_bytes)
            for site in self._state.sites.values()
            if site.config.max_bytes is not None
        ]
        most = self._config().store.max_bytes
        return found if most is None else [*found, (None, most)]

    async def _evict(self, site_id: int | None, max_bytes: int) -> None:
        """Delete copies class by class until a quota is met."""
        used = await self._database.read(quota.used_bytes, site_id)
        for kind in quota.EVICTION_ORDER:
            while used > max_bytes:
                evicted = await self._database.write(quota.evict, kind, used - max_bytes, site_id)
                if not evicted.copies:
                    break
                self._given_up += evicted.copies
                log.info("copies_evicted", site=site_id, what=kind, copies=evicted.copies)
                used = await self._database.read(quota.used_bytes, site_id)
        if used > max_bytes:
            log.warning(
                "storage_quota_exceeded", site=site_id, used_bytes=used, max_bytes=max_bytes
            )

    async def _delete_events(self) -> None:
        keep, inserted = self._config().store.keep_events, self._database.changes("event")
        counted = await self._paced.read(event.count)
        self._events, self._counted_at = min(counted, keep), inserted
        beyond = counted - keep
        while beyond > 0:
            await self._database.write(event.delete_oldest, min(beyond, EVENTS_AT_ONCE))
            beyond -= EVENTS_AT_ONCE

    async def _thin_visits(self, before: float) -> None:
        self._thinned_at = trio.current_time()
        while (slice_ := await self._paced.read(visit_thinning.plan, before)) is not None:
            await self._database.write(visit_thinning.apply, slice_)
            self._thinned += len(slice_.visit_ids)

    async def _encode_deltas(self) -> None:
        while (slice_ := await self._paced.read(delta.plan)) is not None:
            for version_id in slice_.unreadable:
                log.error("body_damaged", version=version_id, hint="crawld doctor")
            await self._database.write(delta.apply, slice_)
            self._deltas += len(slice_.deltas)
            self._saved_bytes += slice_.saved_bytes

    async def _delete_old(self, rules: dict[int, RetentionRule], now: float) -> None:
        after = 0
        while (
            slice_ := await self._paced.read(retention.plan, rules, now, after=after)
        ) is not None:
            if slice_.versions:
                await self._database.write(retention.apply, slice_)
            after = slice_.up_to
            self._given_up += len(slice_.versions)
