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
            _status(daemon, number, [row.audited for row in rows], since=day * DAY_S)
            for (number, day), rows in sorted(by_day.items())
        ]

    return router


def freshness_statuses(daemon: Daemon) -> list[FreshnessStatus]:
    """Return the recent freshness of each site, followed by its hosts."""
    recent = daemon.freshness.recent
    found = []
    for site_id, site in recent.sites.items():
        whole = _status(daemon, site_id, [site.audited], since=recent.since)
        found.append(_with_shown(whole, site.outdated))
        found += [
            _status(daemon, site_id, [audited], since=recent.since, host=host)
            for host, audited in site.hosts.items()
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
    audited: Iterable[AuditResult],
    *,
    since: float,
    host: str | None = None,
) -> FreshnessStatus:
    site = daemon.state.sites.get(site_id)
    total = sum(audited, AuditResult())
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
