"""The ASGI application of the web mirror: routes and responses.

    /, /site/NAME, /random            sites, pages of a site, any page (`site_pages`)
    /search?q=…, /-/suggest?q=…       full-text search, titles that begin so
    /https/HOST/PATH                  a page (`address`), /@WHEN/https/… an older version
    /versions/…, /diff/…              its versions, the difference of two (`history`)
    /changes, /changes.atom, .json    what changed, and feeds of it (`change_list`, `feeds`)
    /open?url=…&at=…                  redirects to a page or an older version
    /timegate/URL, /timemap/link/URL  the same for programs (`memento`)

Only GET and HEAD are allowed. Each request makes one short database read on a reader thread, which
also rewrites a small page, so that no page blocks the event loop of a daemon. What takes longer
runs on the readers of a second database object (`large_pages`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import apsw

from crawld.core.url import canonicalize
from crawld.errors import CrawldError, InvalidUrlError
from crawld.marks import NO_MARKS, Marks
from crawld.store.engine.database import Database
from crawld.store.mirror.lookup import PageLookup
from crawld.store.versions import search_index
from crawld.web import assets, history, memento, security, site_pages
from crawld.web.address import CURRENT, mirror_path, parse_address, parse_selector
from crawld.web.allowed_hosts import AllowedHosts, host_name
from crawld.web.change_list import changes_page
from crawld.web.feeds import ATOM_PATH, CHANGES_PATH, JSON_PATH, Feeds
from crawld.web.large_pages import LargePages
from crawld.web.look import Look, shown_as
from crawld.web.mirror import DisplayOptions, find_page, page_reply, redirect
from crawld.web.pages import error_page, not_an_address, render_page, too_large
from crawld.web.reply import (
    Postponed,
    Reply,
    Request,
    header,
    headers,
    http_date,
    split_query,
)
from crawld.web.search_page import search_page

MAX_TARGET: Final = 16_384

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class MirrorApp:
    """The application on one open database.

    Args:
        database: open for reading.
        apart: the same file, open for what takes long: large pages, differences, search.
        clock: returns Unix seconds.
        display: how pages are shown.
        on_error: called with the target of a failed request and the error.
        hosts: accepted Host headers.
        marks: notes which page is rewritten or compared.
        large: renders large pages, within the memory that is there for them.
        look: title and links of the generated pages.
        public_url: returns the address that links of feeds begin with; None: that of the request.
    """

    def __init__(
        self,
        database: Database,
        apart: Database,
        clock: Callable[[], float],
        display: DisplayOptions,
        on_error: Callable[[str, BaseException], None],
        hosts: AllowedHosts,
        marks: Marks = NO_MARKS,
        large: LargePages | None = None,
        look: Look | None = None,
        public_url: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._database = database
        self._apart = apart
        self._large = large or LargePages()
        self._clock = clock
        self._display = display
        self._on_error = on_error
        self._hosts = hosts
        self._marks = marks
        self._look = look or Look()
        self._feeds = Feeds(clock, self._large, marks, public_url)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Respond to one request (ASGI)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is supported")
        request = asgi_request(scope)
        with shown_as(self._look):
            reply = await self._reply(request)
        lines = [*reply.headers, header("date", http_date(self._clock()))]
        if reply.status != 304:
            lines.append((b"content-length", b"%d" % len(reply.body)))
        await send({"type": "http.response.start", "status": reply.status, "headers": lines})
        message: dict[str, Any] = {"type": "http.response.body"}
        if request.method != "HEAD":
            message["body"] = reply.body
        # The server takes the body out of the message: it alone decides how long it is in memory.
        del reply
        await send(message)

    async def _reply(self, request: Request) -> Reply:
        host = request.headers.get("host")
        is_asset = request.target.partition("?")[0] in _ASSETS
        if not self._hosts.allows(host) and not is_asset:
            return render_page("misdirected.html", 421, name=host_name(host or ""))
        if request.method not in ("GET", "HEAD"):
            refused = error_page(405, "Read-only", "The mirror only accepts GET and HEAD.")
            refused.headers.append(header("allow", "GET, HEAD"))
            return refused
        if len(request.target) > MAX_TARGET:
            return error_page(414, "Too long", "No page of the mirror has such a long address.")
        try:
            reply = await self._database.read(self._route, request, may_postpone=True)
            if isinstance(reply, Postponed):
                if not self._large.admits(reply):
                    return too_large("These copies are")
                made = await self._large.reply(
                    reply, partial(self._apart.read, self._route, request, may_postpone=False)
                )
                return made or _busy()
            return reply
        except CrawldError as error:
            self._on_error(request.target, error)
            return error_page(500, "Damaged", error.message)
        except apsw.Error as error:
            self._on_error(request.target, error)
            return error_page(503, "Unavailable", "The database cannot be read now.")
        except Exception as error:
            # A bug must fail only this response, not the listener or the daemon.
            self._on_error(request.target, error)
            return error_page(500, "Internal error", "See the log of crawld for the cause.")

    def _route(
        self, connection: apsw.Connection, request: Request, *, may_postpone: bool = False
    ) -> Reply | Postponed:
        """Return the response to a request; runs on a reader thread."""
        with shown_as(self._look):
            return self._routed(connection, request, may_postpone=may_postpone)

    def _routed(
        self, connection: apsw.Connection, request: Request, *, may_postpone: bool
    ) -> Reply | Postponed:
        target = request.target
        if target.startswith(("/http", "/@")):
            return self._page(connection, request, may_postpone=may_postpone)
        if target.startswith("/diff/"):
            return history.show_diff(
                connection, target[5:], may_postpone=may_postpone, marks=self._marks
            )
        for prefix, page_route in _PAGE_ROUTES.items():
            if target.startswith(prefix):
                return page_route(connection, request, target[len(prefix) :])
        path, parameters = split_query(target)
        route = _ROUTES.get(path.rstrip("/") or "/")
        if path in (ATOM_PATH, JSON_PATH):
            given = dict(parameters)
            return self._feeds.reply(connection, request, path, given, may_postpone=may_postpone)
        searches = route is MirrorApp._changes and "q" in dict(parameters)
        if may_postpone and (route is MirrorApp._search or searches):
            return Postponed(memory_bytes=search_index.SNIPPETS_BYTES)
        if route is not None:
            return route(self, connection, dict(parameters))
        if path in _ASSETS:
            return _asset(path)
        if path.startswith("/site/"):
            name = unquote(path[6:])
            return site_pages.site_page(connection, name, dict(parameters), self._clock())
        return error_page(404, "No such page", "An address in the mirror starts with /https/.")

    def _page(
        self, connection: apsw.Connection, request: Request, *, may_postpone: bool
    ) -> Reply | Postponed:
        address = parse_address(request.target)
        if address is None:
            return not_an_address()
        if not address.canonical:
            return redirect(mirror_path(address.url, address.selector.text), 301)
        accept_datetime = request.headers.get("accept-datetime")
        if accept_datetime is not None and address.selector is CURRENT:
            page = find_page(connection, address.url)
            reply = page and memento.time_gate(
                connection, page, accept_datetime, request.headers["base"]
            )
            if reply:
                return reply
        find = self._large.find if may_postpone else None
        with self._marks.under(address.url):
            return page_reply(connection, address, request, self._clock(), self._display, find)

    def _front(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return site_pages.front_page(connection, parameters, self._clock())

    def _suggest(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return site_pages.suggestions(connection, parameters)

    def _random(self, connection: apsw.Connection, _parameters: dict[str, str]) -> Reply:
        return site_pages.random_page(connection, self._clock())

    def _search(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return search_page(connection, parameters, self._clock())

    def _changes(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return changes_page(connection, parameters, self._clock())

    def _compare(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return history.redirect_to_diff(connection, parameters)

    def _open(self, _connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        typed, at = parameters.get("url", "").strip(), parameters.get("at", "").strip()
        try:
            url = canonicalize(typed if "://" in typed else f"https://{typed}")
        except InvalidUrlError:
            return not_an_address()
        return redirect(mirror_path(url, at if parse_selector(at) else ""))

    def _robots(self, _connection: apsw.Connection, _parameters: dict[str, str]) -> Reply:
        # Search engines should index the originals, not the mirror.
        lines = headers(("content-type", "text/plain"), ("cache-control", "public, max-age=3600"))
        return Reply(200, b"User-agent: *\nDisallow: /\n", [*lines, *security.OWN_PAGE])


_ROUTES: Final[dict[str, Callable[[MirrorApp, apsw.Connection, dict[str, str]], Reply]]] = {
    "/": MirrorApp._front,
    "/random": MirrorApp._random,
    "/-/suggest": MirrorApp._suggest,
    "/search": MirrorApp._search,
    CHANGES_PATH: MirrorApp._changes,
    "/open": MirrorApp._open,
    "/diff": MirrorApp._compare,
    "/robots.txt": MirrorApp._robots,
}


_ASSETS: Final = {
    assets.STYLE_PATH: ("text/css", assets.STYLE),
    assets.SCRIPT_PATH: ("text/javascript", assets.SCRIPT),
    # Browsers ask for it on behalf of mirrored pages that name no icon.
    "/favicon.ico": ("image/svg+xml", assets.MARK.encode()),
}


def _asset(path: str) -> Reply:
    content_type, content = _ASSETS[path]
    lines = headers(("content-type", content_type), ("cache-control", "public, max-age=86400"))
    return Reply(200, content, [*lines, *security.INERT])


def _time_gate(connection: apsw.Connection, request: Request, target: str) -> Reply:
    page = _find_page(connection, target)
    accept_datetime, base = request.headers.get("accept-datetime"), request.headers["base"]
    reply = page and memento.time_gate(connection, page, accept_datetime, base)
    return reply or _not_mirrored(target)


def _time_map(connection: apsw.Connection, request: Request, target: str) -> Reply:
    page = _find_page(connection, target)
    if page is None:
        return _not_mirrored(target)
    return memento.time_map(connection, page, request.headers["base"])


def _find_page(connection: apsw.Connection, url: str) -> PageLookup | None:
    try:
        return find_page(connection, canonicalize(url))
    except InvalidUrlError:
        return None


def _busy() -> Reply:
    reply = error_page(503, "Busy", "Too many readers wait for large pages. Try again soon.")
    reply.headers.append(header("retry-after", "5"))
    return reply


def _not_mirrored(url: str) -> Reply:
    return error_page(404, "Not in the mirror", f"There is no copy of {url}.")


_PAGE_ROUTES: Final[dict[str, Callable[[apsw.Connection, Request, str], Reply]]] = {
    "/versions": lambda connection, _, target: history.list_copies(connection, target),
    memento.TIMEGATE_PREFIX: _time_gate,
    memento.TIMEMAP_PREFIX: _time_map,
}


def asgi_request(scope: Scope) -> Request:
    """Return the request of an ASGI scope; the added header `base` is scheme, host and port."""
    lines = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    lines["base"] = f"{scope.get('scheme', 'http')}://{lines.get('host', 'localhost')}"
    target = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    if "?" not in target and query:
        target = f"{target}?{query}"
    return Request(scope["method"], target, lines)
