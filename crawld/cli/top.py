"""`crawlctl top`: the daemon at a glance, live: state, what needs attention, hosts, changes."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crawld.cli.console import console
from crawld.cli.output import clean, printable_json
from crawld.cli.response import read_response
from crawld.cli.session import Session
from crawld.cli.tables import next_slot_text
from crawld.core.display import (
    ago_text,
    count_text,
    delay_text,
    duration_text,
    plural,
    rate_text,
    size_text,
)
from crawld.core.units import DAY_S
from crawld.core.words import (
    PAUSE_WORDS,
    labels,
    outcome_counts,
    state_counts,
    trouble_label,
)
from crawld.errors import EXIT_OK, OperatorError

if TYPE_CHECKING:
    from crawld.daemon.api.schemas import status as models

COLUMNS = 80
"""Width of the view, on a wider terminal too; a narrower one cuts its lines."""

VISITS_READ = 200
"""Latest visits in which the busiest hosts are counted."""
HOSTS_SHOWN = 5
CHANGES_SHOWN = 6
SITES_SHOWN = 3
ATTENTION_SHOWN = 6
LONG_STALL_MS = 500.0
OLD_VISIT_S = 60.0
"""Hosts are busy if they were visited within this time."""


def top(
    session: Session,
    *,
    every: Annotated[
        float, typer.Option(min=0.2, max=DAY_S, help="Seconds between two looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once, for scripts.")] = False,
) -> int:
    """Show the daemon live: what it does, what needs attention, what changed; q quits."""
    from crawld.cli.watch import show_at_intervals

    glances = Glances(session)
    if session.as_json:
        print(printable_json(json.dumps(glances.look().as_json(), ensure_ascii=False)))
    elif once:
        console().print(top_view(glances.look(), None))
    else:
        with contextlib.suppress(KeyboardInterrupt):
            show_at_intervals(glances.view, every)
    return EXIT_OK


@dataclass(frozen=True, slots=True)
class Glance:
    """What the daemon told at one time.

    Attributes:
        hosts: those with most of the latest visits, and how many they had.
        changes: newest first; None: the daemon does not list changes.
    """

    status: models.Status
    sites: Sequence[models.SiteStatus]
    jobs: Sequence[models.JobStatus]
    wikis: Sequence[models.WikiStatus]
    hosts: Sequence[tuple[models.HostDetail, int]]
    changes: Sequence[Any]

    def as_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "status": self.status,
            "attention": [each.plain for each in attention(self)],
            "hosts": [{"visits": visits, **dict(host)} for host, visits in self.hosts],
            "changes": self.changes,
        }


@dataclass(slots=True)
class Glances:
    """Looks at a daemon, one after another."""

    session: Session
    _before: Glance | None = field(default=None, init=False)

    def view(self) -> RenderableType:
        """Look, and return the view; rates are those since the look before."""
        found = self.look()
        shown = top_view(found, self._before)
        self._before = found
        return shown

    def look(self) -> Glance:
        """Ask the daemon.

        Raises:
            UnreachableError: it does not answer.
        """
        get = self.session.client.get
        status: models.Status = read_response(get("/status"))
        visits: list[models.VisitStatus] = read_response(get("/log", limit=VISITS_READ))
        busy = Counter(
            each.host for each in visits if each.visited_at > status.now - OLD_VISIT_S
        ).most_common(HOSTS_SHOWN)
        hosts = []
        for name, count in busy:
            with contextlib.suppress(OperatorError):  # purged meanwhile
                hosts.append((read_response(get(f"/hosts/{quote(name, safe='')}")), count))
        changes = read_response(get("/changes", limit=CHANGES_SHOWN))
        return Glance(
            status=status,
            sites=read_response(get("/sites")),
            jobs=read_response(get("/jobs")),
            wikis=read_response(get("/wikis")),
            hosts=hosts,
            changes=changes.events,
        )


def top_view(found: Glance, before: Glance | None) -> RenderableType:
    """Return a glance as text, 80 columns wide; colors only stress what the words say."""
    troubles = list(attention(found))
    shown = troubles[:ATTENTION_SHOWN]
    if len(troubles) > len(shown):
        shown.append(Text(f"and {len(troubles) - len(shown)} more", "yellow"))
    parts: list[RenderableType] = [
        *_overview(found, before),
        *_section("Needs attention", shown, "nothing"),
        *_section("Busiest hosts", _hosts(found), _no_host(found)),
        *_section("Latest changes", _changes(found), "none so far"),
    ]
    return Group(*parts)


def _section(heading: str, lines: Sequence[RenderableType], empty: str) -> Iterator[RenderableType]:
    yield Text(f"\n{heading}" if lines else f"\n{heading}: {empty}", "bold")
    yield from lines


def _line(text: str, style: str = "") -> Text:
    """Return a line that is cut at the edge."""
    return Text(clean(text), style, no_wrap=True, overflow="ellipsis")


def _overview(found: Glance, before: Glance | None) -> Iterator[RenderableType]:
    status = found.status
    phase: str = status.phase
    if status.pauses:
        phase = f"paused ({labels(PAUSE_WORDS, status.pauses)})"
    up = duration_text(status.now - status.started_at)
    yield _line(f"crawld {status.version}, {phase}, up {up}, pid {status.pid}: {status.db}", "bold")
    yield _line(f"pages   {count_text(status.pages_in_all)}: {state_counts(status.pages)}")
    made = sum(status.visits.values())
    yield _line(f"visits  {count_text(made)}: {outcome_counts(status.visits, status.new_pages)}")
    since, old_made, old_bytes = status.started_at, 0, 0
    if before is not None and before.status.started_at == status.started_at:
        since, old_bytes = before.status.now, before.status.wire_bytes
        old_made = sum(before.status.visits.values())
    elapsed_s = max(status.now - since, 1e-3)
    rate = rate_text((made - old_made) / elapsed_s, "visit")
    received = size_text((status.wire_bytes - old_bytes) / elapsed_s)
    slots, memory = status.slots, size_text(status.memory_bytes)
    fetched = f"{count_text(slots.on_turn)} of {plural(slots.hosts, 'host')} being fetched"
    yield _line(f"now     {rate}, {received}/s, {fetched}, {memory} memory")
    fresh = [each for each in status.freshness if each.host is None and each.freshness is not None]
    for each in fresh[:SITES_SHOWN]:
        copies = "1 copy" if each.copies == 1 else f"{count_text(each.copies)} copies"
        interval = f"({each.low:.1%} to {each.high:.1%})"
        yield _line(f"fresh   {each.freshness:.1%} {interval} of {copies} of {each.site}")


def attention(found: Glance) -> Iterator[Text]:
    """Yield what the operator may want to act on, the worst first."""
    yield from (_line(text, "red") for text in _faults(found.status))
    yield from (_line(text, "yellow") for text in _troubles(found))


def _faults(status: models.Status) -> Iterator[str]:
    if status.stalled:
        yield f"the database cannot be written: {status.stalled}"
    for reason in status.pauses:
        ends = "; to resume: crawlctl resume" if reason in ("operator", "drain") else ""
        yield f"no fetch starts: {labels(PAUSE_WORDS, [reason])}{ends}"


def _troubles(found: Glance) -> Iterator[str]:
    status = found.status
    if status.quarantined:
        yield f"{plural(status.quarantined, 'page')} in quarantine; see: crawlctl quarantine"
    yield from (f"{host}: too many pages vanish at once; kept" for host in status.vanishing)
    for name, trouble in status.notify_troubles.items():
        yield f"messages of rule {name} wait: {trouble}; see: crawlctl notify"
    yield from filter(None, map(_site_trouble, found.sites))
    for wiki in found.wikis:
        if wiki.trouble:
            yield f"{wiki.api_url}: {trouble_label(wiki.trouble)}; see: crawlctl wikis"
    yield from (f"job {job.name}: {job.detail}" for job in found.jobs if job.result == "failed")
    for host, _ in found.hosts:
        if host.backoff_level:
            name, level = host.host, host.backoff_level
            yield f"{name}: back-off level {level}; see: crawlctl host {name}"
    if status.loop_stall_recent_ms >= LONG_STALL_MS:
        stall = duration_text(status.loop_stall_recent_ms / 1e3)
        yield f"the daemon stood still for {stall} in the last minutes ({status.loop_stall_by})"


def _site_trouble(site: models.SiteStatus) -> str | None:
    if site.paused:
        return f"site {site.name} is paused; to resume: crawlctl resume --site {site.name}"
    if site.monthly_bytes and (site.received_bytes_this_month or 0) >= site.monthly_bytes:
        return f"site {site.name} has used its {size_text(site.monthly_bytes)} of this month"
    return None


def _hosts(found: Glance) -> list[RenderableType]:
    if not found.hosts:
        return []
    made = Table(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0), width=COLUMNS)
    made.add_column("host", no_wrap=True, overflow="ellipsis", ratio=1)
    for heading in ("lately", "waiting", "failed", "delay"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("next slot", no_wrap=True, min_width=16)
    for host, visits in found.hosts:
        made.add_row(
            clean(host.host),
            count_text(visits),
            count_text(host.pages.get("discovered", 0)),  # type: ignore[call-overload]
            count_text(host.failure_count),
            delay_text(host.delay_s),
            next_slot_text(host),
        )
    return [made]


def _no_host(found: Glance) -> str:
    return f"none was visited in the last {duration_text(OLD_VISIT_S)}"


def _changes(found: Glance) -> list[RenderableType]:
    now = found.status.now
    return [
        _line(f"{ago_text(each.at, now):>16}  {each.kind:<8} {each.title or each.url}")
        for each in found.changes
    ]


COMMANDS = (top,)
