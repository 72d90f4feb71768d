"""Keeps an eye on replicas: lets their pages rest, looks at a few again, takes verdicts back.

When to look again (the thesis leaves it open): a few random pages of each replica, first after
`first_sample_s`, then after as long as the verdict has stood, at last every `sample_every_s`: a new
verdict is the one that may be wrong. It is withdrawn once `LEAST_AGAINST` of a sample, and more
than half of it, show what the canonical host neither shows nor showed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from crawld.config.model import ReplicasConfig as Keys
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.pacing import paced_read
from crawld.store.engine.database import Database
from crawld.store.replica import (
    pages as replica_pages,
)
from crawld.store.replica import (
    pair as replica_pair,
)
from crawld.store.replica import (
    replica,
)
from crawld.store.replica import (
    sample as replica_sample,
)
from crawld.store.replica.pages import ResumedPage
from crawld.store.replica.replica import ReplicaRow

log = structlog.get_logger(__name__)

LEAST_AGAINST: Final = 3
"""Samples that must differ before a verdict is withdrawn."""

LEAST_FOR: Final = 3
"""Samples that must agree, all of them, before a replica may stand in for its canonical host; so
many are taken while a verdict is new."""

FRESH_LAG_S: Final = 60.0
"""The most such a replica may have been seen to lag: a minute, about how long we need to record."""

UNDECIDED_S: Final = 2 * 86_400.0
"""How long a sample waits for the canonical page to be visited after it."""

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""


class ReplicaSampling:
    """What happens to replicas once they are decided."""

    def __init__(
        self, crawl: Crawl, database: Database, clock: Clock, *, settings: Callable[[], Keys]
    ) -> None:
        """Take the crawl whose hosts they are; `settings` are the config's."""
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._settings = settings

    async def check(self, row: ReplicaRow) -> None:
        """Compare what was let go, withdraw or suspend, and let the next go when it is due."""
        now, settings = self._clock.now(), self._settings()
        awaited = bool(row.sampled_at)
        if awaited:
            samples = await self._database.read(
                replica_sample.compare_samples, row.host_id, row.canonical_id, row.sampled_at
            )
            told = [sample for sample in samples if sample.agrees is not None]
            against = sum(not sample.agrees for sample in told)
            if against >= LEAST_AGAINST and 2 * against > len(told):
                await self._withdraw(row, f"{against} of {len(told)} sampled pages differ", now)
                return
            whole = len(told) >= row.awaited
            if whole or now - row.sampled_at >= UNDECIDED_S:
                lags = [sample.lag_s for sample in told if sample.lag_s is not None]
                await self._database.write(
                    replica.put_sample,
                    row.host_id,
                    sampled=len(told),
                    agreed=len(told) - against,
                    lag_s=max(lags, default=None),
                )
                awaited = False
        # A page of a sample rests as soon as it was visited: once is enough.
        await self._suspend(row)
        if row.look_at <= now and not awaited:
            stood_s = now - row.since
            back = await self._database.write(
                replica_pages.start_sample,
                row.host_id,
                LEAST_FOR if stood_s < settings.sample_every_s else settings.sample_pages,
                now=now,
                look_at=now + next_sample_in_s(stood_s, settings),
            )
            self._enter(row.host, back)

    async def grant_leases(self, rows: list[ReplicaRow]) -> None:
        """Let replicas stand in for the hosts they copy that proved certain and fresh."""
        pairs = await self._database.read(replica_pair.list_pairs)
        certain = {
            frozenset((pair.one_id, pair.other_id)) for pair in pairs if pair.level == "certain"
        }
        self._crawl.leases.grant(
            row
            for row in rows
            if frozenset((row.host_id, row.canonical_id)) in certain and _is_fresh(row)
        )

    async def _suspend(self, row: ReplicaRow) -> None:
        """Let pages rest that may; a commit is waited for only where there are any."""
        after: int | None = replica_pages.BEFORE_FIRST
        while after is not None:
            part = (row.host_id, row.canonical_id, after)
            since = row.sampled_at
            some, after = await paced_read(
                REST_FACTOR,
                self._database,
                partial(replica_pages.can_suspend, visited_since=since),
                *part,
            )
            if some:
                await self._database.write(
                    partial(replica_pages.suspend, visited_since=since), *part
                )

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
        """Let all pages of a replica be visited again."""
        while back := await self._database.write(replica_pages.resume, host_id):
            self._enter(name, back)

    def _enter(self, name: str, back: list[ResumedPage]) -> None:
        host = self._crawl.state.hosts.get(name)
        if host is None:
            return
        for site_id in {page.site_id for page in back} & set(self._crawl.state.sites):
            pages = {page.page_id: page.visited for page in back if page.site_id == site_id}
            self._crawl.state.pages_of(host, site_id).resume(pages)
        self._crawl.schedule.wake(host.slot)


def next_sample_in_s(stood_s: float, settings: Keys) -> float:
    """Return when to look at a replica again whose verdict has stood for some time."""
    return min(max(stood_s, settings.first_sample_s), settings.sample_every_s)


def _is_fresh(row: ReplicaRow) -> bool:
    if row.status != "pruned" or row.lag_s is None:
        return False
    return row.agreed == row.sampled >= LEAST_FOR and row.lag_s <= FRESH_LAG_S
