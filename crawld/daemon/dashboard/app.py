"""The dashboard as an ASGI application beside the mirror: GET and HEAD below `/-/dashboard`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
import trio
from starlette.exceptions import HTTPException

from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.forecast_page import show_forecast
from crawld.daemon.dashboard.hosts_page import show_host, show_hosts, show_pages
from crawld.daemon.dashboard.list_pages import show_hints, show_jobs, show_replicas
from crawld.daemon.dashboard.live import LiveFigures
from crawld.daemon.dashboard.overview import Overview
from crawld.daemon.dashboard.overview_page import show_overview
from crawld.daemon.dashboard.page_page import show_page
from crawld.daemon.dashboard.sites_page import show_site, show_sites
from crawld.daemon.dashboard.storage_page import show_storage
from crawld.daemon.dashboard.view import Parameters, View
from crawld.dashboard.access import Access, is_from_here
from crawld.dashboard.rendering import FILES, ROOT, SECURITY, render
from crawld.errors import CrawldError
from crawld.web.allowed_hosts import AllowedHosts, host_name
from crawld.web.reply import Reply, header, split_query

log = structlog.get_logger(__name__)

MAX_TARGET: Final = 16_384

RENDERED_AT_ONCE: Final = 2
"""Pages rendered at once, each in a worker thread."""

LIVE: Final = "live"

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class DashboardApp:
    """Answers requests of the dashboard, and passes all others on to the mirror.

    Attributes:
        live: the figures that are sent as they change.
    """

    def __init__(
        self, daemon: Daemon, mirror: Application, access: Access, hosts: AllowedHosts
    ) -> None:
        self._daemon = daemon
        self._mirror = mirror
        self._access = access
        self._hosts = hosts
        self._overview = Overview(daemon)
        self._rendering = trio.CapacityLimiter(RENDERED_AT_ONCE)
        self.live = LiveFigures(self._overview)

    async def run(self) -> None:
        """Gather what is shown, and make live figures, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._overview.run)
            nursery.start_soon(self.live.run)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request (ASGI)."""
        path = scope.get("raw_path", b"").decode("latin-1")
        own = path == ROOT or path.startswith(f"{ROOT}/")
        if scope["type"] != "http" or self._access == "off" or not own:
            await self._mirror(scope, receive, send)
            return
        refused = self._refused(scope, path)
        name = path[len(ROOT) :].strip("/")
        if refused is None and name == LIVE and scope["method"] == "GET":
            await self.live.send_to(send)
            return
        query = scope["query_string"].decode("latin-1")
        reply = refused or await self._reply(name, f"{path}?{query}")
        lines = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
        await send({"type": "http.response.start", "status": reply.status, "headers": lines})
        body = b"" if scope["method"] == "HEAD" else reply.body
        await send({"type": "http.response.body", "body": body})

    def _refused(self, scope: Scope, path: str) -> Reply | None:
        """Return the answer to a request that gets no page."""
        names = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        sent = names.get("host")
        host = sent.decode("latin-1") if sent is not None else None
        if self._access == "loopback":
            client = scope["client"]
            address = client[0] if client else None
            if not is_from_here(address, host_name(host or ""), names):
                text = "The dashboard is shown on the machine of the daemon only."
                return _plain(403, f"{text} See the config key [web] dashboard.")
        elif not self._hosts.allows(host):
            return _plain(421, "This host name is not one of the mirror: see [web] hosts.")
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "The dashboard changes nothing: it accepts GET and HEAD only.")
        if len(path) + len(scope["query_string"]) > MAX_TARGET:
            return _plain(414, "No page of the dashboard has such a long address.")
        return None

    async def _reply(self, name: str, target: str) -> Reply:
        if name in FILES:
            body, content_type = FILES[name]
            return Reply(200, body, [header("content-type", content_type), *SECURITY])
        try:
            view = await self._view(name, Parameters(dict(split_query(target)[1])))
        except HTTPException as error:
            view = _failure(error.status_code, error.detail)
        except CrawldError as error:
            view = _failure(503, f"{error.message} {error.hint}".strip())
        except Exception:
            # A bug must fail only this page.
            log.exception("dashboard_failed", page=name[:100])
            view = _failure(500, "This is a bug of crawld: its log has more.")
        body = await self._rendered(view)
        return Reply(view.status, body, [header("content-type", "text/html"), *SECURITY])

    async def _view(self, name: str, query: Parameters) -> View:
        if name == "":
            return show_overview(await self._overview.facts())
        page = PAGES.get(name)
        if page is None:
            raise HTTPException(404, "The dashboard has no such page.")
        return await page(self._daemon, query)

    async def _rendered(self, view: View) -> bytes:
        daemon = self._daemon

        def rendered() -> bytes:
            return render(
                view.template,
                **view.values,
                here=view.here,
                title=view.title,
                now=now,
                version=daemon.version,
                phase=phase,
            )

        now = daemon.clock.now()
        phase = "paused" if daemon.crawl.schedule.pauses else daemon.phase
        # Beside a long table the event loop goes on.
        return await daemon.context.workers.run(rendered, limiter=self._rendering)


def _failure(status: int, text: str) -> View:
    titles = {404: "Not found", 409: "Not now", 422: "Not an address"}
    return View("error.html", "", titles.get(status, "Failed"), {"text": text}, status)


def _plain(status: int, text: str) -> Reply:
    lines = [header("content-type", "text/plain; charset=utf-8"), *SECURITY]
    if status == 405:
        lines.append(header("allow", "GET, HEAD"))
    return Reply(status, f"{text}\n".encode(), lines)


PAGES: Final[dict[str, Callable[[Daemon, Parameters], Awaitable[View]]]] = {
    "sites": show_sites,
    "site": show_site,
    "hosts": show_hosts,
    "host": show_host,
    "pages": show_pages,
    "page": show_page,
    "hints": show_hints,
    "replicas": show_replicas,
    "jobs": show_jobs,
    "forecast": show_forecast,
    "storage": show_storage,
}
"""Pages besides the overview, by their path below the root."""
