"""Convert rows and derived state to the responses of the control socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import trio

from crawld.core.page import PageState
from crawld.core.robots import Robots
from crawld.core.url_growth import START_BUDGET
from crawld.daemon.api import page_views, wiki_views
from crawld.daemon.api.lookup import known_host
from crawld.daemon.api.replica_views import replica_facts, replica_outlook
from crawld.daemon.api.schemas import status
from crawld.daemon.api.schemas.page_profiles import SectionProfile
from crawld.daemon.api.schemas.url_pattern import UrlPatternStatus
from crawld.daemon.daemon import Daemon
from crawld.daemon.jobs.runner import JobState
from crawld.daemon.site_models import read_site_model
from crawld.store import visit_log
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import refusal, server
from crawld.store.frontier.host import HostRow, OriginRobots
from crawld.store.frontier.page import PageRecord
from crawld.store.frontier.site import SiteRow
from crawld.store.replica import replica as replica_rows
from crawld.store.versions import version as version_rows
from crawld.store.versions import version_tag
from crawld.store.versions.version import VersionRow
from crawld.store.visit_log import VisitRow

VISITS_SHOWN = 20
VERSIONS_SHOWN = 50
REPLICAS_SHOWN = 100


def _pages(row: SiteRow | HostRow) -> dict[PageState, int]:
    return {state: getattr(row, f"pages_{state.value}") for state in PageState}


def site_status(daemon: Daemon, row: SiteRow, pages_shared: int) -> status.SiteStatus:
    """Return the status of a site, with the number of pages that it shares with others."""
    site = daemon.state.sites[row.site_id]
    metered = site.config.monthly_bytes
    return status.SiteStatus(
        name=row.name,
        source=row.source,
        paused=row.paused,
        added_at=row.added_at,
        hosts=sorted(site.scope.hosts),
        host_delay_s=site.rules.host_delay_s,
        pages=_pages(row),
        pages_in_all=row.page_count,
        pages_shared=pages_shared,
        requisites=row.requisite_count,
        received_bytes_this_month=None if metered is None else daemon.state.traffic.of(row.site_id),
        monthly_bytes=metered,
    )


def host_status(daemon: Daemon, row: HostRow) -> status.HostStatus:
    """Return the status of a host for a list."""
    return status.HostStatus(**_host_fields(daemon, row))


def _host_fields(daemon: Daemon, row: HostRow) -> dict[str, Any]:
    state = daemon.state.hosts.get(row.host)
    opens_in_s = None
    if state is not None:
        wanted_at = daemon.crawl.wanted_at(state.slot)
        if wanted_at is not None:
            opens_in_s = max(wanted_at, state.slot.next_at) - trio.current_time()
    return {
        "host": row.host,
        "address": row.address,
        "paused": row.paused,
        "pages": _pages(row),
        "pages_in_all": row.page_count,
        "visit_count": row.visit_count,
        "change_count": row.change_count,
        "failure_count": row.failure_count,
        "wire_bytes": row.wire_bytes,
        "last_fetch_at": row.last_fetch_at,
        "vanishing_since": row.vanishing_since,
        "delay_s": state.delay_s() if state else None,
        "backoff_level": state.backoff.level if state else row.backoff_level,
        "next_fetch_in_s": None if opens_in_s is None else max(opens_in_s, 0.0),
    }


def _robots_status(
    origin: str, stored: OriginRobots | None, robots: Robots | None
) -> status.RobotsStatus:
    rules = robots.rules if robots else None
    return status.RobotsStatus(
        origin=origin,
        verdict=stored.verdict if stored else None,
        status=stored.status if stored else None,
        fetched_at=stored.fetched_at if stored else None,
        text_bytes=len((stored and stored.text) or b""),
        rules=rules.kept if rules else None,
        rules_ignored=rules.ignored if rules else None,
    )


def _profiles(daemon: Daemon, host_id: int) -> list[SectionProfile]:
    return [
        SectionProfile(
            site=site.name,
            section=section,
            profile=None if choice.in_use is None else learnt.names[choice.in_use],
            visits=learnt.budget.visits,
            trials=learnt.budget.trials,
        )
        for site in daemon.state.sites.values()
        if (learnt := daemon.crawl.profiles.of_host(site, host_id)) is not None
        for section, choice in sorted(learnt.sections.items())
    ]


async def host_detail(daemon: Daemon, host: str) -> status.HostDetail:
    """Return a host with its robots.txt and refused URLs."""
    row = await known_host(daemon, host)
    state = daemon.state.hosts.get(row.host)
    origins = [
        (origin, await daemon.database.read(host_rows.origin_robots, origin))
        for _, origin in await daemon.database.read(host_rows.list_origins, row.host_id)
    ]
    refused = await daemon.database.read(refusal.of_host, host)
    own = await daemon.database.read(server.by_name, row.host)
    assert own is not None
    replica = await daemon.database.read(replica_facts, own.server_id)
    return status.HostDetail(
        replica=None if replica is None else replica_outlook(own.name, replica, daemon.clock.now()),
        replicas=await daemon.database.read(replica_rows.copies_of, own.server_id, REPLICAS_SHOWN),
        **_host_fields(daemon, row),
        base_delay_s=state.base_delay_s() if state else None,
        trouble_at=state.backoff.at if state else None,
        closed_until=state.backoff.closed_until if state else row.closed_until,
        robots=[
            _robots_status(origin, each, daemon.crawl.robots.in_memory(origin))
            for origin, each in origins
        ],
        refused_urls=[
            status.RefusedUrls(
                reason=each.reason,
                refused=each.refused,
                example=each.example,
                last_at=each.last_at,
            )
            for each in refused
        ],
        profiles=_profiles(daemon, row.host_id),
        url_patterns=[
            UrlPatternStatus(
                pattern=each.host * (each.host != host) + each.pattern,
                pages=each.pages,
                fresh=each.fresh,
                budget=each.budget,
                refused=each.refused,
            )
            for each in daemon.state.growth.of_host(host)
            if each.budget < START_BUDGET or each.refused
        ],
    )


def visit_status(row: VisitRow) -> status.VisitStatus:
    """Return the status of a visit."""
    names = status.VisitStatus.model_fields
    return status.VisitStatus(**{name: getattr(row, name) for name in names})


async def page_detail(daemon: Daemon, record: PageRecord) -> status.PageDetail:
    """Return a page with its visits and versions."""
    visits = await daemon.database.read(visit_log.of_page, record.page_id, limit=VISITS_SHOWN)
    versions = await daemon.database.read(
        version_rows.list_versions, record.page_id, limit=VERSIONS_SHOWN
    )
    site = daemon.state.sites.get(record.site_id)
    made = {"site", "gone_count", "visits", "versions", "next_visit_at", "next_visit_why"}
    made |= {"model", "noise", "validators", "memberships"}
    names = status.PageDetail.model_fields.keys() - made
    next_visit = page_views.next_visit(daemon, record)
    return status.PageDetail(
        **{name: getattr(record, name) for name in names},
        next_visit_at=next_visit.at,
        next_visit_why=next_visit.why,
        model=page_views.model_status(
            record,
            (await read_site_model(daemon.database, record.site_id)).hawkes,
            daemon.clock.now(),
            page_views.rate_classes(daemon.config),
        ),
        noise=await page_views.noise_status(daemon, record),
        validators=page_views.validator_status(record),
        memberships=await wiki_views.memberships(daemon, record),
        site=site.name if site else "",
        gone_count=record.grace.count,
        visits=[visit_status(row) for row in visits],
        versions=await version_statuses(daemon, versions),
    )


async def version_statuses(
    daemon: Daemon, rows: Sequence[VersionRow]
) -> list[status.VersionStatus]:
    """Return the status of stored copies, with what plug-ins keep with them."""
    numbers = [row.version_id for row in rows]
    tags = await daemon.database.read(version_tag.of_versions, numbers)
    return [version_status(row, tags.get(row.version_id)) for row in rows]


def version_status(row: VersionRow, tags: Mapping[str, str] | None = None) -> status.VersionStatus:
    """Return the status of a stored copy."""
    return status.VersionStatus(
        version_id=row.version_id,
        visited_at=row.visited_at,
        status=row.response.status,
        content_type=row.response.content_type,
        size_bytes=row.size_bytes,
        stored_bytes=row.stored_bytes,
        truncated=row.response.truncated,
        tags=dict(tags or {}),
    )


async def job_status(state: JobState) -> status.JobStatus:
    """Return a job with its last run and its progress."""
    last, duration_s = state.last, None
    if last and last.last_started_at is not None and last.last_finished_at is not None:
        # During a run the last start is later than the last end.
        span_s = last.last_finished_at - last.last_started_at
        duration_s = span_s if span_s >= 0 else None
    return status.JobStatus(
        name=state.job.name,
        running=state.running,
        every_s=state.job.every_s,
        next_run_at=state.next_run_at,
        last_started_at=last.last_started_at if last else None,
        last_finished_at=last.last_finished_at if last else None,
        last_duration_s=duration_s,
        result=last.result if last else None,
        detail=last.detail if last else None,
        progress=await state.job.progress(),
    )


def site_names(daemon: Daemon, site_ids: Iterable[int]) -> list[str]:
    """Return the names of configured sites."""
    sites = daemon.state.sites
    return [sites[site_id].name for site_id in site_ids if site_id in sites]
