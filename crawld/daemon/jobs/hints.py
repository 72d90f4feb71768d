"""The job `hints`: looks for hint sources and lets each be polled.

Polls have times of their own (`crawld/daemon/hints/poller.py`); the job is how an operator asks for
all of them now, and how far they are.
"""

from __future__ import annotations

from typing import Final

from crawld.daemon.hints.poller import HintPoller
from crawld.store.changes import hint, hint_source
from crawld.store.engine.database import Database

EVERY_S: Final = 6 * 3600.0


class HintsJob:
    """The job."""

    name = "hints"
    every_s = EVERY_S

    def __init__(self, poller: HintPoller, database: Database) -> None:
        """Take what polls the sources."""
        self._poller = poller
        self._database = database

    async def run(self) -> str:
        """Look for sources and poll all of them as soon as their hosts allow."""
        polled = self._poller.poll_all()
        self._poller.find_soon()
        return f"{polled} sources are polled"

    async def progress(self) -> dict[str, int]:
        """Return counts of sources, requests, hints and what visits made of them."""
        rows = await self._database.read(hint_source.list_sources)
        outstanding = await self._database.read(hint.count_by_source)
        return {
            "sources": len(rows),
            "requests": sum(row.request_count for row in rows),
            "hints": sum(row.hint_count for row in rows),
            "outstanding": sum(outstanding.values()),
        }
