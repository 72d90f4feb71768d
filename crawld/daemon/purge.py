"""Take-down beside a running crawl: out of the file, its log and the index, and kept out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from crawld.daemon.clock import Clock
from crawld.store.engine.database import Database
from crawld.store.versions import purge, search_index
from crawld.store.versions.purge import Purged

SCRUB_TRIES: Final = 50
SCRUB_WAIT_S: Final = 0.1
"""A reader keeps the log from being emptied; ours are done within this."""


async def take_down(
    database: Database, clock: Clock, urls: Sequence[str], reason: str | None
) -> tuple[list[Purged], bool]:
    """Purge canonical URLs.

    Returns:
        What became of each, and whether the file and its log hold their bytes no more.
    """
    await database.on_writer(purge.erasing, on=True)
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
        await database.on_writer(purge.erasing, on=False)
    return done, erased


async def _scrub(database: Database) -> bool:
    for _ in range(SCRUB_TRIES):
        if await database.on_writer(purge.scrub):
            return True
        await trio.sleep(SCRUB_WAIT_S)
    return False


def older_copies(path: Path) -> list[str]:
    """Return the copies of a database that lie beside it: they hold what it held when made."""
    beside = path.parent.glob(f"{path.name}.*")
    own = {f"{path.name}.lock"}
    return sorted(str(each) for each in beside if each.name not in own)
