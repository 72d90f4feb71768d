"""Replicas as capacity: the idle turn of a proven copy fetches a page of the host it copies.

    replica's turn, no page of its own ─▶ canonical host's turn taken? ─▶ the policy's next page,
    asked for under the replica's name ─▶ recorded as a visit of the canonical page

A replica has leave while the replicas job says so: a certain verdict, and samples that showed what
the canonical host showed, without lag. It keeps it by being right. The next visit of each page it
has shown is the canonical host's own; where that one differs, the page has changed since or the
copy lags, and the copy is asked once more at once: it must show the same by then. An answer that is
no good copy, or a text the page showed earlier, is not recorded and ends the leave too. What was
lost must be proved anew, by samples.

Everything is derived: a restart begins without leaves, and the job grants them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog
import trio

from crawld.core.page import Outcome
from crawld.core.url import parse
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.conclude import Visit
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.page import PageRecord
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import replica, sample
from crawld.store.replica.replica import ReplicaRow

if TYPE_CHECKING:
    from crawld.daemon.crawl.loop import Crawl

log = structlog.get_logger(__name__)

LOOKS: Final = 8
"""Pages of the canonical host a turn looks at for one that may be lent."""

REST_LEAST_S: Final = 0.1
"""Least rest after a turn that found no page to lend."""

MOST_UNCHECKED: Final = 100_000
"""Pages a replica may have shown without the canonical host's word since, 60 bytes each."""


@dataclass(slots=True, eq=False)
class _Leave:
    """The leave of one replica.

    Attributes:
        canonical: the host whose pages it may show.
        unchecked: pages shown that the canonical host has not shown since.
        doubted: pages the canonical host then showed otherwise: to be asked for again.
        idle_until: instant (trio clock) before which there was no page to lend.
    """

    canonical: HostState
    unchecked: set[int] = field(default_factory=set)
    doubted: list[int] = field(default_factory=list)
    idle_until: float = -math.inf


class ReplicaFetch:
    """Which hosts may stand in for which, and the turns they do it in."""

    def __init__(self, crawl: Crawl, database: Database, clock: Clock) -> None:
        """Grant nothing yet."""
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._leaves: dict[HostState, _Leave] = {}
        self._copies: dict[HostState, list[HostState]] = {}

    def grant(self, proven: Iterable[ReplicaRow]) -> None:
        """Give leave to these replicas and to no others; those that have it keep their record."""
        before, self._leaves = self._leaves, {}
        self._copies = {}
        for row in proven:
            host = self._crawl.hosts.get(row.host)
            canonical = self._crawl.hosts.get(row.canonical_host)
            if host is None or canonical is None:
                continue
            known = before.get(host)
            keeps = known is not None and known.canonical is canonical
            self._leaves[host] = known if known and keeps else _Leave(canonical)
            self._copies.setdefault(canonical, []).append(host)
            for site_id in canonical.pages:
                # From here on the politeness of that site binds the replica too.
                self._crawl.pages_of(host, site_id)
            self._crawl.schedule.wake(host.slot)

    def stands_in(self, name: str) -> bool:
        """Whether a host has leave to show pages of the host it copies."""
        host = self._crawl.hosts.get(name)
        return host in self._leaves

    def wanted_at(self, host: HostState, active: set[int]) -> float | None:
        """Return when (trio clock) a host may stand in for another; None: it has no leave or need.

        Args:
            host: any host.
            active: numbers of the sites under crawl.
        """
        leave = self._leaves.get(host)
        if leave is None or not self._is_well(leave.canonical):
            return None
        now = self._clock.now()
        lending = self._lending(leave.canonical, active)
        instants = [at for pages in lending if (at := pages.revisit_at(now)) is not None]
        if leave.doubted:
            instants.append(now)
        if not instants:
            return None
        return max(self._clock.to_monotonic(min(instants)), leave.idle_until)

    async def turn(self, host: HostState, active: set[int]) -> None:
        """Use the turn of a host that has no page to visit for the host it copies, if it may."""
        leave = self._leaves.get(host)
        if leave is None:
            return
        if not await self._use(host, leave, active):
            rest_s = max(host.delay_s(), REST_LEAST_S)
            leave.idle_until = trio.current_time() + rest_s

    def visited(self, canonical: HostState, page_id: int, outcome: Outcome) -> None:
        """Hear what a host showed of a page of its own."""
        for host in self._copies.get(canonical, ()):
            leave = self._leaves.get(host)
            if leave is None or page_id not in leave.unchecked:
                continue
            leave.unchecked.discard(page_id)
            if outcome is Outcome.CHANGED:
                leave.doubted.append(page_id)
                self._crawl.schedule.wake(host.slot)

    def wake_partners(self, host: HostState) -> None:
        """Look again at the hosts that a visit in the turn of a host may concern."""
        leave = self._leaves.get(host)
        canonical = host if leave is None else leave.canonical
        if canonical is not host:
            self._crawl.schedule.wake(canonical.slot)
        for copy in self._copies.get(canonical, ()):
            self._crawl.schedule.wake(copy.slot)

    def vouches(self, visit: Visit) -> bool:
        """Whether what a replica showed may be recorded as the page.

        A text that the page has shown before and shows no more is what a copy that lags would show.
        """
        outcome, finding = visit.judgement.outcome, visit.finding
        if outcome is not Outcome.CHANGED:
            return visit.judgement.good_copy
        if visit.first_copy or finding is None or finding.cleaned_digest is None:
            return False
        page_id, digest = visit.page.page_id, finding.cleaned_digest
        return not self._database.look_up(sample.has_shown, page_id, digest)

    async def end(self, host: HostState, why: str) -> None:
        """Take the leave of a replica away; samples must prove it fresh again."""
        if self._leaves.pop(host, None) is not None:
            log.warning("replica_lost_its_leave", host=host.slot.host, why=why)
            await self._database.write(replica.reset_samples, host.host_id)

    # --- a turn --------------------------------------------------------------------------------

    def _lending(self, canonical: HostState, active: set[int]) -> list[PageQueue]:
        sites = self._crawl.sites
        return [
            pages
            for site_id, pages in canonical.pages.items()
            if site_id in active and sites[site_id].config.use_replicas
        ]

    def _is_well(self, host: HostState) -> bool:
        """Whether a host is merely busy: one that asked for rest is not asked by another name."""
        rested = host.open_at(self._clock) <= trio.current_time()
        return rested and not host.paused and not host.backoff.level

    async def _use(self, host: HostState, leave: _Leave, active: set[int]) -> bool:
        """Ask for a page, or for robots.txt; return whether a request was sent."""
        if not self._is_well(leave.canonical):
            return False
        while leave.doubted:
            page_id = leave.doubted.pop(0)
            if (found := self._find(host, page_id)) is None:
                continue
            page, site, url = found
            allowed = await self._allowed(host, site, url)
            if allowed:
                await self._crawl.visitor.compare(host, page, site, url)
                return True
            if allowed is None:
                leave.doubted.insert(0, page_id)
                return True
        for pages in self._lending(leave.canonical, active):
            if await self._lend(host, leave, pages):
                return True
        return False

    async def _lend(self, host: HostState, leave: _Leave, pages: PageQueue) -> bool:
        passed: list[int] = []
        try:
            while len(passed) < LOOKS and len(leave.unchecked) < MOST_UNCHECKED:
                slot = leave.canonical.slot
                if slot.turn is None and not slot.queued and slot.next_at <= trio.current_time():
                    return False  # it is free itself
                page_id = pages.lend(self._clock.now())
                if page_id is None:
                    return False
                passed.append(page_id)
                if page_id in leave.unchecked or page_id in self._crawl.audited:
                    continue
                if (found := self._find(host, page_id)) is None:
                    continue
                page, site, url = found
                allowed = await self._allowed(host, site, url)
                if allowed is None:
                    return True
                if allowed:
                    passed.pop()
                    leave.unchecked.add(page_id)
                    await self._crawl.visitor.visit(host, pages, page, site, url=url)
                    return True
            return False
        finally:
            for page_id in passed:
                pages.returned(page_id)
            self._crawl.schedule.wake(leave.canonical.slot)

    def _find(self, host: HostState, page_id: int) -> tuple[PageRecord, ActiveSite, str] | None:
        """Return a page, its site and the URL of its resting copy on a replica."""
        page = self._database.look_up(page_rows.for_visit, page_id)
        site = self._crawl.sites.get(page.site_id) if page is not None else None
        if page is None or site is None or not self._crawl.in_scope(page, site):
            return None
        own = self._crawl.robots.at_hand(parse(page.url).origin)
        if own is None or not own.allowed(page.url):
            return None
        url = self._database.look_up(replica_pages.suspended_url, host.host_id, page.url)
        return None if url is None else (page, site, url)

    async def _allowed(self, host: HostState, site: ActiveSite, url: str) -> bool | None:
        """Return whether the replica's robots.txt allows a URL; None: the turn went to asking."""
        origin = parse(url).origin
        if self._crawl.robots.closed_until(origin) > trio.current_time():
            return False
        robots = await self._crawl.robots.fresh(origin)
        if robots is None:
            await self._crawl.robots_turns.fetch(host, site, origin)
            return None
        return robots.allowed(url)
