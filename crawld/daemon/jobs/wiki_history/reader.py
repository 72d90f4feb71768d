"""Reading the histories of one wiki, one polite request after the other.

In order of use: what the wiki says of itself once a day; which pages its titles show, 50 titles a
request, which already gives the last change of each; then the revisions, 500 a request, the first
part of every page before the second of any; last, what the log says of pages that went away.

A page that is moved or deleted while it is read is asked for again by its title: the title may
redirect now, show another page, or none. Trouble of the API is stored with the wiki and answered by
a pause that grows; trouble of one page alone, while others are answered, ends in `refused`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw
import structlog
import trio

from crawld.config.model import JobsConfig
from crawld.core.politeness import MAX_RETRY_AFTER_S
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api, ApiClient
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.jobs.wiki_history.detect_wikis import may_use_api
from crawld.daemon.jobs.wiki_history.rebuild import rebuild
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, ApiTroubleKind, Parameters, batch
from crawld.sources.mediawiki_history import (
    LogEntry,
    PageInfo,
    WikiRevision,
    history_query,
    log_query,
    read_history,
    read_log,
    read_titles,
    titles_query,
)
from crawld.sources.mediawiki_site import SITEINFO, WikiFacts, moved_api_url, read_siteinfo
from crawld.sources.mediawiki_title import TitleRules
from crawld.store.changes import wiki, wiki_page
from crawld.store.changes.change import Change
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_page import ResolvedTitle, VisitedPage, WikiPageRow
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

FACTS_MAX_AGE_S = 86_400.0
"""What a wiki says of itself is asked again after this."""

TITLES_AT_ONCE = 50
"""Titles one request may name, for those who have no higher limit."""

REGISTERED_AT_ONCE = 1_000

OVERLAP_S = 60.0
"""Visits are committed a little out of order: so much is looked at twice."""

FAILURES = 3
"""Requests for a page that may fail, while others succeed, before it is refused."""

_PAGES_AT_FAULT = frozenset(
    {
        *(
            ApiTroubleKind.BROKEN,
            ApiTroubleKind.NOT_JSON,
            ApiTroubleKind.UNAVAILABLE,
            ApiTroubleKind.UNREACHABLE,
        ),
        *(ApiTroubleKind.TOO_MANY, ApiTroubleKind.BAD_CURSOR),
    }
)
"""Troubles that the pages asked for may have caused: others go first the next time."""


class WikiHistoryReader:
    """One wiki being read."""

    def __init__(
        self,
        crawl: CrawlState,
        database: Database,
        client: ApiClient,
        clock: Clock,
        row: WikiRow,
        *,
        settings: Callable[[], JobsConfig],
        on_facts: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_facts = on_facts
        self._crawl = crawl
        self._database = database
        self._client = client
        self._clock = clock
        self._settings = settings
        self._row = row
        self._facts = WikiFacts.from_json(row.facts) if row.facts else None
        self._most_titles = self._titles_at_once = TITLES_AT_ONCE

    async def run(self, deadline: float) -> None:
        """Read until nothing is left to ask, or until an instant of trio's clock."""
        pause_s = min((self._row.closed_until or 0.0) - self._clock.now(), MAX_RETRY_AFTER_S)
        fresh = False
        while trio.current_time() + pause_s < deadline:
            await trio.sleep(max(pause_s, 0.0))
            if not fresh:
                await self._register()
                fresh = True
            step = await self._step()
            if step is not None:
                pause_s = step
            elif not await self._register():
                return

    async def _step(self) -> float | None:
        """Do one thing; return how long to leave the API alone, None if nothing was left."""
        if pages := await self._waiting("read", 1):
            return await self._model(pages[0])
        if self._facts is None or not self._is_fresh(self._row.facts_at):
            return await self._learn()
        pages = await self._waiting("unresolved", self._titles_at_once)
        if pages:
            return await self._resolve(pages)
        if pages := await self._waiting("open", 1):
            return await self._read_revisions(pages[0])
        if pages := await self._waiting("lost", 1):
            return await self._read_log(pages[0])
        return None

    def _is_fresh(self, at: float | None) -> bool:
        return at is not None and 0.0 <= self._clock.now() - at < FACTS_MAX_AGE_S

    async def _waiting(self, state: wiki_page.State, limit: int) -> list[WikiPageRow]:
        return await self._database.read(
            wiki_page.list_in_state, self._row.wiki_id, state, limit=limit
        )

    # --- what to read --------------------------------------------------------------------------

    async def _register(self) -> int:
        """Enter the pages visited since the last time; return how many are to be asked for."""
        if self._facts is None:
            return 0
        now = self._clock.now()
        asked_for = await self._database.write(wiki_page.reopen_gone, self._row.wiki_id, now)
        after = (min(self._row.registered_until, now) - OVERLAP_S, 0)
        while True:
            seen = await self._database.read(_titled, self._row, after, self._facts.titles)
            until = max(self._row.registered_until, seen.after[0])
            asked_for += await self._database.write(
                wiki_page.register, self._row.wiki_id, seen.pages, min(until, now)
            )
            await self._reload()
            if not seen.more:
                return asked_for
            after = seen.after

    async def _reload(self) -> None:
        self._row = await self._database.read(wiki.get, self._row.wiki_id)

    # --- requests ------------------------------------------------------------------------------

    async def _learn(self) -> float:
        answer = await self._ask(SITEINFO)
        if isinstance(answer, ApiTrouble):
            return await self._troubled(answer)
        try:
            facts = read_siteinfo(answer.query)
        except ValueError as error:
            return await self._troubled(
                ApiTrouble(ApiTroubleKind.NOT_JSON, f"no siteinfo: {error}")
            )
        self._facts = facts
        await self._database.write(
            wiki.set_facts, self._row.wiki_id, facts.to_json(), self._clock.now()
        )
        await self._answered()
        await self._register()
        self._on_facts()
        return 0.0

    async def _resolve(self, waiting: Sequence[WikiPageRow]) -> float:
        titles = batch(list(dict.fromkeys(page.title for page in waiting)), self._titles_at_once)
        pages = [page for page in waiting if page.title in titles]
        answer = await self._ask(titles_query(titles))
        if isinstance(answer, ApiTrouble):
            return await self._troubled(answer, pages)
        found = read_titles(answer, titles)
        await self._database.write(_store_resolved, pages, found, self._clock.now())
        await self._answered()
        await self._give_up([page for page in pages if page.title not in found], "not answered")
        self._titles_at_once = min(2 * self._titles_at_once, self._most_titles)
        return 0.0

    async def _read_revisions(self, page: WikiPageRow) -> float:
        cursor: Parameters | None = json.loads(page.cursor) if page.cursor else None
        answer = await self._ask(history_query(page.wiki_page_number or 0, cursor))
        if isinstance(answer, ApiTrouble):
            return await self._troubled(answer, [page])
        shown = read_history(answer)
        await self._answered()
        if shown is None or (answer.cursor is not None and answer.cursor == cursor):
            await self._give_up([page], "no history, or one that goes in circles")
        elif shown.number is None:
            await self._database.write(wiki_page.reopen, page, "it went while it was read")
        else:
            await self._store(page, shown, answer.cursor)
        return 0.0

    async def _store(self, page: WikiPageRow, shown: PageInfo, cursor: Parameters | None) -> None:
        if shown.unusable:
            log.warning("unusable_revisions", title=shown.title, count=shown.unusable)
        await self._database.write(
            wiki_page.record_part,
            page,
            [_change(revision) for revision in shown.revisions],
            cursor=json.dumps(cursor) if cursor else None,
            at=self._clock.now(),
            cap=self._settings().backfill_revisions,
        )
        now = await self._database.read(wiki_page.get, page.page_id)
        if now is not None and now.state == "read" and shown.title != page.shown_title:
            detail = f"it was moved to {shown.title} while it was read"
            await self._database.write(wiki_page.reopen, page, detail)

    async def _model(self, page: WikiPageRow) -> float:
        await rebuild(self._database, page.page_id, page.complete_until or self._clock.now())
        await self._database.write(wiki_page.mark_complete, page)
        return 0.0

    async def _read_log(self, page: WikiPageRow) -> float:
        answer = await self._ask(log_query(page.title))
        if isinstance(answer, ApiTrouble):
            return await self._troubled(answer, [page])
        entries, at = read_log(answer), self._clock.now()
        changes = [Change(entry.at, entry.log_id, "log", entry.kind) for entry in entries]
        await self._database.write(wiki_page.add_changes, page, changes)
        await rebuild(self._database, page.page_id, at)
        await self._database.write(wiki_page.close, page, "missing", at=at, detail=_fate(entries))
        await self._answered()
        return 0.0

    async def _ask(self, parameters: Parameters) -> ApiResponse | ApiTrouble:
        if self._row.api_url is None:
            return ApiTrouble(ApiTroubleKind.HELD, "the wiki has to be recognised anew")
        return await self._client.ask(Api(self._row.site_id, self._row.api_url), parameters)

    async def _answered(self) -> None:
        await self._database.write(wiki.record_answer, self._row.wiki_id)
        await self._reload()

    # --- trouble -------------------------------------------------------------------------------

    async def _troubled(self, trouble: ApiTrouble, pages: Sequence[WikiPageRow] = ()) -> float:
        """Store a trouble, and return how long to leave the API alone."""
        if trouble.trouble is ApiTroubleKind.HELD:
            return trouble.retry_after_s or math.inf
        if trouble.trouble in _PAGES_AT_FAULT and pages:
            self._name_fewer(len(pages), trouble.limit)
            await self._give_up(
                pages, trouble.detail, restart=trouble.trouble is ApiTroubleKind.BAD_CURSOR
            )
        if trouble.trouble is ApiTroubleKind.MOVED:
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

    def _name_fewer(self, titles: int, limit: int | None) -> None:
        """Name fewer titles the next time; a limit the wiki states holds from now on."""
        if limit is not None and limit < self._most_titles:
            self._most_titles = limit
        if titles > 1:
            self._titles_at_once = min(self._most_titles, titles // 2)

    async def _follow(self, trouble: ApiTrouble) -> None:
        """Take a redirect of the API where the site's leave holds there too."""
        site, api_url = self._crawl.sites.get(self._row.site_id), self._row.api_url
        target = moved_api_url(api_url, trouble.detail) if api_url else None
        if site is None or target is None or not may_use_api(site, f"{self._row.origin}/", target):
            return
        log.info("api_moved", origin=self._row.origin, api=target)
        await self._database.write(wiki.set_api_url, self._row.wiki_id, target)

    async def _give_up(
        self, pages: Sequence[WikiPageRow], detail: str, *, restart: bool = False
    ) -> None:
        """Let others go first; a page that fails again and again alone is refused."""
        alone = len(pages) == 1 and self._row.trouble_count == 0
        refused = [page for page in pages if alone and page.failure_count + 1 >= FAILURES]
        again = [page for page in pages if page not in refused]
        if again:
            await self._database.write(wiki_page.record_failure, again, detail, restart=restart)
        for page in refused:
            at = self._clock.now()
            await self._database.write(wiki_page.close, page, "refused", at=at, detail=detail)


@dataclass(frozen=True, slots=True)
class _TitledPages:
    """Pages visited, those that have a title; where to go on, and whether there are more."""

    pages: list[tuple[VisitedPage, str]]
    after: tuple[float, int]
    more: bool


def _titled(
    connection: apsw.Connection, row: WikiRow, after: tuple[float, int], titles: TitleRules
) -> _TitledPages:
    """Read the next visited pages of a wiki with their titles; runs on a reader's thread."""
    seen = wiki_page.visited_since(connection, row, after, limit=REGISTERED_AT_ONCE)
    named = [(page, title) for page in seen if (title := titles.title_of(page.url))]
    end = (seen[-1].last_visit_at, seen[-1].page_id) if seen else after
    return _TitledPages(named, end, len(seen) == REGISTERED_AT_ONCE)


def _store_resolved(
    connection: apsw.Connection,
    pages: Iterable[WikiPageRow],
    found: Mapping[str, PageInfo],
    at: float,
) -> None:
    """Store which pages titles show."""
    for page in pages:
        shown = found.get(page.title)
        if shown is None:
            continue
        if shown.number is not None:
            latest = _change(shown.revisions[0]) if shown.revisions else None
            wiki_page.resolve(
                connection, page, ResolvedTitle(shown.number, shown.title, latest), at
            )
        elif shown.refused or shown.is_shared:
            detail = shown.refused or "shown from another wiki"
            wiki_page.close(connection, page, "refused", at=at, detail=detail)
        else:
            wiki_page.close(connection, page, "lost", at=at, detail="the wiki shows no page")


def _change(revision: WikiRevision) -> Change:
    return Change(
        revision.at,
        revision.revision_id,
        "revision",
        revision.kind,
        revision.size_bytes,
        revision.digest,
    )


def _fate(entries: Sequence[LogEntry]) -> str:
    """Return what became of a page, by the newest entry of its log."""
    newest = max(entries, key=lambda entry: (entry.at, entry.log_id), default=None)
    if newest is None:
        return "the log says nothing"
    return f"{newest.kind}: {newest.target}" if newest.target else newest.kind
