"""Keeps the counted patterns of URLs in the file, so that a restart goes on with them."""

from __future__ import annotations

from typing import Final

import trio

from crawld.core.url_growth import UrlGrowth
from crawld.daemon.pacing import LoopSlices
from crawld.store.engine.database import Database
from crawld.store.frontier import url_pattern

EVERY_S: Final = 30.0
"""How often changes are stored; a killed process loses the counts of this time."""


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
        while True:
            await trio.sleep(EVERY_S)
            await self.store()

    async def store(self) -> None:
        """Store what changed since the last call."""
        slices, changes = LoopSlices(), []
        for (host, pattern), counted in self._growth.take_changed().items():
            changes.append(url_pattern.change_of(host, pattern, counted))
            await slices.pause()
        if changes:
            await self._database.write(url_pattern.put, changes)
