"""Close and drop what is idle, now and then."""

from __future__ import annotations

from typing import Final

import trio

from crawld.daemon.clock import Clock
from crawld.daemon.crawl.site_registry import SiteRegistry
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.net.fetcher import Fetcher
from crawld.store.engine.database import Database

TIDY_S: Final = 60.0
"""How often what is idle is closed or dropped: connections, large robots rules."""

SHRINK_S: Final = 300.0
"""How often the page caches of SQLite's readers are freed."""

QUIET_HOURS_S: Final = 3600.0
"""How often quiet hours are recomputed: summer time begins and ends on the hour."""


async def tidy(
    fetcher: Fetcher, database: Database, robots: RobotsCache, sites: SiteRegistry, clock: Clock
) -> None:
    """Tidy up until cancelled."""
    hour, shrunk_at = clock.now() // QUIET_HOURS_S, trio.current_time()
    while True:
        await trio.sleep(TIDY_S)
        await fetcher.sweep()
        robots.sweep()
        if trio.current_time() >= shrunk_at + SHRINK_S:
            shrunk_at = trio.current_time()
            await database.shrink()
        if clock.now() // QUIET_HOURS_S != hour:
            hour = clock.now() // QUIET_HOURS_S
            await sites.update_quiet_hours()
