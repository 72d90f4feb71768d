"""Routes about pins, purges and quotas."""

from __future__ import annotations

import structlog
from fastapi import APIRouter
from starlette.exceptions import HTTPException

from crawld.daemon.api.lookup import canonical, known_page, parse_time
from crawld.daemon.api.parameters import After, Limit, Served
from crawld.daemon.api.schemas.retention import (
    HoldingStatus,
    PinForm,
    PinStatus,
    PurgeForm,
    PurgeReport,
    PurgeStatus,
    QuotaStatus,
)
from crawld.daemon.api.schemas.status import Done
from crawld.daemon.daemon import Daemon
from crawld.daemon.purge import older_copies, take_down
from crawld.errors import OperatorError
from crawld.store.frontier import tombstone
from crawld.store.versions import pin as pin_rows
from crawld.store.versions import quota

log = structlog.get_logger(__name__)


def add_retention_routes(router: APIRouter) -> None:
    """Add the routes."""
    _pins(router)
    _purges(router)
    _quotas(router)


def _pins(router: APIRouter) -> None:
    @router.get("/pins")
    async def pins(
        daemon: Served,
        after: After = 0,
        limit: Limit = 100,
    ) -> list[PinStatus]:
        """Pinned pages, from the one after a page number."""
        rows = await daemon.database.read(pin_rows.list_pins, after=after, limit=limit)
        return [_pin_status(row) for row in rows]

    @router.post("/pin")
    async def pin(daemon: Served, form: PinForm) -> Done:
        """Pin a page to the copy in force at a time, or release it."""
        page = await known_page(daemon, form.url)
        if form.release:
            if not await daemon.database.write(pin_rows.release, page.page_id):
                raise OperatorError(f"{page.url} is not held", hint="see: crawlctl pin")
            return Done(done=f"{page.url} shows its newest copy again")
        now = daemon.clock.now()
        at = now if form.at is None else parse_time(form.at, now)
        row = await daemon.database.write(pin_rows.put, page.page_id, now, at)
        if row is None:
            raise HTTPException(404, f"{page.url} had no copy then; see: history")
        return Done(done=f"{page.url} is held at version {row.version_id}; newer ones are kept")


def _purges(router: APIRouter) -> None:
    @router.post("/purge")
    async def purge(daemon: Served, form: PurgeForm) -> PurgeReport:
        """Take pages down and keep them out, or readmit them."""
        urls = [canonical(url) for url in form.urls]
        if form.release:
            return await _readmit(daemon, urls)
        done, erased = await take_down(daemon.database, daemon.clock, urls, form.reason)
        log.info("purged", pages=sum(each.known for each in done), erased=erased)
        return PurgeReport(
            pages=[PurgeStatus(**each._asdict()) for each in done],
            erased=erased,
            copies=older_copies(daemon.database.path),
        )


def _quotas(router: APIRouter) -> None:
    @router.get("/retention")
    async def retention(daemon: Served) -> list[QuotaStatus]:
        """Space per quota: classes of copies in eviction order, and what the next run deletes."""
        return await quota_statuses(daemon)


async def quota_statuses(daemon: Daemon) -> list[QuotaStatus]:
    """Return the space that the file and each site use, and what the next run deletes."""
    sites = {site.site_id: site for site in daemon.state.sites.values()}
    limits: dict[int | None, tuple[str | None, int | None]] = {
        None: (None, daemon.config.store.max_bytes),
        **{key: (site.name, site.config.max_bytes) for key, site in sites.items()},
    }
    found = await daemon.database.read(quota.usages)
    return [
        _quota_status(found.get(key) or quota.unused(key), name, most)
        for key, (name, most) in limits.items()
    ]


def _quota_status(found: quota.QuotaUsage, site: str | None, most: int | None) -> QuotaStatus:
    excess = 0 if most is None else max(found.used_bytes - most, 0)
    holdings = []
    for each in found.holdings:
        goes = excess > 0 and each.copies > 0
        holdings.append(HoldingStatus(**each._asdict(), goes=goes))
        excess = max(excess - each.stored_bytes, 0)
    return QuotaStatus(site=site, used_bytes=found.used_bytes, max_bytes=most, holdings=holdings)


async def _readmit(daemon: Daemon, urls: list[str]) -> PurgeReport:
    for url in urls:
        if not await daemon.database.write(tombstone.delete, url):
            raise OperatorError(f"{url} is not kept out", hint="purge knows URLs by their digest")
    daemon.state.admission.forget()
    pages = [PurgeStatus(url=url, known=False, versions=0, bodies=0, same_at=[]) for url in urls]
    return PurgeReport(pages=pages, erased=False, copies=[])


def _pin_status(row: pin_rows.PinRow) -> PinStatus:
    return PinStatus(**{name: getattr(row, name) for name in PinStatus.model_fields})
