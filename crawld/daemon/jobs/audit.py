"""The job `audit`: visits pages drawn at random, and counts how many copies were as their page is.

Instants and draws are those of `crawld/core/audit.py`, which says why the estimate has no bias.
Here stands what each of its conditions asks of the daemon:

1. The instants come from a clock of their own, at a rate that depends on delays and numbers of
   pages only. Of a site it is as high as `audit_share` of the turns of each of its hosts allows.
2. The page is drawn when its instant has come, among all copies the site holds, from the file.
3. It has the next turn of its host, ahead of whatever the policy would choose, also where it was
   visited a moment ago. If a visit to it is under way already, that one is the sample.
4. The visit is sent without conditions: a server that says "not modified" for a page that was
   would be believed else.
5. Hosts that are closed, and visits that fail, count as unknown.

An audit is a visit like any other in all else: the page is fresh after it, the model learns of it.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog
import trio

from crawld.config.model import JobsConfig
from crawld.core.audit import AuditResult, day_of, poisson_gap_s
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.host import HostState
from crawld.store.changes import audit, hint
from crawld.store.changes.audit import CopyCount
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows

log = structlog.get_logger(__name__)

RUN_S: Final = 3_600.0
"""Longest run; audits under way end with it."""

FIRST_LOOK_S, LOOK_S = 0.5, 60.0
"""How often pages and delays are counted anew, at first and later."""

LEAST_DELAY_S: Final = 1.0
"""As far as audits go, no host is asked more often: they would learn nothing more from it."""

WAIT_TURNS, WAIT_S = 10.0, 60.0
"""An audit whose visit has not come after so many delays, and so long, is unknown."""

KEPT_DAYS: Final = 731

_FRESH: Final = frozenset({Outcome.UNCHANGED, Outcome.NOT_MODIFIED})
_STALE: Final = frozenset({Outcome.CHANGED, Outcome.MOVED, Outcome.GONE, Outcome.SOFT_GONE})


class _Site(NamedTuple):
    """A site to draw from: audits per second, and its copies by host."""

    rate: float
    hosts: tuple[tuple[HostState, CopyCount], ...]


class AuditJob:
    """The job."""

    name = "audit"

    def __init__(
        self,
        crawl: CrawlState,
        database: Database,
        clock: Clock,
        *,
        settings: Callable[[], JobsConfig],
        rng: random.Random,
        least_delay_s: float = LEAST_DELAY_S,
    ) -> None:
        """Take the crawl that visits; `rng` gives instants and draws."""
        self._least_delay_s = least_delay_s
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._settings = settings
        self._rng = rng

    @property
    def every_s(self) -> float:
        """The pause between two runs, short: a run is as long as it may be."""
        return 1.0 if self._settings().audit_share else LOOK_S

    async def run(self) -> str:
        """Draw pages and have them visited, for a while."""
        began_at = trio.current_time()
        ends_at = began_at + RUN_S
        found: list[AuditResult] = []
        async with trio.open_nursery() as nursery:
            while self._settings().audit_share and trio.current_time() < ends_at:
                sites = await self._sites()
                now = trio.current_time()
                # A young mirror grows quickly.
                pause_s = min(max(now - began_at, FIRST_LOOK_S), LOOK_S)
                look_at = min(now + pause_s, ends_at)
                await self._draw_until(look_at, sites, nursery, found)
        await self._database.write(audit.delete_before, day_of(self._clock.now()) - KEPT_DAYS)
        total = sum(found, AuditResult())
        share = "no freshness" if total.freshness is None else f"freshness {total.freshness:.3f}"
        return f"{total.count} audits, {share}, {total.unknown} unknown"

    async def progress(self) -> dict[str, int]:
        """Return the audits of today and the week before, by what they found."""
        rows = await self._database.read(audit.list_since, day_of(self._clock.now()) - 7)
        total = sum((row.audited for row in rows), AuditResult())
        return {"fresh": total.fresh, "stale": total.stale, "unknown": total.unknown}

    # --- who and when --------------------------------------------------------------------------

    async def _sites(self) -> list[_Site]:
        hosts = {host.host_id: host for host in self._crawl.hosts.values()}
        by_site: dict[int, list[tuple[HostState, CopyCount]]] = defaultdict(list)
        for held in await self._database.read(audit.count_copies):
            site = self._crawl.sites.get(held.site_id)
            if held.host_id in hosts and site is not None and not site.paused:
                by_site[held.site_id].append((hosts[held.host_id], held))
        return [_Site(self._rate(each), tuple(each)) for each in by_site.values()]

    def _rate(self, hosts: list[tuple[HostState, CopyCount]]) -> float:
        """Return audits per second: of each host no more than the share of its turns."""
        pages = sum(held.pages for _, held in hosts)
        share = self._settings().audit_share
        return min(
            share * pages / (held.pages * max(host.base_delay_s(), self._least_delay_s))
            for host, held in hosts
        )

    async def _draw_until(
        self, look_at: float, sites: list[_Site], nursery: trio.Nursery, found: list[AuditResult]
    ) -> None:
        total = math.fsum(site.rate for site in sites)
        while True:
            at = trio.current_time() + poisson_gap_s(total, self._rng.random())
            # Without memory: an instant beyond the look is as well drawn anew after it.
            await trio.sleep_until(min(at, look_at))
            if at >= look_at:
                return
            (site,) = self._rng.choices(sites, [each.rate for each in sites])
            (place,) = self._rng.choices(site.hosts, [held.pages for _, held in site.hosts])
            position = self._rng.randrange(place[1].pages)
            nursery.start_soon(self._audit, *place, position, found)

    # --- one audit -----------------------------------------------------------------------------

    async def _audit(
        self, host: HostState, held: CopyCount, position: int, found: list[AuditResult]
    ) -> None:
        page_id = await self._database.read(audit.page_at, held.site_id, held.host_id, position)
        if page_id is None or page_id in self._crawl.audits:
            return
        at = self._clock.now()
        expected = await self._expected(page_id, at)
        outcome = await self._visit(host, held.site_id, page_id)
        if outcome in _FRESH:
            said = AuditResult(fresh=1, expected=expected)
        elif outcome in _STALE:
            said = AuditResult(stale=1, expected=expected)
        else:
            said = AuditResult(unknown=1)
        found.append(said)
        await self._database.write(audit.record, held.site_id, held.host_id, day_of(at), said)

    async def _visit(self, host: HostState, site_id: int, page_id: int) -> Outcome | None:
        """Return how the next visit of a page ends, None where there is none for long."""
        pages = host.pages.get(site_id)
        wait_s = max(WAIT_TURNS * host.delay_s(), WAIT_S)
        closed = host.open_at(self._clock) > trio.current_time() + wait_s
        if pages is None or host.paused or closed:
            return None
        over, outcomes = trio.Event(), []

        def told(outcome: Outcome) -> None:
            outcomes.append(outcome)
            over.set()

        self._crawl.audits[page_id] = told
        pages.visit_next(page_id)
        self._crawl.schedule.wake(host.slot)
        try:
            with trio.move_on_after(wait_s):
                await over.wait()
        finally:
            self._crawl.audits.pop(page_id, None)
        return outcomes[0] if outcomes else None

    async def _expected(self, page_id: int, now: float) -> float:
        """Return the probability that a copy is fresh, by its change model and what hints say."""
        page = await self._database.read(page_rows.for_visit, page_id)
        if page is None or page.model is None or page.last_visit_at is None:
            return 0.5
        try:
            rate = PageModel.from_bytes(page.model).rate
        except ValueError:
            return 0.5
        fresh = math.exp(-rate * max(now - page.last_visit_at, 0.0))
        for evidence in await self._database.read(
            audit.hint_evidence_since, page_id, page.last_visit_at
        ):
            fresh *= 1.0 - hint.load_reliability(evidence).trust
        return fresh
