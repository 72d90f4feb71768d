"""The live view and summary of `crawld demo`, with the true freshness of the mirror.

The site knows when each of its pages changed. Visits, read from the database as they are committed,
show which copy the mirror has.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import trio
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli.output import sparkline
from crawld.cli.progress_view import PHASE_TEXTS, RateMeter, pause_texts
from crawld.cli.tables import LOG_HEADINGS, facts, log_row, table
from crawld.core.display import count_text, duration_text, size_text
from crawld.core.page import Outcome
from crawld.core.words import outcome_counts, state_counts
from crawld.daemon.api.views import visit_status
from crawld.daemon.daemon import Daemon
from crawld.simweb.site import SimSite
from crawld.simweb.truth import (
    MeanFreshness,
    MirrorFreshness,
    freshness_by_fetch_time,
    mean_freshness,
)
from crawld.store import visit as visit_rows
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier
from crawld.store.visit import VisitRow

VISITS_SHOWN = 8
VISITS_READ = 10_000

FRESHNESS_SHOWN = 60

CURRENT_OUTCOMES = frozenset({Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED})


@dataclass(slots=True)
class DemoState:
    """The site and the state of its mirror.

    Attributes:
        site: the site.
        url: its URL.
        rates: rates of visits and bytes.
        visited_at: times of the visits that left a current copy, by URL.
        changed: visits that found a change, including the first of each page.
        latest: the last few visits.
        freshness: the last values of the freshness, each in [0, 1].
        truth: the last comparison with the site.
        pages: pages by state, as text.
    """

    site: SimSite
    url: str
    rates: RateMeter = field(default_factory=RateMeter)
    visited_at: dict[str, list[float]] = field(default_factory=dict)
    changed: int = 0
    latest: deque[VisitRow] = field(default_factory=lambda: deque(maxlen=VISITS_SHOWN))
    freshness: deque[float] = field(default_factory=lambda: deque(maxlen=FRESHNESS_SHOWN))
    truth: MirrorFreshness = field(default_factory=lambda: MirrorFreshness(1, 0, 0, 0.0))
    pages: str = ""
    _last_id: int = 0

    async def update(self, database: Database) -> None:
        """Read the new visits and compare the mirror with the site."""
        while True:
            rows = await database.read(visit_rows.log, after=self._last_id, limit=VISITS_READ)
            for row in rows:
                self._note(row)
            if len(rows) < VISITS_READ:
                break
        self.pages = state_counts(await database.read(frontier.counts))
        copied_at = {url: times[-1] for url, times in self.visited_at.items()}
        self.truth = freshness_by_fetch_time(self.site, copied_at, time.time())
        self.freshness.append(self.truth.freshness)

    def _note(self, row: VisitRow) -> None:
        self._last_id = row.visit_id
        self.latest.append(row)
        self.changed += row.outcome is Outcome.CHANGED
        if row.outcome in CURRENT_OUTCOMES:
            self.visited_at.setdefault(row.url, []).append(row.visited_at)

    @property
    def changes_seen(self) -> int:
        """Changes that the mirror detected, without first copies."""
        return self.changed - len(self.visited_at)

    def changes_happened(self) -> int:
        """Changes of the site so far."""
        now = time.time()
        return sum(self.site.revision(page, now) for page in range(self.site.graph.pages))

    def mean(self) -> MeanFreshness:
        """Freshness and age over the whole run."""
        return mean_freshness(self.site, self.visited_at, start=self.site.start_at, end=time.time())


def demo_view(state: DemoState, daemon: Daemon) -> RenderableType:
    """Return the live view."""
    truth = state.truth
    slots = daemon.crawl.schedule.statistics()
    visitor = daemon.crawl.visitor
    state.rates.add(trio.current_time(), sum(visitor.counts.values()), visitor.wire_bytes)
    pauses = pause_texts(daemon.crawl.schedule.pauses)
    now = time.time()
    visits = (log_row(visit_status(row), now) for row in state.latest)
    return Group(
        Text("crawld demo", "bold"),
        facts(
            [
                ("site", f"{state.url} changes every few seconds; open it in a browser"),
                ("mirror", f"{daemon.database.path}"),
                ("try", _commands(daemon)),
                ("pages", state.pages),
                (
                    "slots",
                    f"{count_text(slots.served)} served,"
                    f" {state.rates.visits_per_min / 60:.1f}/s, median {slots.lateness_p50_ms:.1f}"
                    f" ms late, {size_text(visitor.wire_bytes)} received",
                ),
                ("outcomes", outcome_counts(visitor.counts, visitor.new_pages)),
                (
                    "changes",
                    f"{count_text(state.changes_seen)} seen of"
                    f" {count_text(state.changes_happened())} that happened",
                ),
                ("fresh", _fresh_text(truth)),
                ("over time", Text(sparkline(state.freshness), "green")),
            ]
        ),
        "",
        table(LOG_HEADINGS, visits),
        "",
        Text("; ".join([*pauses, PHASE_TEXTS[daemon.phase]]), "yellow" if pauses else "dim"),
    )


def _commands(daemon: Daemon) -> str:
    socket = f"--socket {daemon.socket_path}"
    return f"crawlctl status {socket}\ncrawlctl log -f {socket}\ncrawlctl pause {socket}"


def _fresh_text(truth: MirrorFreshness) -> Text:
    text = Text(f"{truth.freshness:.1%}", "bold green" if truth.freshness > 0.5 else "bold red")
    return text.append(
        f" truly current: {truth.fresh} of {truth.pages} pages, {truth.copied} copied,"
        f" mean age {duration_text(truth.mean_age_s)}",
        "default",
    )


def intro_text(state: DemoState, daemon: Daemon) -> str:
    """Return the addresses of the site and the mirror, for output without a terminal."""
    return (
        f"site {state.url}\nmirror {daemon.database.path}\n"
        f"try: crawlctl status --socket {daemon.socket_path}"
    )


def progress_line(state: DemoState, daemon: Daemon) -> str:
    """Return the state of the mirror on one line."""
    return (
        f"fresh {state.truth.freshness:.1%},"
        f" mean age {duration_text(state.truth.mean_age_s)};"
        f" pages: {state.pages};"
        f" changes: {state.changes_seen} seen of {state.changes_happened()};"
        f" visits: {outcome_counts(daemon.crawl.visitor.counts, daemon.crawl.visitor.new_pages)}"
    )


def demo_summary(state: DemoState, daemon: Daemon) -> dict[str, Any]:
    """Return the result of the demo as JSON types."""
    mean = state.mean()
    return {
        "url": state.url,
        "pages": state.truth.pages,
        "copied": state.truth.copied,
        "fresh": state.truth.fresh,
        "freshness": round(state.truth.freshness, 4),
        "mean_freshness": round(mean.freshness, 4),
        "mean_age_s": round(mean.age_s, 3),
        "changes_seen": state.changes_seen,
        "changes_happened": state.changes_happened(),
        "visits": {outcome.value: n for outcome, n in daemon.crawl.visitor.counts.items()},
        "wire_bytes": daemon.crawl.visitor.wire_bytes,
        "duration_s": round(time.time() - state.site.start_at, 3),
    }


def summary_text(summary: dict[str, Any]) -> str:
    """Return the result of the demo as text."""
    return (
        f"{summary['copied']} of {summary['pages']} pages copied,"
        f" {summary['freshness']:.1%} current at the end,"
        f" {summary['mean_freshness']:.1%} on average over {duration_text(summary['duration_s'])};"
        f" {summary['changes_seen']} of {summary['changes_happened']} changes seen in"
        f" {count_text(sum(summary['visits'].values()))} visits"
    )
