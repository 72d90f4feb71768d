"""The one way out for the requests of sites: visits, robots.txt, APIs of wikis, sources of hints.

What an answer took counts for the month of its site (`meter`), in the file before anything is done
with it, whatever becomes of the answer. A stream that never ends is counted while it comes, and cut
off when the month is used up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog
import trio

from crawld.core.page import Failure
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.meter import TrafficMeter
from crawld.daemon.frontier.site import ActiveSite
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

log = structlog.get_logger(__name__)

QUOTA_EXCEEDED: Final = "the bytes of the month are used up"

_PART_BYTES: Final = MIB // 16
"""Of a stream so much is counted at a time: what a crash may leave out."""


class MeteredFetcher:
    """What the requests of all sites go over.

    Args:
        on_used_up: called when a site has used up its month.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        database: Database,
        clock: Clock,
        meter: TrafficMeter,
        on_used_up: Callable[[], None],
    ) -> None:
        self._fetcher = fetcher
        self._database = database
        self._clock = clock
        self._meter = meter
        self._on_used_up = on_used_up

    async def fetch(self, site: ActiveSite, request: FetchRequest) -> FetchResponse | FetchFailure:
        """Fetch for a site and count what came."""
        if request.receive is not None and site.config.monthly_bytes is not None:
            return await self._stream(site, request, request.receive)
        answer = await self._fetcher.fetch(request)
        await self._count(site, answer.received_bytes)
        return answer

    def is_used_up(self, site: ActiveSite) -> bool:
        """Whether a site must rest until its month is over."""
        return self._meter.is_over(site)

    async def _count(self, site: ActiveSite, received_bytes: int) -> None:
        """Count bytes of a site; it rests when they were the last."""
        received = self._meter.received(site, received_bytes, self._clock.now())
        if received is None:
            return
        await self._database.write(traffic.add, received)
        if self.is_used_up(site):
            used_bytes = self._meter.of(site.site_id)
            log.warning("month_is_used_up", site=site.name, received_bytes=used_bytes)
            self._on_used_up()

    async def _stream(
        self, site: ActiveSite, request: FetchRequest, receive: Receive
    ) -> FetchResponse | FetchFailure:
        counted_bytes = waiting_bytes = 0
        within_month = trio.CancelScope()

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
                    await self._count(site, part_bytes)
                await sink(piece)
                if self.is_used_up(site):
                    within_month.cancel()

            return take

        with within_month:
            answer = await self._fetcher.fetch(replace(request, receive=received))
            await self._count(site, max(answer.received_bytes - counted_bytes, 0))
            return answer
        await self._count(site, waiting_bytes)
        return FetchFailure(
            failure=Failure.TOO_LARGE,
            detail=QUOTA_EXCEEDED,
            address=None,
            sent_at=None,
            at=trio.current_time(),
            status=200,
        )
