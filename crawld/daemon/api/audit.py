"""Routes about freshness: audits beside the expectation of the models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import apsw
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


@dataclass(frozen=True, slots=True)
class Freshness:
    """What the file holds about the recent freshness.

    Attributes:
        since: first day, Unix seconds.
        rows: results of audits, in the order of sites, hosts and days.
        outdated: by site, share of its pages that show an older copy than their newest.
    """

    since: float
    rows: list[AuditRow]
    outdated: dict[int, float]


def read_freshness(connection: apsw.Connection, now: float) -> Freshness:
    """Return the recent freshness that the file holds."""
    first = day_of(now) - STATUS_DAYS + 1
    rows = audit.list_since(connection, first)
    outdated = {}
    for site_id in {row.site_id for row in rows}:
        late = count_outdated(connection, site_id, now)
        if late.pages:
            outdated[site_id] = late.share
    return Freshness(first * DAY_S, rows, outdated)


def freshness_statuses(daemon: Daemon, stored: Freshness) -> list[FreshnessStatus]:
    """Return the recent freshness of each site, followed by its hosts."""
    by_site: dict[int, dict[str, list[AuditRow]]] = defaultdict(lambda: defaultdict(list))
    for row in stored.rows:
        by_site[row.site_id][row.host].append(row)
    found = []
    for site_id, hosts in by_site.items():
        rows = [row for of_host in hosts.values() for row in of_host]
        whole = _status(daemon, site_id, rows, since=stored.since)
        found.append(_with_shown(whole, stored.outdated.get(site_id)))
        found += [
            _status(daemon, site_id, of_host, since=stored.since, host=host)
            for host, of_host in sorted(hosts.items())[:MAX_HOSTS_SHOWN]
        ]
    return found


def _with_shown(found: FreshnessStatus, outdated: float | None) -> FreshnessStatus:
    """Add the freshness of the copies that a site shows."""
    if found.freshness is None or outdated is None:
        return found
    return found.model_copy(update={"shown": found.freshness * (1.0 - outdated)})


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
