"""Fetch pages of a host in the idle turns of its leased replicas.

    replica's turn, no page of its own ─▶ canonical host's turn taken? ─▶ the policy's next page,
    requested under the replica's name ─▶ recorded as a visit of the canonical page

`replica_leases.py` grants and revokes the leases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import trio

from crawld.core.page import Outcome
from crawld.core.url import split_url
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.page_selection import PageTask
from crawld.daemon.crawl.replica_leases import Lease, ReplicaLeases
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.crawl.visitor import Responder, Visitor
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.fetch.robots_fetch import RobotsFetch
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.conclude import Visit
from crawld.daemon.visit.validators import RequestMode
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.page import PageRecord
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import sample
from crawld.store.replica.sample import STAND_IN_PREFIX
from crawld.store.visit import VisitRecord

MAX_LOOKS: Final = 8
"""Pages of the canonical host that one turn considers."""

MIN_REST_S: Final = 0.1
"""Shortest rest after a turn that found no page to fetch."""

MAX_UNCHECKED: Final = 100_000
"""Pages fetched from a replica and not yet checked at its canonical host; 60 bytes each."""

FROM_REPLICA: Final = RequestMode(from_replica=True)


class StandIn(Responder):
    """A replica that answers for its canonical host."""

    __slots__ = ("_fetch", "_url")

    def __init__(self, host: HostState, visitor: Visitor, url: str, fetch: ReplicaFetch) -> None:
        super().__init__(host, visitor)
        self._url = url
        self._fetch = fetch

    def request_mode(self, page: PageRecord, *, covered: bool) -> RequestMode:
        """Send no conditions: the validators held are those of the page's own origin."""
        return FROM_REPLICA

    def url(self, page: PageRecord) -> str:
        """Return the URL of the copy."""
        return self._url

    async def accepts(self, task: PageTask, visit: Visit, judged: Visit | None) -> bool:
        """Accept a good copy that does not lag; otherwise revoke the lease."""
        if judged is not None and self._fetch.is_fresh_copy(judged):
            return True
        task.queue.put_back(visit.page.page_id)
        await self._fetch.reject(self.host, self._url, visit)
        return False

    def adapt(self, record: VisitRecord) -> VisitRecord:
        """Name the replica, and drop its validators: they are not those of the page's origin."""
        return replace(
            record,
            fetched_host_id=self.host.host_id,
            detail=f"{STAND_IN_PREFIX}{self.host.slot.host}",
            etag=None,
            last_modified=None,
        )

    def recorded(self, page_id: int, outcome: Outcome) -> None:
        """Do nothing: only a visit of the canonical host checks replicas."""


class ReplicaFetch:
    """Uses the idle turns of leased replicas."""

    def __init__(
        self,
        state: CrawlState,
        leases: ReplicaLeases,
        visitor: Visitor,
        robots: RobotsCache,
        robots_fetch: RobotsFetch,
        database: Database,
        clock: Clock,
    ) -> None:
        self._state = state
        self._leases = leases
        self._visitor = visitor
        self._robots = robots
        self._robots_fetch = robots_fetch
        self._database = database
        self._clock = clock

    def wanted_at(self, host: HostState) -> float | None:
        """Return when (trio clock) a host may stand in for another; None: no lease or no need."""
        lease = self._leases.of(host)
        if lease is None or not self._is_available(lease.canonical):
            return None
        now = self._clock.now()
        queues = self._queues_of(lease.canonical)
        times = [at for queue in queues if (at := queue.revisit_at(now)) is not None]
        if lease.doubted:
            times.append(now)
        if not times:
            return None
        return max(self._clock.to_monotonic(min(times)), lease.idle_until)

    async def turn(self, host: HostState) -> None:
        """Use the turn of a host that has no page to visit, if it has a lease."""
        lease = self._leases.of(host)
        if lease is None:
            return
        if not await self._use_turn(host, lease):
            rest_s = max(host.delay_s(), MIN_REST_S)
            lease.idle_until = trio.current_time() + rest_s

    def is_fresh_copy(self, visit: Visit) -> bool:
        """Whether a replica's response may be recorded as a visit of the page.

        A replica that lags serves an earlier text of the page.
        """
        outcome, comparison = visit.judgement.outcome, visit.comparison
        if outcome is not Outcome.CHANGED:
            return visit.judgement.good_copy
        if visit.first_copy or comparison is None or comparison.cleaned_digest is None:
            return False
        page_id, digest = visit.page.page_id, comparison.cleaned_digest
        return not self._database.look_up(sample.has_shown, page_id, digest)

    async def reject(self, host: HostState, url: str, visit: Visit) -> None:
        """Revoke the lease of a replica whose response is not recorded."""
        await self._visitor.set_aside(host, visit)
        await self._leases.revoke(host, f"{visit.judgement.outcome}: {url}")
        self._leases.wake_partners(host)

    # --- a turn --------------------------------------------------------------------------------

    def _queues_of(self, canonical: HostState) -> list[PageQueue]:
        state = self._state
        return [
            queue
            for site_id, queue in canonical.pages.items()
            if site_id in state.active and state.sites[site_id].config.use_replicas
        ]

    def _is_available(self, host: HostState) -> bool:
        """Whether a host is only busy; one in back-off is not fetched through a replica either."""
        rested = host.open_at(self._clock) <= trio.current_time()
        return rested and not host.paused and not host.backoff.level

    async def _use_turn(self, host: HostState, lease: Lease) -> bool:
        """Request a page, or robots.txt; return whether a request was sent."""
        if not self._is_available(lease.canonical):
            return False
        while lease.doubted:
            page_id = lease.doubted.pop(0)
            if (found := self._find(lease, page_id)) is None:
                continue
            page, site, url = found
            allowed = await self._allowed(host, site, url)
            if allowed:
                await self._check(host, page, site, url)
                return True
            if allowed is None:
                lease.doubted.insert(0, page_id)
                return True
        for queue in self._queues_of(lease.canonical):
            if await self._fetch_copy(host, lease, queue):
                return True
        return False

    async def _fetch_copy(self, host: HostState, lease: Lease, queue: PageQueue) -> bool:
        skipped: list[int] = []
        try:
            while len(skipped) < MAX_LOOKS and len(lease.unchecked) < MAX_UNCHECKED:
                slot = lease.canonical.slot
                if slot.turn is None and not slot.queued and slot.next_at <= trio.current_time():
                    return False  # the canonical host can serve it itself
                page_id = queue.select(self._clock.now())
                if page_id is None:
                    return False
                skipped.append(page_id)
                if page_id in lease.unchecked or page_id in self._state.audits:
                    continue
                if (found := self._find(lease, page_id)) is None:
                    continue
                page, site, url = found
                allowed = await self._allowed(host, site, url)
                if allowed is None:
                    return True
                if allowed:
                    skipped.pop()
                    lease.unchecked.add(page_id)
                    task = PageTask(queue, page, site)
                    await self._visitor.visit(task, StandIn(host, self._visitor, url, self))
                    return True
            return False
        finally:
            for page_id in skipped:
                queue.put_back(page_id)
            self._state.schedule.wake(lease.canonical.slot)

    async def _check(self, host: HostState, page: PageRecord, site: ActiveSite, url: str) -> None:
        """Request a doubted page from a replica; revoke its lease if it still differs.

        Nothing is recorded: the page was just visited at its own host.
        """
        visit = await self._visitor.compare(host, page, site, url, FROM_REPLICA)
        if visit is not None and visit.judgement.outcome is not Outcome.UNCHANGED:
            await self._leases.revoke(host, f"{visit.judgement.outcome}: {url}")

    def _find(self, lease: Lease, page_id: int) -> tuple[PageRecord, ActiveSite, str] | None:
        """Return a page, its site and the URL of its resting copy on a replica."""
        page = self._database.look_up(page_rows.for_visit, page_id)
        site = self._state.sites.get(page.site_id) if page is not None else None
        if page is None or site is None or not self._state.in_scope(page, site):
            return None
        if site.profiles:
            return None  # a replica is asked as everybody asks, which brings another form
        own = self._robots.in_memory(split_url(page.url).origin)
        if own is None or not own.allowed(page.url):
            return None
        url = self._database.look_up(replica_pages.suspended_url, lease.server_id, page_id)
        return None if url is None else (page, site, url)

    async def _allowed(self, host: HostState, site: ActiveSite, url: str) -> bool | None:
        """Whether the replica's robots.txt allows a URL; None: the turn went to fetching it."""
        origin = split_url(url).origin
        if self._robots.closed_until(origin) > trio.current_time():
            return False
        robots = await self._robots.fresh(origin)
        if robots is None:
            await self._robots_fetch.fetch(host, site, origin)
            return None
        return robots.allowed(url)
