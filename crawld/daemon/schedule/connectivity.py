"""Addresses of hosts, and whether the network is up.

Every lookup and fetch is evidence. When most hosts fail at once the fault is local: the
crawl pauses, logs it, and tries again every `PROBE_S`, instead of failing page after page.
"""

from __future__ import annotations

import structlog
import trio

from crawld.daemon.schedule.schedule import Schedule
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.net.outage import PROBE_S, OutageDetector, network_evidence
from crawld.net.resolver import ResolutionError, Resolver

log = structlog.get_logger(__name__)

PAUSE = "network"
"""The reason the schedule is paused for."""


class Connectivity:
    """The resolver and the outage detector."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._detector = OutageDetector()
        self._failed = trio.Event()

    @property
    def down(self) -> bool:
        """Whether the network seems to be down."""
        return self._detector.is_outage(trio.current_time())

    async def locate(self, host: str) -> str | None:
        """Return the address of a host, None if it cannot be found now."""
        try:
            addresses = await self._resolver.resolve(host)
        except ResolutionError as error:
            self._record(host, ok=error.kind == "nxdomain")
            return None
        return addresses[0]

    def observe_response(self, host: str, response: FetchResponse | FetchFailure) -> None:
        """Record the evidence of a fetch about the network."""
        evidence = network_evidence(response)
        if evidence is not None:
            self._record(host, ok=evidence)

    def _record(self, host: str, *, ok: bool) -> None:
        self._detector.observe(host, ok, trio.current_time())
        if self.down:
            self._failed.set()

    async def run(self, schedule: Schedule) -> None:
        """Pause the schedule while the network is down; runs until cancelled."""
        while True:
            await self._failed.wait()
            self._failed = trio.Event()
            if PAUSE not in schedule.pauses:
                log.warning("network_down", hint="no name or host can be reached", retry_s=PROBE_S)
            schedule.pause(PAUSE)
            await trio.sleep(PROBE_S)
            schedule.resume(PAUSE)
