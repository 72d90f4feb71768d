"""Gives links that wait in a large file their verdict, and tells the queues of new pages.

A visit only stores its links (`crawld.store.frontier.packed`). Here they are divided by repository,
and repositories take turns, on the writer's thread: as many a second as read the whole structure in
a round of seconds to minutes, whatever its size, and more while more links wait than may.
"""

from __future__ import annotations

from typing import Final

import structlog
import trio

from crawld.core.seen.keys import REPOSITORIES
from crawld.daemon.crawl.state import FEW_PAGES, CrawlState
from crawld.daemon.pacing import LoopSlices
from crawld.store.engine.background import background_reads
from crawld.store.engine.database import Database
from crawld.store.frontier import packed_keys, verdicts
from crawld.store.seen import chunk, pending, seen

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0
"""How often repositories have turns; none while nothing waits, as in every file of less than a
million pages."""

READ_URLS_PER_S: Final = 250_000
"""Known URLs read for turns: 3.5 MB a second, and as many written, some 2 % of a processor. A round
takes 4 s at a million known URLs, 400 s at 100 million."""


class LinkVerdicts:
    """Settles repositories in turn."""

    def __init__(self, state: CrawlState, database: Database) -> None:
        self._state = state
        self._database = database
        self._turns = 0.0

    async def run(self) -> None:
        """Settle what waits, until cancelled."""
        with background_reads():
            while True:
                await trio.sleep(EVERY_S)
                found = self._database.changes("seen_found")
                if self._database.look_up(pending.any_waits):
                    await self._settle_due()
                else:
                    await self._database.wait_changed("seen_found", found)

    async def prepare(self) -> None:
        """Take over the packed pages of an older version, and read keys; before the first link."""
        if self._database.look_up(packed_keys.any_left):
            log.info("packed_pages_are_converted")
            while await self._database.write(packed_keys.convert_some):
                await self._divide()
                await self._settle_excess([])
        await self._database.read(self._state.seen_keys.load)

    async def settle_all(self) -> bool:
        """Settle all that waits, at the end of a crawl; return whether there was any."""
        if not self._database.look_up(pending.any_waits):
            return False
        await self._divide()
        for backlog in await self._database.read(pending.backlogs):
            await self._settle(backlog.repository)
        return True

    async def _settle_due(self) -> None:
        await self._divide()
        known = await self._database.read(chunk.known)
        earned = EVERY_S * READ_URLS_PER_S * REPOSITORIES / max(known, 1)
        self._turns = min(self._turns + earned, REPOSITORIES)
        waiting = seen.by_urgency(await self._database.read(pending.backlogs))
        turns = [backlog.repository for backlog in waiting[: int(self._turns)]]
        self._turns -= len(turns)
        await self._settle_excess(turns)

    async def _settle_excess(self, turns: list[int]) -> None:
        """Settle some repositories, and others until no more links wait than may."""
        for repository in dict.fromkeys([*turns, *await self._database.read(seen.due)]):
            await self._settle(repository)

    async def _divide(self) -> None:
        while await self._database.write(seen.divide_some):
            pass

    async def _settle(self, repository: int) -> None:
        settled = await self._database.write(verdicts.settle, repository, self._state.caps)
        slices = LoopSlices()
        for part in (part for queues in settled.queues for part in queues.parts(FEW_PAGES)):
            new = (page for page in part.pages() if page.site_id in self._state.sites)
            self._state.enter_pages(new)
            await slices.pause()
