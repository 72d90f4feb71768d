"""Pause the crawl while commits fail or the disk is nearly full."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Final

import structlog
import trio

from crawld.daemon.schedule.schedule import Schedule
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

CHECK_S: Final = 10.0
"""How often the free space of the disk is checked while it may run out soon."""

MAX_CHECK_S: Final = 600.0
"""Longest time between two checks."""

FILLED_BYTES_PER_S: Final = 100_000_000
"""A disk is taken to fill so fast at most: no check is needed before."""


async def watch_writes(database: Database, schedule: Schedule) -> None:
    """Pause the schedule while commits fail; queued records wait."""
    while True:
        await database.wait_stalled()
        log.error("store_stalled", why=database.stalled)
        schedule.pause("disk")
        await database.wait_flowing()
        if database.stalled is not None:
            return  # given up: the daemon ends
        log.warning("store_recovered")
        schedule.resume("disk")


async def watch_space(
    database: Database, schedule: Schedule, min_free_bytes: Callable[[], int]
) -> None:
    """Pause the schedule before the disk is full, to leave space for the log and the operator."""
    while True:
        free_bytes, least_bytes = shutil.disk_usage(database.path.parent).free, min_free_bytes()
        paused = "disk_room" in schedule.pauses
        if free_bytes < least_bytes and not paused:
            log.error("disk_nearly_full", free_bytes=free_bytes, least_bytes=least_bytes)
            schedule.pause("disk_room")
        elif free_bytes >= least_bytes and paused:
            log.warning("disk_space_available", free_bytes=free_bytes)
            schedule.resume("disk_room")
        await trio.sleep(check_pause_s(free_bytes - least_bytes))


def check_pause_s(spare_bytes: int) -> float:
    """Return the time until the next check, by the space until the crawl pauses."""
    return min(max(spare_bytes / FILLED_BYTES_PER_S, CHECK_S), MAX_CHECK_S)
