"""The pages that rules hide: suspend them, and let them return.

A page is hidden if the rules in force name another URL for it, that URL is a page, and the page was
never visited, or was compared and is equal. One that was seen to differ is never hidden.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import apsw

from crawld.core.distinct_count import DistinctCount
from crawld.core.dust.rules import HostRules
from crawld.core.page import PageState
from crawld.core.url import target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.dust_rules import ReplacedUrl
from crawld.daemon.jobs.dust.asking import PageAsking
from crawld.daemon.pacing import LoopSlices, PacedReader, parts_of
from crawld.store.frontier import dust_page, frontier
from crawld.store.frontier.dust import DustOrigin
from crawld.store.frontier.dust_page import DustPageRow, KnownUrl
from crawld.store.frontier.frontier import Discovery

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""

IDS_AT_ONCE: Final = 2_000
"""Range of page_ids read at once."""

WRITTEN_AT_ONCE: Final = 200
"""Pages changed in one transaction, less than 20 ms."""

KEPT_HIDDEN: Final = 1_000
"""Hidden pages of an origin from which on URLs that admission replaced are not kept as pages."""


class OriginHiding(BackgroundWork):
    """Hides and resumes the pages of an origin."""

    def __init__(self, context: CrawlContext, asking: PageAsking) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._asking = asking
        self._counted: set[int] = set()

    async def _read_pages(
        self, origin: DustOrigin, after: int, last: int
    ) -> AsyncIterator[list[KnownUrl]]:
        """Yield the pages of an origin beyond a page_id, up to the last, some at a time."""
        for begin in range(after, last, IDS_AT_ONCE):
            up_to = min(begin + IDS_AT_ONCE, last)
            yield await self._paced.read(dust_page.urls, origin.origin_id, begin, up_to)

    async def count_urls(self, origin: DustOrigin) -> None:
        """Count the URLs of the pages of an origin once, before its first rule is in force."""
        if origin.origin_id in self._counted:
            return
        self._counted.add(origin.origin_id)
        first, last = await self._database.read(dust_page.page_range, origin.host_id)
        async for pages in self._read_pages(origin, first - 1, last):
            urls = await self._workers.run(_distinct_urls, pages, abandon_on_cancel=True)
            self._state.admission.dust.count_pages(origin.origin, urls)

    # --- hiding ----------------------------------------------------------------------------------

    async def hide(self, origin: DustOrigin, rules: HostRules, seen: int) -> int:
        """Suspend the pages of an origin that rules hide; return its last page_id.

        Args:
            origin: of the pages.
            rules: in force.
            seen: last page_id that these rules have seen; 0: they are new.
        """
        first, last = await self._database.read(dust_page.page_range, origin.host_id)
        async for pages in self._read_pages(origin, max(first - 1, seen), last):
            found = await self._workers.run(_to_hide, pages, rules, abandon_on_cancel=True)
            for part in parts_of(found, WRITTEN_AT_ONCE):
                await self._hide_some(origin, part)
        return last

    async def _hide_some(self, origin: DustOrigin, part: Sequence[tuple[KnownUrl, str]]) -> None:
        rows = []
        now = self._clock.now()
        slices = LoopSlices()
        for page, url in part:
            await slices.pause()
            if await self._asking.find(url, site_id=page.site_id) is not None:
                row = self._database.look_up(dust_page.of_url, page.url)
                rows.append(
                    row
                    or DustPageRow(
                        page.page_id, page.url, target_of(url), "hidden", now, None, "", None, 0
                    )
                )
        await self._database.write(hide_rows, origin.origin_id, rows)

    async def keep_replaced(
        self, origin: DustOrigin, rules: HostRules, replaced: Sequence[ReplacedUrl]
    ) -> None:
        """Keep URLs that admission replaced as hidden pages: some are looked at, all may return."""
        hidden = await self._database.read(dust_page.hidden, origin.origin_id, 0, KEPT_HIDDEN)
        now = self._clock.now()
        for one in replaced[: max(0, KEPT_HIDDEN - len(hidden))]:
            found = rules.apply(one.url)
            if found is not None and one.site_id in self._state.sites:
                discovery = Discovery.of(one.url, site_id=one.site_id, at=now, depth=one.depth)
                await self._database.write(
                    _keep, origin.origin_id, discovery, target_of(found.url), now
                )

    # --- returning -------------------------------------------------------------------------------

    async def reconsider(self, origin: DustOrigin, rules: HostRules) -> int:
        """Resume hidden pages that the rules hide no more, or by another URL; return how many."""
        after, resumed = 0, 0
        while rows := await self._paced.read(
            dust_page.hidden, origin.origin_id, after, WRITTEN_AT_ONCE
        ):
            after = rows[-1].page_id
            back, forgotten = [], []
            for row in rows:
                found = rules.apply(row.url)
                if found is not None and target_of(found.url) == row.canonical:
                    continue
                back.append(row.page_id)
                if found is not None or row.verdict == "hidden":
                    forgotten.append(row.page_id)
            if back:
                await self._database.write(dust_page.drop, forgotten)
                await self._asking.resume(origin.host, back)
                resumed += len(back)
        return resumed


def _to_hide(pages: Sequence[KnownUrl], rules: HostRules) -> list[tuple[KnownUrl, str]]:
    """Return pages that rules hide, with the URL that stands for each; in a thread."""
    found = []
    for page in pages:
        unvisited = page.state is PageState.DISCOVERED and page.verdict in (None, "hidden")
        equal = page.state is PageState.VISITED and page.verdict == "equal"
        if (unvisited or equal) and (mapped := rules.apply(page.url)) is not None:
            found.append((page, mapped.url))
    return found


def _distinct_urls(pages: Sequence[KnownUrl]) -> DistinctCount:
    """Return the sketch of the URLs of some pages; in a thread."""
    urls = DistinctCount()
    for page in pages:
        urls.add(page.url)
    return urls


def hide_rows(connection: apsw.Connection, origin_id: int, rows: Sequence[DustPageRow]) -> int:
    """Store the rows of pages, and suspend these; return how many were suspended."""
    dust_page.put(connection, origin_id, rows)
    return dust_page.hide(connection, [row.page_id for row in rows])


def _keep(
    connection: apsw.Connection, origin_id: int, discovery: Discovery, canonical: str, now: float
) -> None:
    new = frontier.discover(connection, [discovery])
    rows = [
        DustPageRow(page.page_id, page.url, canonical, "hidden", now, None, "", None, 0)
        for page in new
    ]
    hide_rows(connection, origin_id, rows)
