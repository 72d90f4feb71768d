"""The state of the crawl: its sites, hosts and page queues, and the limits they share.

Everything here is derived from the file and the config. Nothing here sends a request or decides
whose turn it is; that is `loop.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from crawld.config.model import Config
from crawld.core.page import Outcome, PageState
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.core.revisit.registry import FACTORIES
from crawld.core.url import split_url
from crawld.core.url_growth import UrlGrowth
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.known_hosts import KnownHosts
from crawld.daemon.crawl.shared_rates import SharedRates
from crawld.daemon.fetch.metered_fetcher import TrafficMeter
from crawld.daemon.fetch.page_forms import PageForms
from crawld.daemon.fetch.spellings import AskedSpellings
from crawld.daemon.frontier.admission import Admission, Admitted, KnownRobots, Referrer
from crawld.daemon.frontier.domain_hosts import DomainHosts
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import WikiScope
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.daemon.schedule.host_groups import GroupState, group_of, groups_of
from crawld.daemon.schedule.schedule import Schedule
from crawld.daemon.visit.kept_texts import KeptTexts
from crawld.memory import MIB
from crawld.plugins import PolicyFactory
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, refusal
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.caps import PACKED, Caps, NewPage
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import DEFAULT_PACKING, Packing
from crawld.store.frontier.page import PageRecord
from crawld.store.frontier.refusal import Refusal
from crawld.store.replica.pages import ResumedPage
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.visit import VisitRecord

FEW_PAGES: Final = 64
"""New pages of a visit that are queued at once, in about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """Settings of the whole crawl, fixed at start.

    Attributes:
        max_in_flight: the most turns at a time.
        gather_s: how long a visit may wait for others before it is committed.
        discovery_share: share of the turns for new pages while revisits are due.
        min_revisit_s: least time between two visits of a page.
        once: visit each page once; retry transient failures a few times.
        address_open_at: when (trio clock) each address may have its first request after the start.
        requisite_share: share of the turns for requisites while pages want them too.
        confirm_pages: first pages of each host fetched twice, to learn their noise.
        check_share: share of the conditional requests sent without conditions.
        analyse: whether first copies are analysed.
        search: whether copies are indexed for the search.
        records_bytes: memory of the records that wait for their commit.
        robots_bytes: memory of robots.txt rules.
        packing: from which size on never-visited pages are packed.
        keys_bytes: memory for keys of packed pages, by which new ones are known at once.
        policies: makes policies by name.
    """

    max_in_flight: int
    gather_s: float
    discovery_share: float
    min_revisit_s: float
    once: bool = False
    address_open_at: float = -math.inf
    requisite_share: float = 0.0
    confirm_pages: int = 0
    check_share: float = 0.0
    analyse: bool = True
    search: bool = True
    records_bytes: int = 64 * MIB
    robots_bytes: int = 64 * MIB
    packing: Packing = DEFAULT_PACKING
    keys_bytes: int = 0
    policies: Mapping[str, PolicyFactory] = field(default_factory=lambda: FACTORIES)


class CrawlState:
    """Sites, hosts and page queues.

    Attributes:
        schedule: the slots of all hosts.
        sites: the operator's sites by number.
        active: numbers of the sites that may be visited now: not paused, within their quota.
        hosts: those in memory, by name.
        known_hosts: these, and those that stay in the file.
        groups: hosts that share limits.
        caps: the most pages that sites and hosts may have.
        seen_keys: keys of the packed pages, while they fit into memory.
        wiki_scope: pages of wikis that belong to a site.
        growth: patterns of URLs that may grow without new content.
        page_forms: the form in which pages of wikis are requested.
        rates: requests and bytes per second that hosts share.
        spellings: other spellings of URLs under which servers want pages to be asked for.
        traffic: bytes received this month by metered sites.
        policies_changed: set when sites, and perhaps their policies, were replaced.
        vanishing: hosts whose pages disappear in masses, and since when, Unix seconds.
        hint_sources: numbers of the hint sources that cover a (site_id, host_id).
        audits: callbacks for the outcome of a page's next visit, by page; that visit is made
            without conditions.
        quiet_visits: visits to pages that no source has reported, by site, since they were stored.
        kept_texts: texts of new copies that wait for the search.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        settings: CrawlSettings,
        schedule: Schedule,
        known_robots: KnownRobots,
    ) -> None:
        self.settings = settings
        self.schedule = schedule
        self.sites: dict[int, ActiveSite] = {}
        self.active: set[int] = set()
        self.hosts: dict[str, HostState] = {}
        self.groups: tuple[GroupState, ...] = ()
        self.rates = SharedRates(
            database, clock, schedule, self.hosts, new_share=settings.discovery_share
        )
        self.caps = Caps()
        self.seen_keys = KeyMemory(settings.keys_bytes)
        self.wiki_scope = WikiScope()
        self.known_hosts = KnownHosts(
            self.hosts, lambda name: database.look_up(host_rows.is_known, name)
        )
        self._domain_hosts = DomainHosts(self.known_hosts)
        self.growth = UrlGrowth(self.known_hosts)
        self.admission = Admission(known_robots, self.wiki_scope, self._domain_hosts, self.growth)
        self.page_forms = PageForms(self.wiki_scope, known_robots)
        self.spellings = AskedSpellings(known_robots)
        self.traffic = TrafficMeter()
        self.vanishing: dict[str, float] = {}
        self.policies_changed = trio.Event()
        self.hint_sources: dict[tuple[int, int], tuple[int, ...]] = {}
        self.audits: dict[int, Callable[[Outcome], None]] = {}
        self.quiet_visits: dict[int, QuietVisits] = {}
        self.kept_texts = KeptTexts()
        self._database = database
        self._clock = clock

    def count_quiet_visit(self, site_id: int, visit: VisitRecord) -> None:
        """Count a visit to a page that no source has reported, as evidence of unnoticed changes."""
        judged = visit.hint_judgement
        if judged is None or judged.changed is None:
            return
        known = self.quiet_visits.setdefault(site_id, QuietVisits())
        exposure_s = max(visit.visited_at - judged.before_at, 0.0)
        known.add(changed=judged.changed, expected=judged.expected, exposure_s=exposure_s)
        if not judged.sources:
            known.stale += judged.changed  # no source will report it

    # --- sites ---------------------------------------------------------------------------------

    async def set_sites(self, sites: Iterable[ActiveSite]) -> None:
        """Replace all sites, and tell all hosts in slices; never cancelled.

        The pages of removed sites stay in the file.
        """
        self.sites = {site.site_id: site for site in sites}
        self.traffic.start_month(self._clock.now())
        self.update_active()
        self.caps = Caps(
            per_site={
                key: site.config.max_pages
                for key, site in self.sites.items()
                if site.config.max_pages is not None
            },
            per_host={key: site.traps.max_pages_per_host for key, site in self.sites.items()},
            requisites={key: site.config.max_requisites for key, site in self.sites.items()},
            packing=replace(self.settings.packing, keys=self.seen_keys),
        )
        self.admission.forget()
        self.rates.set_sites(self.sites.values())
        slices = LoopSlices()
        for part in parts_of(list(self.hosts.values())):
            for host in part:
                self._apply_sites(host)
            await slices.pause()
        self.policies_changed.set()

    def _apply_sites(self, host: HostState) -> None:
        self._apply_rules(host)
        for queue in host.queues():
            queue.reconsider()
            if queue.site_id in self.sites and not queue.requisites:
                queue.policy_name = self.sites[queue.site_id].policy
        self.schedule.wake(host.slot)

    def update_active(self) -> None:
        """Recompute the active sites."""
        before = self.active
        self.active = {
            key
            for key, site in self.sites.items()
            if not (site.paused or self.traffic.is_over_quota(site))
        }
        if self.active - before:
            self.known_hosts.retry_skipped()

    def follow_seed(self, site: ActiveSite, target: str) -> None:
        """Add the host that a seed redirects to, if it is in the seed's domain, to its site."""
        self.sites[site.site_id] = site.with_host(split_url(target).host)

    def set_weight(self, site_id: int, host: str, page_id: int, weight: float) -> None:
        """Set the importance of a page in the queue of its host."""
        known = self.hosts.get(host)
        if known is not None and site_id in known.pages:
            known.pages[site_id].set_weight(page_id, weight)

    async def add_seeds(self, site: ActiveSite, urls: Sequence[str]) -> Admitted:
        """Add seeds to a site; return when they are in the file."""
        return await self.admit(site, urls, Referrer(None, 0, seed=True))

    async def add_all_seeds(self, seeds: Sequence[tuple[ActiveSite, Sequence[str]]]) -> None:
        """Add seeds to several sites; return when they are in the file."""
        source, found, refusals = Referrer(None, 0, seed=True), [], []
        for site, urls in seeds:
            admitted = await self.admission.admit(site, urls, source, self._clock.now())
            found += admitted.found
            refusals += admitted.refusals
        await self._store(found, refusals)

    async def admit(self, site: ActiveSite, urls: Sequence[str], source: Referrer) -> Admitted:
        """Admit canonical URLs to the frontier; return when they are in the file."""
        admitted = await self.admission.admit(site, urls, source, self._clock.now())
        await self._store(admitted.found, admitted.refusals)
        return admitted

    async def _store(self, found: Sequence[Discovery], refusals: Sequence[Refusal]) -> None:
        # These get rows: seeds, and pages that get the history of others.
        new = await self._database.write(frontier.discover, found, self.caps.with_rows())
        if refusals:
            await self._database.write(refusal.record, refusals)
        await self.enter_all(new)

    # --- hosts ---------------------------------------------------------------------------------

    def enter_host(self, host_id: int, name: str, *, first_wait_s: float = 0.0) -> HostState:
        """Return the state of a host; create it if needed.

        Args:
            name: host name.
            first_wait_s: how long a new host waits before its first turn.
        """
        host = self.hosts.get(name)
        if host is None:
            slot = self.schedule.host(name, first_wait_s=first_wait_s)
            # A killed process may have asked a host that is loaded later.
            slot.next_at = max(slot.next_at, self.known_hosts.first_at)
            host = self.hosts[name] = HostState(host_id, slot)
            self.known_hosts.entered(name, host)
            self._count_host(host_id, name)
            host.group = group_of(self.groups, slot)
            self.rates.apply(host, ())
        return host

    def _count_host(self, host_id: int, name: str) -> None:
        if self.known_hosts.count_once(host_id):
            self._domain_hosts.add(name)

    async def ensure_host(self, name: str, site_id: int) -> HostState:
        """Return the state of a host; a new one follows the politeness rules of a site."""
        host = self.hosts.get(name)
        if host is None:
            host_id = await self._database.write(host_rows.ensure, name, self._clock.now())
            host = self.enter_host(host_id, name)
            site = self.sites.get(site_id)
            host.apply_rules([site.rules] if site is not None else [])
            self.rates.apply(host, [site] if site is not None else [])
        return host

    async def back_off(
        self, host: HostState, retry_after_s: float | None, address: str | None
    ) -> None:
        """Back off from a host in trouble, in memory and in the file."""
        now = self._clock.now()
        host.record_trouble(now, retry_after_s)
        host.rest_from(trio.current_time())
        update = host.update(now, address)
        await self._database.write(host_rows.record_request, host.host_id, update)

    def set_host_paused(self, host_id: int, name: str, *, paused: bool) -> None:
        """Pause or resume a host, which is in memory from then on."""
        host = self.enter_host(host_id, name)
        host.paused = paused
        self.schedule.wake(host.slot)

    def set_vanishing(self, name: str, at: float | None) -> None:
        """Note that pages of a host disappear in masses; None: they do not."""
        if at is None:
            self.vanishing.pop(name, None)
        else:
            self.vanishing.setdefault(name, at)

    async def forgive(self, host: HostState) -> None:
        """End the back-off of a host; the file remembers it."""
        host.forgive(trio.current_time())
        self.schedule.wake(host.slot)
        await self._database.write(
            host_rows.record_request, host.host_id, host.update(None, host.slot.address)
        )

    def set_groups(self, config: Config) -> None:
        """Replace the groups of hosts and the limits that they share."""
        self.rates.set_general(config)
        self.groups = groups_of(config.politeness.groups)
        for host in self.hosts.values():
            host.group = group_of(self.groups, host.slot)

    def _apply_rules(self, host: HostState) -> None:
        keys = {queue.site_id for queue in host.queues()}
        sites = [self.sites[key] for key in keys if key in self.sites]
        host.apply_rules([site.rules for site in sites])
        self.rates.apply(host, sites)

    # --- pages ---------------------------------------------------------------------------------

    def pages_of(self, host: HostState, site_id: int, *, requisites: bool = False) -> PageQueue:
        """Return the queue of a site's pages on a host, or of its requisites there."""
        queues = host.requisites if requisites else host.pages
        queue = queues.get(site_id)
        if queue is None:
            ordered = site_id in self.sites and not requisites
            queue = PageQueue(
                site_id,
                host.host_id,
                self.sites[site_id].policy if ordered else "uniform",
                discovery_share=self.settings.discovery_share,
                min_revisit_s=self.settings.min_revisit_s,
                requisites=requisites,
            )
            queue.factories = self.settings.policies
            queues[site_id] = queue
            self._apply_rules(host)
        return queue

    def enter_pages(self, new: Iterable[NewPage], *, soon: bool = False) -> None:
        """Queue a few pages that were just added to the frontier.

        Args:
            new: at most `FEW_PAGES`; more go to `enter_all`.
            soon: whether requisites go to the front of their queue, in this order.
        """
        if soon:  # each goes before those that went to the front before it
            held = list(new)
            first = [page for page in held if page.requisite]
            new = [*(page for page in held if not page.requisite), *reversed(first)]
        for page in new:
            if (found := self._queue_of(page)) is None:
                continue
            host, queue = found
            if page.page_id == PACKED:
                queue.ahead.note_more()
            elif page.was_visited:
                queue.resume({page.page_id: True})
            else:
                queue.add_new([page.page_id], soon=soon and page.requisite)
            self.schedule.wake(host.slot)

    async def enter_all(self, new: Sequence[NewPage], *, soon: bool = False) -> None:
        """Queue pages that were just added to the frontier, however many, in slices.

        Of many pages only requisites that go to the front are queued themselves. The others are in
        the file: their queues are told that it has more.
        """
        if len(new) <= FEW_PAGES:
            self.enter_pages(new, soon=soon)
            return
        slices = LoopSlices()
        for part in parts_of([page for page in new if page.was_visited]):
            self.enter_pages(part)
            await slices.pause()
        new = [page for page in new if not page.was_visited]
        pages_of: dict[tuple[HostState, PageQueue], list[int]] = {}
        for part in parts_of(new):
            for page in part:
                if (found := self._queue_of(page)) is not None:
                    pages_of.setdefault(found, []).append(page.page_id)
            await slices.pause()
        for some in parts_of(list(pages_of.items())):
            for (host, queue), pages in some:
                if soon and queue.requisites:
                    queue.add_new(pages, soon=True)
                else:
                    queue.ahead.note_more()
                self.schedule.wake(host.slot)
            await slices.pause()

    def resume_pages(self, host_name: str, resumed: Sequence[ResumedPage]) -> None:
        """Queue pages of a host that no longer rest; those of a removed site stay out."""
        host = self.hosts.get(host_name)
        if host is None or not resumed:
            return
        for site_id in {page.site_id for page in resumed} & set(self.sites):
            pages = {page.page_id: page.visited for page in resumed if page.site_id == site_id}
            self.pages_of(host, site_id).resume(pages)
        self.schedule.wake(host.slot)

    def _queue_of(self, page: NewPage) -> tuple[HostState, PageQueue] | None:
        """Return where a new page is queued; None: it waits in the file with its host."""
        name = split_url(page.url).host
        if self.known_hosts.leaves(page.host_id, name):
            self._count_host(page.host_id, name)
            return None
        host = self.enter_host(page.host_id, name)
        return host, self.pages_of(host, page.site_id, requisites=page.requisite)

    def in_scope(self, page: PageRecord, site: ActiveSite) -> bool:
        """Whether a page of the file may be visited for its site.

        The scope may have become narrower since the page was found.
        """
        if page.state in (PageState.EXCLUDED, PageState.SUSPENDED) or page.site_id != site.site_id:
            return False
        if page.requisite:
            return site.refuses_requisite(page.url, page.host) is None
        return self.admits(page, site)

    def admits(self, page: PageRecord, site: ActiveSite) -> bool:
        """Whether a page, not a requisite, is in the scope of a site, its own or another."""
        if page.seed and page.site_id == site.site_id:
            return True
        refused = site.scope.refusal(page.url, page.host, page.depth)
        return refused is None and self.wiki_scope.refusal(site, page.url) is None

    def heir(self, page: PageRecord) -> ActiveSite | None:
        """Return another site of the wiki to which a page belongs that left the part of its own."""
        if page.requisite or page.state in (PageState.EXCLUDED, PageState.SUSPENDED):
            return None
        for site_id in self.wiki_scope.sites_of(page.origin):
            site = self.sites.get(site_id)
            if site_id != page.site_id and site is not None and self.admits(page, site):
                return site
        return None

    async def readmit(self, origin: str) -> None:
        """Apply changed robots.txt rules: queue the pages they no longer exclude."""
        self.admission.forget()
        readmitted = await self._database.write(page_rows.readmit, origin)
        slices = LoopSlices()
        for part in parts_of(readmitted):
            host = self.hosts[split_url(origin + "/").host]
            for page in part:
                queue = self.pages_of(host, page.site_id, requisites=page.requisite)
                if page.last_visit_at is None:
                    queue.ahead.note_more()
                else:
                    queue.retry(page.page_id, self._clock.now())
            await slices.pause()
