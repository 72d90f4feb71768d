"""Routes about freshness: audits beside the expectation of the models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query

from crawld.core.audit import DAY_S, AuditResult, day_of
from crawld.daemon.api.schemas.status import FreshnessStatus
from crawld.daemon.daemon import Daemon
from crawld.store.changes import audit
from crawld.store.changes.audit import AuditRow
from crawld.store.mirror.selection import count_outdated

STATUS_DAYS = 7
"""Days that the status covers."""

MAX_HOSTS_SHOWN = 100


def audit_routes(daemon: Daemon) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    @router.get("/audits")
    async def audits(
        days: Annotated[int, Query(ge=1, le=731)] = 30, site: str | None = None
    ) -> list[FreshnessStatus]:
        """The freshness that random visits found for each site, by day."""
        site_id = None if site is None else daemon.site_registry.by_name(site).site_id
        first = day_of(daemon.clock.now()) - days + 1
        by_day: dict[tuple[int, int], list[AuditRow]] = defaultdict(list)
        for row in await daemon.database.read(audit.list_since, first):
            if site_id in (None, row.site_id):
                by_day[row.site_id, row.day].append(row)
        return [
            _status(daemon, number, rows, since=day * DAY_S)
            for (number, day), rows in sorted(by_day.items())
        ]

    return router


async def freshness_of(daemon: Daemon) -> list[FreshnessStatus]:
    """Return the recent freshness of each site, followed by its hosts."""
    first = day_of(daemon.clock.now()) - STATUS_DAYS + 1
    by_site: dict[int, dict[str, list[AuditRow]]] = defaultdict(lambda: defaultdict(list))
    for row in await daemon.database.read(audit.list_since, first):
        by_site[row.site_id][row.host].append(row)
    found = []
    for site_id, hosts in by_site.items():
        rows = [row for of_host in hosts.values() for row in of_host]
        whole = _status(daemon, site_id, rows, since=first * DAY_S)
        found.append(await _with_shown(daemon, site_id, whole))
        found += [
            _status(daemon, site_id, of_host, since=first * DAY_S, host=host)
            for host, of_host in sorted(hosts.items())[:MAX_HOSTS_SHOWN]
        ]
    return found


async def _with_shown(daemon: Daemon, site_id: int, found: FreshnessStatus) -> FreshnessStatus:
    """Add the freshness of the copies that a site shows."""
    late = await daemon.database.read(count_outdated, site_id, daemon.clock.now())
    if found.freshness is None or not late.pages:
        return found
    return found.model_copy(update={"shown": found.freshness * (1.0 - late.share)})


def _status(
    daemon: Daemon,
    site_id: int,
    rows: Iterable[AuditRow],
    *,
    since: float,
    host: str | None = None,
) -> FreshnessStatus:
    site = daemon.state.sites.get(site_id)
    total = sum((row.audited for row in rows), AuditResult())
    low, high = total.interval
    return FreshnessStatus(
        site=site.name if site else "",
        host=host,
        since=since,
        audits=total.count,
        unknown=total.unknown,
        freshness=total.freshness,
        low=low,
        high=high,
        modelled=total.expected_freshness,
    )
