"""Addresses of hosts, and whether the network is up.

Every lookup and fetch is evidence (`net/outage.py`). When hosts that worked fail at once the fault
is ours: the crawl pauses and tries again after `PROBE_S`, instead of failing page by page.
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
        self._worked = trio.Event()

    @property
    def down(self) -> bool:
        """Whether the network seems to be down."""
        return self._detector.is_outage(trio.current_time())

    async def locate(self, host: str) -> str | None:
        """Return the address of a host, None if it cannot be found now."""
        try:
            addresses = await self._resolver.resolve(host)
        except ResolutionError as error:
            if error.kind not in ("nxdomain", "no_files"):
                self._record(host, ok=False)
            return None
        return addresses[0]

    def observe_response(self, host: str, response: FetchResponse | FetchFailure) -> None:
        """Record the evidence of a fetch about the network."""
        evidence = network_evidence(response)
        if evidence is not None:
            self._record(host, ok=evidence)

    def is_our_fault(self, response: FetchResponse | FetchFailure) -> bool:
        """Whether a fetch failed because the network seems down; it says nothing about its host."""
        local = isinstance(response, FetchFailure) and response.local_fault
        return local and self._detector.is_suspected(trio.current_time())

    def _record(self, host: str, *, ok: bool) -> None:
        self._detector.observe(host, ok, trio.current_time())
        if self.down:
            self._failed.set()
        elif ok:
            self._worked.set()

    async def run(self, schedule: Schedule) -> None:
        """Pause the schedule while the network is down; runs until cancelled."""
        while True:
            await self._failed.wait()
            self._failed = trio.Event()
            if not self.down:
                continue  # something has worked meanwhile
            log.warning("network_down", hint="no name or host can be reached", retry_s=PROBE_S)
            schedule.pause(PAUSE)
            while self.down:
                self._worked = trio.Event()
                with trio.move_on_after(PROBE_S):
                    await self._worked.wait()
            schedule.resume(PAUSE)
