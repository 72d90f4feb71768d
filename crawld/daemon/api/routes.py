"""Routes of the control socket: status, sites, hosts, pages, jobs and commands."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query

from crawld.core.display import delay_text
from crawld.core.page import Outcome, PageState
from crawld.core.words import PAUSE_WORDS, label
from crawld.daemon.api.add import add as add_urls
from crawld.daemon.api.audit import add_audit_routes
from crawld.daemon.api.changes import add_change_routes
from crawld.daemon.api.dust import add_dust_routes
from crawld.daemon.api.forecast import add_forecast_routes
from crawld.daemon.api.hints import add_hint_routes
from crawld.daemon.api.history import add_history_routes, version_detail
from crawld.daemon.api.lookup import known_host, known_page
from crawld.daemon.api.notify import add_notify_routes
from crawld.daemon.api.page_classes import PageFilter, pages_of_class
from crawld.daemon.api.parameters import After, Limit, Served
from crawld.daemon.api.quarantine import add_quarantine_routes
from crawld.daemon.api.replicas import add_replica_routes
from crawld.daemon.api.retention import add_retention_routes
from crawld.daemon.api.schemas import status as schemas
from crawld.daemon.api.schemas.history import VersionDetail
from crawld.daemon.api.status_view import status_of
from crawld.daemon.api.views import (
    host_detail,
    host_status,
    job_status,
    page_detail,
    site_status,
    visit_status,
)
from crawld.daemon.api.why import add_why_routes
from crawld.daemon.api.wiki_views import wiki_statuses
from crawld.daemon.daemon import Daemon
from crawld.store import visit_log
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page_share
from crawld.store.frontier import site as site_rows

STILL_PAUSED_SHOWN = 5
"""Sites and hosts that a resume names as still paused."""


def add_routes(router: APIRouter) -> None:
    """Add all routes to a router."""
    _lists(router)
    _pages(router)
    _jobs(router)
    _commands(router)
    _lifecycle(router)
    for add_topic in (
        *(add_history_routes, add_forecast_routes, add_retention_routes, add_audit_routes),
        *(add_replica_routes, add_hint_routes, add_quarantine_routes, add_why_routes),
        *(add_change_routes, add_notify_routes, add_dust_routes),
    ):
        add_topic(router)


def _lists(router: APIRouter) -> None:
    @router.get("/status")
    async def status(daemon: Served) -> schemas.Status:
        """The daemon at a glance."""
        return await status_of(daemon)

    @router.get("/sites")
    async def sites(daemon: Served) -> list[schemas.SiteStatus]:
        """All sites."""
        rows = await daemon.database.read(site_rows.list_sites)
        shared = await daemon.database.read(page_share.counts)
        return [site_status(daemon, row, shared.get(row.site_id, 0)) for row in rows]

    @router.get("/hosts")
    async def hosts(
        daemon: Served, after: str = "", limit: Limit = 100
    ) -> list[schemas.HostStatus]:
        """Hosts by name, from the one after `after`."""
        rows = await daemon.database.read(host_rows.list_hosts, after=after, limit=limit)
        return [host_status(daemon, row) for row in rows]

    @router.get("/hosts/{host}")
    async def host(daemon: Served, host: str) -> schemas.HostDetail:
        """One host with its robots.txt and the URLs refused there."""
        return await host_detail(daemon, host)

    @router.get("/log")
    async def log(
        daemon: Served,
        after: After | None = None,
        limit: Limit = 100,
        host: str | None = None,
        outcome: Outcome | None = None,
    ) -> list[schemas.VisitStatus]:
        """Visits in the order they were recorded; without `after` the newest."""
        host_id = None if host is None else (await known_host(daemon, host)).host_id
        rows = await daemon.database.read(
            visit_log.log, after=after, limit=limit, host_id=host_id, outcome=outcome
        )
        return [visit_status(row) for row in rows]


def _pages(router: APIRouter) -> None:
    @router.get("/page")
    async def page(
        daemon: Served, url: str, at: str | None = None
    ) -> schemas.PageDetail | VersionDetail:
        """One page with its visits and versions, or with `at` the copy of that time."""
        record = await known_page(daemon, url)
        if at is not None:
            return await version_detail(daemon, record, at)
        return await page_detail(daemon, record)

    @router.get("/pages")
    async def pages(
        daemon: Served,
        site: str | None = None,
        host: str | None = None,
        state: PageState | None = None,
        class_days: Annotated[float | None, Query(gt=0)] = None,
        after: After = 0,
        limit: Limit = 100,
    ) -> list[schemas.PageStatus]:
        """Pages of a site, a host, a state or a rate class, from the one after `after`."""
        wanted = PageFilter(
            None if site is None else daemon.site_registry.by_name(site).site_id,
            None if host is None else (await known_host(daemon, host)).host_id,
            state,
        )
        if class_days is None:
            rows = await daemon.database.read(wanted.list, after, limit)
        else:
            rows = await pages_of_class(daemon, class_days, wanted, after=after, limit=limit)
        names = schemas.PageStatus.model_fields
        return [schemas.PageStatus(**{name: getattr(row, name) for name in names}) for row in rows]


def _jobs(router: APIRouter) -> None:
    @router.get("/jobs")
    async def jobs(daemon: Served) -> list[schemas.JobStatus]:
        """Jobs: last run, next run, progress."""
        return [await job_status(state) for state in await daemon.background.jobs.states()]

    @router.post("/jobs/{name}/run")
    async def run_job(daemon: Served, name: str) -> schemas.Done:
        """Run a job as soon as possible."""
        daemon.background.jobs.run_soon(name)
        return schemas.Done(done=f"job {name} runs")

    @router.get("/wikis")
    async def wikis(daemon: Served) -> list[schemas.WikiStatus]:
        """Wikis whose histories are read, and how far."""
        return await wiki_statuses(daemon)


def _commands(router: APIRouter) -> None:
    @router.post("/add")
    async def add(daemon: Served, form: schemas.AddForm) -> schemas.Added:
        """Add URLs as seeds of a site, or as a site of their own."""
        return await add_urls(daemon, form)

    @router.post("/remove")
    async def remove(daemon: Served, form: schemas.RemoveForm) -> schemas.Done:
        """Remove a site from the crawl."""
        await daemon.site_registry.remove(form.site)
        return schemas.Done(done=f"site {form.site} is removed from the crawl; its pages stay")

    @router.post("/pause")
    async def pause(daemon: Served, form: schemas.TargetForm) -> schemas.Done:
        """Pause a site, a host or everything."""
        return await _set_paused(daemon, form, paused=True)

    @router.post("/hosts/{host}/forgive")
    async def forgive(daemon: Served, host: str) -> schemas.Done:
        """End the back-off of a host: its next request waits for its plain delay only."""
        row = await known_host(daemon, host)
        state = daemon.state.hosts.get(row.host)
        if state is None:
            return schemas.Done(done=f"{row.host} has no page to visit")
        await daemon.state.forgive(state)
        within = delay_text(state.base_delay_s())
        return schemas.Done(done=f"{row.host} is asked again in {within} or less")

    @router.post("/resume")
    async def resume(daemon: Served, form: schemas.TargetForm) -> schemas.Done:
        """Resume a site, a host or everything."""
        return await _set_paused(daemon, form, paused=False)


def _lifecycle(router: APIRouter) -> None:
    @router.post("/drain")
    async def drain(daemon: Served) -> schemas.Done:
        """Pause everything; respond when nothing is under way and everything is in the file."""
        await daemon.drain()
        return schemas.Done(done="nothing is under way; to go on: crawlctl resume")

    @router.post("/reload")
    async def reload(daemon: Served) -> schemas.Reloaded:
        """Read the config again and apply it as a whole."""
        return schemas.Reloaded(changed=await daemon.reload())

    @router.post("/shutdown")
    async def shutdown(
        daemon: Served, form: schemas.ShutdownForm, tasks: BackgroundTasks
    ) -> schemas.Done:
        """Stop after the turns under way, or at once; nothing is lost in either case."""

        async def end() -> None:  # a sync function would run in a thread, without trio
            (daemon.stop_now if form.now else daemon.shutdown)()

        # After the response is sent, since the end of the daemon closes this connection.
        tasks.add_task(end)
        return schemas.Done(done="shutting down")


async def _set_paused(daemon: Daemon, form: schemas.TargetForm, *, paused: bool) -> schemas.Done:
    word = "paused" if paused else "resumed"
    if form.site is not None:
        await daemon.site_registry.set_paused(form.site, paused=paused)
        done = f"site {form.site} {word}"
    elif form.host is not None:
        row = await known_host(daemon, form.host)
        await daemon.database.write(host_rows.set_paused, row.host, paused)
        daemon.state.set_host_paused(row.host_id, row.host, paused=paused)
        done = f"host {row.host} {word}"
    else:
        daemon.set_paused(paused=paused)
        done = f"everything {word}"
    if not paused and (left := await _still_paused(daemon)):
        done += f"; still paused: {', '.join(left)}"
    return schemas.Done(done=done)


async def _still_paused(daemon: Daemon) -> list[str]:
    """Return what a resume left paused, each with what resumes it."""
    reasons = sorted(daemon.crawl.schedule.pauses)
    left = [f"everything ({label(PAUSE_WORDS, each)})" for each in reasons]
    names = sorted(site.name for site in daemon.state.sites.values() if site.paused)
    hosts = await daemon.database.read(host_rows.paused_hosts, STILL_PAUSED_SHOWN + 1)
    left += [f"site {name} (crawlctl resume --site {name})" for name in names]
    left += [f"host {host} (crawlctl resume --host {host})" for host in hosts]
    if len(left) > STILL_PAUSED_SHOWN:
        left[STILL_PAUSED_SHOWN:] = ["and more; see: crawlctl sites, crawlctl hosts"]
    return left
