"""Read the page histories of one wiki, one request after the other.

Order: siteinfo, once a day; the pages of titles, 50 per request, with the last change of each; the
revisions, 500 per request, the first part of every page first; last, the log of pages that are
gone.

A page that is moved or deleted meanwhile is resolved again by its title, which may now redirect,
show another page, or none. API failures are stored with the wiki and lead to a back-off. A page
that fails alone, while others succeed, becomes `refused`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw
import structlog
import trio

from crawld.core.politeness import MAX_RETRY_AFTER_S
from crawld.core.units import DAY_S
from crawld.daemon.crawl.api_client import ApiClient, api_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.hints.wiki_source import change_of_revision
from crawld.daemon.jobs.wiki_history.rebuild import rebuild
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, Parameters, TroubleKind, batch
from crawld.sources.mediawiki_history import (
    LogEntry,
    PageInfo,
    history_query,
    log_query,
    read_history,
    read_log,
    read_titles,
    titles_query,
)
from crawld.sources.mediawiki_site import SITEINFO, WikiFacts, moved_api_url, read_siteinfo
from crawld.sources.mediawiki_title import TitleRules
from crawld.store.changes import wiki, wiki_feed, wiki_page
from crawld.store.changes.change import Change
from crawld.store.changes.wiki import WikiRow, WikiSite
from crawld.store.changes.wiki_page import ResolvedTitle, VisitedPage, WikiPageRow

log = structlog.get_logger(__name__)

FACTS_MAX_AGE_S = DAY_S
"""Longest age of the siteinfo."""

TITLES_AT_ONCE = 50
"""Titles per request without higher limits."""

REGISTERED_AT_ONCE = 1_000

FEED_MAX_AGE_S = 300.0
"""Longest wait for the next poll of the recent changes before visited pages are registered."""

OVERLAP_S = 60.0
"""Visits are committed a little out of order, so this much is read again."""

REGISTER_EVERY_S = 20.0
"""Pause between two registrations of visited pages while histories are read: new, moved and
imported pages come before a backlog, which may last for days."""

MAX_FAILURES = 3
"""Failed requests for a page, while others succeed, before it is refused."""

_PAGE_TROUBLES = frozenset(
    {
        TroubleKind.BROKEN,
        TroubleKind.NOT_JSON,
        TroubleKind.UNAVAILABLE,
        TroubleKind.UNREACHABLE,
        TroubleKind.TOO_MANY,
        TroubleKind.BAD_CURSOR,
    }
)
"""Failures that the requested pages may have caused: other pages come first next time. A host that
says when to return has another reason."""


class WikiHistoryReader(BackgroundWork):
    """Reads the histories of one wiki."""

    def __init__(
        self,
        context: CrawlContext,
        client: ApiClient,
        row: WikiRow,
        *,
        on_facts: Callable[[], None],
    ) -> None:
        super().__init__(context)
        self._client = client
        self._row = row
        self._on_facts = on_facts
        self._facts = WikiFacts.from_json(row.facts) if row.facts else None
        self._most_titles = self._titles_at_once = TITLES_AT_ONCE

    async def run(self, deadline: float) -> None:
        """Read until nothing is left or the deadline (trio's clock) has passed."""
        pause_s = min((self._row.closed_until or 0.0) - self._clock.now(), MAX_RETRY_AFTER_S)
        register_at = -math.inf
        while trio.current_time() + pause_s < deadline:
            await trio.sleep(max(pause_s, 0.0))
            if trio.current_time() >= register_at:
                await self._register()
                register_at = trio.current_time() + REGISTER_EVERY_S
            step = await self._step()
            if step is not None:
                pause_s = step
            elif not await self._register():
                return

    async def _step(self) -> float | None:
        """Do one step; return the pause before the next, None if nothing is left."""
        if pages := await self._waiting("read", 1):
            return await self._rebuild_model(pages[0])
        if self._facts is None or not self._is_recent(self._row.facts_at):
            return await self._read_siteinfo()
        pages = await self._waiting("unresolved", self._titles_at_once)
        if pages:
            return await self._resolve(pages)
        if pages := await self._waiting("open", 1):
            return await self._read_revisions(pages[0])
        if pages := await self._waiting("lost", 1):
            return await self._read_log(pages[0])
        return None

    def _is_recent(self, at: float | None) -> bool:
        return at is not None and 0.0 <= self._clock.now() - at < FACTS_MAX_AGE_S

    async def _waiting(self, state: wiki_page.State, limit: int) -> list[WikiPageRow]:
        return await self._database.read(
            wiki_page.list_in_state, self._row.wiki_id, state, limit=limit
        )

    # --- what to read ----------------------------------------------------------------------------

    async def _register(self) -> int:
        """Register pages visited since the last time; return how many have to be queried."""
        if self._facts is None:
            return 0
        now = self._clock.now()
        to_query = await self._database.write(wiki_page.reopen_gone, self._row.wiki_id, now)
        await self._reload()
        for site in self._row.sites:
            to_query += await self._register_pages(site, self._facts.titles, now)
        return to_query

    async def _register_pages(self, site: WikiSite, titles: TitleRules, now: float) -> int:
        """Register the pages of a site visited since the last time.

        Polls of the recent changes bring new revisions: pages visited after the last one wait for
        the next, so that their histories need no request.
        """
        to_query = 0
        fed_until = await self._database.read(wiki_feed.fed_until, self._row.wiki_id)
        fed = fed_until is not None and 0.0 <= now - fed_until < FEED_MAX_AGE_S
        until_most = fed_until if fed and fed_until is not None else now
        after = (min(site.registered_until, now) - OVERLAP_S, 0)
        while True:
            visited = await self._database.read(
                _read_titled, self._row, site.site_id, after, titles
            )
            pages = [each for each in visited.pages if each[0].last_visit_at <= until_most]
            until = min(max(site.registered_until, visited.after[0]), until_most)
            to_query += await self._database.write(
                wiki_page.register, self._row.wiki_id, site.site_id, pages, until
            )
            if not visited.more or len(pages) < len(visited.pages):
                return to_query
            after = visited.after

    async def _reload(self) -> None:
        self._row = await self._database.read(wiki.get, self._row.wiki_id)

    # --- requests --------------------------------------------------------------------------------

    async def _read_siteinfo(self) -> float:
        response = await self._ask(SITEINFO)
        if isinstance(response, ApiTrouble):
            return await self._record_failure(response)
        try:
            facts = read_siteinfo(response.query)
        except ValueError as error:
            return await self._record_failure(
                ApiTrouble(TroubleKind.NOT_JSON, f"no siteinfo: {error}")
            )
        self._facts = facts
        await self._database.write(
            wiki.set_facts, self._row.wiki_id, facts.to_json(), self._clock.now()
        )
        await self._record_success()
        await self._register()
        self._on_facts()
        return 0.0

    async def _resolve(self, waiting: Sequence[WikiPageRow]) -> float:
        titles = batch(list(dict.fromkeys(page.title for page in waiting)), self._titles_at_once)
        pages = [page for page in waiting if page.title in titles]
        response = await self._ask(titles_query(titles))
        if isinstance(response, ApiTrouble):
            return await self._record_failure(response, pages)
        found = read_titles(response, titles)
        await self._database.write(_store_resolved, pages, found, self._clock.now())
        await self._record_success()
        await self._postpone(
            [page for page in pages if page.title not in found], "missing in the response"
        )
        self._titles_at_once = min(2 * self._titles_at_once, self._most_titles)
        return 0.0

    async def _read_revisions(self, page: WikiPageRow) -> float:
        cursor: Parameters | None = json.loads(page.cursor) if page.cursor else None
        response = await self._ask(history_query(page.wiki_page_number or 0, cursor))
        if isinstance(response, ApiTrouble):
            return await self._record_failure(response, [page])
        info = read_history(response)
        await self._record_success()
        if info is None or (response.cursor is not None and response.cursor == cursor):
            await self._postpone([page], "no history, or a continuation that repeats")
        elif info.number is None:
            await self._database.write(wiki_page.reopen, page, "it was deleted while it was read")
        else:
            await self._store(page, info, response.cursor)
        return 0.0

    async def _store(self, page: WikiPageRow, info: PageInfo, cursor: Parameters | None) -> None:
        if info.unusable:
            log.warning("wiki_revisions_unusable", title=info.title, count=info.unusable)
        await self._database.write(
            wiki_page.record_part,
            page,
            [change_of_revision(revision) for revision in info.revisions],
            cursor=json.dumps(cursor) if cursor else None,
            at=self._clock.now(),
            cap=self._config().jobs.backfill_revisions,
        )
        now = await self._database.read(wiki_page.get, page.page_id)
        if now is not None and now.state == "read" and info.title != page.shown_title:
            detail = f"it was moved to {info.title} while it was read"
            await self._database.write(wiki_page.reopen, page, detail)

    async def _rebuild_model(self, page: WikiPageRow) -> float:
        await rebuild(self._database, page.page_id, page.complete_until or self._clock.now())
        await self._database.write(wiki_page.mark_complete, page)
        return 0.0

    async def _read_log(self, page: WikiPageRow) -> float:
        response = await self._ask(log_query(page.title))
        if isinstance(response, ApiTrouble):
            return await self._record_failure(response, [page])
        entries, at = read_log(response), self._clock.now()
        changes = [Change(entry.at, entry.log_id, "log", entry.kind) for entry in entries]
        await self._database.write(wiki_page.add_changes, page, changes)
        await rebuild(self._database, page.page_id, at)
        detail = _log_summary(entries)
        await self._database.write(wiki_page.close, page, "missing", at=at, detail=detail)
        await self._record_success()
        return 0.0

    async def _ask(self, parameters: Parameters) -> ApiResponse | ApiTrouble:
        api = api_of(self._row, self._state.sites)
        if api is None:
            return ApiTrouble(TroubleKind.HELD, "the wiki has to be detected again")
        return await self._client.ask(api, parameters, idle=parameters is not SITEINFO)

    async def _record_success(self) -> None:
        await self._database.write(wiki.record_response, self._row.wiki_id)
        await self._reload()

    # --- failures --------------------------------------------------------------------------------

    async def _record_failure(
        self, trouble: ApiTrouble, pages: Sequence[WikiPageRow] = ()
    ) -> float:
        """Store a failure; return the pause before the next request, seconds."""
        if trouble.trouble is TroubleKind.HELD:
            return trouble.retry_after_s or math.inf
        told = trouble.is_host_trouble and trouble.retry_after_s is not None
        if trouble.trouble in _PAGE_TROUBLES and pages and not told:
            self._query_fewer(len(pages), trouble.limit)
            await self._postpone(
                pages, trouble.detail, restart=trouble.trouble is TroubleKind.BAD_CURSOR
            )
        if trouble.trouble is TroubleKind.MOVED:
            await self._follow(trouble)
        pause_s = trouble.pause_s(self._row.trouble_count + 1)
        await self._database.write(
            wiki.record_failure,
            self._row.wiki_id,
            str(trouble.trouble),
            trouble.detail,
            self._clock.now() + pause_s,
        )
        await self._reload()
        return pause_s

    def _query_fewer(self, titles: int, limit: int | None) -> None:
        """Query fewer titles next time; a limit stated by the wiki is kept."""
        if limit is not None and limit < self._most_titles:
            self._most_titles = limit
        if titles > 1:
            self._titles_at_once = min(self._most_titles, titles // 2)

    async def _follow(self, trouble: ApiTrouble) -> None:
        """Follow a redirect of the API if a site trusts the target."""
        api_url = self._row.api_url
        target = moved_api_url(api_url, trouble.detail) if api_url else None
        moved = api_of(self._row._replace(api_url=target), self._state.sites)
        if target is None or moved is None or not moved.site_ids:
            return
        log.info("wiki_api_moved", origin=self._row.origin, api=target)
        await self._database.write(wiki.set_api_url, self._row.wiki_id, target)

    async def _postpone(
        self, pages: Sequence[WikiPageRow], detail: str, *, restart: bool = False
    ) -> None:
        """Put pages at the end; refuse a page that fails alone again and again."""
        alone = len(pages) == 1 and self._row.trouble_count == 0
        refused = [page for page in pages if alone and page.failure_count + 1 >= MAX_FAILURES]
        again = [page for page in pages if page not in refused]
        if again:
            await self._database.write(wiki_page.record_failure, again, detail, restart=restart)
        for page in refused:
            at = self._clock.now()
            await self._database.write(wiki_page.close, page, "refused", at=at, detail=detail)


@dataclass(frozen=True, slots=True)
class _TitledPages:
    """Visited pages with titles, the position after them, and whether there are more."""

    pages: list[tuple[VisitedPage, str]]
    after: tuple[float, int]
    more: bool


def _read_titled(
    connection: apsw.Connection,
    row: WikiRow,
    site_id: int,
    after: tuple[float, int],
    titles: TitleRules,
) -> _TitledPages:
    """Read a site's next visited pages of a wiki with their titles; on a reader's thread."""
    visited = wiki_page.visited_since(connection, row, site_id, after, limit=REGISTERED_AT_ONCE)
    named = [(page, title) for page in visited if (title := titles.title_of(page.url))]
    end = (visited[-1].last_visit_at, visited[-1].page_id) if visited else after
    return _TitledPages(named, end, len(visited) == REGISTERED_AT_ONCE)


def _store_resolved(
    connection: apsw.Connection,
    pages: Iterable[WikiPageRow],
    found: Mapping[str, PageInfo],
    at: float,
) -> None:
    """Store the pages that titles resolve to."""
    for page in pages:
        info = found.get(page.title)
        if info is None:
            continue
        if info.number is not None:
            revision = info.revisions[0] if info.revisions else None
            latest = change_of_revision(revision) if revision else None
            wiki_page.resolve(connection, page, ResolvedTitle(info.number, info.title, latest), at)
        elif info.refused or info.is_shared:
            detail = info.refused or "shown from another wiki"
            wiki_page.close(connection, page, "refused", at=at, detail=detail)
        else:
            wiki_page.close(connection, page, "lost", at=at, detail="the wiki shows no page")


def _log_summary(entries: Sequence[LogEntry]) -> str:
    """Describe the newest log entry of a page."""
    newest = max(entries, key=lambda entry: (entry.at, entry.log_id), default=None)
    if newest is None:
        return "the log has no entry"
    return f"{newest.kind}: {newest.target}" if newest.target else newest.kind
