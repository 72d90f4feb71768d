"""The live view of a running mirror on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crawld.cli.console import console
from crawld.cli.logs import log_above
from crawld.cli.progress_view import (
    HOSTS_SHOWN,
    PHASE_TEXTS,
    REDRAW_S,
    UNREACHABLE,
    CrawlProgress,
    RateMeter,
    pause_texts,
    read_progress,
    stuck_text,
    waiting_pages,
)
from crawld.cli.tables import next_slot_text, table
from crawld.core.display import count_text, duration_text, rate_text, size_text
from crawld.core.words import outcome_counts
from crawld.daemon.daemon import Daemon

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.status import HostStatus

BAR_COLUMNS = 40


async def watch_live(daemon: Daemon) -> None:
    """Redraw the live view until cancelled; the log appears above it."""
    out = console(stderr=True)
    rates = RateMeter()
    site, path = daemon.config.sites[0], daemon.database.path
    title = f"{site.name} into {path}; control it with: crawlctl --socket {daemon.socket_path}"
    with Live(console=out, auto_refresh=False, redirect_stdout=False) as live:
        log_above(out, level="warning")
        while True:
            progress = await read_progress(daemon)
            rates.add(trio.current_time(), progress.visit_count, progress.wire_bytes)
            live.update(mirror_view(progress, rates, title), refresh=True)
            await trio.sleep(REDRAW_S)


def mirror_view(progress: CrawlProgress, rates: RateMeter, title: str) -> RenderableType:
    """Return the live view of a mirror."""
    done = progress.known - progress.waiting
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=max(progress.known, 1), completed=done, width=BAR_COLUMNS),
        f"{count_text(done)} of {count_text(progress.known)} pages",
        f"{duration_text(progress.remaining_s)} left at this politeness"
        if progress.waiting
        else "",
    )
    figures = (
        f"{size_text(progress.wire_bytes)} received,"
        f" {rate_text(rates.visits_per_min / 60.0, 'visit')},"
        f" {size_text(rates.bytes_per_s)}/s, {count_text(progress.error_count)} errors; "
        f"{outcome_counts(progress.visits, progress.new_pages)}"
    )
    parts: list[RenderableType] = [Text(title, "bold"), bar, figures, *_state_lines(progress)]
    if progress.hosts:
        rows = (
            (
                each.host,
                count_text(waiting_pages(each)),
                duration_text(each.delay_s),
                _slot_text(each),
            )
            for each in progress.hosts[:HOSTS_SHOWN]
        )
        parts.append(table(("host", "waiting", "delay", "next slot"), rows))
    return Group(*parts)


def _slot_text(host: HostStatus) -> str:
    backoff = f", back-off level {host.backoff_level}" if host.backoff_level else ""
    return next_slot_text(host) + backoff


def _state_lines(progress: CrawlProgress) -> list[Text]:
    lines = [Text(text, "yellow") for text in pause_texts(progress.pauses)]
    if progress.stuck and not progress.pauses:
        text = f"nothing can be fetched: {stuck_text(progress.stuck)}; crawld tries again"
        lines.append(Text(text, "yellow"))
    elif progress.unreachable and not progress.pauses:
        lines.append(Text(UNREACHABLE, "yellow"))
    style = "dim" if progress.phase == "running" else "yellow"
    return [*lines, Text(PHASE_TEXTS[progress.phase], style)]
