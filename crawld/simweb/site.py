"""One simulated site: its pages, its changes, its behavior, and the truth about them.

A site is a function from a request to a response. It has no clock (the request carries its time)
and no socket. The revision of a page at a time is the number of changes until then, so what was
served can always be recomputed.

Invariants: `revision(page, at)` never decreases in `at`; two responses of one revision differ in
noise only; correct validators name the revision exactly (ETag) or its time rounded down to the
second (Last-Modified); all other validators are wrong on purpose.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from crawld.simweb.change_process import (
    STATIC,
    ChangeProcess,
    ProcessOfPage,
    last_change,
    next_change,
)
from crawld.simweb.fault import Fault
from crawld.simweb.graph import SiteGraph
from crawld.simweb.message import (
    SimRequest,
    SimResponse,
    build_error_response,
    build_response,
    http_date,
)
from crawld.simweb.render import PLAIN_STYLE, PageStyle, Rendering
from crawld.simweb.trap import Trap, trap_of, trap_page

URLS_PER_SITEMAP = 10_000
_SITEMAP = re.compile(r"/sitemap(?:-([0-9]{1,6}))?\.xml")
_FUTURE_S = 30 * 86400.0
_STYLE = b"body { max-width: 60em; margin: auto }\n"
_LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><path d="M0 0h8v8z"/></svg>'


class ValidatorBehavior(StrEnum):
    """How a validator (ETag or Last-Modified) behaves.

    FROZEN never changes, so the server answers 304 although the page changed. RESTLESS differs at
    each request (for Last-Modified: the current time). FUTURE is correct but a month ahead (for an
    ETag the same as RIGHT).
    """

    RIGHT = "right"
    ABSENT = "absent"
    FROZEN = "frozen"
    RESTLESS = "restless"
    FUTURE = "future"


class _ListedUntil(NamedTuple):
    """An entry of a sitemap, and from when until when it is right (Unix seconds)."""

    from_at: float
    until_at: float
    entry: str


@dataclass(slots=True, eq=False)
class SimSite:
    """A simulated site.

    Attributes:
        hosts: names (or addresses) it answers to; several hosts are mirrors of each other.
        graph: pages and links.
        changes: returns the change process of a page; called once per page, on first use.
        start_at: time at which the site was created, Unix seconds.
        style: size, edits and noise of its pages.
        etag: behavior of ETag.
        last_modified: behavior of Last-Modified.
        robots: text of robots.txt; None answers 404.
        sitemap: whether /sitemap.xml exists (robots.txt, if there is one, then names it).
        faults: path prefix to fault; the longest prefix wins.
        traps: traps that the home page links to.
        compress: whether to send gzip to clients that accept it.
    """

    hosts: tuple[str, ...]
    graph: SiteGraph
    changes: ProcessOfPage = field(default=lambda page: STATIC)
    start_at: float = 0.0
    style: PageStyle = PLAIN_STYLE
    etag: ValidatorBehavior = ValidatorBehavior.RIGHT
    last_modified: ValidatorBehavior = ValidatorBehavior.RIGHT
    robots: str | None = None
    sitemap: bool = False
    faults: Mapping[str, Fault] = field(default_factory=dict)
    traps: tuple[Trap, ...] = ()
    compress: bool = False
    rendering: Rendering = field(init=False)
    _changes: dict[int, ChangeProcess] = field(init=False, default_factory=dict)
    _listed: dict[tuple[str, int], _ListedUntil] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        entry_paths = tuple(trap.entry_path for trap in self.traps)
        self.rendering = Rendering(self.graph, self.style, home_links=entry_paths)

    def changes_of(self, page: int) -> ChangeProcess:
        """Return the change process of a page."""
        found = self._changes.get(page)
        if found is None:
            found = self._changes[page] = self.changes(page)
        return found

    def revision(self, page: int, at: float) -> int:
        """Return the number of changes of a page until `at`."""
        return self.changes_of(page).changes_until(at)

    def modified_at(self, page: int, at: float) -> float:
        """Return the time of the last change until `at`, or the site's start if there was none."""
        return max(self.start_at, last_change(self.changes_of(page), at))

    def page_of(self, url: str) -> int | None:
        """Return the number of the page at a URL (or path) of this site; None if there is none."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        return self.graph.page_at(parts.path or "/")

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request, faults included."""
        prefixes = [prefix for prefix in self.faults if request.target.startswith(prefix)]
        if not prefixes:
            return self._handle_without_fault(request)
        return self.faults[max(prefixes, key=len)](request, self._handle_without_fault)

    def _handle_without_fault(self, request: SimRequest) -> SimResponse:
        if request.method not in ("GET", "HEAD"):
            return build_error_response(request, 405)
        path = request.path
        page = self.graph.page_at(path)
        if page is not None:
            return self._page(request, page)
        if path == "/robots.txt":
            return self._robots(request)
        if self.sitemap and (part := _SITEMAP.fullmatch(path)):
            return self._sitemap(request, part[1])
        if path == "/style.css":
            return build_response(request, 200, _STYLE, content_type="text/css")
        if path == "/logo.svg":
            return build_response(request, 200, _LOGO, content_type="image/svg+xml")
        return self._trap(request, path)

    def _page(self, request: SimRequest, page: int) -> SimResponse:
        revision = self.revision(page, request.at)
        etag = self._etag(request, page, revision)
        modified_at = self._last_modified(request, page)
        extra = f"ETag: {etag}\r\n" if etag else ""
        if modified_at is not None:
            extra += f"Last-Modified: {http_date(modified_at)}\r\n"
        if _not_modified(request.headers, etag, modified_at):
            return build_response(request, 304, extra=extra)
        body = self.rendering.html(page, revision, serial=request.serial, at=request.at)
        if self.compress and "gzip" in request.headers.get("accept-encoding", ""):
            body = gzip.compress(body, 1, mtime=0)
            extra += "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        return build_response(request, 200, body, extra=extra)

    def _etag(self, request: SimRequest, page: int, revision: int) -> str:
        match self.etag:
            case ValidatorBehavior.ABSENT:
                return ""
            case ValidatorBehavior.FROZEN:
                return f'"{page:x}"'
            case ValidatorBehavior.RESTLESS:
                return f'"{page:x}.{request.serial:x}"'
            case _:
                return f'"{page:x}.{revision:x}"'

    def _last_modified(self, request: SimRequest, page: int) -> float | None:
        match self.last_modified:
            case ValidatorBehavior.ABSENT:
                return None
            case ValidatorBehavior.FROZEN:
                return self.start_at
            case ValidatorBehavior.RESTLESS:
                return request.at
            case ValidatorBehavior.FUTURE:
                return self.modified_at(page, request.at) + _FUTURE_S
            case _:
                return self.modified_at(page, request.at)

    def _robots(self, request: SimRequest) -> SimResponse:
        if self.robots is None:
            return build_error_response(request, 404)
        text = self.robots
        if self.sitemap:
            text += f"\nSitemap: {request.origin}/sitemap.xml\n"
        return build_response(request, 200, text.encode(), content_type="text/plain; charset=utf-8")

    def _sitemap(self, request: SimRequest, number: str | None) -> SimResponse:
        """Respond with the whole sitemap, an index of its parts, or part `number`."""
        pages = self.graph.pages
        if number is None and pages > URLS_PER_SITEMAP:
            parts = range(-(-pages // URLS_PER_SITEMAP))
            urls = [f"{request.origin}/sitemap-{k}.xml" for k in parts]
            entries = [f"<sitemap><loc>{url}</loc></sitemap>" for url in urls]
            return _xml(request, "sitemapindex", entries)
        first = int(number or 0) * URLS_PER_SITEMAP
        if first >= pages:
            return build_error_response(request, 404)
        shown = range(first, min(first + URLS_PER_SITEMAP, pages))
        return _xml(request, "urlset", [self._sitemap_entry(request, page) for page in shown])

    def _sitemap_entry(self, request: SimRequest, page: int) -> str:
        key, at = (request.origin, page), request.at
        known = self._listed.get(key)
        if known is not None and known.from_at <= at < known.until_at:
            return known.entry
        until_at, from_at = next_change(self.changes_of(page), at), self.modified_at(page, at)
        modified = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(from_at))
        url = f"{request.origin}{self.graph.path(page)}"
        entry = f"<url><loc>{url}</loc><lastmod>{modified}</lastmod></url>"
        if self.graph.pages <= URLS_PER_SITEMAP:
            self._listed[key] = _ListedUntil(from_at, until_at, entry)
        return entry

    def _trap(self, request: SimRequest, path: str) -> SimResponse:
        trap = trap_of(path)
        if trap in self.traps and (html := trap_page(trap, request)) is not None:
            return build_response(request, 200, html)
        return build_error_response(request, 404)


def _not_modified(headers: Mapping[str, str], etag: str, modified_at: float | None) -> bool:
    """Whether the client's copy is current by its validators (RFC 9110, 13.2.2)."""
    asked = headers.get("if-none-match")
    if asked is not None:
        offered = [tag.strip().removeprefix("W/") for tag in asked.split(",")]
        return bool(etag) and (etag in offered or offered == ["*"])
    since = headers.get("if-modified-since")
    if since is None or modified_at is None:
        return False
    try:
        return int(modified_at) <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


def _xml(request: SimRequest, root: str, entries: list[str]) -> SimResponse:
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    lines = "\n".join(entries)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{namespace}">\n{lines}\n'
    text += f"</{root}>\n"
    return build_response(request, 200, text.encode(), content_type="application/xml")
