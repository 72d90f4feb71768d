"""Keep the pages of replicas in line with their comparisons, and grant leases.

A search compares what was visited since the last one, and looks only at replicas with such pages,
or with a sample that is due. `resting.py` does so for one replica.
"""

from __future__ import annotations

from typing import Final

import structlog

from crawld.core.replica.agreement import LEAST_LAG_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.jobs.replicas.resting import REST_FACTOR, ReplicaResting
from crawld.daemon.pacing import PacedReader
from crawld.store.replica import due_pages, inputs, twin
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.due_pages import HostPage
from crawld.store.replica.replica import RESTING, ReplicaRow

log = structlog.get_logger(__name__)

MIN_AGREEING: Final = 3
"""Sampled pages that must agree, all of them, before a replica may be fetched instead of its
canonical host."""

VISITS_AT_ONCE: Final = 2_000
"""Visits read in one query."""

PAGES_AT_ONCE: Final = 2_000
"""Pages read in one query."""

FORGOTTEN_AT_ONCE: Final = 500
"""Comparisons deleted in one transaction."""

AUDIT_S: Final = 86_400.0
"""Time between two looks at all pages at rest of a replica: their twins may have been lost."""


_Audited = tuple[int, int, str]
"""host_id, canonical_id and status of a replica."""


class ReplicaSampling(BackgroundWork):
    """Keeps the pages of replicas in line with their comparisons."""

    def __init__(self, context: CrawlContext, leases: ReplicaLeases) -> None:
        super().__init__(context)
        self._leases = leases
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._resting = ReplicaResting(context)
        self._seen_visit = 0
        self._audited: dict[_Audited, float] = {}

    async def check(self, rows: list[ReplicaRow]) -> None:
        """Compare new visits of all replicas; suspend, resume and sample their pages."""
        resting = {row.host_id: row for row in rows if row.status in RESTING}
        now = self._clock.now()
        self._audited = {
            known: at
            for known, at in self._audited.items()
            if known[0] in resting and _audited(resting[known[0]]) == known
        }
        visited = await self._visited()
        visited_at: dict[int, list[int]] = {}
        for page in visited:
            visited_at.setdefault(page.host_id, []).append(page.page_id)
        deferred: dict[int, list[int]] = {}
        for page in await self._paced.read(due_pages.deferred_until, now, PAGES_AT_ONCE):
            deferred.setdefault(page.host_id, []).append(page.page_id)
        for host_id, row in resting.items():
            audited_at = self._audited.get(_audited(row))
            is_new = audited_at is None
            compared = 0
            if audited_at is None or now - audited_at >= AUDIT_S:
                compared = await self._audit(row, is_new=is_new)
            if not is_new:
                compared += await self._resting.compare(row, visited_at.get(host_id, []))
            if page_ids := deferred.get(host_id):
                await self._resting.release(row, page_ids, row.look_at)
            if compared or is_new or row.look_at <= now:
                await self._resting.settle(row)

    async def _visited(self) -> list[HostPage]:
        """Return pages of replicas visited since the last search, and those now decided.

        At first there are none: all pages of each replica are looked at then.
        """
        up_to = (await self._database.read(inputs.cursors)).visit_id
        after = self._seen_visit if self._seen_visit and self._audited else up_to
        found: list[HostPage] = []
        while after < up_to:
            last = min(after + VISITS_AT_ONCE, up_to)
            found += await self._paced.read(due_pages.visited_between, after, last)
            after = last
        self._seen_visit = up_to
        found += await self._paced.read(due_pages.undecided, PAGES_AT_ONCE)
        return list(dict.fromkeys(found))

    async def _audit(self, row: ReplicaRow, *, is_new: bool) -> int:
        """Compare all pages that were not, and resume those at rest that may not rest.

        Returns:
            How many pages were compared or resumed.
        """
        compared = 0
        if is_new:
            compared += await self._compare_each(row, due_pages.uncompared)
        compared += await self._compare_each(row, due_pages.restless)
        after = 0
        pair = (row.host_id, row.canonical_id)
        while page_ids := await self._paced.read(due_pages.restless, *pair, after, PAGES_AT_ONCE):
            await self._resting.resume(row, page_ids)
            compared += len(page_ids)
            after = page_ids[-1]
        self._audited[_audited(row)] = self._clock.now()
        return compared

    async def _compare_each(self, row: ReplicaRow, find: due_pages.FindPages) -> int:
        after = compared = 0
        while page_ids := await self._paced.read(
            find, row.host_id, row.canonical_id, after, PAGES_AT_ONCE
        ):
            compared += await self._resting.compare(row, page_ids)
            after = page_ids[-1]
        return compared

    async def grant_leases(self, rows: list[ReplicaRow]) -> None:
        """Grant leases to replicas that are certain and fresh."""
        certain = await self._database.read(replica_pair.certain_replicas)
        self._leases.grant(row for row in rows if row.host_id in certain and _is_reliable(row))

    async def resume(self, row: ReplicaRow) -> None:
        """Resume visits to all pages of a host that is no replica of this canonical host now."""
        await self._resting.resume_all(row)

    async def forget(self, host_id: int) -> None:
        """Delete the comparisons of a host that is no replica any more."""
        while await self._database.write(twin.forget, host_id, FORGOTTEN_AT_ONCE):
            pass


def _audited(row: ReplicaRow) -> _Audited:
    return row.host_id, row.canonical_id, row.status


def _is_reliable(row: ReplicaRow) -> bool:
    if row.status != "pruned" or row.lag_s is None:
        return False
    return row.agreed == row.sampled >= MIN_AGREEING and row.lag_s <= LEAST_LAG_S
