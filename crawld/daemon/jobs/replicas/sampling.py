"""Keep the pages of replicas in line with their comparisons, and grant leases.

A search compares what was visited since the last one, and looks only at replicas with such pages,
or with a sample that is due. Pages at rest that a sitemap reports as changed are compared beside
the samples. `comparing.py` and `resting.py` do so for some of them together.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import structlog

from crawld.core.replica.agreement import LEAST_LAG_S
from crawld.core.replica.sampling import (
    RETURNS_S,
    ReportedPage,
    reported_to_sample,
    sampling_effort,
)
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.hints.delivery import is_indirect, trust_of
from crawld.daemon.jobs.replicas.comparing import ReplicaComparing
from crawld.daemon.jobs.replicas.resting import REST_FACTOR, Efforts, Release, ReplicaResting
from crawld.daemon.pacing import PacedReader
from crawld.store.changes import hint_source
from crawld.store.replica import due_pages, inputs, packed_twins, reported, twin
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.due_pages import HostPage
from crawld.store.replica.packed_twins import TwinBlock
from crawld.store.replica.replica import RESTING, ReplicaRow

log = structlog.get_logger(__name__)

MIN_AGREEING: Final = 3
"""Sampled pages that must agree, all of them, before a replica may be fetched instead of its
canonical host."""

VISITS_AT_ONCE: Final = 2_000
"""Visits read in one query."""

PAGES_AT_ONCE: Final = 2_000
"""Pages read in one query."""

CHECKED_PAGES: Final = 5_000
"""Pages of the replicas that are checked together."""

REPORTED_HINTS_AT_ONCE: Final = 2_000
"""Pages with a hint that are looked at in one query."""

FORGOTTEN_AT_ONCE: Final = 500
"""Comparisons deleted in one transaction."""

AUDIT_S: Final = DAY_S
"""Time between two looks at all pages at rest of a replica: their twins may have been lost."""


_Audited = tuple[int, int, str, str | None]
"""server_id, canonical_id, status and alternates of a replica."""


class ReplicaSampling(BackgroundWork):
    """Keeps the pages of replicas in line with their comparisons."""

    def __init__(self, context: CrawlContext, leases: ReplicaLeases) -> None:
        super().__init__(context)
        self._leases = leases
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._comparing = ReplicaComparing(context)
        self._resting = ReplicaResting(context)
        self._seen_visit = 0
        self._audited: dict[_Audited, float] = {}

    async def check(self, rows: list[ReplicaRow]) -> bool:
        """Compare new visits of all replicas; suspend, resume and sample their pages.

        Returns:
            Whether that may have changed a replica.
        """
        now = self._clock.now()
        visited = _by_host(await self._visited())
        deferred = _by_host(await self._paced.read(due_pages.deferred_until, now, PAGES_AT_ONCE))
        released = await self._compare_reported(rows, now)
        # What takes longer with more replicas runs in a thread.
        self._audited, concerned = await self._workers.run(
            _concerned, rows, self._audited, visited.keys() | deferred.keys(), now
        )
        returned = await self._paced.read(twin.returned_since, now - RETURNS_S)
        efforts = await self._workers.run(_efforts, rows, returned, now)
        for some in _together(concerned):
            await self._check(some, visited, deferred, efforts)
        return released or bool(concerned)

    async def _compare_reported(self, rows: Iterable[ReplicaRow], now: float) -> bool:
        """Resume pages that seem to have changed without their twins, by what a source reports.

        Returns:
            Whether there are any.
        """
        resting = {row.server_id: row for row in rows if row.status in RESTING}
        names = {row.slot_name for row in resting.values()}
        sources = {
            source.hint_source_id
            for source in await self._database.read(hint_source.list_sources)
            if source.host in names and not is_indirect(source.kind, trust_of(source))
        }
        found: dict[int, list[ReportedPage]] = {}
        after: int | None = 0 if sources else None
        while after is not None:
            pages, after = await self._paced.read(
                reported.reported, sources, after, REPORTED_HINTS_AT_ONCE
            )
            for server_id, page in pages:
                found.setdefault(server_id, []).append(page)
        releases = [
            Release(resting[server_id], page_ids, resting[server_id].look_at)
            for server_id, pages in found.items()
            if (page_ids := reported_to_sample(pages, now))
        ]
        await self._resting.release(releases)
        return bool(releases)

    async def _check(
        self,
        rows: Sequence[ReplicaRow],
        visited: Mapping[int, Sequence[int]],
        deferred: Mapping[int, Sequence[int]],
        efforts: Efforts,
    ) -> None:
        """Check some replicas, of which the pages of the small ones are in memory at once."""
        now = self._clock.now()
        new = [row for row in rows if _audited(row) not in self._audited]
        known = [row for row in rows if _audited(row) in self._audited]
        unaudited = [row for row in rows if self._is_unaudited(row, now)]
        changed = {row.server_id for row in new}
        await self._unpack(row for row in unaudited if row.status == "pruned")
        async for some in self._pages(new, due_pages.uncompared):
            changed |= set(await self._comparing.compare(some))
        async for some in self._pages(unaudited, due_pages.restless):
            changed |= set(await self._comparing.compare(some))
        async for some in self._pages(unaudited, due_pages.restless):
            for row, page_ids in some:
                await self._resting.resume(row, page_ids)
                changed.add(row.server_id)
        self._audited |= {_audited(row): now for row in unaudited}
        changed |= set(
            await self._comparing.compare(
                (row, visited[row.server_id]) for row in known if row.server_id in visited
            )
        )
        await self._resting.release(
            [
                Release(row, deferred[row.server_id], row.look_at)
                for row in rows
                if row.server_id in deferred
            ]
        )
        await self._resting.settle(
            [row for row in rows if row.server_id in changed or row.look_at <= now], efforts
        )

    async def _unpack(self, rows: Iterable[ReplicaRow]) -> None:
        """Make packed pages of replicas rows whose twin has a copy: rows can be deferred."""
        importance = {
            site_id: site.importance
            for site_id, site in self._state.sites.items()
            if site.is_weighted
        }
        for row in rows:
            last = 0
            await self._database.write(packed_twins.draw, row.server_id)
            while block_id := await self._paced.read(packed_twins.next_block, row.server_id, last):
                last = block_id
                block = TwinBlock(block_id, row.host, row.canonical_id, importance)
                [made] = await self._database.write_each(packed_twins.unpack_in_parts, [block])
                if isinstance(made, Exception):
                    raise made

    def _is_unaudited(self, row: ReplicaRow, now: float) -> bool:
        return _is_unaudited(row, self._audited, now)

    async def _pages(
        self, rows: Sequence[ReplicaRow], find: due_pages.FindPages
    ) -> AsyncIterator[list[tuple[ReplicaRow, list[int]]]]:
        """Yield pages of replicas, some of all of them at a time."""
        left = [(row, 0) for row in rows]
        while left:
            pairs = [(row.server_id, row.canonical_id, after) for row, after in left]
            found = await self._paced.read(due_pages.find_each, find, pairs, PAGES_AT_ONCE)
            yield [(row, page_ids) for (row, _), page_ids in zip(left, found, strict=False)]
            if sum(map(len, found)) < PAGES_AT_ONCE:
                return
            # The last replica that was read may have more.
            last = len(found) - 1
            left = [(left[last][0], found[last][-1]), *left[last + 1 :]]

    async def _visited(self) -> list[HostPage]:
        """Return pages of replicas to compare, since visits were made after the last search.

        Of the page, of its first twin, or of the twin whose visit decides.
        At first there are none: all pages of each replica are looked at then.
        """
        up_to = (await self._database.read(inputs.cursors)).visit_id
        after = self._seen_visit if self._seen_visit and self._audited else up_to
        found: list[HostPage] = []
        while after < up_to:
            last = min(after + VISITS_AT_ONCE, up_to)
            found += await self._paced.read(due_pages.visited_between, after, last)
            found += await self._paced.read(due_pages.first_twins_between, after, last)
            after = last
        self._seen_visit = up_to
        found += await self._paced.read(due_pages.undecided, PAGES_AT_ONCE)
        return list(dict.fromkeys(found))

    async def grant_leases(self, rows: list[ReplicaRow]) -> None:
        """Grant leases to replicas that are certain and fresh."""
        certain = await self._database.read(replica_pair.certain_replicas)
        self._leases.grant(row for row in rows if row.server_id in certain and _is_reliable(row))

    async def resume(self, row: ReplicaRow) -> None:
        """Resume visits to all pages of a host that is no replica of this canonical host now."""
        await self._resting.resume_all(row)

    async def forget(self, server_id: int) -> None:
        """Delete the comparisons of a host that is no replica any more."""
        while await self._database.write(twin.forget, server_id, FORGOTTEN_AT_ONCE):
            pass


def _concerned(
    rows: Sequence[ReplicaRow],
    audited: Mapping[_Audited, float],
    moved: Collection[int],
    now: float,
) -> tuple[dict[_Audited, float], list[ReplicaRow]]:
    """Return which replicas at rest were audited when, and those to look at.

    Args:
        moved: hosts of which pages were visited, or are due.
    """
    resting = {row.server_id: row for row in rows if row.status in RESTING}
    still = {
        known: at
        for known, at in audited.items()
        if known[0] in resting and _audited(resting[known[0]]) == known
    }
    concerned = [
        row
        for server_id, row in resting.items()
        if server_id in moved or row.look_at <= now or _is_unaudited(row, still, now)
    ]
    return still, concerned


def _efforts(rows: Iterable[ReplicaRow], returned: Collection[int], now: float) -> Efforts:
    """Return how much is sampled, by how often sections of such replicas returned."""
    observed, back = {False: 0.0, True: 0.0}, {False: 0, True: 0}
    for row in rows:
        one_machine = row.is_one_machine
        back[one_machine] += row.server_id in returned
        if row.status in RESTING:
            observed[one_machine] += min(max(0.0, now - row.since) / RETURNS_S, 1.0)
    return {
        one_machine: sampling_effort(
            observed[one_machine], back[one_machine], one_machine=one_machine
        )
        for one_machine in (False, True)
    }


def _is_unaudited(row: ReplicaRow, audited: Mapping[_Audited, float], now: float) -> bool:
    return now - audited.get(_audited(row), -math.inf) >= AUDIT_S


def _by_host(pages: Iterable[HostPage]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for page in pages:
        found.setdefault(page.server_id, []).append(page.page_id)
    return found


def _together(rows: Iterable[ReplicaRow]) -> Iterator[list[ReplicaRow]]:
    """Yield replicas that are checked together."""
    some: list[ReplicaRow] = []
    pages = 0
    for row in rows:
        if some and pages + row.pages > CHECKED_PAGES:
            yield some
            some, pages = [], 0
        some.append(row)
        pages += row.pages + 1
    if some:
        yield some


def _audited(row: ReplicaRow) -> _Audited:
    return row.server_id, row.canonical_id, row.status, row.alternates


def _is_reliable(row: ReplicaRow) -> bool:
    if row.status != "pruned" or row.lag_s is None:
        return False
    if not row.alone:
        return False  # the turns of a host are for all of its servers
    return row.agreed == row.sampled >= MIN_AGREEING and row.lag_s <= LEAST_LAG_S
