"""The overview: the figures of the status, of all hosts, and what needs attention.

`Overview.facts` is asked once for each page view and once a second for all live clients together.
What takes longer than a status is looked at beside that, at most every `KEPT_S`, while somebody
asks: its reads may wait for those of jobs, which take seconds after a start on a large file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import trio

from crawld.core.display import plural, size_text
from crawld.core.page import Outcome, PageState
from crawld.daemon.api.audit import audit_statuses, freshness_of_all
from crawld.daemon.api.hints import hint_statuses
from crawld.daemon.api.schemas.status import AuditStatus, FreshnessStatus, Status
from crawld.daemon.api.status_view import status_of
from crawld.daemon.api.views import job_status, site_status
from crawld.daemon.api.wiki_views import wiki_statuses
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.attention import Concern, Surroundings, concerns
from crawld.daemon.dashboard.hosts_summary import HostsSummary, summarize_hosts
from crawld.daemon.dashboard.recent_changes import ChangesToday, read_changes
from crawld.dashboard.words import duration, interval, number, rate, share
from crawld.store.frontier import site as site_rows
from crawld.store.replica import replica as replica_rows

KEPT_S: Final = 15.0
"""How long what takes more than a status is shown again."""

FIRST_S: Final = 0.2
"""How long the first page waits for it."""

AUDIT_DAYS: Final = 30

FAILED: Final = (Outcome.FAILED, Outcome.BLOCKED)


@dataclass(frozen=True, slots=True)
class OverviewFacts:
    """What the overview shows.

    Attributes:
        status: as `crawlctl status` has it.
        whole: the freshness of all copies; `sites`: of each site.
        requests_per_s: over the last minute; `per_minute`: in each minute of the last hour.
        audits: what random visits found, by day and site.
        concerns: what needs attention.
        changes: what changed today.
    """

    status: Status
    whole: FreshnessStatus
    sites: Sequence[FreshnessStatus]
    hosts: HostsSummary
    requests_per_s: float
    per_minute: Sequence[int]
    audits: Sequence[AuditStatus]
    concerns: Sequence[Concern]
    changes: ChangesToday


class Overview:
    """Gathers the figures of the overview."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._known = Surroundings(HostsSummary())
        self._audits: Sequence[AuditStatus] = ()
        self._changes = ChangesToday()
        self._known_at = -math.inf
        self._asked = trio.Event()
        self._looked = trio.Event()

    async def run(self) -> None:
        """Look around when somebody asks, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked = trio.Event()
            await self._look_around()
            self._known_at = trio.current_time()
            self._looked.set()

    async def facts(self) -> OverviewFacts:
        """Return the figures of now."""
        if trio.current_time() >= self._known_at + KEPT_S:
            self._asked.set()
            with trio.move_on_after(FIRST_S):
                await self._looked.wait()
        daemon = self._daemon
        status = await status_of(daemon)
        self._changes = await read_changes(daemon, self._changes)
        sites = [each for each in status.freshness if each.host is None]
        recent, now = daemon.crawl.schedule.recent, trio.current_time()
        return OverviewFacts(
            status=status,
            whole=freshness_of_all(daemon, sites),
            sites=sites,
            hosts=self._known.hosts,
            requests_per_s=recent.per_s(now),
            per_minute=recent.per_minute(now),
            audits=self._audits,
            concerns=concerns(status, self._known),
            changes=self._changes,
        )

    async def _look_around(self) -> None:
        daemon = self._daemon
        rows = await daemon.database.read(site_rows.list_sites)
        self._known = Surroundings(
            hosts=await summarize_hosts(daemon),
            sites=[
                site_status(daemon, row, 0) for row in rows if row.site_id in daemon.state.sites
            ],
            jobs=[await job_status(each) for each in await daemon.background.jobs.states()],
            sources=await hint_statuses(daemon),
            replicas=await daemon.database.read(replica_rows.count_waiting),
            wikis=await wiki_statuses(daemon),
        )
        self._audits = await audit_statuses(daemon, AUDIT_DAYS)


def budget_share(facts: OverviewFacts) -> float | None:
    """Return the requests of the last minute as a share of what the delays permit."""
    permitted = facts.hosts.permitted_per_s
    return min(facts.requests_per_s / permitted, 1.0) if permitted else None


def live_values(facts: OverviewFacts) -> dict[str, str]:
    """Return the texts of the overview that change from second to second, by name."""
    status, whole = facts.status, facts.whole
    known = whole.freshness is not None
    visits = status.visits
    changed, failed = visits.get(Outcome.CHANGED, 0), sum(visits.get(each, 0) for each in FAILED)
    used = budget_share(facts)
    return {
        "freshness": share(whole.freshness),
        "freshness_interval": interval(whole.low, whole.high) if known else "no copy yet",
        "stale": number(round(_stale(whole))),
        "checked": duration(whole.checked_ago_s),
        "requests": rate(facts.requests_per_s),
        "permitted": rate(facts.hosts.permitted_per_s),
        "budget": share(used),
        "pages": number(status.pages_in_all),
        **{f"pages_{state}": number(status.pages.get(state, 0)) for state in PageState},
        "copies": number(whole.copies),
        "hosts": number(facts.hosts.hosts),
        "on_turn": number(status.slots.on_turn),
        "visits": number(sum(visits.values())),
        "changed": number(changed),
        "failed": number(failed),
        "received": size_text(status.wire_bytes),
        "lateness": f"{status.slots.lateness_p99_ms:.0f} ms",
        "memory": size_text(status.memory_bytes),
        "uptime": duration(status.now - status.started_at),
        "attention": _attention_text(facts.concerns),
    }


def _stale(whole: FreshnessStatus) -> float:
    stale = whole.stale
    if stale is None:
        return 0.0
    return stale.reported + stale.fan_out + stale.unreported + stale.unnoticed


def _attention_text(found: Sequence[Concern]) -> str:
    serious = [each for each in found if each.severity != "note"]
    return plural(len(serious), "thing") if serious else "nothing"
