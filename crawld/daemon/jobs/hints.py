"""The `hints` job: find hint sources and poll all of them now.

Sources are polled on their own schedule (`crawld/daemon/hints/poller.py`); with this job an
operator requests all polls at once and sees their progress.
"""

from __future__ import annotations

from crawld.daemon.hints.poller import HintPoller
from crawld.store.changes import hint, hint_source
from crawld.store.engine.database import Database


class HintsJob:
    """The `hints` job."""

    name = "hints"
    every_s = 6 * 3600.0

    def __init__(self, poller: HintPoller, database: Database) -> None:
        self._poller = poller
        self._database = database

    def has_work(self) -> bool:
        """Whether a run may find anything: always."""
        return True

    async def run(self) -> str:
        """Find sources and poll all of them as soon as their hosts allow."""
        polled = self._poller.poll_all()
        self._poller.find_soon()
        return f"{polled} sources are polled"

    async def progress(self) -> dict[str, int]:
        """Return counts of sources, requests, hints and outstanding hints."""
        rows = await self._database.read(hint_source.list_sources)
        outstanding = await self._database.read(hint.count_by_source)
        return {
            "sources": len(rows),
            "requests": sum(row.request_count for row in rows),
            "hints": sum(row.hint_count for row in rows),
            "outstanding": sum(outstanding.values()),
        }
