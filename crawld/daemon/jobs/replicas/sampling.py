"""Suspend the pages of replicas and sample a few of them to check that they still match.

When to sample (the thesis leaves it open): first after `first_sample_s`, then at an age of the
verdict that doubles each time, at last every `sample_every_s`, since new verdicts are the doubtful
ones. A verdict is withdrawn when at least `MIN_DIFFERENT` pages of a sample, and more than half of
it, have content that the canonical host neither has nor had.
"""

from __future__ import annotations

from typing import Final

import structlog

from crawld.config.model import ReplicasConfig
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.pacing import PacedReader
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import pair as replica_pair
from crawld.store.replica import replica
from crawld.store.replica import sample as replica_sample
from crawld.store.replica.pages import ResumedPage
from crawld.store.replica.replica import ReplicaRow

log = structlog.get_logger(__name__)

MIN_DIFFERENT: Final = 3
"""Pages that must differ before a verdict is withdrawn."""

MIN_AGREEING: Final = 3
"""Pages of a sample that must agree, all of them, before a replica may be fetched instead of its
canonical host; also the size of samples while a verdict is new."""

MAX_LAG_S: Final = 60.0
"""Largest observed lag of such a replica: one minute, about as long as a commit may take."""

MAX_WAIT_S: Final = 2 * 86_400.0
"""How long a sample waits for a later visit of the canonical page."""

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""


class ReplicaSampling(BackgroundWork):
    """Suspends and samples the pages of replicas."""

    def __init__(self, context: CrawlContext, leases: ReplicaLeases) -> None:
        super().__init__(context)
        self._leases = leases
        self._paced = PacedReader(context.database, REST_FACTOR)

    async def check(self, row: ReplicaRow) -> None:
        """Judge the last sample, withdraw or suspend, and start the next sample when it is due."""
        now, settings = self._clock.now(), self._config().replicas
        awaited = bool(row.sampled_at)
        if awaited:
            samples = await self._database.read(
                replica_sample.compare_samples, row.host_id, row.canonical_id, row.sampled_at
            )
            judged = [sample for sample in samples if sample.agrees is not None]
            different = sum(not sample.agrees for sample in judged)
            if different >= MIN_DIFFERENT and 2 * different > len(judged):
                await self._withdraw(row, f"{different} of {len(judged)} sampled pages differ", now)
                return
            complete = len(judged) >= row.awaited
            if complete or now - row.sampled_at >= MAX_WAIT_S:
                lags = [sample.lag_s for sample in judged if sample.lag_s is not None]
                await self._database.write(
                    replica.put_sample,
                    row.host_id,
                    sampled=len(judged),
                    agreed=len(judged) - different,
                    lag_s=max(lags, default=None),
                )
                awaited = False
        # A sampled page is suspended again after one visit.
        await self._suspend(row)
        if row.look_at <= now and not awaited:
            age_s = now - row.since
            resumed = await self._database.write(
                replica_pages.start_sample,
                row.host_id,
                MIN_AGREEING if age_s < settings.sample_every_s else settings.sample_pages,
                seed=self._rng.getrandbits(64),
                now=now,
                look_at=now + next_sample_in_s(age_s, settings),
            )
            self._enqueue(row.host, resumed)

    async def grant_leases(self, rows: list[ReplicaRow]) -> None:
        """Grant leases to replicas that are certain and fresh."""
        pairs = await self._database.read(replica_pair.list_pairs)
        certain = {
            frozenset((pair.one_id, pair.other_id)) for pair in pairs if pair.level == "certain"
        }
        self._leases.grant(
            row
            for row in rows
            if frozenset((row.host_id, row.canonical_id)) in certain and _is_reliable(row)
        )

    async def _suspend(self, row: ReplicaRow) -> None:
        """Suspend pages in slices; write only where there are any."""
        after: int | None = replica_pages.BEFORE_FIRST
        while after is not None:
            part = (row.host_id, row.canonical_id, after)
            since = row.sampled_at
            some, after = await self._paced.read(
                replica_pages.can_suspend, *part, visited_since=since
            )
            if some:
                await self._database.write(replica_pages.suspend, *part, visited_since=since)

    async def _withdraw(self, row: ReplicaRow, reason: str, now: float) -> None:
        await self.resume(row.host_id, row.host)
        await self._database.write(
            replica.put_replica,
            row.host_id,
            row.canonical_id,
            "withdrawn",
            reason,
            now=now,
            look_at=0.0,
        )
        log.warning("replica_withdrawn", host=row.host, why=reason)

    async def resume(self, host_id: int, name: str) -> None:
        """Resume visits to all pages of a replica."""
        while resumed := await self._database.write(replica_pages.resume, host_id):
            self._enqueue(name, resumed)

    def _enqueue(self, name: str, resumed: list[ResumedPage]) -> None:
        host = self._state.hosts.get(name)
        if host is None:
            return
        for site_id in {page.site_id for page in resumed} & set(self._state.sites):
            pages = {page.page_id: page.visited for page in resumed if page.site_id == site_id}
            self._state.pages_of(host, site_id).resume(pages)
        self._state.schedule.wake(host.slot)


def next_sample_in_s(age_s: float, settings: ReplicasConfig) -> float:
    """Return the time until the next sample of a verdict of this age, seconds."""
    return min(max(age_s, settings.first_sample_s), settings.sample_every_s)


def _is_reliable(row: ReplicaRow) -> bool:
    if row.status != "pruned" or row.lag_s is None:
        return False
    return row.agreed == row.sampled >= MIN_AGREEING and row.lag_s <= MAX_LAG_S
