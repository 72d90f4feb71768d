"""A running mirror as a person sees it: one look at the daemon, and the live view made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crawld.cli.tables import counts_text, next_slot_text, table
from crawld.core.display import count_text, duration_text, size_text
from crawld.core.page import Outcome, PageState
from crawld.daemon.api.schemas.status import HostStatus
from crawld.daemon.api.views import host_status
from crawld.daemon.daemon import Daemon
from crawld.daemon.phase import Phase
from crawld.net.outage import PROBE_S
from crawld.store.frontier import frontier
from crawld.store.frontier import host as host_rows

RATE_WINDOW_S = 60.0
"""Rates are those of the last minute."""

LOOKUP_S = 2.0
"""After this long a host whose turn came has been looked for."""

UNREACHABLE = "no host can be reached: no network, or names that do not exist; tried again politely"

HOSTS_READ = 1_000
HOSTS_SHOWN = 8
BAR_COLUMNS = 40

ERROR_OUTCOMES = (Outcome.FAILED, Outcome.BLOCKED)

PAUSE_TEXTS: Mapping[str, str] = {
    "network": "no network: no name or host can be reached; "
    f"tried again every {duration_text(PROBE_S)}, nothing is given up",
    "disk": "the database cannot be written; goes on as soon as it can",
    "disk_room": "the disk is nearly full; goes on as soon as there is room",
    "operator": "paused; crawlctl resume goes on",
    "drain": "drained; crawlctl resume goes on",
}

PHASE_TEXTS: Mapping[Phase, str] = {
    "starting": "starting",
    "running": "Ctrl-C drains and ends",
    "draining": "draining: the fetches under way end first; Ctrl-C ends at once",
    "stopping": "stopping: what was fetched is being committed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProgress:
    """A running mirror at one instant.

    Attributes:
        pages: pages by state.
        visits: visits since the start by outcome.
        wire_bytes: body bytes received since the start.
        on_turn: hosts being asked now.
        phase: of the daemon.
        pauses: why no fetch is started.
        hosts: hosts with pages waiting, most first.
        unreached: whether every host that waits was looked for and none has an address.
    """

    pages: Mapping[PageState, int]
    visits: Mapping[Outcome, int]
    wire_bytes: int
    on_turn: int
    phase: Phase
    pauses: frozenset[str]
    hosts: Sequence[HostStatus]
    unreached: bool

    @property
    def known(self) -> int:
        """Pages known."""
        return sum(self.pages.values())

    @property
    def waiting(self) -> int:
        """Pages that wait for their first visit."""
        return self.pages[PageState.DISCOVERED]

    @property
    def visit_count(self) -> int:
        """Visits since the start."""
        return sum(self.visits.values())

    @property
    def errors(self) -> int:
        """Visits that failed since the start."""
        return sum(self.visits[outcome] for outcome in ERROR_OUTCOMES)

    @property
    def left_s(self) -> float:
        """How long the pages that wait will take: politeness alone, all hosts side by side."""
        return max(map(_remaining_s, self.hosts), default=0.0)


def _remaining_s(host: HostStatus) -> float:
    delay_s = host.delay_s or 0.0
    first_s = delay_s if host.next_fetch_in_s is None else host.next_fetch_in_s
    return first_s + (_waiting(host) - 1) * delay_s


def _waiting(host: HostStatus) -> int:
    return host.pages[PageState.DISCOVERED]


async def read_progress(daemon: Daemon) -> CrawlProgress:
    """Look at a running mirror."""
    pages = dict.fromkeys(PageState, 0)
    for site_id in daemon.state.sites:
        for state, n in (await daemon.database.read(frontier.counts, site_id)).items():
            pages[state] += n
    rows = await daemon.database.read(host_rows.list_hosts, limit=HOSTS_READ)
    hosts = [host_status(daemon, row) for row in rows if row.pages_discovered]
    on_turn = daemon.crawl.schedule.statistics().on_turn
    return CrawlProgress(
        pages=pages,
        visits=dict(daemon.crawl.visitor.counts),
        wire_bytes=daemon.crawl.visitor.wire_bytes,
        on_turn=on_turn,
        phase=daemon.phase,
        pauses=daemon.crawl.schedule.pauses,
        hosts=sorted(hosts, key=_waiting, reverse=True),
        unreached=not on_turn and _no_host_resolved(daemon, hosts),
    )


def _no_host_resolved(daemon: Daemon, hosts: Sequence[HostStatus]) -> bool:
    # at a start every known host waits its delay before it is looked for
    looked_for_s = LOOKUP_S + max((host.delay_s or 0.0 for host in hosts), default=0.0)
    if not hosts or daemon.clock.now() - daemon.started_at < looked_for_s:
        return False
    return all(daemon.state.hosts[host.host].slot.address is None for host in hosts)


def mirror_view(sight: CrawlProgress, rates: RateMeter, title: str) -> RenderableType:
    """Return the live view of a mirror."""
    done = sight.known - sight.waiting
    bar = Table.grid(padding=(0, 2, 0, 0))
    bar.add_row(
        ProgressBar(total=max(sight.known, 1), completed=done, width=BAR_COLUMNS),
        f"{count_text(done)} of {count_text(sight.known)} pages",
        f"{duration_text(sight.left_s)} left at this politeness" if sight.waiting else "",
    )
    figures = (
        f"{size_text(sight.wire_bytes)} received, {rates.visits_per_min:.3g} visits/min,"
        f" {size_text(rates.bytes_per_s)}/s, {count_text(sight.errors)} errors; "
        f"{counts_text(sight.visits)}"
    )
    parts: list[RenderableType] = [Text(title, "bold"), bar, figures, *_state_lines(sight)]
    if sight.hosts:
        rows = (
            (each.host, count_text(_waiting(each)), duration_text(each.delay_s), _slot_text(each))
            for each in sight.hosts[:HOSTS_SHOWN]
        )
        parts.append(table(("host", "waiting", "delay", "next slot"), rows))
    return Group(*parts)


def _slot_text(host: HostStatus) -> str:
    backed_off = f", backed off {host.backoff_level} steps" if host.backoff_level else ""
    return next_slot_text(host) + backed_off


def _state_lines(sight: CrawlProgress) -> list[Text]:
    lines = [Text(PAUSE_TEXTS.get(reason, reason), "yellow") for reason in sorted(sight.pauses)]
    if sight.unreached and not sight.pauses:
        lines.append(Text(UNREACHABLE, "yellow"))
    return [*lines, Text(PHASE_TEXTS[sight.phase], "dim" if sight.phase == "running" else "yellow")]


class RateMeter:
    """How fast visits and bytes came over the last minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, int]] = deque()

    def add(self, at: float, visits: int, wire_bytes: int) -> None:
        """Note the totals at an instant of any clock that does not go back."""
        self._samples.append((at, visits, wire_bytes))
        while self._samples[-1][0] - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()

    @property
    def visits_per_min(self) -> float:
        """Visits a minute; 0 before there are two samples."""
        return 60.0 * self._per_s(1)

    @property
    def bytes_per_s(self) -> float:
        """Body bytes a second."""
        return self._per_s(2)

    def _per_s(self, column: int) -> float:
        if len(self._samples) < 2:
            return 0.0
        first, last = self._samples[0], self._samples[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 1e-9)


def progress_fields(sight: CrawlProgress, rates: RateMeter) -> dict[str, object]:
    """Return what a line of progress says."""
    fields: dict[str, object] = {
        "done": sight.known - sight.waiting,
        "known": sight.known,
        "errors": sight.errors,
        "received": size_text(sight.wire_bytes),
        "per_min": round(rates.visits_per_min, 1),
        "left": duration_text(sight.left_s),
    }
    if sight.pauses:
        fields["paused"] = "; ".join(PAUSE_TEXTS.get(each, each) for each in sorted(sight.pauses))
    elif sight.unreached:
        fields["trouble"] = UNREACHABLE
    return fields
