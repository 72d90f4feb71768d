"""The core loop: a host's turn becomes a visit, a visit becomes rows in the file.

    turn: take a page ─▶ robots.txt known? ─no─▶ fetch it instead, put the page back
               │ yes, allowed
               ▼
          visit: ask ─▶ read ─▶ judge ─▶ learn ─▶ record ─▶ new pages wake their hosts

A turn ends with the response; the visit is committed later. `page_selection.py` selects the page,
`visitor.py` makes the visit, and `state.py` holds sites and hosts.
"""

from __future__ import annotations

import math
from functools import partial

import structlog
import trio

from crawld.core.robots import Robots
from crawld.core.turn_order import Lane
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.page_profiles import PageProfiles
from crawld.daemon.crawl.page_requests import PageRequests
from crawld.daemon.crawl.page_selection import MAX_SKIPPED, PageSelection
from crawld.daemon.crawl.replica_fetch import ReplicaFetch
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.crawl.state import CrawlSettings, CrawlState
from crawld.daemon.crawl.visitor import Responder, Visitor
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.fetch.partial_bodies import PartialBodies
from crawld.daemon.fetch.request_hooks import RequestHooks
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.fetch.robots_fetch import RobotsFetch
from crawld.daemon.frontier.host import HostState
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.daemon.quarantine import Quarantine
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.schedule.schedule import Schedule
from crawld.daemon.schedule.slots import HostSlot
from crawld.daemon.visit.content import PRODUCT
from crawld.daemon.visit.feedback import VisitLearning
from crawld.daemon.visit.recorder import Recorder
from crawld.daemon.visit.response_hooks import ResponseHooks
from crawld.daemon.visit.soft_404 import Soft404Check
from crawld.errors import is_store_failure
from crawld.net.fetcher import Fetcher
from crawld.plugin_host.in_use import PluginsInUse
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)


class Crawl:
    """All hosts under crawl. Serves `Schedule` as its `Turns`.

    Attributes:
        schedule: the slots of all hosts.
        state: sites, hosts and page queues.
        fetcher: sends all requests of sites, and counts their bytes.
        robots: robots.txt rules by origin.
        robots_fetch: fetches robots.txt in the turns of hosts.
        learning: learns noise rules and trust in validators from visits.
        soft_404: detects pages that are gone although the server answers 200.
        leases: which replicas may stand in for the hosts they copy.
        replica_fetch: uses the idle turns of those replicas.
        profiles: how the pages of sites with request profiles are asked for.
    """

    def __init__(
        self,
        database: Database,
        fetcher: Fetcher,
        connectivity: Connectivity,
        clock: Clock,
        settings: CrawlSettings,
        analyser: Analyser,
        quarantine: Quarantine,
        profiles: PageProfiles,
        plugins: PluginsInUse,
        user_agent: str,
    ) -> None:
        self._clock = clock
        self._connectivity = connectivity
        self.schedule = Schedule(
            self, max_on_turn=settings.max_in_flight, address_open_at=settings.address_open_at
        )
        self._busy_host: HostState | None = None
        state = self.state = CrawlState(
            database, clock, settings, self.schedule, self._known_robots
        )
        self.fetcher = MeteredFetcher(
            fetcher,
            database,
            clock,
            state.traffic,
            state.rates,
            state.update_active,
            quarantine,
        )
        self.robots = RobotsCache(
            database,
            self.fetcher,
            clock,
            analyser,
            agent=PRODUCT,
            on_changed=state.readmit,
            max_bytes=settings.robots_bytes,
        )
        self.robots_fetch = RobotsFetch(
            self.schedule, self.robots, database, connectivity, clock, state.enter_host
        )
        self.recorder = Recorder(
            database,
            gather_s=settings.gather_s,
            max_bytes=settings.records_bytes,
            on_quiet_visit=state.count_quiet_visit,
        )
        self.learning = VisitLearning(
            database,
            confirm_pages=settings.confirm_pages,
            check_share=settings.check_share,
            first_copies=settings.analyse,
            once=settings.once,
            analyser=analyser,
        )
        self.soft_404 = Soft404Check(database, self.fetcher, connectivity, clock, analyser)
        self.leases = ReplicaLeases(state, database)
        self.visitor = Visitor(
            state,
            self.learning,
            self.soft_404,
            self.recorder,
            self.leases,
            connectivity,
            clock,
            database,
            analyser,
            quarantine,
            profiles,
            PageRequests(
                state,
                self.fetcher,
                PartialBodies(self.fetcher, database, clock),
                connectivity,
                user_agent,
                self._request_hooks(plugins, database),
            ),
            response_hooks=self._response_hooks(plugins, database, analyser),
        )
        self.profiles = profiles
        self.replica_fetch = ReplicaFetch(
            state, self.leases, self.visitor, self.robots, self.robots_fetch, database, clock
        )
        self._selection = PageSelection(state, self.robots, database, clock)

    def _request_hooks(self, plugins: PluginsInUse, database: Database) -> RequestHooks | None:
        """Return the request stage; None: no plug-in changes requests."""
        hooks = plugins.host.hooks("prepare_request")
        if not hooks:
            return None
        sites = partial(getattr, self.state, "sites")
        return RequestHooks(hooks, self._known_robots, sites, database, self._clock)

    def _response_hooks(
        self, plugins: PluginsInUse, database: Database, analyser: Analyser
    ) -> ResponseHooks | None:
        """Return the response stage; None: no plug-in reads responses."""
        if plugins.response is None:
            return None
        return ResponseHooks(plugins.response, self.learning.detector, database, analyser)

    def _known_robots(self, origin: str) -> Robots | None:
        return self.robots.in_memory(origin)

    # --- a turn --------------------------------------------------------------------------------

    async def turn(self, slot: HostSlot) -> None:
        """Visit one page, or fetch the robots.txt that must be known first.

        A bug that a page or a robots.txt triggers ends this turn alone: the host backs off as after
        a failure, and the page waits until the next start.
        """
        host = self.state.hosts[slot.host]
        self.state.known_hosts.asked(slot.host)
        try:
            await self._turn(host)
        except Exception as error:
            if is_store_failure(error):
                raise  # nothing can be recorded any more
            log.exception("turn_failed", host=slot.host)
            host.record_trouble(self._clock.now(), None)
            host.rest_from(trio.current_time())

    async def _turn(self, host: HostState) -> None:
        if host.slot.address is None and self._connectivity.down:
            return
        for _ in range(MAX_SKIPPED):
            task = await self._selection.take(host)
            if task is None:
                await self.replica_fetch.turn(host)
                return
            if self._selection.defer(host, task):
                continue
            page, origin = task.page, task.page.origin
            robots = await self.robots.fresh(origin)
            if robots is None:
                task.queue.put_back(page.page_id)
                await self.robots_fetch.fetch(host, task.site, origin, requisite=page.requisite)
                return
            if not robots.allowed(page.url):
                await self._selection.exclude(task)
                continue
            if (probe_url := self.soft_404.probe_wanted(origin)) is not None:
                task.queue.put_back(page.page_id)
                await self.soft_404.probe(host, task.site, robots, probe_url)
                return
            await self.visitor.visit(task, Responder(host, self.visitor))
            return

    # --- when a turn comes (`Turns`) -----------------------------------------------------------

    async def locate(self, slot: HostSlot) -> str | None:
        """Return the address of the host."""
        return await self._connectivity.locate(slot.host)

    async def has_moved(self, slot: HostSlot) -> bool:
        """Whether the name of a host leads to another address than when its turn was planned.

        The fetch would find that out, too, and ask an address that another host is asking.
        """
        if slot.address is None:
            return False
        address = await self.locate(slot)
        if address is None or address == slot.address:
            return False
        slot.address, slot.located_at = address, trio.current_time()
        return True

    def address_delay_s(self, slot: HostSlot) -> float:
        """Return the least time between two requests to the address of the host."""
        return self.state.hosts[slot.host].rules.effective_address_delay_s

    def wanted_at(self, slot: HostSlot) -> float | None:
        """Return when (trio clock) the host wants and may have a turn for a page; None: never."""
        host = self.state.hosts[slot.host]
        if host.paused or (host.group is not None and host.group.full(slot)):
            return None
        wanted_at = host.wanted_at(self._clock.now(), self.state.active)
        own_at = math.inf if wanted_at is None else self._clock.to_monotonic(wanted_at)
        lent_at = self.replica_fetch.wanted_at(host)
        at = own_at if lent_at is None else min(own_at, lent_at)
        if at == math.inf:
            return None
        return host.leave_turn(max(at, host.open_at(self._clock)), self.state.active)

    def ticket_at(self, slot: HostSlot) -> float | None:
        """Return when a request for something other than a page may use the host; None: not now.

        A robots.txt that cannot be fetched closes the pages of a host, not the host.
        """
        host = self.state.hosts[slot.host]
        if host.paused or (host.group is not None and host.group.full(slot)):
            return None
        return max(slot.next_at, host.rested_at(self._clock))

    def is_urgent(self, slot: HostSlot) -> bool:
        """Whether a page may be visited now whose copy a reader sees wrong."""
        host = self.state.hosts[slot.host]
        if not host.has_edited(self._clock.now(), self.state.active):
            return False
        wanted_at = self.wanted_at(slot)
        return wanted_at is not None and wanted_at <= max(trio.current_time(), slot.next_at)

    def turn_ended(self, slot: HostSlot) -> None:
        """Wake the other hosts of the group whose turn ended."""
        host = self.state.hosts.get(slot.host)
        if host is not None and host.group is not None:
            for other in host.group.waiting():
                self.schedule.wake(other)

    def lane(self, slot: HostSlot) -> Lane:
        """Return what the host waits for, where it shares a rate with others."""
        return self.state.hosts[slot.host].lane(self.state.active)

    async def slots_taken(self, slot: HostSlot) -> None:
        """Store how long the rates that a host shares are used up, if that is long."""
        await self.state.rates.slots_taken(slot)

    # --- the end of a one-off mirror -----------------------------------------------------------

    async def is_done(self, within_s: float) -> bool:
        """Whether no page becomes due within so many seconds; looks at the hosts in slices.

        The plain delay of a host does not count, however long; a host whose back-off exceeds
        `within_s` is ignored, and one where nobody is.
        """
        latest = trio.current_time() + within_s
        changes, slices = self.schedule.changes, LoopSlices()
        if self.state.known_hosts.after is not None:
            return False
        if self._is_busy() or not self._is_idle(self._busy_host, latest, within_s):
            return False
        for part in parts_of(list(self.state.hosts.values())):
            for host in part:
                if not self._is_idle(host, latest, within_s):
                    self._busy_host = host  # looked at first the next time
                    return False
            await slices.pause()
        return changes == self.schedule.changes and not self._is_busy()

    def _is_busy(self) -> bool:
        """Whether turns or records are under way, or no turn may be."""
        return bool(self.schedule.on_turn or self.recorder.unrecorded or self.schedule.pauses)

    def _is_idle(self, host: HostState | None, latest: float, within_s: float) -> bool:
        if host is None:
            return True
        target = self.robots_fetch.redirected_to(host)
        wanted_at = self.ticket_at(target.slot) if target else self.wanted_at(host.slot)
        if wanted_at is None or wanted_at > latest:
            return True
        if host.absence is not None and wanted_at > trio.current_time() + host.base_delay_s():
            return True
        return host.backoff.level > 0 and host.delay_s() > host.base_delay_s() + within_s
