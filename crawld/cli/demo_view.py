"""The live view and summary of `crawld demo`, with the true freshness of the mirror.

The site knows when each of its pages changed. Visits, read from the database as they are committed,
show which copy the mirror has.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import trio
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli.output import sparkline
from crawld.cli.progress_view import PHASE_TEXTS, RateMeter, pause_texts
from crawld.cli.tables import LOG_HEADINGS, facts, log_row, table
from crawld.core.display import count_text, duration_text, size_text
from crawld.core.page import GOOD_COPY, Outcome
from crawld.core.url import split_url
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
from crawld.store import visit_log
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier
from crawld.store.visit_log import VisitRow

VISITS_SHOWN = 8
FIXED_LINES = 16
"""Lines of the view besides the visits: those of `demo_view` and the heading of the visits, and one
for the cursor."""

COMMANDS = ("status", "log -f", "pause")
"""What the view suggests; the last one is `resume` while the mirror is paused."""

COLUMNS, INDENT = 80, "  "

VISITS_READ = 10_000

FRESHNESS_SHOWN = 60


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
            rows = await database.read(visit_log.log, after=self._last_id, limit=VISITS_READ)
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
        if row.outcome in GOOD_COPY:
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


def demo_view(state: DemoState, daemon: Daemon, *, lines: int) -> RenderableType:
    """Return the live view; with 80 columns it fits in `lines`, from 18 on.

    Longer paths of program and socket take a few lines more.
    """
    truth = state.truth
    slots = daemon.crawl.schedule.statistics()
    visitor = daemon.crawl.visitor
    state.rates.add(trio.current_time(), sum(visitor.counts.values()), visitor.wire_bytes)
    now = time.time()
    typed = [line for command in commands(daemon) for line in _lines_of(command)]
    fixed = FIXED_LINES - len(COMMANDS) + sum(ceil(len(line) / COLUMNS) for line in typed)
    latest = list(state.latest)[-max(min(VISITS_SHOWN, lines - fixed), 1) :]
    return Group(
        Text("crawld demo: a small wiki that changes all the time, and its mirror", "bold"),
        _state_text(daemon),
        facts([*_addresses(state, daemon), ("try", "in another terminal, in this directory:")]),
        *(Text(line, overflow="fold") for line in typed),
        facts(
            [
                ("pages", state.pages),
                (
                    "requests",
                    f"{count_text(slots.served)}, {state.rates.visits_per_min / 60:.1f}/s,"
                    f" {size_text(visitor.wire_bytes)} received",
                ),
                (
                    "changes",
                    f"{count_text(state.changes_seen)} seen of"
                    f" {count_text(state.changes_happened())} that happened",
                ),
                ("fresh", _fresh_text(truth)),
                ("over time", Text(sparkline(state.freshness), "green")),
            ]
        ),
        # The host of every visit is the same.
        _short_log(
            [(*log_row(visit_status(row), now)[:-1], split_url(row.url).target) for row in latest]
        ),
    )


def _short_log(rows: list[Sequence[str | Text]]) -> RenderableType:
    """Return visits, each on one line: long URLs are cut."""
    made = table(LOG_HEADINGS, rows)
    for column in made.columns:
        column.overflow, column.no_wrap = "ellipsis", True
    return made


def _state_text(daemon: Daemon) -> Text:
    if "operator" in daemon.crawl.schedule.pauses:
        return Text("PAUSED: nothing is fetched; the last command below resumes it", "bold yellow")
    pauses = pause_texts(daemon.crawl.schedule.pauses)
    text = "; ".join([*pauses, PHASE_TEXTS[daemon.phase]])
    return Text(text, "yellow" if pauses else "dim", no_wrap=True, overflow="ellipsis")


def _addresses(state: DemoState, daemon: Daemon) -> list[tuple[str, str | Text | None]]:
    """Return what can be opened in a browser; None where there is nothing."""
    mirror = daemon.web_url
    return [
        ("site", state.url),
        ("mirror", mirror),
        ("dashboard", mirror and f"{mirror.rstrip('/')}/-/dashboard"),
    ]


def commands(daemon: Daemon) -> list[str]:
    """Return commands that work as pasted, in this directory."""
    program = "crawlctl"
    if shutil.which(program) is None:
        places = (Path(each).with_name(program) for each in (sys.argv[0], sys.executable))
        found = (shlex.quote(_shortest(each)) for each in places if each.exists())
        program = next(found, program)
    socket = f"--socket {shlex.quote(_shortest(daemon.socket_path))}"
    last = "resume" if "operator" in daemon.crawl.schedule.pauses else "pause"
    return [f"{program} {command} {socket}" for command in (*COMMANDS[:-1], last)]


def _shortest(path: Path) -> str:
    """Return the shorter name of a file: from this directory, or from the root."""
    near = os.path.relpath(path)
    # A shell looks for a name without a slash in other directories.
    return min(near if os.sep in near else f"./{near}", str(path.absolute()), key=len)


def _lines_of(command: str) -> list[str]:
    """Return a command as lines of a terminal of 80 columns; a shell reads them as one."""
    if len(command) + len(INDENT) <= COLUMNS:
        return [INDENT + command]
    start, option, value = command.partition(" --socket ")
    return [f"{INDENT}{start} \\", f"{INDENT}   {option}{value}"]


def _fresh_text(truth: MirrorFreshness) -> Text:
    text = Text(f"{truth.freshness:.1%}", "bold green" if truth.freshness > 0.5 else "bold red")
    return text.append(
        f" truly current: {truth.fresh} of {truth.pages} pages, {truth.copied} copied,"
        f" mean age {duration_text(truth.mean_age_s)}",
        "default",
    )


def intro_text(state: DemoState, daemon: Daemon) -> str:
    """Return addresses and commands, for output without a terminal."""
    lines = [f"{name} {value}" for name, value in _addresses(state, daemon) if value]
    return "\n".join([*lines, *(f"try: {command}" for command in commands(daemon))])


def progress_line(state: DemoState, daemon: Daemon) -> str:
    """Return the state of the mirror on one line."""
    return (
        f"{'PAUSED, ' if 'operator' in daemon.crawl.schedule.pauses else ''}"
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
