"""The status of the daemon: what it knows in memory, and one short read of the file."""

from __future__ import annotations

import os
import resource
from dataclasses import asdict, dataclass
from itertools import islice

import apsw
import trio

from crawld.core.page import PageState
from crawld.daemon.api.audit import freshness_statuses
from crawld.daemon.api.schemas import status as schemas
from crawld.daemon.api.schemas.plugin import HookStatus, PluginStatus
from crawld.daemon.api.schemas.slots import RateLimitStatus, Slots
from crawld.daemon.daemon import Daemon
from crawld.plugin_host.plugin import Plugin
from crawld.store.frontier import frontier, quarantine, refusal
from crawld.store.frontier.quarantine import QuarantineRow

PAGE_BYTES = resource.getpagesize()

QUARANTINED_SHOWN = 20
"""Most pages in quarantine that the status names."""

LIMITS_SHOWN = 100
"""Most limits of requests and bytes per second that the status names."""

VANISHING_SHOWN = 1_000
"""Most hosts with disappearing pages that the status names."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the status needs of the file."""

    pages: dict[PageState, int]
    refused: dict[str, int]
    quarantined: int
    quarantined_pages: list[QuarantineRow]


def _read(connection: apsw.Connection) -> _Stored:
    """Read what takes the same time however many pages and hosts there are."""
    return _Stored(
        pages=frontier.counts(connection),
        refused=refusal.totals(connection),
        quarantined=quarantine.count(connection),
        quarantined_pages=quarantine.list_rows(connection, limit=QUARANTINED_SHOWN),
    )


async def status_of(daemon: Daemon) -> schemas.Status:
    """Return the status of the daemon.

    It hops to a thread once: beside busy analyses each hop waits for the interpreter lock twice.
    """
    freshness = await freshness_statuses(daemon)
    stored = await daemon.database.read_briefly(_read)
    crawl = daemon.crawl
    slots = crawl.schedule.statistics()
    stalls, recent = daemon.stall_meter, daemon.stall_meter.recent
    return schemas.Status(
        version=daemon.version,
        pid=os.getpid(),
        db=str(daemon.database.path),
        phase=daemon.phase,
        pauses=sorted(crawl.schedule.pauses),
        stalled=daemon.database.stalled,
        started_at=daemon.started_at,
        now=daemon.clock.now(),
        pages=stored.pages,
        pages_in_all=sum(stored.pages.values()),
        visits=crawl.visitor.counts,
        new_pages=crawl.visitor.new_pages,
        unrecorded=crawl.recorder.unrecorded,
        wire_bytes=crawl.visitor.wire_bytes,
        refused=stored.refused,
        slots=Slots(**asdict(slots)),
        rate_limits=_rate_limits(daemon),
        memory_bytes=_memory_bytes(),
        memory=_memory(daemon),
        loop_stall_max_ms=1e3 * stalls.longest.duration_s,
        loop_stall_by=stalls.longest.by,
        loop_stall_recent_ms=1e3 * recent.duration_s,
        loop_stall_recent_by=recent.by,
        freshness=freshness,
        vanishing=dict(islice(daemon.state.vanishing.items(), VANISHING_SHOWN)),
        notify_troubles=daemon.background.notifier.troubles(),
        quarantined=stored.quarantined,
        quarantined_pages=[
            schemas.QuarantinedPage(**each._asdict()) for each in stored.quarantined_pages
        ],
        plugins=[_plugin(each) for each in daemon.plugins.host.plugins],
    )


def _plugin(plugin: Plugin) -> PluginStatus:
    return PluginStatus(
        name=plugin.name,
        origin=plugin.origin,
        disabled=plugin.disabled,
        failures=plugin.failures_in_all,
        last_failure=plugin.last_failure,
        overruled=plugin.overruled,
        grown_bytes=plugin.grown_bytes,
        hooks=[
            HookStatus(**asdict(hook.figures))
            for hook in plugin.hooks.values()
            if hook.calls or hook.failures
        ],
    )


def _rate_limits(daemon: Daemon) -> list[RateLimitStatus]:
    rates, now = daemon.state.rates, trio.current_time()
    return [
        RateLimitStatus(
            name=name,
            max_requests_per_s=gate.rate.requests_per_s,
            max_bytes_per_s=gate.rate.bytes_per_s,
            hosts=rates.hosts_sharing(name),
            waiting=rates.waiting_for(gate),
            opens_in_s=max(gate.rate.next_at - now, 0.0),
        )
        for name, gate in islice(rates.gates.items(), LIMITS_SHOWN)
    ]


def _memory(daemon: Daemon) -> schemas.MemoryStatus:
    budget = daemon.budget
    return schemas.MemoryStatus(
        used_bytes=budget.used_bytes,
        stale_bytes=budget.stale_bytes,
        limit_bytes=budget.shares.limit_bytes,
        waiting=budget.waiting,
    )


def _memory_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE_BYTES
