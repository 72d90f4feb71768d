"""The core loop: a host's turn becomes a visit, a visit becomes facts in the file.

    turn: take a page ─▶ robots.txt at hand? ─no─▶ fetch it instead, the page goes back
               │ yes, allowed
               ▼
          fetch ─▶ the host rests from the answer on ─▶ conclude ─▶ record ─▶ new pages wake hosts

A turn ends with the answer; recording goes on behind it. No fetcher knows policy, SQL or robots:
they are asked for through `PageQueue`, `store` and `RobotsCache`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog
import trio

from crawld.config.model import HostGroupConfig
from crawld.core.page import Failure, Outcome, PageState
from crawld.core.robots import Robots
from crawld.core.url import parse
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.replica_fetch import ReplicaFetch
from crawld.daemon.crawl.visitor import Visitor
from crawld.daemon.fetch.meter import TrafficMeter
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.fetch.robots_fetch import RobotsFetch
from crawld.daemon.frontier.admission import Admission, Admitted, Referrer
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import LOOK_AHEAD, PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import WikiScope
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.schedule.host_groups import GroupState, group_of, groups_of
from crawld.daemon.schedule.schedule import Schedule
from crawld.daemon.schedule.slots import HostSlot
from crawld.daemon.visit.content import PRODUCT
from crawld.daemon.visit.feedback import VisitLearning
from crawld.daemon.visit.recorder import Recorder
from crawld.daemon.visit.soft_404 import Soft404Check
from crawld.errors import is_store_failure
from crawld.net.fetcher import Fetcher
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, refusal
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.frontier import Caps, NewPage
from crawld.store.frontier.page import PageRecord

log = structlog.get_logger(__name__)

MAX_PASSED_OVER = 100
"""Pages one turn looks at that need no request (excluded, removed) before it ends."""

MAX_DEFERRED = 4 * LOOK_AHEAD
"""Never-visited pages held in memory for a closed origin; with more its whole host is shut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """What the whole crawl is told once.

    Attributes:
        max_in_flight: the most turns at a time.
        gather_s: how long a visit may wait for others before it is committed.
        discovery_share: share of the turns for new pages while revisits are due.
        min_revisit_s: least time between two visits of a page.
        once: visit each page once and come back only to passing failures, a few times.
        address_wait_s: how long an address must wait after the start before its first request.
        requisite_share: share of the turns for requisites while pages want them too.
        confirm_pages: pages of each host fetched twice, to learn what changes by itself.
        check_share: share of the conditional requests sent without conditions.
    """

    max_in_flight: int
    gather_s: float
    discovery_share: float
    min_revisit_s: float
    once: bool = False
    address_wait_s: float = 0.0
    requisite_share: float = 0.0
    confirm_pages: int = 0
    check_share: float = 0.0


class Crawl:
    """All hosts under crawl. Serves `Schedule` as its `Turns`.

    Attributes:
        sites: the operator's sites by number.
        hosts: hosts by name.
        caps: how many pages the sites and hosts may have.
        wikis: what belongs to sites that live on wikis.
        robots_turns: asks for robots.txt in the turns of hosts.
        visitor: visits pages in the turns of hosts.
        capacity: lends the idle turns of replicas to the hosts they copy.
        groups: hosts that share limits.
        meter: what sites on metered lines took this month.
        line: what all requests of sites go over, and are counted by.
        absence: tells pages that are gone from those that seem so.
        learning: tells changes from noise, and true servers from liars.
        renamed: set when sites, and with them perhaps policies, were named anew.
        hint_sources: by (site_id, host_id) the hint sources that visits there are held against.
        audited: who is told how the next visit of a page ends, by page; it is sent no conditions.
    """

    def __init__(
        self,
        database: Database,
        fetcher: Fetcher,
        network: Connectivity,
        clock: Clock,
        settings: CrawlSettings,
    ) -> None:
        self.sites: dict[int, ActiveSite] = {}
        self.hosts: dict[str, HostState] = {}
        self.caps = Caps()
        self.settings = settings
        self.wikis = WikiScope()
        self.admission = Admission(self._known_robots, self.wikis)
        self.meter = TrafficMeter()
        self.line = MeteredFetcher(fetcher, database, clock, self.meter, self.reckon)
        self.robots = RobotsCache(
            database, self.line, clock, agent=PRODUCT, on_changed=self._readmit
        )
        self.recorder = Recorder(database, gather_s=settings.gather_s)
        self.schedule = Schedule(
            self, max_on_turn=settings.max_in_flight, address_wait_s=settings.address_wait_s
        )
        self.learning = VisitLearning(
            database, confirm_pages=settings.confirm_pages, check_share=settings.check_share
        )
        self.groups: tuple[GroupState, ...] = ()
        self.absence = Soft404Check(database, self.line, network, clock)
        self.visitor = Visitor(self, network, clock, database)
        self.capacity = ReplicaFetch(self, database, clock)
        self.robots_turns = RobotsFetch(
            self.schedule, self.robots, database, network, clock, self.enter_host
        )
        self.renamed = trio.Event()
        self.hint_sources: dict[tuple[int, int], tuple[int, ...]] = {}
        self.audited: dict[int, Callable[[Outcome], None]] = {}
        self._database = database
        self._network = network
        self._clock = clock
        self._active: set[int] = set()

    def _known_robots(self, origin: str) -> Robots | None:
        return self.robots.at_hand(origin)

    async def _readmit(self, origin: str) -> None:
        """Judge the URLs of an origin anew: its robots.txt is not what it was."""
        self.admission.forget()
        for page in await self._database.write(page_rows.readmit, origin):
            host = self.hosts[parse(origin + "/").host]
            pages = self.pages_of(host, page.site_id, requisites=page.requisite)
            if page.last_visit_at is None:
                pages.more = True
            else:
                pages.failed(page.page_id, self._clock.now())

    # --- sites and hosts -----------------------------------------------------------------------

    def set_sites(self, sites: Iterable[ActiveSite]) -> None:
        """Replace all sites; pages of sites that are gone wait in the file."""
        self.sites = {site.site_id: site for site in sites}
        self.meter.turn(self._clock.now())
        self.reckon()
        self.caps = Caps(
            per_site={
                key: site.config.max_pages
                for key, site in self.sites.items()
                if site.config.max_pages is not None
            },
            per_host={key: site.traps.max_pages_per_host for key, site in self.sites.items()},
            requisites={key: site.config.max_requisites for key, site in self.sites.items()},
        )
        self.admission.forget()
        for host in self.hosts.values():
            self._apply_rules(host)
            for pages in host.queues():
                pages.reconsider()
                if pages.site_id in self.sites and not pages.requisites:
                    pages.policy_name = self.sites[pages.site_id].policy
        self.renamed.set()
        self.schedule.wake_all()

    def reckon(self) -> None:
        """Find out anew which sites are under crawl: not paused, and within their limits."""
        self._active = {
            key for key, site in self.sites.items() if not (site.paused or self.meter.is_over(site))
        }

    def set_groups(self, configured: Sequence[HostGroupConfig]) -> None:
        """Replace the groups of hosts that share limits."""
        self.groups = groups_of(configured)
        for host in self.hosts.values():
            host.group = group_of(self.groups, host.slot)

    def _apply_rules(self, host: HostState) -> None:
        keys = {pages.site_id for pages in host.queues()}
        host.apply_rules([self.sites[key].rules for key in keys if key in self.sites])

    def enter_host(self, host_id: int, name: str, *, first_wait_s: float = 0.0) -> HostState:
        """Return a host, known from now on.

        Args:
            host_id: its number in the file.
            name: host name.
            first_wait_s: how long it must wait before its first turn.
        """
        host = self.hosts.get(name)
        if host is None:
            slot = self.schedule.host(name, first_wait_s=first_wait_s)
            host = self.hosts[name] = HostState(host_id, slot)
            host.group = group_of(self.groups, slot)
        return host

    def set_host_paused(self, name: str, *, paused: bool) -> None:
        """Pause or resume a host."""
        if (host := self.hosts.get(name)) is not None:
            host.paused = paused
            self.schedule.wake(host.slot)

    def pages_of(self, host: HostState, site_id: int, *, requisites: bool = False) -> PageQueue:
        """Return the pages of a site on a host, or its requisites there; none at first."""
        held = host.requisites if requisites else host.pages
        pages = held.get(site_id)
        if pages is None:
            ordered = site_id in self.sites and not requisites
            pages = PageQueue(
                site_id,
                host.host_id,
                self.sites[site_id].policy if ordered else "uniform",
                discovery_share=self.settings.discovery_share,
                min_revisit_s=self.settings.min_revisit_s,
                requisites=requisites,
            )
            held[site_id] = pages
            self._apply_rules(host)
        return pages

    async def plant(self, site: ActiveSite, urls: Iterable[str]) -> Admitted:
        """Add seeds to a site; returns when they are in the file."""
        admitted = self.admission.admit(site, urls, Referrer(None, 0, seed=True), self._clock.now())
        new = await self._database.write(frontier.discover, admitted.found, self.caps)
        if admitted.refusals:
            await self._database.write(refusal.record, admitted.refusals)
        self.enter_pages(new)
        return admitted

    def enter_pages(self, new: Iterable[NewPage], *, soon: bool = False) -> None:
        """Take pages that are in the frontier since a moment ago.

        Args:
            new: the pages.
            soon: whether the requisites among them are fetched before those that wait.
        """
        for page in new:
            host = self.enter_host(page.host_id, parse(page.url).host)
            pages = self.pages_of(host, page.site_id, requisites=page.requisite)
            pages.discovered([page.page_id], soon=soon and page.requisite)
            self.schedule.wake(host.slot)

    # --- Turns ---------------------------------------------------------------------------------

    async def locate(self, slot: HostSlot) -> str | None:
        """Return the address of the host."""
        return await self._network.locate(slot.host)

    def address_delay_s(self, slot: HostSlot) -> float:
        """Return the least time between two requests to the address of the host."""
        return self.hosts[slot.host].rules.effective_address_delay_s

    def wanted_at(self, slot: HostSlot) -> float | None:
        """Return the instant (trio clock) at which the host wants and may have a turn."""
        host = self.hosts[slot.host]
        if host.paused or (host.group is not None and host.group.full(slot)):
            return None
        wanted_at = host.wanted_at(self._clock.now(), self._active)
        lent_at = self.capacity.wanted_at(host, self._active)
        own_at = math.inf if wanted_at is None else self._clock.to_monotonic(wanted_at)
        at = own_at if lent_at is None else min(own_at, lent_at)
        return None if at == math.inf else max(at, host.open_at(self._clock))

    def ticket_at(self, slot: HostSlot) -> float | None:
        """Return the instant at which the host may be asked for something that is no page of its.

        A robots.txt that cannot be had shuts off the pages of the host, not the host.
        """
        host = self.hosts[slot.host]
        if host.paused or (host.group is not None and host.group.full(slot)):
            return None
        return max(slot.next_at, host.rested_at(self._clock))

    def ended(self, slot: HostSlot) -> None:
        """Let another host of a group have the turn that one has ended."""
        host = self.hosts.get(slot.host)
        if host is not None and host.group is not None:
            for other in host.group.waiting():
                self.schedule.wake(other)

    async def turn(self, slot: HostSlot) -> None:
        """Visit one page, or fetch the robots.txt that must be known first.

        A bug that a page or a robots.txt brings out ends this turn alone, not the crawl of all the
        others: the host rests as after a failure, and the page until the next start.
        """
        host = self.hosts[slot.host]
        try:
            await self._turn(host, slot)
        except Exception as error:
            if is_store_failure(error):
                raise  # nothing can be recorded any more
            log.exception("turn_failed", host=slot.host)
            host.troubled(self._clock.now(), None)
            host.spaced(trio.current_time())

    async def _turn(self, host: HostState, slot: HostSlot) -> None:
        if slot.address is None and self._network.down:
            return
        for _ in range(MAX_PASSED_OVER):
            taken = await self._take(host)
            if taken is None:
                await self.capacity.turn(host, self._active)
                return
            pages, page, site = taken
            origin = parse(page.url).origin
            if self._deferred(host, pages, page.page_id, origin):
                continue
            robots = await self.robots.fresh(origin)
            if robots is None:
                pages.returned(page.page_id)
                await self.robots_turns.fetch(host, site, origin)
                return
            if robots.allowed(page.url):
                if (unheard := self.absence.wanted(origin)) is not None:
                    pages.returned(page.page_id)
                    await self._ask_for_absence(host, site, robots, unheard)
                    return
                try:
                    await self.visitor.visit(host, pages, page, site)
                except Exception as error:
                    error.add_note(f"at the visit of {page.url}")
                    raise
                return
            await self._exclude(pages, page)

    async def _ask_for_absence(
        self, host: HostState, site: ActiveSite, robots: Robots, url: str
    ) -> None:
        origin = parse(url).origin
        if robots.allowed(url):
            await self.absence.ask(host, site, origin, url)
        else:
            await self.absence.forbidden(origin)

    def _deferred(self, host: HostState, pages: PageQueue, page_id: int, origin: str) -> bool:
        """Put a page of a closed origin aside, so that those of the host's other origins go on."""
        closed_until = self.robots.closed_until(origin)
        if closed_until <= trio.current_time():
            return False
        if len(pages.held) < MAX_DEFERRED:
            pages.deferred(page_id, self._clock.to_wall(closed_until))
        else:
            pages.returned(page_id)
            host.shut_until = closed_until
        return True

    async def _take(self, host: HostState) -> tuple[PageQueue, PageRecord, ActiveSite] | None:
        """Take the next page that may be visited; others are left out until the rules change."""
        for _ in range(MAX_PASSED_OVER):
            await self._refill(host)
            share = self.settings.requisite_share
            taken = host.take(self._clock.now(), self._active, requisite_share=share)
            if taken is None:
                return None
            pages, page_id = taken
            page = self._database.look_up(page_rows.for_visit, page_id)
            site = self.sites.get(pages.site_id)
            if page is not None and page.requisite != pages.requisites:
                # It became a requisite after it was found as a page: it waits among those.
                pages.forgotten(page_id)
                pages.recorded(page_id)
                continue
            if page is not None and site is not None and self.in_scope(page, site):
                return pages, page, site
            pages.left_out(page_id)
        return None

    def in_scope(self, page: PageRecord, site: ActiveSite) -> bool:
        """Whether a page of the file may be visited for its site."""
        # Scope is asked again: a reload may have narrowed it since the page was found.
        if page.state in (PageState.EXCLUDED, PageState.SUSPENDED) or page.site_id != site.site_id:
            return False
        if page.requisite:
            return site.refuses_requisite(page.url, page.host) is None
        if page.seed:
            return True
        refused = site.scope.refusal(page.url, parse(page.url).host, page.depth)
        return refused is None and self.wikis.refusal(site, page.url) is None

    async def _refill(self, host: HostState) -> None:
        for pages in host.queues():
            if pages.wants_refill and pages.site_id in self._active:
                asked = LOOK_AHEAD + len(pages.held)
                found = await self._database.read(
                    frontier.list_discovered,
                    host.host_id,
                    pages.site_id,
                    asked,
                    requisites=pages.requisites,
                )
                pages.refill([page.page_id for page in found], asked=asked)

    async def _exclude(self, pages: PageQueue, page: PageRecord) -> None:
        pages.forgotten(page.page_id)
        await self._database.write(
            page_rows.set_state, page.page_id, PageState.EXCLUDED, Failure.ROBOTS
        )
        pages.recorded(page.page_id)

    # --- the end -------------------------------------------------------------------------------

    def held_back(self, within_s: float) -> bool:
        """Whether no page can be visited within so many seconds: a one-off mirror is done.

        The plain rest between two requests does not count, however long; a host whose back-off
        has grown beyond `within_s` is given up.
        """
        if self.schedule.on_turn or self.recorder.unrecorded or self.schedule.pauses:
            return False
        latest = trio.current_time() + within_s
        return all(self._is_held_back(host, latest, within_s) for host in self.hosts.values())

    def _is_held_back(self, host: HostState, latest: float, within_s: float) -> bool:
        led_to = self.robots_turns.led_to(host)
        wanted_at = self.ticket_at(led_to.slot) if led_to else self.wanted_at(host.slot)
        if wanted_at is None or wanted_at > latest:
            return True
        return host.backoff.level > 0 and host.delay_s() > host.base_delay_s() + within_s
