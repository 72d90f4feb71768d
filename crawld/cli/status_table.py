"""The state of the daemon as text: `crawlctl status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from crawld.cli.output import clean
from crawld.cli.tables import facts
from crawld.core.display import count_text, duration_text, plural, size_text
from crawld.core.words import (
    PAUSE_WORDS,
    REFUSAL_WORDS,
    label,
    labels,
    outcome_counts,
    state_counts,
)

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status as models
    from crawld.daemon.api.schemas.plugin import PluginStatus
    from crawld.daemon.api.schemas.slots import RateLimitStatus
    from crawld.daemon.api.schemas.status import AuditedFreshness, FreshnessStatus


def status_table(status: models.Status) -> RenderableType:
    """Return the state of the daemon."""
    running_s = status.now - status.started_at
    phase: str = status.phase
    if status.pauses:
        phase += f", paused ({labels(PAUSE_WORDS, status.pauses)})"
    slots = status.slots
    pages = f"{count_text(status.pages_in_all)}: {state_counts(status.pages)}"
    made = count_text(sum(status.visits.values()))
    outcomes = outcome_counts(status.visits, status.new_pages)
    refused = (
        f"{count_text(n)} {label(REFUSAL_WORDS, reason)}"
        for reason, n in sorted(status.refused.items())
    )
    return facts(
        [
            ("crawld", f"{status.version}, pid {status.pid}, up {duration_text(running_s)}"),
            ("database", status.db),
            ("phase", Text(phase, "yellow" if status.pauses else "")),
            ("stalled", Text(clean(status.stalled), "red") if status.stalled else None),
            ("pages", pages),
            (
                "visits",
                f"{made} since the start: {outcomes}",
            ),
            ("uncommitted", count_text(status.unrecorded) if status.unrecorded else None),
            ("received", size_text(status.wire_bytes)),
            ("refused URLs", ", ".join(refused) or None),
            ("hosts", f"{count_text(slots.hosts)}, {count_text(slots.on_turn)} being fetched now"),
            (
                "slots",
                f"{count_text(slots.served)} served, half of them within"
                f" {duration_text(slots.lateness_p50_ms / 1e3)} of their time,"
                f" 99 % within {duration_text(slots.lateness_p99_ms / 1e3)}",
            ),
            *(_limit_fact(limit) for limit in status.rate_limits),
            ("memory", _memory_fact(status)),
            ("longest stall", _stall_text(status)),
            ("quarantined", _quarantine_text(status)),
            *(_plugin_fact(each) for each in status.plugins),
            *(
                (f"notify {name}", Text(clean(trouble), "red"))
                for name, trouble in status.notify_troubles.items()
            ),
            *(_vanishing_fact(status, host) for host in status.vanishing),
            *(fact for each in status.freshness for fact in _freshness_facts(each, status.now)),
        ]
    )


def _plugin_fact(plugin: PluginStatus) -> tuple[str, Text]:
    """Return a line of the status: what a plug-in costs, or why it is disabled."""
    name = f"plug-in {clean(plugin.name)}"
    if plugin.disabled:
        return name, Text(f"disabled: {clean(plugin.disabled)}", "red")
    calls = sum(hook.calls for hook in plugin.hooks)
    longest_s = max((hook.longest_s for hook in plugin.hooks), default=0.0)
    total_s = sum(hook.total_s for hook in plugin.hooks)
    text = (
        f"{plural(calls, 'call')} in {duration_text(total_s)}, the longest {1e3 * longest_s:.1f} ms"
    )
    if plugin.overruled:
        text += f", {plural(plugin.overruled, 'decision')} overruled by another plug-in"
    if plugin.failures:
        last = clean(plugin.last_failure)
        return name, Text(
            f"{text}; {plural(plugin.failures, 'failure')}, the last: {last}", "yellow"
        )
    return name, Text(text)


def _limit_fact(limit: RateLimitStatus) -> tuple[str, str]:
    """Return a line of the status: a rate that hosts share, and whether it holds them up."""
    rates = []
    if limit.max_requests_per_s is not None:
        rates.append(f"{limit.max_requests_per_s:.3g} requests a second")
    if limit.max_bytes_per_s is not None:
        rates.append(f"{size_text(limit.max_bytes_per_s)} a second")
    text = f"{' and '.join(rates)} for {plural(limit.hosts, 'host')}, "
    if not limit.waiting:
        return f"limit {clean(limit.name)}", f"{text}not reached"
    waiting = "1 host waits" if limit.waiting == 1 else f"{count_text(limit.waiting)} hosts wait"
    text += f"reached: {waiting} for it"
    if limit.opens_in_s >= 1.0:
        text += f", the next one for {duration_text(limit.opens_in_s)}"
    return f"limit {clean(limit.name)}", text


def _memory_fact(status: models.Status) -> str:
    """Return a line of the status: memory of the process, and of what is fetched."""
    text, memory = size_text(status.memory_bytes), status.memory
    if memory is None:
        return text
    used, limit = size_text(memory.used_bytes), size_text(memory.limit_bytes)
    waiting = f", {count_text(memory.waiting)} waiting" if memory.waiting else ""
    return f"{text}; large pages use {used} of {limit}{waiting}"


def _stall_text(status: models.Status) -> str:
    """Return how long the event loop stood still at most, and what held it."""
    longest, recent = status.loop_stall_max_ms, status.loop_stall_recent_ms
    by = f" ({clean(status.loop_stall_by)})" if longest else ""
    text = f"{longest:.0f} ms since the start{by}"
    if recent == longest:
        return text
    by = f" ({clean(status.loop_stall_recent_by)})" if recent else ""
    return f"{text}; {recent:.0f} ms in the last minutes{by}"


def _quarantine_text(status: models.Status) -> Text | None:
    """Return how many pages are not analysed; None if there are none."""
    if not status.quarantined_pages:
        return None
    text = f"{plural(status.quarantined, 'page')} stored without analysis"
    suspects = [each for each in status.quarantined_pages if not each.held]
    if suspects:
        text += f", {plural(len(suspects), 'suspect')}"
    return Text(f"{text}; see: crawlctl quarantine", "yellow")


def _vanishing_fact(status: models.Status, host: str) -> tuple[str, Text]:
    """Return a line of the status: a host that loses too many pages at once."""
    for_s = max(0.0, status.now - status.vanishing[host])
    text = f"{clean(host)}: too many pages at once for {duration_text(for_s)}; all are kept"
    return "vanishing", Text(text, "yellow")


def _freshness_facts(found: FreshnessStatus, now: float) -> list[tuple[str, str]]:
    """Return lines of the status: the freshness of a site now and lately, or of a host."""
    day, week = found.last_day, found.last_week
    if found.host is not None:
        return [(f"  {found.host}", f"last week {audited_text(week)}")] if week else []
    lines = [(f"fresh {found.site}", freshness_text(found, now))]
    if found.stale is not None and found.freshness is not None and found.freshness < 1.0:
        lines.append(("  stale", stale_text(found)))
    if day is not None and day.audits:
        lines.append(("  last day", audited_text(day)))
    if week is not None and week.audits:
        lines.append(("  last week", audited_text(week)))
    return lines


def freshness_text(found: FreshnessStatus, now: float) -> str:
    """Return the present freshness with its 95 % interval and the expectation of the model."""
    if found.freshness is None or found.at is None:
        return "unknown so far"
    copies = "1 copy" if found.copies == 1 else f"{count_text(found.copies)} copies"
    shown = "" if found.shown is None else f", shown copies {found.shown:.1%}"
    old_s = now - found.at
    age = f", {duration_text(old_s)} ago" if old_s >= 10.0 else ""
    return (
        f"now {found.freshness:.1%} ({found.low:.1%} to {found.high:.1%}){shown},"
        f" model {found.modelled:.1%}, of {copies}{age}"
    )


def stale_text(found: FreshnessStatus) -> str:
    """Return the expected numbers of stale copies by what is known of them."""
    stale = found.stale
    if stale is None:
        return "none"
    parts = [
        (stale.reported, "reported and not copied yet"),
        (stale.fan_out, "include an edited template, not listed yet"),
        (stale.unreported, "changed since the sources were asked"),
        (stale.unnoticed, "changed, and no source reports it"),
    ]
    # An expected number below a half is of no use to a reader.
    named = [f"{count_text(round(count))} {what}" for count, what in parts if count >= 0.5]
    return f"about {'; '.join(named)}" if named else "none expected"


def audited_text(found: AuditedFreshness) -> str:
    """Return the mean freshness of a period, measured by audits."""
    audits = plural(found.audits, "audit")
    if found.freshness is None:
        return f"unknown ({plural(found.unknown, 'inconclusive visit')})"
    return f"{found.freshness:.1%} ({found.low:.1%} to {found.high:.1%}; {audits})"
