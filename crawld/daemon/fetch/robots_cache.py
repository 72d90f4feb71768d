"""Fetch, store and cache the robots.txt rules of every origin.

The text is stored on the origin's row for a day; the parsed rules of origins in use are in a
bounded cache. Fetching robots.txt takes a turn of the host like any other request, and so does
each redirect. An origin whose robots.txt cannot be fetched (5xx, unreachable) is closed: its pages
wait, and the fetch is retried with growing pauses. Earlier rules stay in force meanwhile, as RFC
9309 section 2.4 permits.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import structlog

from crawld.core.page import Failure
from crawld.core.robots import ROBOTS_FRESH_S, Robots, RobotsVerdict
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.net.exchange import FetchFailure, FetchResponse, PermitsPrivate
from crawld.net.robots import RobotsResponse, fetch_robots
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.host import OriginRobots

log = structlog.get_logger(__name__)

CACHED_ORIGINS = 20_000
"""Parsed rules in memory; others are parsed again from the file when needed."""

CACHED_BYTES = 64 * 1024 * 1024
"""Memory of the parsed rules: three kilobytes an origin; the largest file takes some 20 MB."""

LARGE_BYTES = 64 * 1024
"""Larger rules leave the memory when nobody asks for them; ordinary ones take three kilobytes."""

RETRY_FIRST_S = 60.0
"""First pause before a failed robots.txt is fetched again; it doubles."""

RETRY_MAX_S = 3_600.0

LINE_TAGS = 3
"""A line of robots.txt takes as long as so many tags of a page."""

WaitTurn = Callable[[str], Awaitable[None]]
"""Waits until the next hop of a redirect may be requested."""


@dataclass(frozen=True, slots=True)
class _Closing:
    failures: int
    until: float
    absence: str | None


@dataclass(frozen=True, slots=True)
class _CachedRobots:
    robots: Robots
    digest: bytes
    fetched_at: float
    expires_at: float  # trio's clock, which no step of the wall clock moves


class RobotsCache:
    """The rules of all origins.

    Attributes:
        on_sitemaps: called when a fetched file names new sitemaps.
    """

    def __init__(
        self,
        database: Database,
        fetcher: MeteredFetcher,
        clock: Clock,
        analyser: Analyser,
        *,
        agent: str,
        on_changed: Callable[[str], Awaitable[None]],
        max_bytes: int = CACHED_BYTES,
    ) -> None:
        """Make an empty cache for a product token.

        Args:
            on_changed: gets each origin with new rules.
            max_bytes: memory of all rules.
        """
        self.on_sitemaps: Callable[[], None] = lambda: None
        self._database = database
        self._fetcher = fetcher
        self._clock = clock
        self._analyser = analyser
        self._agent = agent
        self._on_changed = on_changed
        self._entries: OrderedDict[str, _CachedRobots] = OrderedDict()
        self._cached_bytes = 0
        self._max_bytes = max_bytes
        # Origins with large rules, and whether these were used since the last sweep.
        self._large: dict[str, bool] = {}
        self._closings: OrderedDict[str, _Closing] = OrderedDict()

    def in_memory(self, origin: str) -> Robots | None:
        """Return the rules of an origin if they are in memory, of any age."""
        entry = self._entries.get(origin)
        return entry.robots if entry else None

    def closed_until(self, origin: str) -> float:
        """Return until when (trio clock) an origin is closed; -inf if it is open."""
        closing = self._closings.get(origin)
        return closing.until if closing else -math.inf

    async def fresh(self, origin: str) -> Robots | None:
        """Return the rules of an origin; None if robots.txt must be fetched first."""
        entry = self._entries.get(origin)
        if entry is None:
            entry = await self._restore(origin)
        if entry is None or not self._is_fresh(entry):
            return None
        self._entries.move_to_end(origin)
        if origin in self._large:
            self._large[origin] = True
        return entry.robots

    def sweep(self) -> None:
        """Drop large rules that were not used since the last sweep; the file has them."""
        for origin, was_used in list(self._large.items()):
            if was_used:
                self._large[origin] = False
            else:
                self._drop(origin)

    def _is_fresh(self, entry: _CachedRobots) -> bool:
        # By both clocks: trio's stands still while the machine sleeps, and the other may be set
        # back; then a time in the future does not make the rules fresh.
        if self._clock.monotonic() >= entry.expires_at:
            return False
        return 0 <= self._clock.now() - entry.fetched_at < ROBOTS_FRESH_S

    def _entry(self, robots: Robots, digest: bytes, fetched_at: float) -> _CachedRobots:
        left_s = ROBOTS_FRESH_S - (self._clock.now() - fetched_at)
        return _CachedRobots(robots, digest, fetched_at, self._clock.monotonic() + left_s)

    async def _restore(self, origin: str) -> _CachedRobots | None:
        stored = await self._database.read(host_rows.origin_robots, origin)
        if stored is None or stored.verdict is RobotsVerdict.CLOSED:
            return None
        robots = await self._parsed(origin, stored.verdict, stored.text)
        entry = self._entry(robots, _digest(stored.text), stored.fetched_at)
        self._keep(origin, entry)
        return entry

    async def _parsed(self, origin: str, verdict: RobotsVerdict, text: bytes | None) -> Robots:
        if verdict is not RobotsVerdict.RULES or not text:
            return Robots.open()
        return await self._analyser.run(
            Robots.parse,
            text,
            self._agent,
            url=f"{origin}/robots.txt",
            size_bytes=len(text),
            tags=LINE_TAGS * (text.count(b"\n") + text.count(b"\r")),
        )

    def _keep(self, origin: str, entry: _CachedRobots) -> None:
        self._drop(origin)
        self._entries[origin] = entry
        self._cached_bytes += entry.robots.size_bytes
        if entry.robots.size_bytes > LARGE_BYTES:
            self._large[origin] = True
        while len(self._entries) > CACHED_ORIGINS or (
            self._cached_bytes > self._max_bytes and len(self._entries) > 1
        ):
            self._drop(next(iter(self._entries)))

    def _drop(self, origin: str) -> None:
        self._large.pop(origin, None)
        if (entry := self._entries.pop(origin, None)) is not None:
            self._cached_bytes -= entry.robots.size_bytes

    async def fetch(
        self,
        origin: str,
        host: HostState,
        site: ActiveSite,
        wait_turn: WaitTurn,
        permits_private: PermitsPrivate,
        is_our_fault: Callable[[FetchResponse | FetchFailure], bool],
    ) -> RobotsResponse:
        """Fetch robots.txt in the host's present turn and apply its rules.

        Args:
            origin: scheme, host and port.
            host: the host whose turn it is; gets its delay from the rules.
            site: whose limits and permissions apply.
            wait_turn: waits until the target of a redirect may be requested.
            permits_private: which hosts may have a private address: that of the origin, and those
                of redirects.
            is_our_fault: whether the last response only shows that our network is down.
        """
        response = await fetch_robots(
            partial(self._fetcher.fetch_document, site),
            origin,
            limits=site.limits,
            permits_private=permits_private,
            proxy=site.config.proxy,
            wait_turn=wait_turn,
        )
        if is_our_fault(response.last):
            return response  # it says nothing about the host: retry at the next turn
        now = self._clock.now()
        if response.verdict is RobotsVerdict.CLOSED:
            await self._closed(origin, host, response)
        else:
            self._closings.pop(origin, None)
            await self._open(origin, host, site, response, now)
        await self._database.write(
            host_rows.record_robots,
            origin,
            OriginRobots(response.verdict, response.text, response.status, now, host.crawl_delay_s),
        )
        return response

    async def _open(
        self, origin: str, host: HostState, site: ActiveSite, response: RobotsResponse, now: float
    ) -> None:
        robots = await self._parsed(origin, response.verdict, response.text)
        known = self._entries.get(origin)
        digest = _digest(response.text)
        self._keep(origin, self._entry(robots, digest, now))
        host.apply_robots(robots, respect_crawl_delay=site.respect_crawl_delay)
        host.absence = None
        log.info("robots", origin=origin, verdict=str(response.verdict), status=response.status)
        if set(robots.sitemaps) - set(known.robots.sitemaps if known else ()):
            self.on_sitemaps()
        if known is not None and known.digest != digest:
            await self._on_changed(origin)

    async def _closed(self, origin: str, host: HostState, response: RobotsResponse) -> None:
        known = self._closings.pop(origin, None)
        failures = known.failures if known else 0
        wait_s = min(RETRY_FIRST_S * 2.0**failures, RETRY_MAX_S)
        until = self._clock.monotonic() + wait_s
        self._closings[origin] = _Closing(min(failures + 1, 32), until, _absence(response))
        if len(self._closings) > CACHED_ORIGINS:
            self._closings.popitem(last=False)
        log.warning(
            "robots_closed",
            origin=origin,
            status=response.status,
            why=response.detail,
            retry_s=wait_s,
        )
        origins = await self._database.read(host_rows.list_origins, host.host_id)
        closings = [self._closings.get(name) for _, name in origins]
        absences = [each.absence if each is not None else None for each in closings]
        host.absence = None if None in absences else _absence(response)
        # Another origin of the host, its https beside its http, may be open.
        if len(origins) < 2:
            host.shut_until = until


def _absence(response: RobotsResponse) -> str | None:
    """Return why there is nobody to ask; None: somebody is, or our side may be the cause."""
    last = response.last
    if (
        not isinstance(last, FetchFailure)
        or response.redirects
        or last.local_fault
        or last.sent_at is not None
    ):
        return None
    if last.failure is Failure.DNS:
        return f"DNS: {last.detail.removeprefix('nxdomain: ')}"
    return last.detail if last.failure in (Failure.ADDRESS_REFUSED, Failure.CONNECT) else None


def _digest(text: bytes | None) -> bytes:
    return sha256(text or b"").digest()
