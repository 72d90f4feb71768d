"""Close and drop what is idle, now and then."""

from __future__ import annotations

from typing import Final

import trio

from crawld.daemon.clock import Clock
from crawld.daemon.crawl.site_registry import SiteRegistry
from crawld.daemon.fetch.robots_cache import RobotsCache
from crawld.daemon.process import return_heap_memory
from crawld.net.fetcher import Fetcher
from crawld.store.engine.database import Database
from crawld.workers import Workers

TIDY_S: Final = 60.0
"""How often what is idle is closed or dropped: connections, large robots rules."""

SHRINK_S: Final = 300.0
"""How often the page caches of SQLite's readers are freed."""

TRIM_S, TRIM_COPIES = 3600.0, 1_000
"""How often freed memory is returned to the system at least, and after how many new copies.

Without it the heaps of all threads grow for hours, as the free blocks between used ones fit less
and less of what comes.
"""

TIMES_S: Final = 3600.0
"""How often it is looked what the time changes: summer time and months begin on the hour."""


async def tidy(
    fetcher: Fetcher,
    database: Database,
    robots: RobotsCache,
    sites: SiteRegistry,
    workers: Workers,
    clock: Clock,
) -> None:
    """Tidy up until cancelled."""
    hour, shrunk_at = clock.now() // TIMES_S, trio.current_time()
    trimmed_at, copies = shrunk_at, database.changes("version")
    while True:
        await trio.sleep(TIDY_S)
        await fetcher.sweep()
        robots.sweep()
        if trio.current_time() >= shrunk_at + SHRINK_S:
            shrunk_at = trio.current_time()
            await database.shrink()
            new = database.changes("version") - copies
            if new >= TRIM_COPIES or trio.current_time() >= trimmed_at + TRIM_S:
                trimmed_at, copies = trio.current_time(), copies + new
                await workers.run(return_heap_memory)
        if clock.now() // TIMES_S != hour:
            hour = clock.now() // TIMES_S
            await sites.update_times()
