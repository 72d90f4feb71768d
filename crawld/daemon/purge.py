"""Take pages down while the crawl runs: erase them from file, log and index, and block them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio
from tenacity import retry, retry_if_result, stop_after_attempt, wait_fixed

from crawld.daemon.clock import Clock
from crawld.store.engine.database import Database
from crawld.store.versions import purge, search_index
from crawld.store.versions.purge import PurgeResult

SCRUB_ATTEMPTS: Final = 50
SCRUB_WAIT_S: Final = 0.1
"""Pause between attempts, in which our own readers release the log."""


async def take_down(
    database: Database, clock: Clock, urls: Sequence[str], reason: str | None
) -> tuple[list[PurgeResult], bool]:
    """Purge canonical URLs.

    Returns:
        What was purged for each URL, and whether the file and its log no longer hold the bytes.
    """
    await database.on_writer(purge.set_secure_delete, on=True)
    try:
        done = [
            await database.write(purge.purge, url, clock.now(), reason)
            for url in dict.fromkeys(urls)
        ]
        await database.flush()
        more = await database.on_writer(search_index.merge, begin=True)
        while more:
            more = await database.on_writer(search_index.merge, begin=False)
        erased = await _scrub(database)
    finally:
        await database.on_writer(purge.set_secure_delete, on=False)
    return done, erased


@retry(
    retry=retry_if_result(operator.not_),
    stop=stop_after_attempt(SCRUB_ATTEMPTS),
    wait=wait_fixed(SCRUB_WAIT_S),
    sleep=trio.sleep,
    retry_error_callback=lambda _: False,
)
async def _scrub(database: Database) -> bool:
    """Empty the write-ahead log; return False if readers kept it in use at every attempt."""
    return await database.on_writer(purge.scrub)


def older_copies(path: Path) -> list[str]:
    """Return the copies beside a database, which may still hold purged pages."""
    beside = path.parent.glob(f"{path.name}.*")
    own = {f"{path.name}.lock"}
    return sorted(str(each) for each in beside if each.name not in own)
