"""Let the pages of replicas rest that agree with their twins; resume, defer and sample the others.

Some replicas are settled together, since most have few pages: count their sections ─▶ decide them
─▶ suspend, defer, resume, visit soon, sample. `comparing.py` compares the pages before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.sections import SectionState
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.replicas import section_plan
from crawld.daemon.jobs.replicas.section_plan import PageMove, SectionPlan
from crawld.daemon.pacing import PacedReader, parts_of
from crawld.store.replica import due_pages, replica, twin
from crawld.store.replica import pages as replica_pages
from crawld.store.replica.pages import ResumedPage
from crawld.store.replica.replica import ReplicaRow
from crawld.store.replica.twin import TwinRow

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""

WRITTEN_AT_ONCE: Final = 200
"""Pages changed in one transaction, less than 20 ms."""

REPLICAS_AT_ONCE: Final = 100
"""Replicas changed in one transaction."""

UNVISITED_S: Final = 50 * DAY_S
"""Every deferred page is visited within this time; the visit itself may take some days more."""


Efforts = Mapping[bool, float]
"""The sampling effort of two names of one machine (True), and of all other replicas."""


class Release(NamedTuple):
    """Pages of a replica to resume until they are compared; the next sample is at `look_at`."""

    row: ReplicaRow
    page_ids: Sequence[int]
    look_at: float


class _Resumed(NamedTuple):
    """Pages that were resumed: by replica, and those whose twin rests now, by host."""

    by_server: dict[int, list[ResumedPage]]
    orphans: dict[str, list[ResumedPage]]


class ReplicaResting(BackgroundWork):
    """Suspends, defers, resumes and samples the pages of replicas."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)

    async def settle(self, rows: Sequence[ReplicaRow], efforts: Efforts) -> None:
        """Bring the states of all pages of replicas in line with the decisions on their sections.

        All pages of small replicas are in memory at once: give only some at a time.

        Args:
            efforts: by which factor more resting pages are sampled than usually.
        """
        now = self._clock.now()
        plans = [
            SectionPlan(row, now, self._rng.getrandbits(63), efforts[row.is_one_machine])
            for row in rows
        ]
        await self._count(plans)
        await self._move(plans)
        await self._ask(plans)
        await self.release(
            [Release(plan.row, plan.sample, plan.look_at) for plan in plans if plan.has_sample]
        )

    async def _count(self, plans: Sequence[SectionPlan]) -> None:
        """Count the pages of replicas by section, store how many agree, and decide."""
        place: section_plan.PagePlace | None = section_plan.START
        while place is not None:
            place = await self._paced.read(section_plan.count_pages, plans, place)
        settings = self._config().replicas
        await self._workers.run(
            section_plan.decide_all,
            plans,
            settings.sample_pages,
            settings.sample_every_s,
            abandon_on_cancel=True,
        )
        changed = [
            (plan, states)
            for plan in plans
            if (states := plan.changed_states()) or plan.has_recounted
        ]
        for part in parts_of(changed, REPLICAS_AT_ONCE):
            await self._database.write(_put_counts, part)

    async def _move(self, plans: Sequence[SectionPlan]) -> None:
        rows = {plan.row.server_id: plan.row for plan in plans}
        place: section_plan.PagePlace | None = section_plan.START
        while place is not None:
            moves, place = await self._paced.read(section_plan.find_moves, plans, place)
            for part in parts_of(moves, WRITTEN_AT_ONCE):
                now = plans[0].now
                visit_at = [now + self._rng.uniform(0.0, UNVISITED_S) for _ in part]
                resumed = await self._database.write(_put_moves, part, now, visit_at)
                for server_id, pages in resumed.by_server.items():
                    self._state.resume_pages(rows[server_id].slot_name, pages)
                for host, pages in resumed.orphans.items():
                    self._state.resume_pages(host, pages)

    async def _ask(self, plans: Sequence[SectionPlan]) -> None:
        """Let unvisited pages be visited soon that may let others of their section be deferred."""
        asked = {
            plan.row.slot_name: page_ids
            for plan in plans
            if (page_ids := [page for one in plan.decisions.values() for page in one.ask])
        }
        every = [page_id for page_ids in asked.values() for page_id in page_ids]
        site_of = await self._database.read(due_pages.unvisited_sites, every) if every else {}
        for name, page_ids in asked.items():
            host = self._state.hosts.get(name)
            if host is None:
                continue
            sites = {site_of[page_id] for page_id in page_ids if page_id in site_of}
            for site_id in sites & set(self._state.sites):
                first = [page_id for page_id in page_ids if site_of.get(page_id) == site_id]
                self._state.pages_of(host, site_id).add_new(first, soon=True)
            self._state.schedule.wake(host.slot)

    # --- moving ----------------------------------------------------------------------------------

    async def release(self, releases: Sequence[Release]) -> None:
        """Resume pages at rest until they are compared."""
        now = self._clock.now()
        parts = [
            Release(one.row, part, one.look_at)
            for one in releases
            for part in list(parts_of(one.page_ids, WRITTEN_AT_ONCE)) or [()]
        ]
        for some in _together(parts):
            resumed = await self._database.write(_release, some, now)
            for one, pages in zip(some, resumed, strict=True):
                self._state.resume_pages(one.row.slot_name, pages)

    async def resume(self, row: ReplicaRow, page_ids: Sequence[int]) -> None:
        """Resume visits to some pages of a replica."""
        for part in parts_of(page_ids, WRITTEN_AT_ONCE):
            resumed = await self._database.write(replica_pages.resume, part)
            self._state.resume_pages(row.slot_name, resumed)

    async def resume_all(self, row: ReplicaRow) -> None:
        """Resume visits to all pages of a replica."""
        while resumed := await self._database.write(replica_pages.resume_some, row.server_id):
            self._state.resume_pages(row.slot_name, resumed)


def _together(releases: Iterable[Release]) -> Iterator[list[Release]]:
    """Yield releases that are written in one transaction."""
    some: list[Release] = []
    pages = 0
    for one in releases:
        if some and (pages + len(one.page_ids) > WRITTEN_AT_ONCE or len(some) == REPLICAS_AT_ONCE):
            yield some
            some, pages = [], 0
        some.append(one)
        pages += len(one.page_ids)
    if some:
        yield some


def _put_counts(
    connection: apsw.Connection,
    changed: Sequence[tuple[SectionPlan, Mapping[str, SectionState]]],
) -> None:
    for plan, states in changed:
        replica.put_agreement(
            connection,
            plan.row.server_id,
            twins=plan.twins,
            agreeing=plan.agreeing,
            differing=plan.differing,
            root=plan.root,
        )
        if states:
            twin.put_sections(connection, plan.row.server_id, states)


def _put_moves(
    connection: apsw.Connection, moves: Sequence[PageMove], now: float, visit_at: Sequence[float]
) -> _Resumed:
    """Change the states of pages; return those resumed.

    A page that rests is no twin of others: those that rest under it are resumed, to be compared
    with another.

    Args:
        connection: the file.
        moves: the pages.
        now: time, Unix seconds.
        visit_at: for each page, when it is visited if it is deferred.
    """
    twin.put(
        connection,
        [
            TwinRow(
                move.page_id,
                move.server_id,
                move.twin_id,
                PageVerdict.DEFERRED,
                None,
                0.0,
                now,
                visit_at=at,
            )
            for move, at in zip(moves, visit_at, strict=True)
            if move.to == "defer"
        ],
    )
    resting = [move.page_id for move in moves if move.to != "return"]
    replica_pages.suspend(connection, resting)
    alone: dict[str, list[int]] = {}
    for page_id, host in replica_pages.orphans(connection, resting):
        alone.setdefault(host, []).append(page_id)
    returning: dict[int, list[int]] = {}
    for move in moves:
        if move.to == "return":
            returning.setdefault(move.server_id, []).append(move.page_id)
    return _Resumed(
        {
            server_id: replica_pages.resume(connection, page_ids)
            for server_id, page_ids in returning.items()
        },
        {host: replica_pages.resume(connection, page_ids) for host, page_ids in alone.items()},
    )


def _release(
    connection: apsw.Connection, releases: Sequence[Release], now: float
) -> list[list[ResumedPage]]:
    resumed = []
    for row, page_ids, look_at in releases:
        twin.release(connection, page_ids, now)
        resumed.append(replica_pages.resume(connection, page_ids) if page_ids else [])
        replica.start_sample(connection, row.server_id, len(page_ids), now=now, look_at=look_at)
    return resumed
