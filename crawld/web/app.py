"""The ASGI application: which request gets which page.

    /                                 sites, counts, ages
    /site/NAME                        pages of a site
    /search?q=…                       pages that hold words
    /https/HOST/PATH                  a page (`address`), /@WHEN/https/… as it was
    /versions/…, /diff/…              its copies, what changed between two (`past`)
    /open?url=…&at=…                  leads to a page, or to one as it was
    /timegate/URL, /timemap/link/URL  the same for programs (`memento`)

Everything is GET or HEAD and reads only: one short read of the file a request, on a reader's
thread, the rewriting included, so that the event loop of a daemon is never held up by a page.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

import apsw

from crawld.core.url import canonicalize
from crawld.errors import CrawldError, InvalidUrlError
from crawld.store.engine.database import Database
from crawld.store.frontier import site
from crawld.store.mirror import lookup
from crawld.store.mirror.lookup import PageLookup
from crawld.store.versions import search_index
from crawld.web import history, memento, security
from crawld.web.address import CURRENT, mirror_path, parse_address, parse_selector
from crawld.web.allowed_hosts import AllowedHosts, host_name
from crawld.web.mirror import DisplayOptions, find_page, page_reply, redirect
from crawld.web.pages import (
    STYLE,
    error_page,
    index_page,
    misdirected_page,
    render_page,
    site_page,
)
from crawld.web.reply import Reply, Request, header, headers, split_query

PAGES_PER_LIST: Final = 200
HITS_PER_PAGE: Final = 10
MAX_HITS: Final = 1_000
MAX_TARGET: Final = 16_384
STYLE_PATH: Final = "/-/crawld.css"

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class MirrorApp:
    """The application over one open database."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        look: DisplayOptions,
        on_error: Callable[[str, BaseException], None],
        names: AllowedHosts,
    ) -> None:
        """Take the file to show.

        Args:
            database: open for reading.
            clock: returns Unix seconds.
            look: how pages are shown.
            on_error: is told the target of a request that failed, and why.
            names: by which it may be asked.
        """
        self._database = database
        self._clock = clock
        self._look = look
        self._on_error = on_error
        self._names = names

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is spoken here")
        request = asgi_request(scope)
        reply = await self._reply(request)
        if request.method == "HEAD":
            length, body = len(reply.body), b""
        else:
            length, body = len(reply.body), reply.body
        lines = reply.headers
        if reply.status != 304:
            lines = [*lines, (b"content-length", b"%d" % length)]
        start = {"type": "http.response.start", "status": reply.status, "headers": lines}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def _reply(self, request: Request) -> Reply:
        host = request.headers.get("host")
        if not self._names.allow(host) and request.target != STYLE_PATH:
            return misdirected_page(host_name(host or ""))
        if request.method not in ("GET", "HEAD"):
            refused = error_page(405, "Read only", "The mirror takes nothing; ask the original.")
            refused.headers.append(header("allow", "GET, HEAD"))
            return refused
        if len(request.target) > MAX_TARGET:
            return error_page(414, "Too long", "No page of the mirror has so long an address.")
        try:
            return await self._database.read(self._answer, request)
        except CrawldError as error:
            self._on_error(request.target, error)
            return error_page(500, "Damaged", error.message)
        except apsw.Error as error:
            self._on_error(request.target, error)
            return error_page(503, "Not now", "The file cannot be read at this moment.")
        except Exception as error:
            # A fault of ours ends this answer, not the listener or the daemon around it.
            self._on_error(request.target, error)
            return error_page(500, "Not shown", "crawld failed at this page; its log says why.")

    def _answer(self, connection: apsw.Connection, request: Request) -> Reply:
        """Return the answer to a request; runs on a reader's thread."""
        target = request.target
        if target.startswith(("/http", "/@")):
            return self._page(connection, request)
        for prefix, answer in _PAGE_ROUTES.items():
            if target.startswith(prefix):
                return answer(self, connection, request, target[len(prefix) :])
        path, parameters = split_query(target)
        own = _ROUTES.get(path.rstrip("/") or "/")
        if own is not None:
            return own(self, connection, dict(parameters))
        if path.startswith("/site/"):
            return self._site(connection, unquote(path[6:]), dict(parameters))
        return error_page(404, "No such page", "An address of the mirror begins with /https/.")

    def _page(self, connection: apsw.Connection, request: Request) -> Reply:
        address = parse_address(request.target)
        if address is None:
            return error_page(404, "No such page", "This is no address a page could have.")
        if not address.canonical:
            return redirect(mirror_path(address.url, address.moment.text), 301)
        wanted = request.headers.get("accept-datetime")
        if wanted is not None and address.moment is CURRENT:
            page = find_page(connection, address.url)
            gated = page and memento.time_gate(connection, page, wanted, request.headers["base"])
            if gated:
                return gated
        return page_reply(connection, address, request, self._clock(), self._look)

    # --- about a page ---------------------------------------------------------------------------

    def _versions(self, connection: apsw.Connection, _request: Request, target: str) -> Reply:
        return history.list_copies(connection, target)

    def _diff(self, connection: apsw.Connection, _request: Request, target: str) -> Reply:
        return history.show_diff(connection, f"/{target}")

    def _gate(self, connection: apsw.Connection, request: Request, target: str) -> Reply:
        page = _find_page(connection, target)
        wanted = request.headers.get("accept-datetime")
        gated = page and memento.time_gate(connection, page, wanted, request.headers["base"])
        return gated or error_page(404, "Not in the mirror", f"There is no copy of {target}.")

    def _map(self, connection: apsw.Connection, request: Request, target: str) -> Reply:
        page = _find_page(connection, target)
        if page is None:
            return error_page(404, "Not in the mirror", f"There is no copy of {target}.")
        return memento.time_map(connection, page, request.headers["base"])

    # --- our own ---------------------------------------------------------------------------------

    def _index(self, connection: apsw.Connection, _parameters: dict[str, str]) -> Reply:
        return index_page(lookup.summaries(connection, self._clock()))

    def _site(self, connection: apsw.Connection, name: str, parameters: dict[str, str]) -> Reply:
        after = _number(parameters.get("after"))
        if site.by_name(connection, name) is None:
            return error_page(404, "No such site", "The start page lists those that are mirrored.")
        pages = lookup.list_pages(connection, name, after=after, limit=PAGES_PER_LIST)
        following = pages[-1].page_id if len(pages) == PAGES_PER_LIST else None
        return site_page(name, pages, following)

    def _search(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        query = parameters.get("q", "").strip()
        start = min(_number(parameters.get("start")), MAX_HITS)
        hits = search_index.find(connection, query, start=start, limit=HITS_PER_PAGE + 1)
        return render_page(
            "search.html",
            query=query,
            hits=hits[:HITS_PER_PAGE],
            start=start,
            page_size=HITS_PER_PAGE,
            more=len(hits) > HITS_PER_PAGE and start < MAX_HITS,
            waiting=search_index.count_pending(connection),
        )

    def _compare(self, connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        return history.redirect_to_diff(connection, parameters)

    def _open(self, _connection: apsw.Connection, parameters: dict[str, str]) -> Reply:
        written, at = parameters.get("url", "").strip(), parameters.get("at", "").strip()
        try:
            url = canonicalize(written if "://" in written else f"https://{written}")
        except InvalidUrlError:
            return error_page(404, "No such page", "This is no address a page could have.")
        return redirect(mirror_path(url, at if parse_selector(at) else ""))

    def _style(self, _connection: apsw.Connection, _parameters: dict[str, str]) -> Reply:
        lines = headers(("content-type", "text/css"), ("cache-control", "public, max-age=3600"))
        return Reply(200, STYLE, [*lines, *security.INERT])

    def _robots(self, _connection: apsw.Connection, _parameters: dict[str, str]) -> Reply:
        # Search engines find the originals; a mirror among their hits helps nobody.
        lines = headers(("content-type", "text/plain"), ("cache-control", "public, max-age=3600"))
        return Reply(200, b"User-agent: *\nDisallow: /\n", [*lines, *security.OWN_PAGE])


_ROUTES: Final[dict[str, Callable[[MirrorApp, apsw.Connection, dict[str, str]], Reply]]] = {
    "/": MirrorApp._index,
    "/search": MirrorApp._search,
    "/open": MirrorApp._open,
    "/diff": MirrorApp._compare,
    STYLE_PATH: MirrorApp._style,
    "/robots.txt": MirrorApp._robots,
}

_PAGE_ROUTES: Final[dict[str, Callable[[MirrorApp, apsw.Connection, Request, str], Reply]]] = {
    "/versions": MirrorApp._versions,
    "/diff/": MirrorApp._diff,
    memento.TIMEGATE_PREFIX: MirrorApp._gate,
    memento.TIMEMAP_PREFIX: MirrorApp._map,
}


def _find_page(connection: apsw.Connection, url: str) -> PageLookup | None:
    try:
        return find_page(connection, canonicalize(url))
    except InvalidUrlError:
        return None


def _number(text: str | None) -> int:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else 0


def asgi_request(scope: Scope) -> Request:
    """Return the request of an ASGI scope; `base` among the headers is scheme, host and port."""
    lines = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    lines["base"] = f"{scope.get('scheme', 'http')}://{lines.get('host', 'localhost')}"
    target = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    if "?" not in target and query:
        target = f"{target}?{query}"
    return Request(scope["method"], target, lines)
