"""Checks that no host is left alone while one of its pages may be asked for.

Only hosts with which nothing is wrong are judged, and which no limit but their own delay holds
back: what else a host may wait for is the business of other checks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Final

from crawld.universe.findings import Findings
from crawld.universe.plan import HostPlan, UniversePlan

IDLE_S: Final = 150.0
"""A turn that is possible is used in this time."""


class IdleAudit:
    """Watches how long hosts wait."""

    def __init__(self, plan: UniversePlan, found: Findings) -> None:
        self._found = found
        self._min_revisit_s = plan.min_revisit_s
        self._judged = {host.name for host in plan.hosts if _is_free(plan, host)}
        self._asked_s: defaultdict[str, float] = defaultdict(lambda: -math.inf)
        self._pages: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def asked(self, host: str, at_s: float, *, delay_s: float, idle_since_s: float) -> None:
        """Check how long a host has waited for a request, or for the end of a life.

        Args:
            delay_s: the longest of its delays in force lately.
            idle_since_s: when the daemon began to run, or was resumed.
        """
        pages = self._pages[host]
        if host in self._judged and pages:
            free_s = max(
                self._asked_s[host] + delay_s,
                min(pages.values()) + self._min_revisit_s,
                idle_since_s,
            )
            if at_s - free_s > IDLE_S:
                what = f"{host} waited from {free_s:.0f} s, with a page to visit"
                self._found.add("slot_idle", at_s, what)
        self._asked_s[host] = at_s

    def answered(self, host: str, target: str, at_s: float, *, is_whole: bool) -> None:
        """Note a visit, and whether it has shown a page: requisites are not asked for as often."""
        if is_whole:
            self._pages[host][target] = at_s
        else:
            self._pages[host].pop(target, None)

    def forget(self) -> None:
        """Judge no page that a life may have forgotten."""
        self._pages.clear()


def _is_free(plan: UniversePlan, host: HostPlan) -> bool:
    addresses = Counter(each.address for other in plan.hosts for each in other.names)
    has_replica = sum(other.site_seed == host.site_seed for other in plan.hosts) > 1
    return not (
        (plan.prune and has_replica)
        or plan.disk
        or plan.steps
        or plan.quiet_minutes
        or plan.lowest_rate()
        or (plan.group is not None and host.name in plan.group.hosts)
        or host.faults
        or host.events
        or host.wiki
        or len(host.names) > 1
        or len(host.robots) > 1
        or host.robots[0].forbidden
        or addresses[host.names[0].address] > 1
    )
