"""Holds that the mirror of a wiki soon shows what changed during an outage.

A wiki tells every change, but not for ever: after an outage that outlasts its list, the mirror asks
for the state of all pages. Where nothing else keeps the daemon from its work, the changes until the
end of an outage are shown as soon as the back-off is over and the changed pages had some turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crawld.universe.change_audit import Truth
from crawld.universe.findings import Findings
from crawld.universe.plan import FaultPeriod, HostPlan, UniversePlan

Copies = Mapping[int, list[tuple[float, int]]]
"""The newest copies of the pages of a host, oldest first: when each was served, its revision."""

HOME_PAGE: Final = 0
"""It has no title: the wiki tells nothing of it."""

LONGEST_BACKOFF_S: Final = 3_600.0
SETTLE_S: Final = 2_700.0
"""A host is asked again at most as long after an outage as it lasted, or after an hour; then it
takes so long until it has its usual turns, and was asked for the state of all its pages."""

TURNS_A_PAGE: Final = 2.0
"""A changed page is fetched within so many turns for each of them."""


def check_wikis(
    plan: UniversePlan,
    found: Findings,
    hosts: Mapping[str, Truth],
    copies: Mapping[str, Copies],
    at_s: float,
) -> None:
    """Check at the end of a universe, where wikis forget their changes.

    Args:
        copies: of hosts where a copy is fresh just while the revision is that of the page.
    """
    if not _is_free(plan):
        return
    for host in plan.hosts:
        if host.name in copies and host.keeps_changes_s is not None:
            _check_wiki(plan, found, hosts[host.name], copies[host.name], at_s)


def _check_wiki(
    plan: UniversePlan, found: Findings, truth: Truth, copies: Copies, at_s: float
) -> None:
    outage = truth.plan.faults[-1]
    ended_s = outage.until_s
    changed = [
        page
        for page in copies
        if page != HOME_PAGE and truth.revision(page, ended_s) > truth.revision(page, outage.from_s)
    ]
    backoff_s = min(ended_s - outage.from_s, LONGEST_BACKOFF_S)
    shown_s = ended_s + backoff_s + SETTLE_S + TURNS_A_PAGE * len(changed) * plan.host_delay_s
    if shown_s > at_s or not _is_last(plan, truth.plan, outage):
        return
    late = 0
    for page in changed:
        held = [revision for since_s, revision in copies[page] if since_s <= shown_s]
        late += bool(held) and truth.revision(page, ended_s) > held[-1]
    if late:
        what = f"{truth.plan.name}: {late} of {len(changed)} changes of an outage by {shown_s:.0f}"
        found.add("change_unseen", at_s, what)


def _is_free(plan: UniversePlan) -> bool:
    """Whether there is one wiki, and nothing but its outage keeps the daemon from its work."""
    limits = plan.lowest_rate() or plan.group or plan.quiet_minutes
    return len(plan.hosts) == 1 and not (plan.disk or plan.steps or plan.requests or limits)


def _is_last(plan: UniversePlan, host: HostPlan, outage: FaultPeriod) -> bool:
    """Whether nothing goes wrong after the outage."""
    return all(each.at_s <= outage.until_s for each in plan.ends) and host.faults == (outage,)
