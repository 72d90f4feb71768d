"""Shrink a failing plan: leave out whatever the failure does not need.

Each candidate leaves out half of a list, or one item of it, or half of the time; a candidate that
breaks the same promise replaces the plan (delta debugging, greedily).

Source: Zeller, Hildebrandt 2002, "Simplifying and Isolating Failure-Inducing Input", IEEE
Transactions on Software Engineering 28(2).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from crawld.core.units import DAY_S
from crawld.universe.plan import HostPlan, UniversePlan
from crawld.universe.run_universe import run_universe

T = TypeVar("T")

_LISTS: Final = ("hosts", "disk", "steps", "requests", "ends")
_HOST_LISTS: Final = ("faults", "events", "names", "robots")


def shrink(plan: UniversePlan, invariant: str, *, max_cpu_s: float) -> UniversePlan:
    """Return a smaller plan that still breaks a promise, as small as the CPU time permits."""
    ends_s = time.process_time() + max_cpu_s
    found = True
    while found:
        found = False
        for candidate in _smaller(plan):
            left_s = ends_s - time.process_time()
            if left_s <= 0.0:
                return plan
            if _breaks(candidate, invariant, left_s):
                plan, found = candidate, True
                break
    return plan


def _breaks(plan: UniversePlan, invariant: str, max_cpu_s: float) -> bool:
    with tempfile.TemporaryDirectory(prefix="crawld-shrink-") as folder:
        try:
            result = run_universe(plan, Path(folder), max_cpu_s=max_cpu_s)
        except ExceptionGroup:  # the CPU time is used up
            return False
    return any(each.invariant == invariant for each in result.auditor.found.violations)


def _smaller(plan: UniversePlan) -> Iterator[UniversePlan]:
    """Yield plans that leave something out, those that leave out most first."""
    for days in (plan.days / 2, plan.days * 0.8):
        yield replace(
            plan,
            days=days,
            ends=tuple(end for end in plan.ends if end.at_s < days * DAY_S),
        )
    for name in _LISTS:
        for items in _without(getattr(plan, name), least=name == "hosts"):
            shorter: dict[str, Any] = {name: items}
            yield replace(plan, **shorter)
    for place, host in enumerate(plan.hosts):
        for smaller in _smaller_hosts(host):
            yield replace(plan, hosts=(*plan.hosts[:place], smaller, *plan.hosts[place + 1 :]))
    if plan.old_schema:
        yield replace(plan, old_schema=0)
    if plan.prune:
        yield replace(plan, prune=False)


def _smaller_hosts(host: HostPlan) -> Iterator[HostPlan]:
    for name in _HOST_LISTS:
        items = getattr(host, name)
        first = items[:1] if name in ("names", "robots") else ()
        for fewer in _without(items[len(first) :]):
            shorter: dict[str, Any] = {name: (*first, *fewer)}
            yield replace(host, **shorter)
    if host.pages > 2:
        yield replace(host, pages=max(2, host.pages // 2), events=())


def _without(items: Sequence[T], *, least: bool = False) -> Iterator[tuple[T, ...]]:
    """Yield the items without half of them, or without one; `least`: at least one remains."""
    count = len(items)
    sizes = {count // 2, 1} if count > 1 else {1} if count and not least else set()
    for size in sorted(sizes, reverse=True):
        for start in range(0, count, size):
            yield (*items[:start], *items[start + size :])
