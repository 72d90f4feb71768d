"""Keeps the counted patterns of URLs in the file, so that a restart goes on with them."""

from __future__ import annotations

import trio

from crawld.core.url_growth import UrlGrowth
from crawld.daemon.pacing import LoopSlices
from crawld.store.engine.database import Database
from crawld.store.frontier import url_pattern

EVERY_S, MAX_EVERY_S = 30.0, 600.0
"""How often changes are stored; a killed process loses the counts of this time. Doubled while there
are none, up to the longest."""


class GrowthKeeper:
    """Loads and stores the patterns of URLs."""

    def __init__(self, growth: UrlGrowth, database: Database) -> None:
        self._growth = growth
        self._database = database

    async def restore(self) -> None:
        """Load the patterns of the file."""
        self._growth.restore(await self._database.read(url_pattern.load))

    async def run(self) -> None:
        """Store changes until cancelled."""
        pause_s = EVERY_S
        while True:
            await trio.sleep(pause_s)
            pause_s = EVERY_S if await self.store() else min(2 * pause_s, MAX_EVERY_S)

    async def store(self) -> bool:
        """Store what changed since the last call; return whether anything did."""
        slices, changes = LoopSlices(), []
        for (host, pattern), counted in self._growth.take_changed().items():
            changes.append(url_pattern.change_of(host, pattern, counted))
            await slices.pause()
        if changes:
            await self._database.write(url_pattern.put, changes)
        return bool(changes)
