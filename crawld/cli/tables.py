"""Tables of the responses of the control socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crawld.cli.output import clean
from crawld.core import words
from crawld.core.display import (
    ago_text,
    count_text,
    delay_text,
    duration_text,
    plural,
    rate_text,
    size_text,
)
from crawld.core.page import Outcome, PageState
from crawld.core.politeness import DAY_S
from crawld.core.words import (
    FAILURE_WORDS,
    OUTCOME_WORDS,
    REFUSAL_WORDS,
    ROBOTS_WORDS,
    STATE_WORDS,
    TRUST_WORDS,
    label,
    state_counts,
)

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status as models
    from crawld.daemon.api.schemas.page_profiles import SectionProfile
    from crawld.daemon.api.schemas.url_pattern import UrlPatternStatus

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


def listing(
    headings: Sequence[str], rows: Iterable[Sequence[str | Text]], empty: str
) -> RenderableType:
    """Return a table; without rows a text that tells why, and what would make some."""
    made = table(headings, rows)
    return made if made.row_count else empty


def facts(pairs: Iterable[tuple[str, str | Text | None]]) -> Table:
    """Return names and values, one per line; values of None are left out."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            made.add_row(name, value)
    return made


def outcome_text(outcome: Outcome | None, *, first_copy: bool = False) -> Text:
    """Return an outcome in its color; a first copy is new, not changed."""
    if outcome is None:
        return Text("-")
    return Text(words.NEW if first_copy else OUTCOME_WORDS[outcome], OUTCOME_STYLES[outcome])


def sites_table(sites: list[models.SiteStatus]) -> RenderableType:
    """Return the sites and their progress."""
    headings = (
        "site", "state", "known", "visited", "waiting", "shared", "requisites", "delay", "source",
        "hosts",
    )  # fmt: skip
    empty = (
        "no sites; to mirror one: crawlctl add URL, or [[site]] in the config and crawlctl reload"
    )
    return listing(headings, (_site_row(site) for site in sites), empty)


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
        delay_text(site.host_delay_s),
        site.source,
        shown + more,
    )


def hosts_table(hosts: Sequence[models.HostStatus]) -> RenderableType:
    """Return hosts: pages, politeness, back-off."""
    headings = (
        "host", "known", "waiting", "visits", "changes", "failed", "wire", "delay", "back-off",
        "next slot",
    )  # fmt: skip
    empty = "no hosts; they come with the seeds of sites: crawlctl sites"
    return listing(headings, (_host_row(host) for host in hosts), empty)


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
        delay_text(host.delay_s),
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
                ("pages", f"{count_text(host.pages_in_all)}: {state_counts(host.pages)}"),
                ("visits", f"{visits}, {count_text(host.failure_count)} failed"),
                ("received", size_text(host.wire_bytes)),
                ("last request", ago_text(host.last_fetch_at, now)),
                ("delay", delay_text(host.delay_s) or None),
                ("back-off", _backoff_text(host, now)),
                ("closed for", _closed_text(host, closed_s)),
                ("next slot", next_slot_text(host)),
                ("replica", host.replica.text if host.replica is not None else None),
                ("replicas", _replicas_text(host)),
            ]
        )
    ]
    if host.robots:
        headings = ("robots.txt of", "found", "status", "size", "rules", "ignored", "fetched")
        parts += ["", table(headings, (_robots_row(robots, now) for robots in host.robots))]
    if host.refused_urls:
        parts += ["", refusals_table(host.refused_urls)]
    if host.profiles:
        parts += ["", _profiles_table(host.profiles)]
    if host.url_patterns:
        parts += ["", _patterns_table(host.url_patterns)]
    return Group(*parts)


def _profiles_table(profiles: Sequence[SectionProfile]) -> RenderableType:
    rows = (
        (
            each.site,
            clean(each.section) or "/",
            each.profile or "none works",
            count_text(each.visits),
            count_text(each.trials),
        )
        for each in profiles
    )
    return table(("site", "section", "asked as", "visits of the host", "trials"), rows)


def _patterns_table(patterns: Sequence[UrlPatternStatus]) -> RenderableType:
    rows = (
        (clean(each.pattern), *map(count_text, (each.pages, each.fresh, each.budget, each.refused)))
        for each in patterns
    )
    return table(("form of URLs", "pages", "with new text", "budget", "refused"), rows)


def _replicas_text(host: models.HostDetail) -> str | None:
    if not host.replicas:
        return None
    more = "" if len(host.replicas) <= 3 else f" and more: crawlctl replicas list {host.host}"
    return ", ".join(host.replicas[:3]) + more


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
        ROBOTS_WORDS.get(robots.verdict, robots.verdict or ""),
        "" if robots.status is None else str(robots.status),
        size_text(robots.text_bytes),
        "" if robots.rules is None else count_text(robots.rules),
        count_text(robots.rules_ignored) if robots.rules_ignored else "",
        ago_text(robots.fetched_at, now),
    )


def refusals_table(refused: Sequence[models.RefusedUrls]) -> RenderableType:
    """Return the reasons for refused URLs."""
    rows = (
        (label(REFUSAL_WORDS, each.reason), count_text(each.refused), clean(each.example))
        for each in refused
    )
    return table(("reason", "refused", "example"), rows)


def pages_table(pages: Sequence[models.PageStatus], now: float) -> RenderableType:
    """Return pages, one per line."""
    headings = ("page", "state", "depth", "outcome", "last visit", "last change", "url")
    empty = "no such pages; they come with the seeds of sites and with links: crawlctl sites"
    return listing(headings, (_page_row(page, now) for page in pages), empty)


def _page_row(page: models.PageStatus, now: float) -> Sequence[str | Text]:
    return (
        str(page.page_id),
        STATE_WORDS[page.state],
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
    outcome = OUTCOME_WORDS[page.last_outcome] if page.last_outcome else "none yet"
    visits = f"{count_text(page.visit_count)}, {count_text(page.change_count)} stored a version"
    retry_s = None if page.retry_at is None else page.retry_at - now
    parts: list[RenderableType] = [
        facts(
            [
                ("url", clean(page.url)),
                ("title", clean(page.title) or None),
                ("site", page.site),
                ("state", STATE_WORDS[page.state]),
                ("depth", "seed" if page.seed else str(page.depth)),
                ("importance", f"{page.importance:g}"),
                ("discovered", ago_text(page.discovered_at, now)),
                ("visits", f"{visits}, {count_text(page.failure_count)} failed in a row"),
                ("last visit", f"{ago_text(page.last_visit_at, now)}: {outcome}"),
                ("failure", label(FAILURE_WORDS, page.last_failure) or None),
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
    etag, modified = TRUST_WORDS[trust.etag], TRUST_WORDS[trust.last_modified]
    validators = f"etag {etag}, last-modified {modified}{skew}"
    return [
        *(change_facts(page.model) if page.model else ()),
        ("noise", rules),
        ("validators", validators),
        ("next visit", f"{when}: {clean(page.next_visit_why)}"),
    ]


def change_facts(model: models.ModelStatus) -> list[tuple[str, str | None]]:
    """Return the change model of a page; without evidence only that there is none."""
    told: list[tuple[str, str | None]] = [("changes", model.text)]
    if not model.has_evidence:
        return told
    low, high = model.rate_interval_per_day
    rate = rate_text(model.change_rate_per_day / DAY_S, "change")
    slow, fast = (rate_text(each / DAY_S, "change") for each in (low, high))
    gaps = ", ".join(duration_text(gap_s) for gap_s in model.recent_gaps_s)
    return [
        *told,
        ("change rate", f"{rate} (90 %: {slow} to {fast})"),
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
        copy_size_text(version),
        size_text(version.stored_bytes),
        clean(version.content_type),
    )


def copy_size_text(version: models.VersionStatus) -> str:
    """Return the size of a stored copy, and whether the page is larger."""
    return size_text(version.size_bytes) + (", truncated" if version.truncated else "")


LOG_HEADINGS = ("visit", "outcome", "status", "took", "wire", "url")


def log_table(visits: Sequence[models.VisitStatus], now: float) -> RenderableType:
    """Return visits, one per line."""
    return table(LOG_HEADINGS, (log_row(visit, now) for visit in visits))


def log_row(visit: models.VisitStatus, now: float) -> Sequence[str | Text]:
    """Return the cells of one visit."""
    url = clean(visit.url)
    why = _visit_why(visit)
    return (
        ago_text(visit.visited_at, now),
        outcome_text(visit.outcome, first_copy=visit.first_copy),
        "" if visit.status is None else str(visit.status),
        duration_text(visit.duration_s),
        size_text(visit.wire_bytes),
        f"{url} ({why})" if why else url,
    )


def _visit_why(visit: models.VisitStatus) -> str:
    return ": ".join(filter(None, (label(FAILURE_WORDS, visit.failure), clean(visit.detail))))


def log_line(visit: models.VisitStatus, at: str) -> Text:
    """Return one visit as a line of the log."""
    why = _visit_why(visit)
    line = Text(f"{at} ")
    word = outcome_text(visit.outcome, first_copy=visit.first_copy).plain
    line.append(f"{word:<12}", OUTCOME_STYLES[visit.outcome])
    line.append(f" {visit.status or '-':>3} {size_text(visit.wire_bytes):>9}  {clean(visit.url)}")
    return line.append(f" ({why})") if why else line


def added_table(added: models.Added) -> RenderableType:
    """Return the result of adding URLs."""
    to = f"the new site {added.site}" if added.new_site else f"site {added.site}"
    parts: list[RenderableType] = [f"{plural(added.admitted, 'URL')} admitted to {to}"]
    parts += [Text(f"warning: {clean(each)}", "yellow") for each in added.warnings]
    if added.refused:
        parts.append(refusals_table(added.refused))
    return Group(*parts)
