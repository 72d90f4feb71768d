"""Pages of the dashboard about sites."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException

from crawld.daemon.api.audit import audit_statuses, freshness_statuses
from crawld.daemon.api.schemas.status import FreshnessStatus
from crawld.daemon.api.views import host_status, site_status
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.overview_page import freshness_chart, states_chart
from crawld.daemon.dashboard.view import PER_PAGE, Parameters, View
from crawld.dashboard.rendering import link
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.site import SiteRow

AUDIT_DAYS: Final = 90


async def show_sites(daemon: Daemon, query: Parameters) -> View:
    """List sites by name, from a place in the list, or those whose name contains a text."""
    wanted, start = (query.text("q") or "").lower(), max(query.whole("start"), 0)
    rows = await daemon.database.read(site_rows.list_sites)
    configured = (row for row in rows if row.site_id in daemon.state.sites)
    named = sorted((row for row in configured if wanted in row.name.lower()), key=_name)
    shown = named[start : start + PER_PAGE]
    more = start + PER_PAGE < len(named)
    return View(
        "sites.html",
        "sites",
        "Sites",
        {
            "sites": [site_status(daemon, row, 0) for row in shown],
            "fresh": await _freshness(daemon),
            "count": len(named),
            "wanted": query.text("q") or "",
            "first": link("sites", q=query.text("q")) if start else "",
            "following": link("sites", q=query.text("q"), start=start + PER_PAGE) if more else "",
        },
    )


async def show_site(daemon: Daemon, query: Parameters) -> View:
    """Show one site: its pages, freshness and hosts."""
    name, start = query.required("name"), max(query.whole("start"), 0)
    rows = await daemon.database.read(site_rows.list_sites)
    row = next((row for row in rows if row.name == name), None)
    if row is None or row.site_id not in daemon.state.sites:
        raise HTTPException(404, f"There is no site {name}; or it is no longer configured.")
    site = site_status(daemon, row, 0)
    names = site.hosts[start : start + PER_PAGE]
    found = [await daemon.database.read(host_rows.by_name, each) for each in names]
    more = start + PER_PAGE < len(site.hosts)
    fresh = await _freshness(daemon)
    return View(
        "site.html",
        "sites",
        name,
        {
            "site": site,
            "fresh": fresh.get(name),
            "states": states_chart(site.pages),
            "audits": freshness_chart(await audit_statuses(daemon, AUDIT_DAYS, name)),
            "hosts": [host_status(daemon, each) for each in found if each is not None],
            "config": daemon.state.sites[row.site_id].config,
            "first": link("site", name=name) if start else "",
            "following": link("site", name=name, start=start + PER_PAGE) if more else "",
        },
    )


def _name(row: SiteRow) -> str:
    return row.name


async def _freshness(daemon: Daemon) -> dict[str, FreshnessStatus]:
    found = await freshness_statuses(daemon)
    return {each.site: each for each in found if each.host is None}
