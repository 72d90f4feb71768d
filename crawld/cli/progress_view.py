"""Progress of a running mirror: a snapshot of the daemon, its rates, and its log line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from crawld.core.display import duration_text, size_text
from crawld.core.page import Outcome, PageState
from crawld.daemon.daemon import Daemon
from crawld.daemon.phase import Phase
from crawld.net.outage import PROBE_S
from crawld.store.frontier import frontier
from crawld.store.frontier import host as host_rows

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.status import HostStatus

RATE_WINDOW_S = 60.0
"""Rates are averages over this window."""

LOOKUP_S = 2.0
"""Time allowed for a DNS lookup; after it, a host without an address counts as not found."""

UNREACHABLE = "no host can be reached: no network, or unknown names; retrying"

REDRAW_S = 0.5

HOSTS_READ = 1_000
HOSTS_SHOWN = 8

ERROR_OUTCOMES = (Outcome.FAILED, Outcome.BLOCKED)

PAUSE_TEXTS: Mapping[str, str] = {
    "network": "no network: no name or host can be reached; "
    f"retry every {duration_text(PROBE_S)}, no page is given up",
    "disk": "the database cannot be written; the crawl resumes when it can",
    "disk_room": "the disk is nearly full; the crawl resumes when there is space",
    "operator": "paused; to resume: crawlctl resume",
    "drain": "drained; to resume: crawlctl resume",
}


def pause_texts(reasons: Iterable[str]) -> list[str]:
    """Return why no fetch starts, sorted by reason."""
    return [PAUSE_TEXTS.get(reason, reason) for reason in sorted(reasons)]


PHASE_TEXTS: Mapping[Phase, str] = {
    "starting": "starting",
    "running": "Ctrl-C drains and stops",
    "draining": "draining: running fetches finish; Ctrl-C stops at once",
    "stopping": "stopping: results are being committed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProgress:
    """A snapshot of a running mirror.

    Attributes:
        pages: pages by state.
        visits: visits since the start, by outcome.
        new_pages: first copies since the start, counted as changed by `visits`.
        wire_bytes: body bytes received since the start.
        on_turn: hosts being fetched now.
        phase: phase of the daemon.
        pauses: reasons why no fetch starts.
        hosts: hosts with waiting pages, most first.
        unreachable: whether every waiting host was looked up and none has an address.
        stuck: hosts and reasons, if no waiting host may be fetched and nothing was visited yet.
    """

    pages: Mapping[PageState, int]
    visits: Mapping[Outcome, int]
    new_pages: int
    wire_bytes: int
    on_turn: int
    phase: Phase
    pauses: frozenset[str]
    hosts: Sequence[HostStatus]
    unreachable: bool
    stuck: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> int:
        """Known pages."""
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
    def error_count(self) -> int:
        """Failed visits since the start."""
        return sum(self.visits[outcome] for outcome in ERROR_OUTCOMES)

    @property
    def remaining_s(self) -> float:
        """Time until all waiting pages are visited, from politeness delays alone."""
        return max(map(_remaining_s, self.hosts), default=0.0)


def _remaining_s(host: HostStatus) -> float:
    delay_s = host.delay_s or 0.0
    first_s = delay_s if host.next_fetch_in_s is None else host.next_fetch_in_s
    return first_s + (waiting_pages(host) - 1) * delay_s


def waiting_pages(host: HostStatus) -> int:
    """Return how many pages of a host wait for their first visit."""
    return host.pages[PageState.DISCOVERED]


async def read_progress(daemon: Daemon) -> CrawlProgress:
    """Take a snapshot of a running mirror."""
    # A mirror that ends before its first report needs no models of the control socket.
    from crawld.daemon.api.views import host_status

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
        new_pages=daemon.crawl.visitor.new_pages,
        wire_bytes=daemon.crawl.visitor.wire_bytes,
        on_turn=on_turn,
        phase=daemon.phase,
        pauses=daemon.crawl.schedule.pauses,
        hosts=sorted(hosts, key=waiting_pages, reverse=True),
        unreachable=not on_turn and _no_host_resolved(daemon, hosts),
        stuck={} if on_turn else _stuck(daemon, hosts),
    )


def _stuck(daemon: Daemon, hosts: Sequence[HostStatus]) -> dict[str, str]:
    if any(daemon.crawl.visitor.counts.values()) or len(hosts) > HOSTS_SHOWN:
        return {}
    resting = resting_hosts(daemon)
    return resting if hosts and all(each.host in resting for each in hosts) else {}


def stuck_text(stuck: Mapping[str, str]) -> str:
    """Return why nothing can be fetched."""
    return "; ".join(f"{host}: {why}" for host, why in stuck.items())


def resting_hosts(daemon: Daemon) -> dict[str, str]:
    """Return a few hosts that must not be fetched for now, with the reason."""
    found: dict[str, str] = {}
    now = trio.current_time()
    for name, host in daemon.state.hosts.items():
        rest_s = host.rested_at(daemon.clock) - now
        if rest_s > 0.0:
            found[name] = f"for {duration_text(rest_s)}: Retry-After or quiet hours"
        elif host.shut_until > now:
            found[name] = host.absence or "its robots.txt cannot be fetched"
        elif host.backoff.level:
            found[name] = f"failures: back-off level {host.backoff.level}"
        if len(found) == HOSTS_SHOWN:
            break
    return found


def _no_host_resolved(daemon: Daemon, hosts: Sequence[HostStatus]) -> bool:
    # After the start, every known host waits for its delay before it is looked up.
    looked_up_s = LOOKUP_S + max((host.delay_s or 0.0 for host in hosts), default=0.0)
    if not hosts or daemon.clock.now() - daemon.started_at < looked_up_s:
        return False
    known = (daemon.state.hosts.get(host.host) for host in hosts)
    return all(host is None or host.slot.address is None for host in known)


class RateMeter:
    """Rates of visits and bytes over the last minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, int]] = deque()

    def add(self, at: float, visits: int, wire_bytes: int) -> None:
        """Add the totals at a time of a monotonic clock."""
        self._samples.append((at, visits, wire_bytes))
        while self._samples[-1][0] - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()

    @property
    def visits_per_min(self) -> float:
        """Visits per minute; 0 before the second sample."""
        return 60.0 * self._per_s(1)

    @property
    def bytes_per_s(self) -> float:
        """Body bytes per second."""
        return self._per_s(2)

    def _per_s(self, column: int) -> float:
        if len(self._samples) < 2:
            return 0.0
        first, last = self._samples[0], self._samples[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 1e-9)


def progress_fields(progress: CrawlProgress, rates: RateMeter) -> dict[str, object]:
    """Return the fields of a log line of progress."""
    fields: dict[str, object] = {
        "done": progress.known - progress.waiting,
        "new": progress.new_pages,
        "changed": progress.visits[Outcome.CHANGED] - progress.new_pages,
        "known": progress.known,
        "errors": progress.error_count,
        "received": size_text(progress.wire_bytes),
        "per_min": round(rates.visits_per_min, 1),
        "left": duration_text(progress.remaining_s),
    }
    if progress.pauses:
        fields["paused"] = "; ".join(pause_texts(progress.pauses))
    elif progress.unreachable:
        fields["trouble"] = UNREACHABLE
    return fields
