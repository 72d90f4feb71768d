"""The `search` job: add new copies to the full-text index, slice by slice.

A slice is read on a reader's thread and stored in one short transaction. The job rests as long as
it works, so it takes at most half of a core.
"""

from __future__ import annotations

from typing import Final

from crawld.daemon.pacing import Pace
from crawld.store.engine.database import Database
from crawld.store.versions import search_index

EVERY_S: Final = 60.0
"""Longest time until a new copy can be found."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class SearchIndexJob:
    """The `search` job."""

    name = "search"
    every_s = EVERY_S

    def __init__(self, database: Database) -> None:
        self._database = database
        self._indexed = 0

    async def run(self) -> str:
        """Index all copies that wait."""
        before = self._indexed
        pace = Pace(REST_FACTOR)
        while (work := await self._database.read(search_index.plan)) is not None:
            await self._database.write(search_index.apply, work)
            self._indexed += len(work.entries)
            await pace.rest()
        return f"{self._indexed - before} pages indexed"

    async def progress(self) -> dict[str, int]:
        """Return pages indexed since the start, and how many copies wait."""
        return {
            "indexed": self._indexed,
            "waiting": await self._database.read(search_index.count_pending),
        }
