"""Freshness: now, by estimates, and over days, by audits beside the expectation of the models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from crawld.core.audit import AuditResult, day_of
from crawld.core.units import DAY_S
from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.status import (
    AuditedFreshness,
    AuditStatus,
    FreshnessStatus,
    StaleCopies,
)
from crawld.daemon.daemon import Daemon
from crawld.daemon.jobs.present_freshness import SiteEstimate
from crawld.store.changes import audit
from crawld.store.changes.audit import AuditRow


def add_audit_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/audits")
    async def audits(
        daemon: Served, days: Annotated[int, Query(ge=1, le=731)] = 30, site: str | None = None
    ) -> list[AuditStatus]:
        """The freshness that random visits found for each site, by day."""
        return await audit_statuses(daemon, days, site)


async def audit_statuses(daemon: Daemon, days: int, site: str | None = None) -> list[AuditStatus]:
    """Return the freshness that random visits found for each site, by day."""
    site_id = None if site is None else daemon.site_registry.by_name(site).site_id
    first = day_of(daemon.clock.now()) - days + 1
    by_day: dict[tuple[int, int], list[AuditRow]] = defaultdict(list)
    for row in await daemon.database.read(audit.list_since, first):
        if site_id in (None, row.site_id):
            by_day[row.site_id, row.day].append(row)
    found = []
    for (number, day), rows in sorted(by_day.items()):
        known = daemon.state.sites.get(number)
        total = sum((row.audited for row in rows), AuditResult())
        measured = _audited(total, since=day * DAY_S)
        found.append(AuditStatus(site=known.name if known else "", **measured.model_dump()))
    return found


async def freshness_statuses(daemon: Daemon) -> list[FreshnessStatus]:
    """Return the freshness of each site now and lately, followed by its hosts."""
    present = {each.site_id: each for each in await daemon.background.present_freshness.get()}
    recent = daemon.freshness.recent
    found = []
    for site_id in sorted(present.keys() | recent.sites.keys()):
        site, audits = daemon.state.sites.get(site_id), recent.sites.get(site_id)
        name = site.name if site else ""
        whole = FreshnessStatus(site=name)
        if site_id in present:
            whole = _present(name, present[site_id], audits.outdated if audits else None)
        if audits is None:
            found.append(whole)
            continue
        periods = {
            "last_day": _audited(audits.last_day, since=recent.day_since),
            "last_week": _audited(audits.audited, since=recent.since),
        }
        found.append(whole.model_copy(update=periods))
        found += [
            FreshnessStatus(site=name, host=host, last_week=_audited(audited, since=recent.since))
            for host, audited in audits.hosts.items()
        ]
    return found


def freshness_of_all(daemon: Daemon, sites: Sequence[FreshnessStatus]) -> FreshnessStatus:
    """Return the freshness of all copies together, from that of the sites; its `site` is empty.

    The ends of its interval are the means of theirs, which is wider than need be.
    """
    recent = daemon.freshness.recent
    present = [each for each in sites if each.freshness is not None and each.copies]
    copies = sum(each.copies for each in present)
    sums = [(each.last_day, each.audited) for each in recent.sites.values()]
    whole = FreshnessStatus(
        site="",
        last_day=_audited(sum((day for day, _ in sums), AuditResult()), since=recent.day_since),
        last_week=_audited(sum((week for _, week in sums), AuditResult()), since=recent.since),
    )
    if not copies:
        return whole

    def mean(values: Iterable[float | None]) -> float:
        pairs = zip(present, values, strict=True)
        return sum(each.copies * (value or 0.0) for each, value in pairs) / copies

    def stale(name: str) -> float:
        found = (each.stale.model_dump() for each in present if each.stale is not None)
        return float(sum(each[name] for each in found))

    return whole.model_copy(
        update={
            "at": min(each.at or 0.0 for each in present),
            "copies": copies,
            "sampled": sum(each.sampled for each in present),
            "freshness": mean(each.freshness for each in present),
            "low": mean(each.low for each in present),
            "high": mean(each.high for each in present),
            "modelled": mean(each.modelled for each in present),
            "checked_ago_s": mean(each.checked_ago_s for each in present),
            "stale": StaleCopies(**{name: stale(name) for name in StaleCopies.model_fields}),
        }
    )


def _present(name: str, found: SiteEstimate, outdated: float | None) -> FreshnessStatus:
    now = found.now
    return FreshnessStatus(
        site=name,
        at=found.at,
        copies=found.copies,
        sampled=found.sampled,
        freshness=now.freshness,
        low=now.low,
        high=now.high,
        modelled=now.modelled,
        checked_ago_s=found.checked_ago_s,
        stale=StaleCopies(
            reported=now.reported,
            fan_out=now.fan_out,
            unreported=now.unreported,
            unnoticed=now.unnoticed,
        ),
        shown=None if not outdated else now.freshness * (1.0 - outdated),
    )


def _audited(total: AuditResult, *, since: float) -> AuditedFreshness:
    low, high = total.interval
    return AuditedFreshness(
        since=since,
        audits=total.count,
        unknown=total.unknown,
        freshness=total.freshness,
        low=low,
        high=high,
        modelled=total.expected_freshness,
    )
