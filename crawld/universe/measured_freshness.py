"""Holds the freshness that random visits have measured against the true one.

The daemon draws pages at random times while it lives. What its audits of a host estimate is the
share of the copies that match their pages, averaged over those times. Interval and truth are
compared once a host, at the end of a universe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import apsw

from crawld.core.audit import AuditResult, wilson_interval
from crawld.core.units import DAY_S
from crawld.store.changes import audit as audit_rows
from crawld.universe.change_audit import Truth
from crawld.universe.findings import Findings
from crawld.universe.freshness_audit import is_plain
from crawld.universe.intervals import IntervalCount
from crawld.universe.plan import HostPlan, UniversePlan

LEAST_AUDITS: Final = 20
"""With fewer the interval says nothing."""

CERTAIN: Final = 0.999999
"""An interval of this coverage that misses the truth breaks the promise in one universe."""

CHANGES_A_DELAY: Final = 0.005
"""Of pages that change more often an audit, which comes a delay after its draw, finds too many
stale: the daemon's documentation says so."""

LONGEST_DELAY_S: Final = 60.0
"""An audit may come so late."""

MOST_PAGES: Final = 2_000
"""Each new copy of a host is compared with all those before it."""


@dataclass(slots=True)
class _Copies:
    """The copies of a host, and how fresh they were so far.

    Attributes:
        held: of each page, the revision held, and since when it is not counted yet.
        counted_at_s: until when `share_s` counts.
        fresh_s: since then, times during which a copy was fresh, of all copies.
        share_s: the share of the fresh copies, added up over the time while there were some.
        time_s: that time.
    """

    held: dict[int, tuple[int, float]] = field(default_factory=dict)
    counted_at_s: float = 0.0
    fresh_s: float = 0.0
    share_s: float = 0.0
    time_s: float = 0.0


class MeasuredFreshness(IntervalCount):
    """Compares what audits have measured with what is true."""

    def __init__(self, plan: UniversePlan, found: Findings, hosts: Mapping[str, Truth]) -> None:
        super().__init__()
        self._found = found
        self._hosts = hosts
        is_steady = not (plan.steps or plan.requests or plan.disk or plan.quiet_minutes)
        self._copies = {
            host.name: _Copies() for host in plan.hosts if is_steady and _is_measured(plan, host)
        }
        self._audits: dict[str, AuditResult] = {}
        self._is_alive = False

    def served(self, host: str, page: int, revision: int, at_s: float) -> None:
        """Note the revision of a page that the daemon holds from now on."""
        copies = self._copies.get(host)
        if copies is None:
            return
        if page in copies.held:
            self._count_page(host, copies, page, at_s)
        elif len(copies.held) < MOST_PAGES:
            self._count(host, copies, at_s)
        else:
            del self._copies[host]
            return
        copies.held[page] = revision, at_s

    def life_began(self, at_s: float) -> None:
        """Count from now on."""
        self._skip(at_s)
        self._is_alive = True

    def life_ended(self, at_s: float) -> None:
        """Count no longer: nobody draws pages."""
        self._skip(at_s)
        self._is_alive = False

    def _skip(self, at_s: float) -> None:
        for host, copies in self._copies.items():
            self._count(host, copies, at_s)

    def _count(self, host: str, copies: _Copies, at_s: float) -> None:
        """Count until a time, at which the number of copies may change."""
        for page in copies.held:
            self._count_page(host, copies, page, at_s)
        if copies.held and self._is_alive:
            copies.share_s += copies.fresh_s / len(copies.held)
            copies.time_s += at_s - copies.counted_at_s
        copies.counted_at_s, copies.fresh_s = at_s, 0.0

    def _count_page(self, host: str, copies: _Copies, page: int, at_s: float) -> None:
        revision, since_s = copies.held[page]
        truth = self._hosts[host]
        if truth.revision(page, since_s) == revision:
            copies.fresh_s += min(truth.changed_after(page, since_s), at_s) - since_s
        copies.held[page] = revision, at_s

    def read(self, connection: apsw.Connection) -> None:
        """Read what the audits in a file have found; the newest file counts."""
        self._audits = {}
        for row in audit_rows.list_since(connection, 0):
            before = self._audits.get(row.host, AuditResult())
            self._audits[row.host] = before + row.audited

    def check(self, at_s: float) -> None:
        """Check at the end of a universe whether the intervals hold the truth."""
        for host, copies in self._copies.items():
            audited = self._audits.get(host, AuditResult())
            # Which visits fail, and are unknown, is not independent of what they would show.
            if audited.count < LEAST_AUDITS or audited.unknown or not copies.time_s:
                continue
            share = copies.share_s / copies.time_s
            self.add(*audited.interval, share)
            low, high = wilson_interval(audited.fresh, audited.count, CERTAIN)
            if not low <= share <= high:
                what = f"{audited.fresh} of {audited.count} audits fresh, in truth {share:.3f}"
                self._found.add("measured_freshness", at_s, f"{host}: {what}")


def _is_measured(plan: UniversePlan, host: HostPlan) -> bool:
    """Whether audits see the host as it is: it answers, seldom changes, and has no twin."""
    crawl_delays_s = [robots.crawl_delay_s or 0.0 for robots in host.robots]
    delay_s = min(max(plan.host_delay_s, *crawl_delays_s), LONGEST_DELAY_S)
    is_slow = host.changes_per_day * delay_s / DAY_S <= CHANGES_A_DELAY
    is_alone = sum(each.site_seed == host.site_seed for each in plan.hosts) == 1
    is_open = len(host.names) == len(host.robots) == 1 and not host.robots[0].forbidden
    return is_plain(host) and not host.faults and is_slow and is_alone and is_open
