"""Fetch robots.txt in the turn of a host, before its pages may be requested."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AsyncExitStack

import trio

from crawld.core.robots import RobotsVerdict
from crawld.core.url import split_url
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.schedule.schedule import Schedule
from crawld.net.exchange import FetchFailure, FetchResponse, retry_after_s
from crawld.net.robots import RobotsResponse
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows


class RobotsFetch:
    """Fetches robots.txt in the turns of hosts, including redirects.

    Args:
        schedule: lends the turn of the host that a redirect leads to.
        robots: keeps the rules.
        enter_host: returns the state of a host by its number and name.
    """

    def __init__(
        self,
        schedule: Schedule,
        robots: RobotsCache,
        database: Database,
        connectivity: Connectivity,
        clock: Clock,
        enter_host: Callable[[int, str], HostState],
    ) -> None:
        self._schedule = schedule
        self._robots = robots
        self._database = database
        self._connectivity = connectivity
        self._clock = clock
        self._enter_host = enter_host
        self._redirected_to: dict[HostState, HostState] = {}

    def redirected_to(self, host: HostState) -> HostState | None:
        """Return the host that the robots.txt of `host` redirects to, while it is fetched there."""
        return self._redirected_to.get(host)

    async def fetch(
        self, host: HostState, site: ActiveSite, origin: str, *, requisite: bool = False
    ) -> None:
        """Fetch the robots.txt of an origin in the host's turn; redirects take turns of theirs.

        When a redirect is followed the host's turn has ended, and its pages wait. `requisite`: it
        is wanted for a requisite, which may be on any host but on few private ones.
        """
        permits = site.permits_private_requisite if requisite else site.permits_private
        visited: list[HostState] = []
        with trio.CancelScope() as rest_of_fetch:
            async with AsyncExitStack() as borrowed:

                async def wait_turn(url: str) -> None:
                    if not visited:
                        visited.append(host)  # in the turn under way
                        return
                    visited[-1].rest_from(trio.current_time())
                    if len(visited) == 1:
                        host.shut_until = math.inf
                        self._redirected_to[host] = host
                        self._schedule.end_turn(host.slot, rest_of_fetch)
                    await borrowed.aclose()
                    visited.append(await self._host_of(split_url(url).host, site))
                    self._redirected_to[host] = visited[-1]
                    await borrowed.enter_async_context(self._schedule.borrow(visited[-1].slot))

                try:
                    response = await self._robots.fetch(
                        origin,
                        host,
                        site,
                        wait_turn,
                        permits,
                        lambda last: self._observe(visited[-1], last),
                    )
                    await self._rest(visited[-1], response)
                finally:
                    if self._redirected_to.pop(host, None) and host.shut_until == math.inf:
                        host.shut_until = -math.inf
        self._schedule.wake(host.slot)

    async def _host_of(self, name: str, site: ActiveSite) -> HostState:
        """Return the host that a robots.txt redirect leads to; it may have no pages."""
        host_id = await self._database.write(host_rows.ensure, name, self._clock.now())
        host = self._enter_host(host_id, name)
        if not host.queues():
            host.apply_rules([site.rules])
        return host

    def _observe(self, host: HostState, response: FetchResponse | FetchFailure) -> bool:
        """Record the evidence about our network; return whether it is down."""
        self._connectivity.observe_response(host.slot.host, response)
        return self._connectivity.is_our_fault(response)

    async def _rest(self, host: HostState, response: RobotsResponse) -> None:
        """Let a host rest after robots.txt; a Retry-After counts as for pages."""
        now, is_told = self._clock.now(), response.last.header("retry-after") is not None
        if response.verdict is RobotsVerdict.CLOSED and is_told:
            host.record_trouble(now, retry_after_s(response.last, now))
            update = host.update(now, response.last.address)
            await self._database.write(host_rows.record_request, host.host_id, update)
        elif response.verdict is not RobotsVerdict.CLOSED:
            host.record_success(now)
        host.rest_from(response.arrived_at)
