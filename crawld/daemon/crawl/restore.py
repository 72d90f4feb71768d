"""Load hosts and page queues from the file at start.

Nothing needs repair: pages that a killed process had in flight still wait in the file. Every known
host waits its full delay first, since the last request of that process may not have been committed:
it was sent before this process took the lock of the file, which is what counts.
The first turns are spread a little, so that thousands of hosts do not come due at once.
"""

from __future__ import annotations

import math
from typing import Final

from crawld.core.politeness import Backoff
from crawld.core.revisit.due import RETRY_S
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.known_hosts import MOST_NEW
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.process import return_heap_memory
from crawld.daemon.schedule.schedule import START_SPREAD_S
from crawld.store.engine.database import Database
from crawld.store.frontier import load

REPORTED_S: Final = 120.0
"""A requisite that became due so shortly before a start was reported as stale, probably."""


PAGES_AT_ONCE: Final = 262_144
"""About so many visited pages are read from the file at a time: 4 MB."""


async def restore_hosts(state: CrawlState, database: Database, clock: Clock) -> None:
    """Load an empty state, whose sites are set, from the file."""
    hosts, left_after = await _restore_slots(state, database, clock)
    await _restore_waiting(state, database, hosts, some=left_after is not None)
    if not state.settings.once:
        await _restore_revisits(state, database, hosts, clock.now())
    await _restore_retries(state, database, hosts, clock.now())
    _first_waits(state, hosts, database.opened_at)
    if left_after is not None:
        delays = [site.rules.host_delay_s for site in state.sites.values()]
        state.known_hosts.first_at = database.opened_at + max(delays, default=0.0)
        state.known_hosts.leave_after(left_after)
    if hosts:
        await state.rates.restore(database.opened_at)
    await state.schedule.wake_all()


async def _restore_slots(
    state: CrawlState, database: Database, clock: Clock
) -> tuple[dict[int, HostState], int | None]:
    """Return the hosts by number, and after which number new hosts stay in the file, if any do."""
    hosts = {}
    found = await database.read(load.load_hosts, MOST_NEW)
    for row in found.hosts:
        host = state.enter_host(row.host_id, row.host)
        # The longest delay of all sites holds until the host has pages again.
        host.apply_rules([site.rules for site in state.sites.values()])
        host.paused = row.paused
        host.restore(Backoff(row.backoff_level, row.backoff_at, row.closed_until), clock)
        host.crawl_delay_s = row.crawl_delay_s
        state.set_vanishing(row.host, row.vanishing_since)
        if row.last_fetch_at is not None:
            state.known_hosts.asked(row.host)
        hosts[row.host_id] = host
    return hosts, found.left_after


async def _restore_waiting(
    state: CrawlState, database: Database, hosts: dict[int, HostState], *, some: bool
) -> None:
    """Tell queues of pages in the file; `some`: other hosts are there, too."""
    wanted = sorted(hosts) if some else None
    for requisites, host_id, site_id in await database.read(load.load_waiting, wanted):
        if site_id in state.sites:
            state.pages_of(hosts[host_id], site_id, requisites=requisites).ahead.more = True


async def _restore_revisits(
    state: CrawlState, database: Database, hosts: dict[int, HostState], now: float
) -> None:
    """Load visited pages, some hosts at a time."""
    after, pages_read = load.FIRST_REVISITED, 0
    while found := await database.read(load.load_revisits, after, least=PAGES_AT_ONCE):
        after = found[-1].host_id, found[-1].site_id
        pages_read += sum(len(each.page_ids) for each in found)
        for each in found:
            if each.site_id in state.sites:
                pages = state.pages_of(hosts[each.host_id], each.site_id)
                pages.load_visited(VisitedPages(each.page_ids, each.last_visit_at), now)
    if pages_read >= PAGES_AT_ONCE:
        # What the reading left free lies between the policies: 13 bytes a page.
        await database.workers.run(return_heap_memory)


async def _restore_retries(
    state: CrawlState, database: Database, hosts: dict[int, HostState], now: float
) -> None:
    for row in await database.read(load.load_retries):
        if row.site_id in state.sites:
            # A one-off mirror retries earlier failures at once.
            at = now if state.settings.once else row.retry_at
            pages = state.pages_of(hosts[row.host_id], row.site_id, requisites=row.requisite)
            reported = row.requisite and now - REPORTED_S <= at <= now
            pages.load_retry(row.page_id, at, at + RETRY_S if reported else math.inf)


def _first_waits(state: CrawlState, hosts: dict[int, HostState], began: float) -> None:
    # The longest delay that any site asks for on an address shared by hosts.
    delays = [site.rules.effective_address_delay_s for site in state.sites.values()]
    if hosts:
        state.schedule.hold_addresses(began + max(delays, default=0.0))
    for position, host in enumerate(hosts.values()):
        delay_s = host.delay_s()
        spread_s = min(delay_s, position * START_SPREAD_S)
        host.slot.next_at = began + delay_s + spread_s
