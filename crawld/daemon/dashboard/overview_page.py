"""The first page of the dashboard, and its charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from crawld.core.audit import wilson_interval
from crawld.core.page import PageState
from crawld.daemon.api.schemas.status import AuditStatus
from crawld.daemon.dashboard.overview import OverviewFacts, budget_share, live_values
from crawld.daemon.dashboard.view import View
from crawld.dashboard.chart import Chart
from crawld.dashboard.line_chart import Axis, Point, Series, line_chart, time_axis
from crawld.dashboard.strip import Slice, columns, stacked_bar
from crawld.dashboard.words import STATE_NAMES, share

SITES_SHOWN: Final = 12


def show_overview(facts: OverviewFacts) -> View:
    """Return the page."""
    known = sorted(
        (each for each in facts.sites if each.freshness is not None),
        key=lambda each: each.freshness or 0.0,
    )
    return View(
        "overview.html",
        "",
        "Overview",
        {
            "values": live_values(facts),
            "concerns": facts.concerns[:20],
            "changes": facts.changes,
            "whole": facts.whole,
            "status": facts.status,
            "budget": budget_share(facts) or 0.0,
            "states": states_chart(facts.status.pages),
            "requests": _requests_chart(facts),
            "audits": freshness_chart(facts.audits),
            "sites": known[:SITES_SHOWN],
            "more_sites": max(len(known) - SITES_SHOWN, 0),
        },
    )


def states_chart(pages: dict[PageState, int]) -> Chart:
    """Draw pages by state."""
    return stacked_bar(
        "Pages by state",
        [Slice(f"state-{state}", name, pages.get(state, 0)) for state, name in STATE_NAMES.items()],
    )


def _requests_chart(facts: OverviewFacts) -> Chart:
    minutes = len(facts.per_minute)
    named = [
        ("now" if place == minutes - 1 else f"{minutes - 1 - place} min ago", float(count))
        for place, count in enumerate(facts.per_minute)
    ]
    return columns("Requests in each minute of the last hour", named, "requests")


def freshness_chart(audits: Sequence[AuditStatus]) -> Chart | None:
    """Draw the freshness that random visits measured by day, beside that of the models."""
    fresh: dict[float, float] = defaultdict(float)
    expected: dict[float, float] = defaultdict(float)
    count: dict[float, int] = defaultdict(int)
    for each in audits:
        if each.freshness is not None and each.audits:
            count[each.since] += each.audits
            fresh[each.since] += each.audits * each.freshness
            expected[each.since] += each.audits * (each.modelled or 0.0)
    if not count:
        return None
    measured, modelled = [], []
    for day in sorted(count):
        low, high = wilson_interval(fresh[day], count[day])
        measured.append(Point(day, fresh[day] / count[day], low, high))
        modelled.append(Point(day, expected[day] / count[day]))
    lowest = min(point.low or 0.0 for point in measured)
    return line_chart(
        "Freshness by day",
        [Series("measured", "s1", measured), Series("expected by the models", "s2", modelled)],
        time_axis("Day (UTC)"),
        Axis("Share of copies that equal their page", share, low=max(lowest - 0.02, 0.0), high=1.0),
    )
