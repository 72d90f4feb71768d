"""The `backfill` job: read the full revision histories of mirrored wiki pages.

A run detects the wikis of sites that allow it and reads them concurrently, each in the slots of its
host. It ends when nothing is left to read, or after `RUN_S`; until then it looks for the wikis of
sites whose first copy comes late. Every response is committed with the position in the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import trio

from crawld.core.url import split_url
from crawld.daemon.crawl.api_client import ApiClient
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.wiki_history.detect_wikis import find_wikis, has_unseen_sites
from crawld.daemon.jobs.wiki_history.reader import WikiHistoryReader
from crawld.store.changes import wiki
from crawld.store.changes.wiki import WikiRow

log = structlog.get_logger(__name__)

RUN_S = 1_800.0
"""Longest run."""

ACTIVE_EVERY_S = 20.0
"""Pause between runs while a wiki reports changes: its new, moved and restored pages are read soon.
A run with nothing to read sends no request."""

ACTIVE_FOR_S = 60.0
"""Time after a report of a change in which a wiki counts as active."""

FIRST_COPY_WAIT_S = 15.0
"""Pause while a site has no copy yet, so that its wiki is detected with the first page."""


@dataclass(slots=True)
class _Run:
    """A run of the job.

    Attributes:
        deadline: trio's time.
        wikis: those that are read, as they were before.
        under_way: how many are still read; detection ends with the last.
    """

    deadline: float
    wikis: dict[int, WikiRow] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    under_way: int = 0
    detection: trio.CancelScope = field(default_factory=trio.CancelScope)


class WikiHistoryJob(BackgroundWork):
    """The `backfill` job, for all wikis."""

    name = "backfill"

    def __init__(
        self, context: CrawlContext, client: ApiClient, *, on_facts: Callable[[], None]
    ) -> None:
        """Create the job; `on_facts` is called when the siteinfo of a wiki was read."""
        super().__init__(context)
        self._client = client
        self._on_facts = on_facts
        # Before the first run since the start it is not known.
        self._has_unseen_sites = True
        self._hosts: frozenset[str] = frozenset()
        self._had_api = True

    def has_work(self) -> bool:
        """Whether a site permits the API of its wiki, or did so in the last run."""
        return self._had_api or self._permits_api()

    def _permits_api(self) -> bool:
        return any(site.config.api for site in self._state.sites.values())

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        every_s = self._config().jobs.backfill_every_s
        if self._has_unseen_sites:
            return min(every_s, FIRST_COPY_WAIT_S)
        return min(every_s, ACTIVE_EVERY_S) if self._is_active() else every_s

    def _is_active(self) -> bool:
        since = trio.current_time() - ACTIVE_FOR_S
        hosts = self._state.hosts
        return any(name in hosts and hosts[name].hinted_at > since for name in self._hosts)

    async def run(self) -> str:
        """Read histories until nothing is left or the run is over."""
        self._had_api = self._permits_api()
        run = _Run(trio.current_time() + RUN_S)
        async with trio.open_nursery() as nursery:
            await self._read_new(run, nursery)
            if run.under_way:
                nursery.start_soon(self._detect_more, run, nursery)
        after = {row.wiki_id: row for row in await self._database.read(wiki.list_wikis)}
        pairs = [(row, after[row.wiki_id]) for row in run.wikis.values()]
        requests = sum(new.request_count - old.request_count for old, new in pairs)
        changes = sum(new.change_count - old.change_count for old, new in pairs)
        troubled = sum(new.trouble is not None for _, new in pairs)
        summary = (
            f"{len(pairs)} wikis, {requests} requests, {changes} changes, {troubled} in trouble"
        )
        return "; ".join([summary, *run.failures])

    async def _read_new(self, run: _Run, nursery: trio.Nursery) -> None:
        """Detect wikis, and read those that this run does not read yet."""
        for row in await find_wikis(self._state, self._database, self._clock, self._analyser):
            if row.wiki_id not in run.wikis:
                run.wikis[row.wiki_id] = row
                run.under_way += 1
                nursery.start_soon(self._read, row, run)
        self._has_unseen_sites = await has_unseen_sites(self._state, self._database)
        self._hosts = frozenset(split_url(f"{row.origin}/").host for row in run.wikis.values())

    async def _detect_more(self, run: _Run, nursery: trio.Nursery) -> None:
        """Detect wikis while others are read, as long as a site waits for its first copy."""
        with run.detection:
            while self._has_unseen_sites:
                await trio.sleep(FIRST_COPY_WAIT_S)
                await self._read_new(run, nursery)

    async def _read(self, row: WikiRow, run: _Run) -> None:
        reader = WikiHistoryReader(self._context, self._client, row, on_facts=self._on_facts)
        try:
            await reader.run(run.deadline)
        except Exception as error:  # one wiki must not end the reader of the others
            log.exception("wiki_history_failed", origin=row.origin)
            run.failures.append(f"{row.origin}: {type(error).__name__}: {error}")
        finally:
            run.under_way -= 1
            if not run.under_way:
                run.detection.cancel()

    async def progress(self) -> dict[str, int]:
        """Return counts of wikis, requests, changes, and pages by state."""
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
