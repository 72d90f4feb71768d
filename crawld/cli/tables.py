"""Tables of the responses of the control socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crawld.cli.output import clean
from crawld.core.change.classes import DAY_S
from crawld.core.display import ago_text, count_text, duration_text, plural, size_text
from crawld.core.page import Outcome, PageState

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status as models
    from crawld.daemon.api.schemas.status import AuditedFreshness, FreshnessStatus

OUTCOME_STYLES: Mapping[Outcome, str] = {
    Outcome.CHANGED: "green",
    Outcome.UNCHANGED: "",
    Outcome.NOT_MODIFIED: "",
    Outcome.MOVED: "cyan",
    Outcome.GONE: "yellow",
    Outcome.SOFT_GONE: "yellow",
    Outcome.BLOCKED: "red",
    Outcome.FAILED: "red",
}

NUMERIC_HEADINGS = frozenset(
    {
        "address delay", "back-off", "bytes", "changes", "delay", "depth", "failed", "known",
        "refused", "requisites", "rows", "size", "status", "stored", "took", "unused", "version",
        "visited", "visits", "waiting", "wire",
    }
)  # fmt: skip
"""Headings of right-aligned columns."""


def table(headings: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a plain table; long cells wrap."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        numeric = heading in NUMERIC_HEADINGS
        made.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def facts(pairs: Iterable[tuple[str, str | Text | None]]) -> Table:
    """Return names and values, one per line; values of None are left out."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            made.add_row(name, value)
    return made


def outcome_text(outcome: Outcome | None) -> Text:
    """Return an outcome in its color."""
    return Text("-") if outcome is None else Text(str(outcome), OUTCOME_STYLES[outcome])


def counts_text(counts: Mapping[PageState, int] | Mapping[Outcome, int]) -> str:
    """Return the counts above 0 as text."""
    named = [f"{count_text(n)} {str(word).replace('_', ' ')}" for word, n in counts.items() if n]
    return ", ".join(named) or "none"


def status_table(status: models.Status) -> RenderableType:
    """Return the state of the daemon."""
    running_s = status.now - status.started_at
    phase: str = status.phase
    if status.pauses:
        phase += f", paused ({', '.join(status.pauses)})"
    slots = status.slots
    pages = f"{count_text(status.pages_in_all)}: {counts_text(status.pages)}"
    made = count_text(sum(status.visits.values()))
    refused = (f"{count_text(n)} {reason}" for reason, n in sorted(status.refused.items()))
    return facts(
        [
            ("crawld", f"{status.version}, pid {status.pid}, up {duration_text(running_s)}"),
            ("database", status.db),
            ("phase", Text(phase, "yellow" if status.pauses else "")),
            ("stalled", Text(clean(status.stalled), "red") if status.stalled else None),
            ("pages", pages),
            ("visits", f"{made} since the start: {counts_text(status.visits)}"),
            ("uncommitted", count_text(status.unrecorded) if status.unrecorded else None),
            ("received", size_text(status.wire_bytes)),
            ("refused URLs", ", ".join(refused) or None),
            ("hosts", f"{count_text(slots.hosts)}, {count_text(slots.on_turn)} being fetched now"),
            (
                "slots",
                f"{count_text(slots.served)} served, lateness {slots.lateness_p50_ms:.1f} ms"
                f" (median), {slots.lateness_p99_ms:.1f} ms (99 %)",
            ),
            ("memory", _memory_fact(status)),
            ("longest stall", _stall_text(status)),
            ("quarantined", _quarantine_text(status)),
            *(_vanishing_fact(status, host) for host in status.vanishing),
            *(fact for each in status.freshness for fact in _freshness_facts(each, status.now)),
        ]
    )


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


def sites_table(sites: list[models.SiteStatus]) -> RenderableType:
    """Return the sites and their progress."""
    headings = (
        "site", "state", "known", "visited", "waiting", "shared", "requisites", "delay", "source",
        "hosts",
    )  # fmt: skip
    return table(headings, (_site_row(site) for site in sites))


def _site_state(site: models.SiteStatus) -> str:
    if site.paused:
        return "paused"
    most, received = site.monthly_bytes, site.received_bytes_this_month
    if most is None or received is None:
        return "active"
    if received >= most:
        return f"monthly quota of {size_text(most)} used up"
    return f"active, {size_text(received)} of {size_text(most)} this month"


def _site_row(site: models.SiteStatus) -> Sequence[str]:
    shown = ", ".join(site.hosts[:3])
    more = f" and {len(site.hosts) - 3} more" if len(site.hosts) > 3 else ""
    return (
        site.name,
        _site_state(site),
        count_text(site.pages_in_all),
        count_text(site.pages.get(PageState.VISITED, 0)),
        count_text(site.pages.get(PageState.DISCOVERED, 0)),
        count_text(site.pages_shared),
        count_text(site.requisites),
        duration_text(site.host_delay_s),
        site.source,
        shown + more,
    )


def hosts_table(hosts: Sequence[models.HostStatus]) -> RenderableType:
    """Return hosts: pages, politeness, back-off."""
    headings = (
        "host", "known", "waiting", "visits", "changes", "failed", "wire", "delay", "back-off",
        "next slot",
    )  # fmt: skip
    return table(headings, (_host_row(host) for host in hosts))


def next_slot_text(host: models.HostStatus) -> str:
    """Return when a host may be fetched next."""
    if host.paused:
        return "paused"
    if host.vanishing_since is not None:
        return "held: too many pages vanish"
    if host.next_fetch_in_s is None:
        return "nothing to fetch"
    return "now" if host.next_fetch_in_s <= 0 else f"in {duration_text(host.next_fetch_in_s)}"


def _host_row(host: models.HostStatus) -> Sequence[str]:
    return (
        host.host,
        count_text(host.pages_in_all),
        count_text(host.pages.get(PageState.DISCOVERED, 0)),
        count_text(host.visit_count),
        count_text(host.change_count),
        count_text(host.failure_count),
        size_text(host.wire_bytes),
        duration_text(host.delay_s),
        str(host.backoff_level or ""),
        next_slot_text(host),
    )


def host_table(host: models.HostDetail, now: float) -> RenderableType:
    """Return one host in detail."""
    closed_s = (host.closed_until or 0.0) - now
    visits = f"{count_text(host.visit_count)}, {count_text(host.change_count)} stored a version"
    parts: list[RenderableType] = [
        facts(
            [
                ("host", host.host),
                ("address", host.address),
                ("pages", f"{count_text(host.pages_in_all)}: {counts_text(host.pages)}"),
                ("visits", f"{visits}, {count_text(host.failure_count)} failed"),
                ("received", size_text(host.wire_bytes)),
                ("last request", ago_text(host.last_fetch_at, now)),
                ("delay", duration_text(host.delay_s)),
                ("back-off", _backoff_text(host, now)),
                ("closed for", _closed_text(host, closed_s)),
                ("next slot", next_slot_text(host)),
            ]
        )
    ]
    if host.robots:
        headings = ("robots.txt of", "verdict", "status", "size", "rules", "ignored", "fetched")
        parts += ["", table(headings, (_robots_row(robots, now) for robots in host.robots))]
    if host.refused_urls:
        parts += ["", refusals_table(host.refused_urls)]
    return Group(*parts)


def _backoff_text(host: models.HostDetail, now: float) -> str | None:
    if not host.backoff_level:
        return None
    since = f", last trouble {ago_text(host.trouble_at, now)}" if host.trouble_at else ""
    return (
        f"level {host.backoff_level}: {duration_text(host.delay_s)} between requests instead of"
        f" {duration_text(host.base_delay_s)}{since}; crawlctl forgive {host.host} ends it"
    )


def _closed_text(host: models.HostDetail, closed_s: float) -> str | None:
    if closed_s <= 0:
        return None
    return f"{duration_text(closed_s)}, as it asked; crawlctl forgive {host.host} ends it"


def _robots_row(robots: models.RobotsStatus, now: float) -> Sequence[str]:
    return (
        robots.origin,
        robots.verdict or "unknown",
        "" if robots.status is None else str(robots.status),
        size_text(robots.text_bytes),
        "" if robots.rules is None else count_text(robots.rules),
        count_text(robots.rules_ignored) if robots.rules_ignored else "",
        ago_text(robots.fetched_at, now),
    )


def refusals_table(refused: Sequence[models.RefusedUrls]) -> RenderableType:
    """Return the reasons for refused URLs."""
    rows = ((each.reason, count_text(each.refused), clean(each.example)) for each in refused)
    return table(("reason", "refused", "example"), rows)


def pages_table(pages: Sequence[models.PageStatus], now: float) -> RenderableType:
    """Return pages, one per line."""
    headings = ("page", "state", "depth", "outcome", "last visit", "last change", "url")
    return table(headings, (_page_row(page, now) for page in pages))


def _page_row(page: models.PageStatus, now: float) -> Sequence[str | Text]:
    return (
        str(page.page_id),
        str(page.state),
        str(page.depth),
        outcome_text(page.last_outcome),
        ago_text(page.last_visit_at, now),
        ago_text(page.last_change_at, now),
        clean(page.url),
    )


def _membership_text(page: models.PageDetail, now: float) -> str:
    return "; ".join(
        f"since {ago_text(each.since, now)}, {each.reason}" for each in page.memberships
    )


def page_table(page: models.PageDetail, now: float) -> RenderableType:
    """Return one page in detail."""
    outcome = str(page.last_outcome) if page.last_outcome else "none yet"
    visits = f"{count_text(page.visit_count)}, {count_text(page.change_count)} stored a version"
    retry_s = None if page.retry_at is None else page.retry_at - now
    parts: list[RenderableType] = [
        facts(
            [
                ("url", clean(page.url)),
                ("title", clean(page.title) or None),
                ("site", page.site),
                ("state", str(page.state)),
                ("depth", "seed" if page.seed else str(page.depth)),
                ("importance", f"{page.importance:g}"),
                ("discovered", ago_text(page.discovered_at, now)),
                ("visits", f"{visits}, {count_text(page.failure_count)} failed in a row"),
                ("last visit", f"{ago_text(page.last_visit_at, now)}: {outcome}"),
                ("failure", page.last_failure),
                ("last change", ago_text(page.last_change_at, now)),
                ("retry", None if retry_s is None else f"in {duration_text(max(retry_s, 0.0))}"),
                ("gone", f"{page.gone_count} times in a row" if page.gone_count else None),
                ("moved to", clean(page.redirect_url) or None),
                ("member", clean(_membership_text(page, now)) or None),
                ("etag", clean(page.etag) or None),
                ("last-modified", clean(page.last_modified) or None),
            ]
        )
    ]
    parts += ["", facts(_forecast_facts(page, now))]
    if page.visits:
        parts += ["", log_table(page.visits, now)]
    if page.versions:
        headings = ("version", "fetched", "status", "size", "stored", "type")
        parts += ["", table(headings, (_version_row(row, now) for row in page.versions))]
    return Group(*parts)


def _forecast_facts(page: models.PageDetail, now: float) -> list[tuple[str, str | None]]:
    """Return the change model of a page, its noise rules, and the time of its next visit."""
    when = "not scheduled"
    if page.next_visit_at is not None:
        wait_s = page.next_visit_at - now
        when = "due" if wait_s <= 0 else f"in {duration_text(wait_s)} at the earliest"
    noise, trust = page.noise, page.validators
    rules = f"{noise.page_rules} kinds of blocks on the page, {noise.host_rules} on the host"
    skew = f", clock {trust.clock_skew_s:+.0f} s" if trust.clock_skew_s else ""
    validators = f"etag {trust.etag}, last-modified {trust.last_modified}{skew}"
    return [
        *(change_facts(page.model) if page.model else ()),
        ("noise", rules),
        ("validators", validators.replace("_", " ")),
        ("next visit", f"{when}: {clean(page.next_visit_why)}"),
    ]


def change_facts(model: models.ModelStatus) -> list[tuple[str, str | None]]:
    """Return the change model of a page."""
    low, high = model.rate_interval_per_day
    gaps = ", ".join(duration_text(gap_s) for gap_s in model.recent_gaps_s)
    return [
        ("changes", f"{model.changed_visits} of {model.visits} visits"),
        ("change rate", f"{model.change_rate_per_day:.3g}/day, 90 %: {low:.3g} to {high:.3g}"),
        ("class", _class_text(model)),
        ("last intervals", gaps or None),
        ("unchanged", f"{model.unchanged_probability:.0%} probability"),
    ]


def _class_text(model: models.ModelStatus) -> str:
    if model.class_days is not None:
        likely = model.class_probabilities.get(model.class_days, 0.0)
        return f"every {duration_text(model.class_days * DAY_S)} ({likely:.0%})"
    low, high = (duration_text(days * DAY_S) for days in model.class_interval_days)
    return f"uncertain: every {low} to every {high} (90%)"


def _version_row(version: models.VersionStatus, now: float) -> Sequence[str]:
    return (
        str(version.version_id),
        ago_text(version.visited_at, now),
        str(version.status),
        size_text(version.size_bytes),
        size_text(version.stored_bytes),
        clean(version.content_type),
    )


LOG_HEADINGS = ("visit", "outcome", "status", "took", "wire", "url")


def log_table(visits: Sequence[models.VisitStatus], now: float) -> RenderableType:
    """Return visits, one per line."""
    return table(LOG_HEADINGS, (log_row(visit, now) for visit in visits))


def log_row(visit: models.VisitStatus, now: float) -> Sequence[str | Text]:
    """Return the cells of one visit."""
    url = clean(visit.url)
    why = " ".join(clean(each) for each in (visit.failure, visit.detail) if each)
    return (
        ago_text(visit.visited_at, now),
        outcome_text(visit.outcome),
        "" if visit.status is None else str(visit.status),
        duration_text(visit.duration_s),
        size_text(visit.wire_bytes),
        f"{url} ({why})" if why else url,
    )


def log_line(visit: models.VisitStatus, at: str) -> Text:
    """Return one visit as a line of the log."""
    why = " ".join(clean(each) for each in (visit.failure, visit.detail) if each)
    line = Text(f"{at} ")
    line.append(f"{visit.outcome!s:<12}", OUTCOME_STYLES[visit.outcome])
    line.append(f" {visit.status or '-':>3} {size_text(visit.wire_bytes):>9}  {clean(visit.url)}")
    return line.append(f" ({why})") if why else line


def added_table(added: models.Added) -> RenderableType:
    """Return the result of adding URLs."""
    parts: list[RenderableType] = [f"{plural(added.admitted, 'URL')} admitted to {added.site}"]
    if added.refused:
        parts.append(refusals_table(added.refused))
    return Group(*parts)
