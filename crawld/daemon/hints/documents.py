"""Fetch documents that list changes (sitemaps, feeds, event streams), politely and conditionally.

robots.txt applies as it does to pages, with one exception: for a site with `api = true`, the feed
of a wiki's `api.php` may be fetched if only rules for all robots forbid it, as in `ApiClient`.

Each redirect takes its own slot of the host. Failures are values. A back-off that a host asks for
(Retry-After) also holds for its pages and is stored before the next request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

import structlog
import trio

from crawld.core.outcome import REDIRECT_STATUSES
from crawld.core.robots import Robots
from crawld.core.units import DAY_S
from crawld.core.url import canonicalize, split_url
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.fetch.metered_fetcher import QUOTA_EXCEEDED
from crawld.daemon.fetch.request import stays_open
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.hints.source import HELD, PollTrouble
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.errors import InvalidUrlError
from crawld.memory import MemoryLease
from crawld.net.exchange import (
    FetchFailure,
    FetchLimits,
    FetchRequest,
    FetchResponse,
    Headers,
    Receive,
    Sink,
    retry_after_s,
)

log = structlog.get_logger(__name__)

MAX_REDIRECTS: Final = 4

_ACCEPT: Final = "application/xml, text/xml, application/rss+xml, application/atom+xml, */*;q=0.5"
_ENDLESS: Final = FetchLimits(total_s=inf, max_wire_bytes=2**62, max_body_bytes=2**62)
STREAM_BYTES_PER_S: Final = 2.0**20
"""How fast an event stream is read at most, decoded: ten times all changes at Wikimedia.

The costliest lines then take a sixth of a core; a server that sends more waits.
"""
_BACK_OFF_STATUSES: Final = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """A document to fetch.

    Attributes:
        max_bytes: size limit, both before and after Content-Encoding.
    """

    site_id: int
    url: str
    max_bytes: int
    etag: str | None = None
    last_modified: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def unconditional(self) -> DocumentRequest:
        """Return the same request without validators, for a full response."""
        return replace(self, etag=None, last_modified=None)


@dataclass(frozen=True, slots=True)
class Document:
    """A fetched document.

    Attributes:
        at: time of the response, Unix seconds.
        body: decoded body; None: not modified.
        cut: whether the body was cut at the size limit.
        lease: on the memory of the body; it ends with the document.
    """

    url: str
    at: float
    body: bytes | None
    cut: bool
    headers: Headers
    requests: int
    etag: str | None = None
    last_modified: str | None = None
    lease: MemoryLease | None = field(default=None, repr=False, compare=False)


class DocumentFetcher(BackgroundWork):
    """Fetches documents in turns of their hosts."""

    def __init__(self, context: CrawlContext, crawl: Crawl, connectivity: Connectivity) -> None:
        super().__init__(context)
        self._crawl = crawl
        self._connectivity = connectivity

    async def get(self, wanted: DocumentRequest) -> Document | PollTrouble:
        """Fetch a document as soon as politeness allows; follow redirects."""
        url, requests = wanted.url, 0
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._fetch_in_slot(wanted, url)
            if isinstance(response, PollTrouble):
                return replace(response, requests=requests + response.requests)
            requests += 1
            target = _target(response, url)
            if target is None:
                return self._document(wanted, url, response, requests)
            site = self._state.sites.get(wanted.site_id)
            if site is None or not site.trusts(target, wanted.url):
                return PollTrouble("moved", f"redirects to {target}"[:200], requests=requests)
            url = target
        return PollTrouble("moved", f"more than {MAX_REDIRECTS} redirects", requests=requests)

    async def listen(
        self, wanted: DocumentRequest, receive: Receive, silence_s: float
    ) -> PollTrouble:
        """Connect to a stream and pass its body on until it ends.

        The connection holds a slot of the host until the response header arrives; after that, pages
        are fetched beside it.

        Args:
            wanted: the stream; redirects are not followed.
            receive: gets status and headers, and returns the sink for the body.
            silence_s: longest silence before the connection is closed.

        Returns:
            Why the connection ended.
        """
        ends: list[PollTrouble] = []
        async with trio.open_nursery() as nursery, self._slot(wanted.site_id, wanted.url) as slot:
            if isinstance(slot, PollTrouble):
                return slot
            host, site = slot
            header_arrived = trio.Event()

            def receive_header(status: int, headers: Headers) -> Sink | None:
                header_arrived.set()
                return receive(status, headers)

            async def fetch_stream() -> None:
                plain = self._request(wanted, host, site, wanted.url)
                limits = replace(
                    _ENDLESS,
                    connect_s=plain.limits.connect_s,
                    header_s=plain.limits.header_s,
                    stall_s=silence_s,
                )
                request = replace(
                    plain,
                    limits=limits,
                    keep_alive=False,
                    receive=receive_header,
                    max_bytes_per_s=STREAM_BYTES_PER_S,
                )
                fetched = await self._crawl.fetcher.fetch_document(site, request)
                ends.append(await self._stream_end(host, fetched))
                header_arrived.set()

            host.rest_from(trio.current_time())
            nursery.start_soon(fetch_stream)
            await header_arrived.wait()
            host.rest_from(trio.current_time())
        return ends[0]

    async def _stream_end(
        self, host: HostState, fetched: FetchResponse | FetchFailure
    ) -> PollTrouble:
        self._connectivity.observe_response(host.slot.host, fetched)
        if isinstance(fetched, FetchFailure) and fetched.status == 200:
            return PollTrouble("broken_off", fetched.detail[:200])  # not a failure of the host
        response = await self._record_response(host, fetched)
        if isinstance(response, PollTrouble):
            return response
        if fetched.status != 200:
            return PollTrouble(f"status_{fetched.status}")
        return PollTrouble("ended", "the server ended the stream")

    async def _fetch_in_slot(
        self, wanted: DocumentRequest, url: str
    ) -> FetchResponse | FetchFailure | PollTrouble:
        async with self._slot(wanted.site_id, url) as slot:
            if isinstance(slot, PollTrouble):
                return slot
            host, site = slot
            fetched = await self._crawl.fetcher.fetch_document(
                site, self._request(wanted, host, site, url)
            )
            self._connectivity.observe_response(host.slot.host, fetched)
            try:
                return await self._record_response(host, fetched)
            finally:
                # A success lowers the back-off first: the delay that begins now is that after it.
                host.rest_from(fetched.arrived_at)

    @asynccontextmanager
    async def _slot(
        self, site_id: int, url: str
    ) -> AsyncIterator[tuple[HostState, ActiveSite] | PollTrouble]:
        """Hold a slot of the URL's host; yield the trouble if it must not be fetched now."""
        host = await self._state.ensure_host(split_url(url).host, site_id)
        origin = split_url(url).origin
        while True:
            trouble = self._blocked(site_id, host) or self._robots_closed(origin)
            if trouble is not None:
                yield trouble
                return
            async with self._crawl.schedule.borrow(host.slot):
                site = self._state.sites.get(site_id)
                if site is None or self._blocked(site_id, host) is not None:
                    continue
                robots = await self._crawl.robots.fresh(origin)
                if robots is None:
                    await self._crawl.robots_fetch.fetch(host, site, origin)
                    continue
                if _is_permitted(robots, site, url):
                    yield host, site
                else:
                    yield PollTrouble("robots", "robots.txt forbids it", DAY_S, requests=0)
                return

    # --- permission ------------------------------------------------------------------------------

    def _blocked(self, site_id: int, host: HostState) -> PollTrouble | None:
        site = self._state.sites.get(site_id)
        if site is None or site.paused or host.paused:
            return PollTrouble(HELD, "the site or host is paused", requests=0)
        if self._state.traffic.is_over_quota(site):
            return PollTrouble(HELD, QUOTA_EXCEEDED, requests=0)
        opens_in_s = host.rested_at(self._clock) - trio.current_time()
        if opens_in_s > 0:
            return PollTrouble(HELD, "the host is in back-off", opens_in_s, requests=0)
        return None

    def _robots_closed(self, origin: str) -> PollTrouble | None:
        closed_s = self._crawl.robots.closed_until(origin) - trio.current_time()
        if closed_s <= 0:
            return None
        return PollTrouble(HELD, "robots.txt is unavailable", closed_s, requests=0)

    # --- one request -----------------------------------------------------------------------------

    def _request(
        self, wanted: DocumentRequest, host: HostState, site: ActiveSite, url: str
    ) -> FetchRequest:
        limits = replace(
            site.limits, max_wire_bytes=wanted.max_bytes, max_body_bytes=wanted.max_bytes
        )
        conditions = (("If-None-Match", wanted.etag), ("If-Modified-Since", wanted.last_modified))
        sent = [(key, value) for key, value in conditions if value and url == wanted.url]
        return FetchRequest(
            url=url,
            headers=(*site.headers_for(url), ("Accept", _ACCEPT), *sent, *wanted.headers),
            limits=limits,
            permits_private=site.permits_private,
            proxy=site.config.proxy,
            keep_alive=stays_open(url, host.delay_s()),
            cut=True,
        )

    async def _record_response(
        self, host: HostState, fetched: FetchResponse | FetchFailure
    ) -> FetchResponse | FetchFailure | PollTrouble:
        now = self._clock.now()
        told_s = retry_after_s(fetched, now)
        failed = isinstance(fetched, FetchFailure)
        local = isinstance(fetched, FetchFailure) and fetched.local_fault
        of_host = not local and (failed or fetched.status in _BACK_OFF_STATUSES)
        if of_host:
            await self._state.back_off(host, told_s, fetched.address)
        else:
            host.record_success(now)
        if isinstance(fetched, FetchFailure):
            detail = fetched.detail[:200]
            return PollTrouble(str(fetched.failure), detail, told_s, of_host=of_host)
        if fetched.status >= 400:
            pause_s = told_s or (DAY_S if fetched.status in (401, 403, 410) else None)
            detail = fetched.reason[:200]
            return PollTrouble(f"status_{fetched.status}", detail, pause_s, of_host=of_host)
        return fetched

    def _document(
        self,
        wanted: DocumentRequest,
        url: str,
        response: FetchResponse | FetchFailure,
        requests: int,
    ) -> Document | PollTrouble:
        assert isinstance(response, FetchResponse)
        if response.status not in (200, 304):
            return PollTrouble(
                f"status_{response.status}", response.reason[:200], requests=requests
            )
        same = response.status == 304
        return Document(
            url,
            self._clock.now(),
            None if same else response.body,
            response.cut,
            response.headers,
            requests,
            response.header("etag") or (wanted.etag if same else None),
            response.header("last-modified") or (wanted.last_modified if same else None),
            response.lease,
        )


def _target(response: FetchResponse | FetchFailure, url: str) -> str | None:
    location = response.header("location")
    if response.status not in REDIRECT_STATUSES or not location:
        return None
    try:
        return canonicalize(location, url, of_page=False)
    except InvalidUrlError:
        return None


def _is_permitted(robots: Robots, site: ActiveSite, url: str) -> bool:
    if robots.allowed(url):
        return True
    api = split_url(url).target.partition("?")[0].endswith("/api.php")
    return api and site.config.api and not robots.names_agent
