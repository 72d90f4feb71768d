"""Routes about quarantine: list what is not analysed, and release it."""

from __future__ import annotations

import structlog
from fastapi import APIRouter
from starlette.exceptions import HTTPException

from crawld.core.revisit.due import AT_ONCE
from crawld.core.url import split_url
from crawld.daemon.api.lookup import canonical
from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.status import Done, QuarantinedPage, QuarantineReleaseForm
from crawld.daemon.daemon import Daemon
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import quarantine as rows

log = structlog.get_logger(__name__)


def add_quarantine_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/quarantine")
    async def quarantine(daemon: Served) -> list[QuarantinedPage]:
        """Pages and documents in quarantine, the newest first."""
        found = await daemon.database.read(rows.list_rows)
        return [QuarantinedPage(**each._asdict()) for each in found]

    @router.post("/quarantine/release")
    async def release(daemon: Served, form: QuarantineReleaseForm) -> Done:
        """Analyse a page or document again, from its next visit on."""
        url = canonical(form.url)
        if not await daemon.database.write(rows.release, url):
            raise HTTPException(404, f"{url} is not in quarantine; see: crawlctl quarantine")
        await daemon.quarantine.refresh()
        await _visit_next(daemon, url)
        log.info("quarantine_released", url=url)
        return Done(done=f"{url} is analysed again at its next visit")


async def _visit_next(daemon: Daemon, url: str) -> None:
    """Give a page the next turn of its host."""
    host = daemon.state.hosts.get(split_url(url).host)
    page = await daemon.database.read(page_rows.by_url, url)
    if host is None or page is None:
        return
    queue = daemon.state.pages_of(host, page.site_id, requisites=page.requisite)
    queue.visit_until(page.page_id, AT_ONCE)
    daemon.crawl.schedule.wake(host.slot)
