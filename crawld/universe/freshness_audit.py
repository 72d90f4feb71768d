"""Holds the freshness that the daemon states of its sites against the true one.

An interval that claims to be right 19 times of 20 may miss, so one run breaks the promise only by
missing most of the time; over many runs `tests/bugs/campaign.py` holds the share against the claim.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from crawld.universe.change_audit import Truth
from crawld.universe.findings import Findings
from crawld.universe.intervals import IntervalCount
from crawld.universe.plan import START_AT, FaultKind, HostPlan, UniversePlan
from crawld.universe.simulated_host import USELESS

CLAIMED_SHARE: Final = 0.95
"""Share of the intervals that hold the truth, as the daemon's documentation says."""

LEAST_CLAIMS: Final = 20
LEAST_SHARE: Final = 0.5
"""Of so many intervals at least this share holds the truth: those of a run depend on each other."""

COPIES_KEPT: Final = 5
"""Copies of a page that are remembered; a statement is seldom older than a visit."""

_MISLEADING: Final = (*USELESS, FaultKind.SOFT_404, FaultKind.LOOP)
"""Faults after which the daemon may rightly hold a copy that is none of the site's pages."""


class FreshnessAudit(IntervalCount):
    """Compares what is stated with what is true."""

    def __init__(self, plan: UniversePlan, found: Findings, hosts: Mapping[str, Truth]) -> None:
        super().__init__()
        self._found = found
        self._hosts = hosts
        self._judged = {host.name: host for host in plan.hosts if not plan.steps and is_plain(host)}
        seeds = Counter(host.site_seed for host in plan.hosts)
        self._replicas = {host.name for host in plan.hosts if seeds[host.site_seed] > 1}
        # The newest copies of each page, oldest first: when each was served, and its revision.
        self._held: defaultdict[str, defaultdict[int, list[tuple[float, int]]]]
        self._held = defaultdict(lambda: defaultdict(list))
        self._told_at: defaultdict[str, float] = defaultdict(float)

    def served(self, host: str, page: int, revision: int, at_s: float) -> None:
        """Note the revision of a page that the daemon holds from now on."""
        copies = self._held[host][page]
        copies.append((at_s, revision))
        del copies[:-COPIES_KEPT]

    def set_aside(self, host: str, path: str) -> None:
        """Note that the daemon did not keep what a page was served with last."""
        truth = self._hosts.get(host)
        page = None if truth is None else truth.page_at(path)
        if page is not None and self._held[host][page]:
            self._held[host][page].pop()

    def held_at(self, host: str, at_s: float) -> dict[int, int]:
        """Return the revision of each page that the daemon held at a time.

        Of a host that is not judged nothing is known.
        """
        if host not in self._judged:
            return {}
        return {
            page: revisions[-1]
            for page, copies in self._held[host].items()
            if (revisions := [revision for since_s, revision in copies if since_s <= at_s])
        }

    def told(self, host: str, at: float, low: float, high: float, copies: int) -> None:
        """Note the interval that the daemon states for copies of a host at a Unix time.

        A statement of a time is judged by the copies of that time, and once. Copies at rest are
        not among them, since those of their twins are shown; which ones rest is not known here.
        """
        at_s = at - START_AT
        held = {} if at <= self._told_at[host] else self.held_at(host, at_s)
        some_rest = host in self._replicas and copies < len(held)
        if not held or some_rest:
            return
        self._told_at[host] = at
        truth = self._hosts[host]
        fresh = sum(truth.revision(page, at_s) == number for page, number in held.items())
        self.add(low, high, fresh / len(held))

    def check(self, at_s: float) -> None:
        """Check at the end of a universe how often the truth was in the interval."""
        if self.claims >= LEAST_CLAIMS and self.covered < LEAST_SHARE * self.claims:
            what = f"the truth was in {self.covered} of {self.claims} intervals"
            self._found.add("freshness_interval", at_s, what)


def is_plain(host: HostPlan) -> bool:
    """Whether a copy of the host's is fresh just while the revision is that of the page."""
    faulty = any(each.kind in _MISLEADING for each in host.faults)
    return host.is_honest() and not (host.noise or host.events or faulty)
