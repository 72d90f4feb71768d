"""Asking for documents that tell of changes: conditional, polite, one turn of the host a request.

robots.txt governs them like pages. One address is an exception: the API of a wiki (`api.php`), for
a site that says `api = true`, may be asked for its feed where only rules for every robot forbid
it, as `ApiClient` does.

Redirects are followed here, each in a turn of its own. Trouble is a value: what a host asks for
(Retry-After) holds for its pages too, and is in the file before the next request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import structlog
import trio

from crawld.core.politeness import parse_retry_after
from crawld.core.robots import Robots
from crawld.core.url import canonicalize, parse, registrable_domain
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.fetch.metered_fetcher import QUOTA_EXCEEDED
from crawld.daemon.fetch.request import stays_open
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.hints.source import HELD, PollTrouble
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.errors import InvalidUrlError
from crawld.net.exchange import (
    FetchFailure,
    FetchLimits,
    FetchRequest,
    FetchResponse,
    Headers,
    Receive,
    Sink,
)
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows

log = structlog.get_logger(__name__)

MAX_REDIRECTS: Final = 4

_ACCEPT: Final = "application/xml, text/xml, application/rss+xml, application/atom+xml, */*;q=0.5"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ENDLESS: Final = FetchLimits(total_s=inf, max_wire_bytes=2**62, max_body_bytes=2**62)
_REST: Final = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """A document to be asked for.

    Attributes:
        site_id: the site on whose behalf.
        url: canonical URL.
        max_bytes: the most it may have, packed and unpacked by Content-Encoding.
        etag, last_modified: validators of the copy read before.
        headers: further request headers.
    """

    site_id: int
    url: str
    max_bytes: int
    etag: str | None = None
    last_modified: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def unconditional(self) -> DocumentRequest:
        """Return the same without conditions: it is read even if it is as it was."""
        return replace(self, etag=None, last_modified=None)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it came.

    Attributes:
        url: where it was found in the end.
        at: instant of the answer, Unix seconds.
        body: decoded; None: it is the one read before.
        cut: there is more of it than may be read.
        headers: of the answer. requests: what it cost.
    """

    url: str
    at: float
    body: bytes | None
    cut: bool
    headers: Headers
    requests: int
    etag: str | None = None
    last_modified: str | None = None


class DocumentFetcher:
    """Asks for documents."""

    def __init__(
        self, crawl: Crawl, database: Database, network: Connectivity, clock: Clock
    ) -> None:
        self._crawl = crawl
        self._database = database
        self._network = network
        self._clock = clock

    async def get(self, wanted: DocumentRequest) -> Document | PollTrouble:
        """Ask for a document, as soon as politeness allows."""
        url, requests = wanted.url, 0
        for _ in range(MAX_REDIRECTS + 1):
            said = await self._in_turn(wanted, url)
            if isinstance(said, PollTrouble):
                return replace(said, requests=requests + said.requests)
            requests += 1
            target = _target(said, url)
            if target is None:
                return self._read(wanted, url, said, requests)
            if not _may_follow(self._crawl.sites.get(wanted.site_id), target, wanted.url):
                return PollTrouble("moved", f"leads to {target}"[:200], requests=requests)
            url = target
        return PollTrouble("moved", f"more than {MAX_REDIRECTS} redirects", requests=requests)

    async def listen(
        self, wanted: DocumentRequest, receive: Receive, silence_s: float
    ) -> PollTrouble:
        """Connect to a stream and hand on what comes until it ends.

        The connection takes one turn of the host, until the header is there; then the host's pages
        go on beside it.

        Args:
            wanted: what to ask for; redirects are not followed.
            receive: gets status and headers, and returns what takes the body.
            silence_s: longest silence before the connection is given up.

        Returns:
            Why it is over.
        """
        over: list[PollTrouble] = []
        async with trio.open_nursery() as nursery, self._turn(wanted.site_id, wanted.url) as turn:
            if isinstance(turn, PollTrouble):
                return turn
            host, site = turn
            begun = trio.Event()

            def received(status: int, headers: Headers) -> Sink | None:
                begun.set()
                return receive(status, headers)

            async def ask() -> None:
                asked = self._request(wanted, host, site, wanted.url)
                limits = replace(
                    _ENDLESS,
                    connect_s=asked.limits.connect_s,
                    header_s=asked.limits.header_s,
                    stall_s=silence_s,
                )
                request = replace(asked, limits=limits, keep_alive=False, receive=received)
                fetched = await self._crawl.line.fetch(site, request)
                over.append(await self._ended(host, fetched))
                begun.set()

            host.spaced(trio.current_time())
            nursery.start_soon(ask)
            await begun.wait()
            host.spaced(trio.current_time())
        return over[0]

    async def _ended(self, host: HostState, fetched: FetchResponse | FetchFailure) -> PollTrouble:
        self._network.observed(host.slot.host, fetched)
        if isinstance(fetched, FetchFailure) and fetched.status == 200:
            return PollTrouble("broken_off", fetched.detail[:200])  # no trouble of the host
        said = await self._judged(host, fetched)
        if isinstance(said, PollTrouble):
            return said
        if fetched.status != 200:
            return PollTrouble(f"status_{fetched.status}")
        return PollTrouble("ended", "the server ended the stream")

    async def _in_turn(
        self, wanted: DocumentRequest, url: str
    ) -> FetchResponse | FetchFailure | PollTrouble:
        async with self._turn(wanted.site_id, url) as turn:
            if isinstance(turn, PollTrouble):
                return turn
            host, site = turn
            fetched = await self._crawl.line.fetch(site, self._request(wanted, host, site, url))
            self._network.observed(host.slot.host, fetched)
            host.spaced(fetched.answered_at if isinstance(fetched, FetchResponse) else fetched.at)
            return await self._judged(host, fetched)

    @asynccontextmanager
    async def _turn(
        self, site_id: int, url: str
    ) -> AsyncIterator[tuple[HostState, ActiveSite] | PollTrouble]:
        """Hold a turn of the host of a URL that may be asked for, or say what stands against it."""
        host = await self._host(site_id, parse(url).host)
        origin = parse(url).origin
        while True:
            held = self._held(site_id, host) or self._closed(origin)
            if held is not None:
                yield held
                return
            async with self._crawl.schedule.borrow(host.slot):
                site = self._crawl.sites.get(site_id)
                if site is None or self._held(site_id, host) is not None:
                    continue
                robots = await self._crawl.robots.fresh(origin)
                if robots is None:
                    await self._crawl.robots_turns.fetch(host, site, origin)
                    continue
                if _permitted(robots, site, url):
                    yield host, site
                else:
                    yield PollTrouble("robots", "robots.txt forbids it", 86_400.0, requests=0)
                return

    # --- permission ----------------------------------------------------------------------------

    def _held(self, site_id: int, host: HostState) -> PollTrouble | None:
        site = self._crawl.sites.get(site_id)
        if site is None or site.paused or host.paused:
            return PollTrouble(HELD, "the site or the host is paused", requests=0)
        if self._crawl.line.is_used_up(site):
            return PollTrouble(HELD, QUOTA_EXCEEDED, requests=0)
        opens_in_s = host.rested_at(self._clock) - trio.current_time()
        if opens_in_s > 0:
            return PollTrouble(HELD, "the host is closed for a time", opens_in_s, requests=0)
        return None

    def _closed(self, origin: str) -> PollTrouble | None:
        closed_s = self._crawl.robots.closed_until(origin) - trio.current_time()
        if closed_s <= 0:
            return None
        return PollTrouble(HELD, "robots.txt cannot be had", closed_s, requests=0)

    async def _host(self, site_id: int, name: str) -> HostState:
        host = self._crawl.hosts.get(name)
        if host is None:
            host_id = await self._database.write(host_rows.ensure, name, self._clock.now())
            host = self._crawl.enter_host(host_id, name)
            site = self._crawl.sites.get(site_id)
            host.apply_rules([site.rules] if site is not None else [])
        return host

    # --- one request ---------------------------------------------------------------------------

    def _request(
        self, wanted: DocumentRequest, host: HostState, site: ActiveSite, url: str
    ) -> FetchRequest:
        name = host.slot.host
        limits = replace(
            site.limits, max_wire_bytes=wanted.max_bytes, max_body_bytes=wanted.max_bytes
        )
        conditions = (("If-None-Match", wanted.etag), ("If-Modified-Since", wanted.last_modified))
        sent = [(key, value) for key, value in conditions if value and url == wanted.url]
        return FetchRequest(
            url=url,
            headers=(*site.headers_for(name), ("Accept", _ACCEPT), *sent, *wanted.headers),
            limits=limits,
            allow_private=site.permits_private(name),
            proxy=site.config.proxy,
            keep_alive=stays_open(url, host.delay_s()),
            cut=True,
        )

    async def _judged(
        self, host: HostState, fetched: FetchResponse | FetchFailure
    ) -> FetchResponse | FetchFailure | PollTrouble:
        now = self._clock.now()
        after = fetched.header("retry-after")
        retry_after_s = parse_retry_after(after, now) if after else None
        failed = isinstance(fetched, FetchFailure)
        local = isinstance(fetched, FetchFailure) and fetched.local_fault
        if local or not (failed or fetched.status in _REST):
            host.answered(now)
        else:
            host.troubled(now, retry_after_s)
            host.spaced(trio.current_time())
            update = host.update(now, fetched.address)
            await self._database.write(host_rows.record_request, host.host_id, update)
        if isinstance(fetched, FetchFailure):
            return PollTrouble(str(fetched.failure), fetched.detail[:200], retry_after_s)
        if fetched.status >= 400:
            pause_s = retry_after_s or (86_400.0 if fetched.status in (401, 403, 410) else None)
            return PollTrouble(f"status_{fetched.status}", fetched.reason[:200], pause_s)
        return fetched

    def _read(
        self, wanted: DocumentRequest, url: str, said: FetchResponse | FetchFailure, requests: int
    ) -> Document | PollTrouble:
        assert isinstance(said, FetchResponse)
        if said.status not in (200, 304):
            return PollTrouble(f"status_{said.status}", said.reason[:200], requests=requests)
        same = said.status == 304
        return Document(
            url,
            self._clock.now(),
            None if same else said.body,
            said.cut,
            said.headers,
            requests,
            said.header("etag") or (wanted.etag if same else None),
            said.header("last-modified") or (wanted.last_modified if same else None),
        )


def _target(said: FetchResponse | FetchFailure, url: str) -> str | None:
    location = said.header("location")
    if said.status not in _REDIRECTS or not location:
        return None
    try:
        return canonicalize(location, url)
    except InvalidUrlError:
        return None


def _permitted(robots: Robots, site: ActiveSite, url: str) -> bool:
    if robots.allowed(url):
        return True
    api = parse(url).target.partition("?")[0].endswith("/api.php")
    return api and site.config.api and not robots.names_agent


def _may_follow(site: ActiveSite | None, target: str, source: str) -> bool:
    there, here = parse(target).host, parse(source).host
    if site is None:
        return False
    if there == here or there in site.scope.hosts:
        return True
    return registrable_domain(there) == registrable_domain(here)
