"""The `refresh` job: visit pages that were not visited for `max_revisit_s` of their site.

A policy may leave a page without visits for very long: one that hardly changes, or changes too
often for a visit to be worth much. Such a page gets a turn before ordinary revisits, the longest
unvisited first, as many in each run as the host has turns until the next. Where the turns do not
suffice for all, the site is visited in this order.

Source: the refresh of the Oslo thesis, an upper limit of the time between two visits of a page.
"""

from __future__ import annotations

import math
from typing import Final

import trio

from crawld.core.revisit.due import AT_LEISURE
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.store.changes import allocation as allocation_rows

EVERY_S: Final = 60.0

IDLE_EVERY_S: Final = 600.0
"""Pause while no site has a limit; a reload, which may bring one, runs the job at once."""

MOST_PAGES: Final = 64
"""Most pages of a site that wait at once on a host: they are kept in a sorted row."""


class RefreshJob(BackgroundWork):
    """The `refresh` job."""

    name = "refresh"

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._overdue = 0

    @property
    def every_s(self) -> float:
        """Pause between two runs: a long one where no site has a limit; see `Job.every_s`."""
        return EVERY_S if self._has_limits() else IDLE_EVERY_S

    def has_work(self) -> bool:
        """Whether a site has a limit, or had one in the last run."""
        return self._overdue > 0 or self._has_limits()

    def _has_limits(self) -> bool:
        return any(site.config.max_revisit_s is not None for site in self._state.sites.values())

    async def run(self) -> str:
        """Let overdue pages of all hosts be visited."""
        self._overdue = 0
        for host in list(self._state.hosts.values()):
            for site_id, queue in list(host.pages.items()):
                site = self._state.sites.get(site_id)
                if site is not None and site.config.max_revisit_s is not None:
                    await self._refresh(host, queue, site.config.max_revisit_s)
        return f"{self._overdue} pages are visited before others"

    async def progress(self) -> dict[str, int]:
        """Return how many pages the last run found."""
        return {"overdue": self._overdue}

    async def _refresh(self, host: HostState, queue: PageQueue, longest_s: float) -> None:
        turns = math.ceil(EVERY_S / self._state.rates.usual_turn_every_s(host))
        overdue = await self._database.read(
            allocation_rows.unvisited_since,
            host.host_id,
            queue.site_id,
            self._clock.now() - longest_s,
            limit=min(turns, MOST_PAGES),
        )
        # Others rest, are under way, or wait already: their visits may not be committed yet.
        elsewhere = queue.out_of_policy() if overdue else set()
        waiting = [page for page in overdue if page in queue.policy and page not in elsewhere]
        for page in waiting:
            queue.visit_until(page, AT_LEISURE)
        self._overdue += len(waiting)
        if waiting:
            self._state.schedule.wake(host.slot)
        await trio.lowlevel.checkpoint()
