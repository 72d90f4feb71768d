"""Accept what hint sources report: store it, deliver it, and admit the URLs that it names."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from functools import partial
from typing import Final

import apsw
import trio

from crawld.core.url import split_url, url_hash
from crawld.core.url_parameters import with_sorted_query
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.admission import Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.hints.delivery import SLICE_S, HintDelivery
from crawld.daemon.hints.source import Hint, Poll
from crawld.daemon.pacing import parts_of
from crawld.store.changes import hint, wiki_requisite
from crawld.store.changes.hint import PageHint, PollResult, UrlHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.frontier import frontier, refusal, removal
from crawld.store.frontier.removal import RemovedPage

STORED_AT_ONCE: Final = 2_000
"""Hints or pages stored in one transaction."""

MAX_FOUND_URLS: Final = 10_000
"""URLs accepted from one poll."""

FOUND_URL_DEPTH: Final = 1
"""Link depth of URLs that a source names: the same as links of a seed."""


class HintAcceptance(BackgroundWork):
    """Stores what sources report.

    Attributes:
        delivery: hands the stored hints to the policies.
    """

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self.delivery = HintDelivery(context)

    async def accept(
        self, row: SourceRow, result: Poll, *, next_poll_at: float | None = None
    ) -> int:
        """Store what a source reported, then notify the policies; return how many hints were new.

        Large results are committed in parts; the last part moves the cursor. After a kill, stored
        parts are not new when they are reported again. `next_poll_at` (Unix seconds) is when the
        source is due again, None for a stream. Hints for unknown pages do not count as new.
        """
        pages, urls = _merge_page_hints(result.pages), await self._url_hints(row, result.hints)
        removed: list[RemovedPage] = []
        under_way = self.delivery.under_way(row)
        make = partial(PollResult, at=result.at, cursor_before=row.cursor, under_way=under_way)
        new_hints = 0
        *parts, (last_pages, last_urls) = _parts(pages, urls)
        for some_pages, some_urls in parts:
            part = make(
                of_pages=some_pages,
                of_urls=some_urls,
                cursor=row.cursor,
                next_poll_at=row.next_poll_at,
                requests=0,
            )
            new_hints += await self._store(row, part, result.replaced)
        last = make(
            of_pages=last_pages,
            of_urls=last_urls,
            cursor=result.cursor,
            told_until=result.told_until,
            settled_until=result.settled_until,
            cause=result.cause,
            next_poll_at=next_poll_at,
            requests=result.requests,
            cursor_updates=result.cursor_updates,
            also_write=partial(_write_beside, row.host_id, result, under_way, removed),
        )
        new_hints += await self._store(row, last, result.replaced)
        self.delivery.confirm(row, removed)
        if result.on_stored is not None:
            result.on_stored()
        self.delivery.refresh(result.requisites)
        return new_hints

    async def admit(self, row: SourceRow, urls: Sequence[str]) -> None:
        """Admit URLs that a source named to the frontier, as far as the scopes of sites allow.

        Titles that a wiki reports are for sites that are a part of it; others follow links.
        """
        for site_id in row.site_ids if urls else ():
            site = self._state.sites.get(site_id)
            if site is not None and (row.wiki_id is None or site.config.wiki_scoped):
                await self._admit_to(site, urls[:MAX_FOUND_URLS], packed=row.wiki_id is None)

    async def _store(self, row: SourceRow, result_part: PollResult, replaced: Set[int]) -> int:
        new_hints = await self._database.write(hint.accept, row.hint_source_id, result_part)
        await self.delivery.deliver(row, new_hints, replaced)
        return len(new_hints)

    async def _url_hints(self, row: SourceRow, hints: Sequence[Hint]) -> list[UrlHint]:
        """Convert hints to URL keys and merge hints for the same page, with checkpoints."""
        sites = map(self._state.sites.get, row.site_ids)
        is_sorted = any(site is not None and site.config.sort_query for site in sites)
        found: dict[str, UrlHint] = {}
        hosts: dict[str, int | None] = {}
        until = trio.current_time() + SLICE_S
        for url, first_at, last_at in hints:
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
            url = with_sorted_query(url) if is_sorted else url
            known = found.get(url)
            if known is not None:
                first_at, last_at = min(first_at, known.first_at), max(last_at, known.last_at)
                found[url] = known._replace(
                    first_at=first_at, last_at=last_at, change_count=known.change_count + 1
                )
                continue
            origin = url[: url.find("/", len("https://"))]
            if origin not in hosts:
                host = self._state.hosts.get(split_url(url).host)
                hosts[origin] = host.host_id if host else None
            if (host_id := hosts[origin]) is not None:
                found[url] = UrlHint(host_id, url_hash(url), first_at, last_at)
        return list(found.values())

    async def _admit_to(self, site: ActiveSite, urls: Sequence[str], *, packed: bool) -> None:
        caps = self._state.caps if packed else self._state.caps.with_rows()
        source, now = Referrer(None, FOUND_URL_DEPTH), self._clock.now()
        admitted = await self._state.admission.admit(site, urls, source, now)
        if admitted.refusals:
            await self._database.write(refusal.record, admitted.refusals)
        for part in parts_of(admitted.found, STORED_AT_ONCE):
            new = await self._database.write(frontier.discover, part, caps)
            await self._state.enter_all(new)


def _parts(
    pages: Sequence[PageHint], urls: Sequence[UrlHint]
) -> list[tuple[Sequence[PageHint], Sequence[UrlHint]]]:
    """Return the hints in parts of `STORED_AT_ONCE`, pages first; without hints one empty part."""
    starts = range(0, max(len(pages) + len(urls), 1), STORED_AT_ONCE)
    return [
        (
            pages[start : start + STORED_AT_ONCE],
            urls[max(start - len(pages), 0) : max(start + STORED_AT_ONCE - len(pages), 0)],
        )
        for start in starts
    ]


def _write_beside(
    host_id: int,
    result: Poll,
    under_way: Collection[int],
    removed: list[RemovedPage],
    connection: apsw.Connection,
) -> None:
    """Write what a poll reported beside its hints; collect the pages to be confirmed as removed."""
    # A transaction that fails is tried again.
    removed[:] = removal.report(connection, host_id, result.removals, under_way)
    if result.replaced:
        removal.forget_validators(connection, result.replaced)
    if result.requisites:
        wiki_requisite.make_due(connection, result.requisites, result.at)
    if result.also_write is not None:
        result.also_write(connection)


def _merge_page_hints(pages: Sequence[PageHint]) -> list[PageHint]:
    """Merge hints for the same page."""
    found: dict[int, PageHint] = {}
    for page in pages:
        known = found.get(page.page_id)
        if known is not None:
            first_at = min(known.first_at, page.first_at)
            last_at = max(known.last_at, page.last_at)
            page = PageHint(page.page_id, first_at, last_at, known.change_count + page.change_count)
        found[page.page_id] = page
    return list(found.values())
