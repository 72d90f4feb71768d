"""From the file to the policies: who hears of a hint.

Hints of one poll may be thousands: they are handed out a few at a time, so that no fetch slot waits
for them longer than a slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import trio

from crawld.core.page import Outcome
from crawld.daemon.crawl.loop import Crawl
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint import AcceptedHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database

SLICE_S: Final = 0.002
"""Longest time that hints are handed out before other tasks have their turn."""

RESTORED: Final = 4_096
"""Outstanding hints read at one go."""

_GONE = (Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED)


class HintDelivery:
    """Hands hints to the pages of hosts."""

    def __init__(self, crawl: Crawl, database: Database) -> None:
        self._crawl = crawl
        self._database = database

    async def deliver(self, row: SourceRow, heard: Sequence[AcceptedHint]) -> None:
        """Tell the policy of the site on the host which of its pages are said to have changed."""
        host = self._crawl.hosts.get(row.host)
        pages = host.pages.get(row.site_id) if host else None
        if host is None or pages is None or not heard:
            return
        trust = hint.load_reliability(row.evidence).effective_trust
        until = trio.current_time() + SLICE_S
        for each in heard:
            pages.hinted(each.page_id, each.last_at, trust)
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
        # A page that went away is said to be back; one that failed still waits out its pause.
        back = {
            each.page_id
            for each in heard
            if each.retry_at is not None and each.last_outcome in _GONE
        }
        if back:
            pages.recalled(back)
        self._crawl.schedule.wake(host.slot)

    async def restore(self, only: Iterable[tuple[int, int]] | None = None) -> int:
        """Hand out what no visit has answered yet: at a start, or to policies newly named.

        Args:
            only: (host_id, site_id) of the pages meant; None: all.

        Returns:
            How many hints there were.
        """
        hosts = {host.host_id: host for host in self._crawl.hosts.values()}
        wanted = None if only is None else set(only)
        sources = await self._database.read(hint_source.list_sources)
        trust = {
            row.hint_source_id: hint.load_reliability(row.evidence).effective_trust
            for row in sources
        }
        after, count = (0, 0), 0
        while True:
            rows = await self._database.read(hint.list_outstanding, after=after, limit=RESTORED)
            by_place = defaultdict(list)
            for row in rows:
                by_place[row.host_id, row.site_id].append(row)
            for place, found in by_place.items():
                host = hosts.get(place[0])
                pages = host.pages.get(place[1]) if host else None
                if pages is None or (wanted is not None and place not in wanted):
                    continue
                # What a source tells that was found since is delivered as it is told.
                known = [row for row in found if row.hint_source_id in trust]
                for row in known:
                    pages.hinted(row.page_id, row.last_at, trust[row.hint_source_id])
                count += len(known)
                await trio.lowlevel.checkpoint()
            if len(rows) < RESTORED:
                return count
            after = (rows[-1].page_id, rows[-1].hint_source_id)
