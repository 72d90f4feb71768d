"""Compare the pages of one replica with their twins, and let those rest that agree.

compare  pages visited since their last comparison ─▶ rows of `page_twin`
settle   count the sections and decide them ─▶ suspend, defer, resume, visit soon, sample
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import apsw

from crawld.core.replica.agreement import MANY_PATHS, PageVerdict
from crawld.core.replica.rest import next_sampling, pages_to_sample
from crawld.core.replica.sections import SectionTree
from crawld.core.revisit.due import AT_ONCE
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.replicas import section_plan
from crawld.daemon.jobs.replicas.section_plan import SectionPlan
from crawld.daemon.jobs.replicas.twin_texts import TwinTexts
from crawld.daemon.pacing import Pace, PacedReader
from crawld.store.replica import due_pages, replica, twin, twin_facts
from crawld.store.replica import pages as replica_pages
from crawld.store.replica.due_pages import UnvisitedTwin
from crawld.store.replica.pages import ResumedPage
from crawld.store.replica.replica import ReplicaRow
from crawld.store.replica.twin import ReleasedPage, TwinRow

T = TypeVar("T")

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""

WRITTEN_AT_ONCE: Final = 200
"""Pages changed in one transaction, less than 20 ms."""

UNVISITED_S: Final = 50 * 86_400.0
"""Every deferred page is visited within this time; the visit itself may take some days more."""

LEAST_SAMPLED: Final = 3
"""Pages of the first samples, so that a replica soon has enough results for a lease."""


class ReplicaResting(BackgroundWork):
    """Compares, suspends, defers, resumes and samples the pages of replicas."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._texts = TwinTexts(context)

    async def compare(self, row: ReplicaRow, page_ids: Sequence[int]) -> int:
        """Compare pages of a replica with their twins, and store the results; return how many."""
        origins = await self._database.read(
            replica_pages.origins_of_pair, (row.host_id, row.canonical_id)
        )
        compared = 0
        for part in _slices(page_ids, twin_facts.AT_ONCE):
            facts = await self._paced.read(twin_facts.twin_facts, part, row.canonical_id)
            rows: list[TwinRow] = []
            pace = Pace(REST_FACTOR)
            for one in facts:
                found = await self._texts.compare(one, origins, row.canonical_host)
                await pace.rest()
                if found is None:
                    continue
                rows.append(
                    TwinRow(
                        one.page.page_id,
                        row.host_id,
                        one.twin.page_id,
                        found.comparison.verdict,
                        found.digest,
                        one.page.last_visit_at,
                        self._clock.now(),
                        found.comparison.lag_s,
                    )
                )
            await self._store(row, rows)
            compared += len(rows)
        if compared:
            repeated = await self._paced.read(twin.repeated_pages, row.host_id, MANY_PATHS)
            for part in _slices(repeated, WRITTEN_AT_ONCE):
                await self._database.write(twin.mark_repeated, part)
        return compared

    async def _store(self, row: ReplicaRow, rows: list[TwinRow]) -> None:
        """Store comparisons; those of released pages are results of the sample."""
        released = await self._database.read(twin.released_pages, [one.page_id for one in rows])
        of_sample = [one for one in rows if one.page_id in released]
        sampled = [one for one in of_sample if not _waits_for_twin(one)]
        await self._database.write(_put_compared, row.host_id, rows, sampled)
        waiting = [released[one.page_id] for one in of_sample if _waits_for_twin(one)]
        self._visit_twins(row.canonical_host, waiting)

    def _visit_twins(self, canonical_host: str, waiting: Iterable[ReleasedPage]) -> None:
        """Let the twins of sampled pages be visited next, which decides the comparisons."""
        host = self._state.hosts.get(canonical_host)
        if host is None:
            return
        for page in waiting:
            if page.twin_site_id in self._state.sites:
                self._state.pages_of(host, page.twin_site_id).visit_until(page.twin_id, AT_ONCE)
        self._state.schedule.wake(host.slot)

    # --- deciding --------------------------------------------------------------------------------

    async def settle(self, row: ReplicaRow) -> None:
        """Bring the states of all pages of a replica in line with the decisions on its sections."""
        plan = await self._count(row)
        await self._workers.run(plan.decide, abandon_on_cancel=True)
        changed = {
            prefix: one.state
            for prefix, one in plan.decisions.items()
            if one.state != plan.tree.state_of(prefix)
        }
        if changed:
            await self._database.write(twin.put_sections, row.host_id, changed)
        await self._move(row, plan)
        await self._ask(row, plan)
        await self._sample(row, plan)

    async def _count(self, row: ReplicaRow) -> SectionPlan:
        """Count the pages of a replica by section, and store how many agree."""
        now = self._clock.now()
        states = await self._database.read(twin.section_states, row.host_id)
        plan = SectionPlan(
            row.host_id,
            row.canonical_id,
            row.status == "pruned",
            now,
            self._rng.getrandbits(63),
            SectionTree(row.host_id, now, states),
        )
        after: int | None = 0
        while after is not None:
            after = await self._paced.read(section_plan.count_compared, plan, after)
        after = 0
        while after is not None:
            after = await self._paced.read(section_plan.count_unvisited, plan, after)
        await self._database.write(
            replica.put_agreement,
            row.host_id,
            twins=plan.twins,
            agreeing=plan.agreeing,
            differing=plan.differing,
            root=plan.root,
        )
        return plan

    async def _move(self, row: ReplicaRow, plan: SectionPlan) -> None:
        for find in (section_plan.moves_of_compared, section_plan.moves_of_unvisited):
            after: int | None = 0
            while after is not None:
                moves = await self._paced.read(find, plan, after)
                for part in _slices(moves.suspend, WRITTEN_AT_ONCE):
                    await self._database.write(replica_pages.suspend, part)
                for unvisited in _slices(moves.defer, WRITTEN_AT_ONCE):
                    await self._database.write(
                        _defer, row.host_id, unvisited, self._visit_times(len(unvisited), plan.now)
                    )
                await self.resume(row, moves.resume)
                after = moves.after

    def _visit_times(self, count: int, now: float) -> list[tuple[float, float]]:
        """Return for each of some deferred pages the time now and when it is visited."""
        return [(now, now + self._rng.uniform(0.0, UNVISITED_S)) for _ in range(count)]

    async def _ask(self, row: ReplicaRow, plan: SectionPlan) -> None:
        """Let unvisited pages be visited soon that may let others of their section be deferred."""
        host = self._state.hosts.get(row.host)
        asked = [page_id for one in plan.decisions.values() for page_id in one.ask]
        if host is None or not asked:
            return
        found = await self._database.read(due_pages.unvisited_sites, asked)
        for site_id in set(found.values()) & set(self._state.sites):
            first = [page_id for page_id in asked if found.get(page_id) == site_id]
            self._state.pages_of(host, site_id).add_new(first, soon=True)
        self._state.schedule.wake(host.slot)

    async def _sample(self, row: ReplicaRow, plan: SectionPlan) -> None:
        """Release the pages of the next sample, and those that decide whether a section returns."""
        settings = self._config().replicas
        chosen = [page_id for one in plan.decisions.values() for page_id in one.recheck]
        look_at = row.look_at
        if look_at <= plan.now:
            sampling = next_sampling(plan.saved_per_day)
            count = min(sampling.pages, settings.sample_pages)
            if row.sampled < LEAST_SAMPLED:
                count = max(count, LEAST_SAMPLED)
            chosen += await self._workers.run(
                pages_to_sample, plan.resting, count, plan.seed, abandon_on_cancel=True
            )
            look_at = plan.now + min(sampling.interval_s, settings.sample_every_s)
        if chosen or look_at != row.look_at:
            await self.release(row, list(dict.fromkeys(chosen)), look_at)

    # --- moving ----------------------------------------------------------------------------------

    async def release(self, row: ReplicaRow, page_ids: Sequence[int], look_at: float) -> None:
        """Resume pages at rest until they are compared; the next sample is at `look_at`."""
        now = self._clock.now()
        for part in _slices(page_ids, WRITTEN_AT_ONCE):
            resumed = await self._database.write(_release, row.host_id, part, now)
            self._enqueue(row.host, resumed)
        await self._database.write(
            replica.start_sample, row.host_id, len(page_ids), now=now, look_at=look_at
        )

    async def resume(self, row: ReplicaRow, page_ids: Sequence[int]) -> None:
        """Resume visits to some pages of a replica."""
        for part in _slices(page_ids, WRITTEN_AT_ONCE):
            resumed = await self._database.write(replica_pages.resume, row.host_id, part)
            self._enqueue(row.host, resumed)

    async def resume_all(self, row: ReplicaRow) -> None:
        """Resume visits to all pages of a replica."""
        while resumed := await self._database.write(replica_pages.resume, row.host_id):
            self._enqueue(row.host, resumed)

    def _enqueue(self, name: str, resumed: list[ResumedPage]) -> None:
        host = self._state.hosts.get(name)
        if host is None or not resumed:
            return
        for site_id in {page.site_id for page in resumed} & set(self._state.sites):
            pages = {page.page_id: page.visited for page in resumed if page.site_id == site_id}
            self._state.pages_of(host, site_id).resume(pages)
        self._state.schedule.wake(host.slot)


def _waits_for_twin(row: TwinRow) -> bool:
    """Whether the next visit of the twin decides; a page that is behind waits for its own."""
    return row.verdict is PageVerdict.UNKNOWN and row.lag_s is None


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))


def _put_compared(
    connection: apsw.Connection, host_id: int, rows: list[TwinRow], sampled: list[TwinRow]
) -> None:
    twin.put(connection, rows)
    if not sampled:
        return
    lags = [one.lag_s for one in sampled if one.lag_s is not None]
    replica.put_sample(
        connection,
        host_id,
        sampled=len(sampled),
        agreed=sum(one.verdict is PageVerdict.AGREES for one in sampled),
        lag_s=max(lags, default=None),
    )


def _defer(
    connection: apsw.Connection,
    host_id: int,
    pages: Sequence[UnvisitedTwin],
    times: list[tuple[float, float]],
) -> None:
    twin.put(
        connection,
        (
            TwinRow(
                page.page_id,
                host_id,
                page.twin_id,
                PageVerdict.DEFERRED,
                None,
                0.0,
                now,
                visit_at=visit_at,
            )
            for page, (now, visit_at) in zip(pages, times, strict=True)
        ),
    )
    replica_pages.suspend(connection, [page.page_id for page in pages])


def _release(
    connection: apsw.Connection, host_id: int, page_ids: Sequence[int], now: float
) -> list[ResumedPage]:
    twin.release(connection, page_ids, now)
    return replica_pages.resume(connection, host_id, page_ids)
