"""Holds that the mirror of a wiki soon shows what changed during an outage.

A wiki tells every change, but not for ever: after an outage that outlasts its list, the mirror asks
for the state of all pages. Where nothing else keeps the daemon from its work, the changes until the
end of an outage are shown as soon as the back-off is over and the changed pages had some turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from crawld.core.politeness import MAX_BACKOFF_DELAY_S
from crawld.universe.change_audit import Truth
from crawld.universe.findings import Findings
from crawld.universe.plan import FaultPeriod, UniversePlan

HOME_PAGE: Final = 0
"""It has no title: the wiki tells nothing of it."""

SETTLE_S: Final = 2_700.0
"""A host is asked again at most as long after an outage as it lasted, or after an hour; then it
takes so long until it has its usual turns, and was asked for the state of all its pages."""

TURNS_A_PAGE: Final = 2.0
"""A changed page is fetched within so many turns for each of them."""


def check_wikis(
    plan: UniversePlan,
    found: Findings,
    hosts: Mapping[str, Truth],
    held_at: Callable[[str, float], Mapping[int, int]],
    at_s: float,
) -> None:
    """Check at the end of a universe, where a wiki forgets its changes.

    Args:
        held_at: returns the revision of each page that the daemon held at a time.
    """
    outage = _only_outage(plan)
    if outage is None:
        return
    (host,) = plan.hosts
    truth, ended_s = hosts[host.name], outage.until_s
    changed = [
        page
        for page in held_at(host.name, at_s)
        if page != HOME_PAGE and truth.revision(page, ended_s) > truth.revision(page, outage.from_s)
    ]
    backoff_s = min(ended_s - outage.from_s, MAX_BACKOFF_DELAY_S)
    shown_s = ended_s + backoff_s + SETTLE_S + TURNS_A_PAGE * len(changed) * plan.host_delay_s
    if shown_s > at_s:
        return
    held = held_at(host.name, shown_s)
    late = sum(page in held and truth.revision(page, ended_s) > held[page] for page in changed)
    if late:
        what = f"{host.name}: {late} of {len(changed)} changes of an outage by {shown_s:.0f}"
        found.add("change_unseen", at_s, what)


def _only_outage(plan: UniversePlan) -> FaultPeriod | None:
    """Return the outage of a wiki alone, if nothing else keeps the daemon from its work later."""
    limits = plan.lowest_rate() or plan.group or plan.quiet_minutes
    if len(plan.hosts) > 1 or plan.disk or plan.steps or plan.requests or limits:
        return None
    (host,) = plan.hosts
    if host.keeps_changes_s is None or len(host.faults) != 1:
        return None
    (outage,) = host.faults
    return outage if all(each.at_s <= outage.until_s for each in plan.ends) else None
