"""Send all requests of sites (visits, robots.txt, wiki APIs, hint sources) and count their bytes.

Received bytes count toward the monthly quota of their site and are stored before the response is
used. A site over its quota is not fetched until the next month (UTC). The response that exceeds the
quota is still counted and kept. A stream is counted while it runs and cut off at the quota.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog
import trio

from crawld.core.display import LAST_AT
from crawld.core.page import Failure
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.quarantine import Quarantine
from crawld.net.exchange import (
    MIB,
    FetchFailure,
    FetchRequest,
    FetchResponse,
    Headers,
    Receive,
    Sink,
)
from crawld.net.fetcher import Fetcher
from crawld.store.engine.database import Database
from crawld.store.frontier import traffic
from crawld.store.frontier.traffic import ReceivedBytes

log = structlog.get_logger(__name__)

QUOTA_EXCEEDED: Final = "the monthly quota is used up"

_PART_BYTES: Final = MIB // 16
"""A stream is counted in parts of this size; a crash may lose one part of the count."""


def month_of(now: float) -> int:
    """Return the number of months since the year 0 (UTC) at a time in Unix seconds.

    A wrong clock counts as the first or the last month of the calendar, 1970 to 9999.
    """
    day = datetime.fromtimestamp(min(max(now, 0.0), LAST_AT), UTC)
    return 12 * day.year + day.month - 1


class TrafficMeter:
    """Bytes received this month, by site.

    Attributes:
        month: the current month, as `month_of` numbers it.
    """

    def __init__(self) -> None:
        self.month = 0
        self._received: dict[int, int] = {}

    def load(self, month: int, received: Mapping[int, int]) -> None:
        """Load the counts of a month."""
        self.month = month
        self._received = dict(received)

    def start_month(self, now: float) -> None:
        """Reset the counts if a new month has begun."""
        if month_of(now) != self.month:
            self.load(month_of(now), {})

    def add(self, site: ActiveSite, received_bytes: int, now: float) -> ReceivedBytes | None:
        """Count bytes; return the row for the file, None if the site has no quota."""
        if site.config.monthly_bytes is None:
            return None
        self.start_month(now)
        self._received[site.site_id] = self.of(site.site_id) + received_bytes
        return ReceivedBytes(site.site_id, self.month, received_bytes)

    def of(self, site_id: int) -> int:
        """Return the bytes a site received this month."""
        return self._received.get(site_id, 0)

    def is_over_quota(self, site: ActiveSite) -> bool:
        """Whether a site has used up its quota of this month."""
        most = site.config.monthly_bytes
        return most is not None and self.of(site.site_id) >= most


class SharedBytes(Protocol):
    """Limits of bytes per second that sites share."""

    def counts_bytes(self, site: ActiveSite) -> bool:
        """Whether received bytes of a site are limited: those of a stream count while it runs."""

    async def received(self, site: ActiveSite, received_bytes: int, *, whole: bool = True) -> None:
        """Count received bytes of a site; `whole`: all of a request."""


class MeteredFetcher:
    """Sends the requests of all sites and counts received bytes.

    Args:
        shared: limits of bytes per second.
        on_quota_exceeded: called when a site reaches its monthly quota.
        quarantine: documents that must not be read.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        database: Database,
        clock: Clock,
        meter: TrafficMeter,
        shared: SharedBytes,
        on_quota_exceeded: Callable[[], None],
        quarantine: Quarantine,
    ) -> None:
        self._fetcher = fetcher
        self._database = database
        self._clock = clock
        self._meter = meter
        self._shared = shared
        self._on_quota_exceeded = on_quota_exceeded
        self._quarantine = quarantine

    async def fetch_document(
        self, site: ActiveSite, request: FetchRequest
    ) -> FetchResponse | FetchFailure:
        """Fetch what is no page, such as a robots.txt; one in quarantine is not requested."""
        if self._quarantine.holds_document(request.url):
            return _failure(Failure.DECODING, "in quarantine: see crawlctl quarantine")
        return await self.fetch(site, request)

    async def fetch(self, site: ActiveSite, request: FetchRequest) -> FetchResponse | FetchFailure:
        """Fetch a page of a site and count the bytes received."""
        if request.receive is not None and self._is_metered(site):
            return await self._stream(site, request, request.receive)
        response = await self._fetcher.fetch(request)
        await self._count(site, response.received_bytes)
        return response

    def _is_metered(self, site: ActiveSite) -> bool:
        return site.config.monthly_bytes is not None or self._shared.counts_bytes(site)

    async def _count(self, site: ActiveSite, received_bytes: int, *, whole: bool = True) -> None:
        await self._shared.received(site, received_bytes, whole=whole)
        received = self._meter.add(site, received_bytes, self._clock.now())
        if received is None:
            return
        await self._database.write(traffic.add, received)
        if self._meter.is_over_quota(site):
            total_bytes = self._meter.of(site.site_id)
            log.warning("monthly_quota_exceeded", site=site.name, received_bytes=total_bytes)
            self._on_quota_exceeded()

    async def _stream(
        self, site: ActiveSite, request: FetchRequest, receive: Receive
    ) -> FetchResponse | FetchFailure:
        counted_bytes = waiting_bytes = 0
        within_quota = trio.CancelScope()

        def received(status: int, headers: Headers) -> Sink | None:
            sink = receive(status, headers)
            if sink is None:
                return None

            async def take(piece: bytes) -> None:
                nonlocal counted_bytes, waiting_bytes
                waiting_bytes += len(piece)
                if waiting_bytes >= _PART_BYTES:
                    part_bytes, waiting_bytes = waiting_bytes, 0
                    counted_bytes += part_bytes
                    await self._count(site, part_bytes, whole=False)
                await sink(piece)
                if self._meter.is_over_quota(site):
                    within_quota.cancel()

            return take

        with within_quota:
            response = await self._fetcher.fetch(replace(request, receive=received))
            rest_bytes = max(response.received_bytes - counted_bytes, 0)
            await self._count(site, rest_bytes, whole=not counted_bytes)
            return response
        await self._count(site, waiting_bytes, whole=False)
        return _failure(Failure.TOO_LARGE, QUOTA_EXCEEDED, status=200)


def _failure(failure: Failure, detail: str, status: int | None = None) -> FetchFailure:
    """Return the result of a fetch that ended on our side."""
    return FetchFailure(
        failure=failure,
        detail=detail,
        address=None,
        sent_at=None,
        at=trio.current_time(),
        status=status,
    )
