"""The job `backfill`: reads the exact change histories of mirrored wiki pages.

A run finds the wikis of the sites that permit it and reads all of them side by side, each in its
own host's turns; it ends when nothing is left to ask, or after `RUN_S`. Nothing is lost in between:
every answer is committed with the place where the history goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio

from crawld.config.model import JobsConfig
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import ApiClient
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.jobs.wiki_history.detect_wikis import find_wikis, has_unseen_sites
from crawld.daemon.jobs.wiki_history.reader import WikiHistoryReader
from crawld.store.changes import wiki
from crawld.store.changes.wiki import WikiRow
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

RUN_S = 1_800.0
"""Longest run: new wikis are found between two runs."""

FIRST_LOOK_S = 15.0
"""Pause while a site has no copy yet: its wiki is to be known as soon as its first page is."""


class WikiHistoryJob:
    """The job; one for all wikis."""

    name = "backfill"

    def __init__(
        self,
        crawl: CrawlState,
        database: Database,
        client: ApiClient,
        clock: Clock,
        *,
        settings: Callable[[], JobsConfig],
        on_facts: Callable[[], None] = lambda: None,
    ) -> None:
        """Take whom to ask; `on_facts` is called when a wiki has said what it is."""
        self._on_facts = on_facts
        self._crawl = crawl
        self._database = database
        self._client = client
        self._clock = clock
        self._settings = settings
        self._unseen = False

    @property
    def every_s(self) -> float:
        """The pause between two runs."""
        every_s = self._settings().backfill_every_s
        return min(every_s, FIRST_LOOK_S) if self._unseen else every_s

    async def run(self) -> str:
        """Read histories until nothing is left to ask, or the time of a run is over."""
        rows = await find_wikis(self._crawl, self._database, self._clock)
        self._unseen = await has_unseen_sites(self._crawl, self._database)
        deadline = trio.current_time() + RUN_S
        failures: list[str] = []
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(self._read, row, deadline, failures)
        after = {row.wiki_id: row for row in await self._database.read(wiki.list_wikis)}
        pairs = [(row, after[row.wiki_id]) for row in rows]
        requests = sum(new.request_count - old.request_count for old, new in pairs)
        changes = sum(new.change_count - old.change_count for old, new in pairs)
        troubled = sum(new.trouble is not None for _, new in pairs)
        said = f"{len(rows)} wikis, {requests} requests, {changes} changes, {troubled} in trouble"
        return "; ".join([said, *failures])

    async def _read(self, row: WikiRow, deadline: float, failures: list[str]) -> None:
        reading = WikiHistoryReader(
            self._crawl,
            self._database,
            self._client,
            self._clock,
            row,
            settings=self._settings,
            on_facts=self._on_facts,
        )
        try:
            await reading.run(deadline)
        except Exception as error:  # one wiki must not end the reading of the others
            log.exception("backfill_failed", origin=row.origin)
            failures.append(f"{row.origin}: {type(error).__name__}: {error}")

    async def progress(self) -> dict[str, int]:
        """Return counts of wikis, of pages by state, of requests and changes."""
        counts = {"wikis": 0, "requests": 0, "changes": 0, "pages": 0}
        for row in await self._database.read(wiki.list_wikis):
            if row.api_url is None:
                continue
            counts["wikis"] += 1
            counts["requests"] += row.request_count
            counts["changes"] += row.change_count
            pages = await self._database.read(wiki.progress, row.wiki_id)
            counts["pages"] += sum(pages.values())
            for state, number in pages.items():
                counts[state] = counts.get(state, 0) + number
        return counts
