"""The ordered list of causes: the first that applies decides whether and when a URL is fetched.

`CAUSES` is that order, and the only place that knows it. Each rule looks at the facts alone and
returns a finding if it applies, so that the answer names the further causes too: those that would
decide next, after the first one was removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crawld.core.why import admission_causes, visit_causes
from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.facts import UrlFacts
from crawld.core.why.found_cause import FoundCause

Rule = Callable[[UrlFacts], FoundCause | None]


def find_causes(facts: UrlFacts) -> list[FoundCause]:
    """Return the causes that apply, the deciding one first; never empty."""
    found = [finding for rule in CAUSES if (finding := rule(facts)) is not None]
    return found or [
        FoundCause(VisitCause.QUEUED, Effect.FETCHED, "Nothing keeps it from being fetched.")
    ]


def next_visit_at(facts: UrlFacts, found: list[FoundCause]) -> float | None:
    """Return the earliest time of the next visit, Unix seconds; None: it is not planned."""
    if any(each.effect is Effect.BLOCKS for each in found):
        return None
    return max([facts.now, *(each.until for each in found if each.until is not None)])


CAUSES: Final[tuple[Rule, ...]] = (
    admission_causes.purged,
    admission_causes.no_site,
    admission_causes.site_removed,
    admission_causes.scope,
    admission_causes.wiki_part,
    admission_causes.trap,
    admission_causes.growth,
    admission_causes.plugin,
    admission_causes.robots,
    admission_causes.replica,
    admission_causes.duplicate,
    admission_causes.cap,
    admission_causes.unknown,
    visit_causes.stopping,
    visit_causes.everything_paused,
    visit_causes.disk,
    visit_causes.network_down,
    visit_causes.site_paused,
    visit_causes.site_quota,
    visit_causes.host_paused,
    visit_causes.gone,
    visit_causes.visited_once,
    visit_causes.robots_unreachable,
    visit_causes.host_closed,
    visit_causes.quiet_hours,
    visit_causes.retry,
    visit_causes.host_backoff,
    visit_causes.no_address,
    visit_causes.quarantined,
    visit_causes.removed,
    visit_causes.redirect,
    visit_causes.hinted,
    visit_causes.never_visited,
    visit_causes.rests,
    visit_causes.queued,
    visit_causes.robots_unread,
    visit_causes.host_delay,
    visit_causes.shared_rate,
)
"""All rules, in the order in which their causes decide; the same order as `VisitCause`."""
