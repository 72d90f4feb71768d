"""The `audit` job: visit random pages and count how many copies were up to date.

Times and draws follow `crawld/core/audit.py`, which explains why the estimate has no bias. Its
conditions require of the daemon:

1. Audit times are independent of the crawl; their rate depends on delays and page counts only. For
   a site it is as high as `audit_share` of the requests of each of its hosts allows; the sites of
   a host share it.
2. The page is drawn at the audit time, among all copies of the site in the database.
3. The page gets the next slot of its host, before the policy's choice, even if it was visited a
   moment ago. If a visit is under way, that visit is the sample. Only pages that are due before
   `AUDIT_S` is over come first: edited pages that fell behind, for half a minute.
4. The request is unconditional: a false "not modified" must not count as fresh.
5. Hosts in back-off and failed visits count as unknown.

Otherwise an audit is a normal visit: the copy is fresh after it and the model learns from it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import accumulate
from typing import Final, NamedTuple

import structlog
import trio

from crawld.core.audit import AuditResult, day_of, poisson_gap_s
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome
from crawld.core.revisit.due import AUDIT_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.host import HostState
from crawld.daemon.jobs.present_freshness import PresentFreshness
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.store.changes import audit, hint, hint_source
from crawld.store.changes.audit import CopyCount
from crawld.store.frontier import page as page_rows

log = structlog.get_logger(__name__)

RUN_S: Final = 3_600.0
"""Longest run; it also ends the audits under way."""

FIRST_COUNT_S, COUNT_S = 0.5, 300.0
"""How often pages and delays are counted: at first and later."""

MOST_DOUBLED: Final = 4
"""While the number of copies is the same, the pause is doubled so often at most."""

COUNT_REST: Final = 100.0
"""Least pause between two counts, as a multiple of the time that one takes."""

MIN_DELAY_S: Final = 1.0
"""Smallest delay assumed: more audits of a faster host would add nothing."""

WAIT_DELAYS, WAIT_S = 10.0, 60.0
"""An audit counts as unknown after so many delays, and at least so many seconds."""

KEPT_DAYS: Final = 731

_FRESH_OUTCOMES: Final = frozenset({Outcome.UNCHANGED, Outcome.NOT_MODIFIED})
_STALE_OUTCOMES: Final = frozenset(
    {Outcome.CHANGED, Outcome.MOVED, Outcome.GONE, Outcome.SOFT_GONE}
)


class _Site(NamedTuple):
    """A site to draw from.

    Attributes:
        rate: audits per second.
        hosts: its hosts with their copies.
        sums: copies of each host and of those before it.
    """

    rate: float
    hosts: tuple[tuple[HostState, CopyCount], ...]
    sums: tuple[int, ...]


def next_count_s(age_s: float, took_s: float, equal: int = 0) -> float:
    """Return the pause until copies are counted again: a young mirror grows quickly.

    Args:
        age_s: time since the first run began.
        took_s: how long the last count took, a second for ten million pages.
        equal: how many counts in a row found what the one before them found; each doubles the
            pause. A run counts at its begin in any case.
    """
    pause_s = min(max(age_s, FIRST_COUNT_S), COUNT_S) * 2.0 ** min(equal, MOST_DOUBLED)
    return max(pause_s, COUNT_REST * took_s)


class AuditJob(BackgroundWork):
    """The `audit` job."""

    name = "audit"

    def __init__(
        self,
        context: CrawlContext,
        present: PresentFreshness,
        *,
        least_delay_s: float = MIN_DELAY_S,
    ) -> None:
        """Create the job; `present` learns from all visits, and stores that with each audit."""
        super().__init__(context)
        self._present = present
        self._least_delay_s = least_delay_s
        self._born_at: float | None = None
        self._counts: list[CopyCount] = []
        # Of the run: a sum, since at 200 visits a second it makes 15,000 audits.
        self._found = AuditResult()
        self._equal = 0

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds; short, since a run is long."""
        return 1.0 if self._config().jobs.audit_share else COUNT_S

    async def run(self) -> str:
        """Audit random pages for up to `RUN_S`."""
        ends_at = trio.current_time() + RUN_S
        if self._born_at is None:
            self._born_at = trio.current_time()
        self._found = AuditResult()
        async with trio.open_nursery() as nursery:
            while self._config().jobs.audit_share and trio.current_time() < ends_at:
                counted_at = trio.current_time()
                await self._count()
                sites = await self._sites()
                now = trio.current_time()
                pause_s = next_count_s(now - self._born_at, now - counted_at, self._equal)
                count_at = min(now + pause_s, ends_at)
                await self._draw_until(count_at, sites, nursery)
        await self._database.write(audit.delete_before, day_of(self._clock.now()) - KEPT_DAYS)
        total = self._found
        share = "no freshness" if total.freshness is None else f"freshness {total.freshness:.3f}"
        return f"{total.count} audits, {share}, {total.unknown} unknown"

    async def progress(self) -> dict[str, int]:
        """Return the audits of the last eight days by result."""
        sums = await self._database.read(audit.sums_by_site, day_of(self._clock.now()) - 7)
        total = sum(sums.values(), AuditResult())
        return {"fresh": total.fresh, "stale": total.stale, "unknown": total.unknown}

    # --- audit times -----------------------------------------------------------------------------

    async def _count(self) -> None:
        counts = await self._database.read(audit.count_copies)
        self._equal = self._equal + 1 if counts == self._counts else 0
        self._counts = counts

    async def _sites(self) -> list[_Site]:
        hosts = {host.host_id: host for host in self._state.hosts.values()}
        by_site: dict[int, list[tuple[HostState, CopyCount]]] = defaultdict(list)
        slices = LoopSlices()
        for part in parts_of(self._counts):
            for held in part:
                site = self._state.sites.get(held.site_id)
                if held.host_id in hosts and site is not None and not site.paused:
                    by_site[held.site_id].append((hosts[held.host_id], held))
            await slices.pause()
        sharing = Counter(host.host_id for each in by_site.values() for host, _ in each)
        return [
            _Site(
                self._rate(each, sharing),
                tuple(each),
                tuple(accumulate(held.pages for _, held in each)),
            )
            for each in by_site.values()
        ]

    def _rate(self, hosts: list[tuple[HostState, CopyCount]], sharing: Mapping[int, int]) -> float:
        """Return audits per second: on each host at most the configured share of its requests.

        Args:
            hosts: of a site, with its copies there.
            sharing: how many sites share the audits of each host.
        """
        pages = sum(held.pages for _, held in hosts)
        share = self._config().jobs.audit_share
        return min(
            share / sharing[host.host_id] * pages / (held.pages * self._slot_s(host))
            for host, held in hosts
        )

    def _slot_s(self, host: HostState) -> float:
        return max(self._state.rates.usual_turn_every_s(host), self._least_delay_s)

    async def _draw_until(self, count_at: float, sites: list[_Site], nursery: trio.Nursery) -> None:
        # A draw is a binary search: a site may have 100,000 hosts.
        rates = list(accumulate(site.rate for site in sites))
        total = rates[-1] if rates else 0.0
        while True:
            at = trio.current_time() + poisson_gap_s(total, self._rng.random())
            # The process has no memory: a time beyond `count_at` may be drawn again after it.
            await trio.sleep_until(min(at, count_at))
            if at >= count_at:
                return
            (site,) = self._rng.choices(sites, cum_weights=rates)
            (host_and_count,) = self._rng.choices(site.hosts, cum_weights=site.sums)
            position = self._rng.randrange(host_and_count[1].pages)
            nursery.start_soon(self._audit, *host_and_count, position)

    # --- one audit -------------------------------------------------------------------------------

    async def _audit(self, host: HostState, held: CopyCount, position: int) -> None:
        page_id = await self._database.read(audit.page_at, held.site_id, held.host_id, position)
        if page_id is None or page_id in self._state.audits:
            return
        at = self._clock.now()
        expected = await self._expected(page_id, at)
        outcome = await self._visit(host, held.site_id, page_id)
        if outcome in _FRESH_OUTCOMES:
            result = AuditResult(fresh=1, expected=expected)
        elif outcome in _STALE_OUTCOMES:
            result = AuditResult(stale=1, expected=expected)
        else:
            result = AuditResult(unknown=1)
        self._found += result
        await self._database.write(audit.record, held.site_id, held.host_id, at, result)
        await self._present.store_visits()

    async def _visit(self, host: HostState, site_id: int, page_id: int) -> Outcome | None:
        """Have a page visited; return the outcome, None if there was no visit in time."""
        pages = host.pages.get(site_id)
        wait_s = max(WAIT_DELAYS * self._state.rates.turn_every_s(host), WAIT_S)
        closed = host.open_at(self._clock) > trio.current_time() + wait_s
        if pages is None or host.paused or closed:
            return None
        over, outcomes = trio.Event(), []

        def set_outcome(outcome: Outcome) -> None:
            outcomes.append(outcome)
            over.set()

        self._state.audits[page_id] = set_outcome
        pages.visit_until(page_id, self._clock.now() + AUDIT_S)
        self._state.schedule.wake(host.slot)
        try:
            with trio.move_on_after(wait_s):
                await over.wait()
        finally:
            self._state.audits.pop(page_id, None)
        return outcomes[0] if outcomes else None

    async def _expected(self, page_id: int, now: float) -> float:
        """Return the probability that a copy is fresh, from its change model and its hints."""
        page = await self._database.read(page_rows.for_visit, page_id)
        if page is None or page.model is None or page.last_visit_at is None:
            return 0.5
        try:
            rate = PageModel.from_bytes(page.model).rate
        except ValueError:
            return 0.5
        since_s = max(now - page.last_visit_at, 0.0)
        missed_share, told_until = await self._coverage(page.site_id, page.host_id)
        covered_s = min(max(told_until - page.last_visit_at, 0.0), since_s)
        fresh = math.exp(-rate * (missed_share * covered_s + since_s - covered_s))
        for evidence in await self._database.read(
            audit.hint_evidence_since, page_id, page.last_visit_at
        ):
            fresh *= 1.0 - hint.load_reliability(evidence).trust
        return fresh

    async def _coverage(self, site_id: int, host_id: int) -> tuple[float, float]:
        """Return the share of changes that no source reports, and until when they reported."""
        missed_share, told_until = 1.0, -math.inf
        for number in self._state.hint_sources.get((site_id, host_id), ()):
            row = await self._database.read(hint_source.get, number)
            missed_share *= hint.load_reliability(row.evidence).effective_missed_share
            told_until = max(told_until, row.told_until or -math.inf)
        return missed_share, told_until
