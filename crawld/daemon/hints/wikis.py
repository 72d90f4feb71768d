"""MediaWikis as hint sources: recent changes, probes of pages, users of templates.

Each wiki has three sources for all sites that use it, within the politeness of its host:

- `recent_changes` lists titles that were edited, moved, deleted, restored or imported.
- `probe` queries the newest revisions of known pages, 50 per request, in rounds. It finds what
  recent changes missed, and everything after a gap.
- `fan_out` lists pages that are possibly stale: they include an edited template or show a file that
  was deleted or has another size now, or the wiki rendered them again without a new revision. The
  other two sources wake it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import apsw
import structlog

from crawld.core.units import DAY_S
from crawld.core.url import url_hash
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import ApiClient, api_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.wiki_events import find_events
from crawld.daemon.frontier.wiki_sites import update_wiki_sites
from crawld.daemon.hints.copied_revision import with_shown_edits
from crawld.daemon.hints.source import AcceptPoll, CursorUpdates, Poll, PollTrouble, Source
from crawld.daemon.hints.template_survey import survey
from crawld.daemon.hints.wiki_probe import ProbeSource
from crawld.daemon.hints.wiki_removals import removal_reports, shows_another_page
from crawld.daemon.hints.wiki_source import LOOK_S, ClockSkew, Wiki, WikiSource, change_of_revision
from crawld.sources.mediawiki_api import REFUSALS, ApiResponse, Parameters, TroubleKind
from crawld.sources.mediawiki_changes import (
    ChangesCursor,
    PendingTemplates,
    ProbeProgress,
    TitleChange,
    changes_query,
    keeps_shape,
    oldest_query,
    read_changes,
    read_oldest,
    read_template_users,
    template_users_query,
)
from crawld.sources.mediawiki_feed import read_feed
from crawld.sources.mediawiki_joint import join_queries, part_of
from crawld.sources.mediawiki_site import WikiFacts
from crawld.sources.mediawiki_title import FILE_SPACE, INTERFACE_SPACE, TEMPLATE_SPACES
from crawld.store.changes import (
    fan_out,
    hint,
    hint_source,
    template_use,
    wiki_event,
    wiki_feed,
    wiki_listed,
    wiki_page,
    wiki_requisite,
)
from crawld.store.changes.change import Change
from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_event import WikiEvent
from crawld.store.changes.wiki_feed import Fed, NewRevision
from crawld.store.changes.wiki_probe import UrlChange
from crawld.store.changes.wiki_requisite import StaleRequisite
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

IDLE_S: Final = DAY_S
"""Pause of a source without work; another source wakes it."""

MAX_TEMPLATES: Final = 1_000
"""Most templates in the queue; beyond that, a probe finds the pages sooner."""

MAX_EARLY: Final = 20_000
"""Most pages that are reported again at once."""

UPLOADS_S: Final = 60.0
"""Versions of a file that were uploaded so long before the last one may not be visible yet."""

MAX_TEMPLATE_REQUESTS: Final = 10
"""Most requests for one template (5,000 pages); the probe finds the rest."""


FindEvents: TypeAlias = Callable[[Sequence[TitleChange], bool], Sequence[WikiEvent]]
"""Returns which changes of a wiki may change the parts that its sites cover; takes the changes, and
whether the wiki reports who enters categories."""


def _no_events(_: Sequence[TitleChange], __: bool) -> Sequence[WikiEvent]:
    return ()


OnEvents: TypeAlias = Callable[[bool], None]
"""Called when events or log entries of a wiki were stored, with whether changes before them were
missed."""


def _ignore(_: bool) -> None:
    return


class WikiFinder(BackgroundWork):
    """Finds the sources of wikis whose sites allow their API."""

    kinds: Final = ("recent_changes", "probe", "fan_out")

    def __init__(
        self,
        context: CrawlContext,
        client: ApiClient,
        on_events: OnEvents = _ignore,
        accept: AcceptPoll | None = None,
    ) -> None:
        """Create a finder.

        Args:
            on_events: called when events of wikis were stored.
            accept: stores what the poll of a source reports for another one.
        """
        super().__init__(context)
        self._client = client
        self._on_events = on_events
        self._accept = accept

    async def find(self) -> Sequence[Source]:
        """Return the sources of every wiki with known siteinfo."""
        found: list[Source] = []
        for row in await update_wiki_sites(self._database, self._state.sites):
            api = api_of(row, self._state.sites)
            if api is None or not api.site_ids or row.facts is None:
                continue
            sources = {
                kind: await self._database.write(
                    hint_source.ensure_of_wiki,
                    *(row.wiki_id, row.host_id, kind, api.url, self._clock.now()),
                )
                for kind in self.kinds
            }
            sites = [self._state.sites.get(site_id) for site_id in row.site_ids]
            scoped = any(site is not None and site.config.wiki_scoped for site in sites)
            known = Wiki(row, WikiFacts.from_json(row.facts), api, sources, scoped)
            given = (known, self._database, self._client, self._clock)
            found += (
                RecentChangesSource(
                    *given,
                    find_events=partial(self._find_events, row),
                    on_events=self._on_events,
                    accept=self._accept,
                ),
                ProbeSource(*given),
                FanOutSource(*given),
            )
        return found

    def _find_events(
        self, row: WikiRow, changed: Sequence[TitleChange], tells_categories: bool
    ) -> Sequence[WikiEvent]:
        parts = self._state.wiki_scope.parts_of(row).values()
        return find_events(changed, parts, tells_categories=tells_categories)


FEED_LAG_S: Final = 2.0
"""Revisions of the last seconds before a poll may be committed after it."""


class RecentChangesSource(WikiSource):
    """Lists titles that were edited, moved, deleted, restored or imported."""

    kind = "recent_changes"

    def __init__(
        self,
        known: Wiki,
        database: Database,
        client: ApiClient,
        clock: Clock,
        find_events: FindEvents = _no_events,
        on_events: OnEvents = _ignore,
        accept: AcceptPoll | None = None,
    ) -> None:
        """Create the source; `accept` stores the listings that its polls take along."""
        super().__init__(known, database, client, clock)
        self._find_events = find_events
        self._on_events = on_events
        self._accept = accept
        self._fan_out = FanOutSource(known, database, client, clock)

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether there may be changes that nobody heard: always, after a time without a poll."""
        return True

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Query the changes since the last poll."""
        cursor, asked_at = ChangesCursor.from_json(row.cursor), self.clock.now()
        in_doubt = cursor.unverified_at > 0.0 and cursor.continuation is None
        query = oldest_query() if in_doubt else changes_query(cursor, asked_at)
        response = await self._ask_with_listing(query, row)
        if isinstance(response, PollTrouble):
            if response.trouble == TroubleKind.BAD_CURSOR:
                whole = replace(cursor, continuation=None).to_json()
                return Poll(at=self.clock.now(), cursor=whole)
            return response
        now = self.clock.now()
        skew = ClockSkew(response.served_at, now)
        read = read_oldest(response, cursor) if in_doubt else read_changes(response, cursor, now)
        if read.unusable:
            log.warning("wiki_changes_unusable", api=self.wiki.api.url, count=read.unusable)
        edited = {
            each.title: skew.span(each.at)[0]
            for each in read.changed
            if each.space in TEMPLATE_SPACES or each.space == FILE_SPACE
        }
        unlisted_since, cursor_updates = await self._sibling_updates(edited, gap=read.gap)
        events = self._find_events(read.changed, read.cursor.tells_categories)
        logged = self._log_changes(read.changed)
        more = read.cursor.continuation is not None or read.cursor.unverified_at > 0.0
        changes = [self._change(each, skew) for each in read.changed]
        replaced = [self._change(each, skew) for each in read.changed if shows_another_page(each)]
        return Poll(
            at=now,
            pages=await with_shown_edits(
                self.database, await self.affected_pages(changes), read.changed
            ),
            replaced={page.page_id for page in await self.affected_pages(replaced)},
            removals=removal_reports(
                read.changed, self.wiki.facts.titles, self.wiki.row.origin, skew
            ),
            requisites=await self._stale_requisites(read.changed),
            cursor=read.cursor.to_json(),
            told_until=None if more else asked_at - 1.0,
            settled_until=unlisted_since,
            more=more,
            cursor_updates=cursor_updates,
            found_urls=self._scoped_urls(read.changed),
            also_write=partial(
                _store_histories,
                wiki_row=self.wiki.row,
                changes=logged,
                fed=await self._fed(response, cursor, asked_at, whole=not more, gap=read.gap),
                events=events,
                gap=read.gap,
            ),
            on_stored=partial(self._on_events, read.gap) if events or logged or read.gap else None,
        )

    def _change(self, each: TitleChange, skew: ClockSkew) -> UrlChange:
        of_text = each.kind == "edit" and not each.is_redirect
        return self.change_of(each.title, each.number, skew.span(each.at), of_text=of_text)

    async def _ask_with_listing(
        self, query: Parameters, row: SourceRow
    ) -> ApiResponse | PollTrouble:
        """Send a request that also asks for the users of the next edited template."""
        listing = await self._fan_out.next_listing() if self._accept is not None else None
        joined = join_queries(query, listing[1]) if listing is not None else None
        if self._accept is None or listing is None or joined is None:
            return await self.ask(query, row, takes_along=True)
        response = await self.ask(joined, row, takes_along=True)
        if isinstance(response, PollTrouble):
            # The template may be why the wiki refuses both: it is asked for alone.
            refused = response.trouble in REFUSALS
            return await self.ask(query, row) if refused else response
        fan_out_row, listing_query = listing
        of_listing = part_of(response, listing_query)
        listed = await self._fan_out.read_listing(fan_out_row, of_listing)
        await self._accept(fan_out_row, replace(listed, requests=0))
        return part_of(response, query)

    async def _fed(
        self,
        response: ApiResponse,
        cursor: ChangesCursor,
        asked_at: float,
        *,
        whole: bool,
        gap: bool,
    ) -> Fed:
        """Return the revisions that a response brings to the histories of the pages."""
        feed, titles = read_feed(response, cursor.logs), self.wiki.facts.titles
        urls = [titles.url_of(title, self.wiki.row.origin) for title in feed.changed_titles]
        begins = gap or not await self.database.read(wiki_feed.is_fed, self.wiki.row.wiki_id)
        return Fed(
            [
                NewRevision(each.number, each.before_id, change_of_revision(each.revision))
                for each in feed.revisions
            ],
            {url_hash(url) for url in urls if url},
            asked_at - FEED_LAG_S if whole else None,
            asked_at if begins else None,
        )

    async def _stale_requisites(self, changed: Sequence[TitleChange]) -> list[StaleRequisite]:
        """Return the images and styles that edits and uploads make stale."""
        files = {
            each.title.partition(":")[2].replace(" ", "_")
            for each in changed
            if each.space == FILE_SPACE
        }
        styles = any(
            each.space == INTERFACE_SPACE and each.title.endswith((".css", ".js"))
            for each in changed
        )
        if not files and not styles:
            return []
        return await self.database.read(
            wiki_requisite.find_stale, self.wiki.row.site_ids, files=files, styles=styles
        )

    def _log_changes(self, changed: Sequence[TitleChange]) -> list[tuple[int, Change | None]]:
        """Return what the log reports by URL key, for the histories of the pages.

        They stand in the file before the page is visited, so that a response without the page
        confirms a deletion at once.
        """
        found: list[tuple[int, Change | None]] = []
        for each in changed:
            url = self.wiki.facts.titles.url_of(each.title, self.wiki.row.origin)
            if url is None or each.kind != "log":
                continue
            entry = each.entry
            if entry is not None:
                row = Change(entry.at, entry.log_id, "log", entry.kind)
                found.append((url_hash(url), row))
            elif each.is_rewritten:
                found.append((url_hash(url), None))
        return found

    def _scoped_urls(self, changed: Sequence[TitleChange]) -> list[str]:
        """Return URLs of changed titles, for sites that cover only some titles."""
        if not self.wiki.scoped:
            return []
        titles, origin = self.wiki.facts.titles, self.wiki.row.origin
        found = [titles.url_of(each.title, origin) for each in changed]
        return [url for url in found if url]

    async def _sibling_updates(
        self, edited: dict[str, float], *, gap: bool
    ) -> tuple[float | None, CursorUpdates]:
        """Queue edited templates, and reconcile a gap with a probe.

        Args:
            edited: time of the edit by template.

        Returns:
            The first edit of a template whose pages are not listed yet, and cursor updates.
        """
        cursor_updates: list[tuple[int, str | None]] = []
        number, text = await self.sibling("fan_out")
        pending = PendingTemplates.from_json(text)
        queue = pending.templates
        if edited:
            known = await self.database.read(template_use.get, number)
            queue = pending.with_edited(edited, known.uses if known else {}, MAX_TEMPLATES)
            cursor_updates.append((number, replace(pending, templates=queue).to_json()))
        unlisted_since = min((at for _, at in queue), default=None)
        if gap:
            log.warning("wiki_changes_gap", api=self.wiki.api.url)
            number, text = await self.sibling("probe")
            progress = replace(ProbeProgress.from_json(text), after=0, began_at=0.0, urgent=True)
            cursor_updates.append((number, progress.to_json()))
        return unlisted_since, cursor_updates


def _store_histories(
    connection: apsw.Connection,
    wiki_row: WikiRow,
    changes: Sequence[tuple[int, Change | None]],
    fed: Fed,
    events: Sequence[WikiEvent],
    *,
    gap: bool,
) -> None:
    wiki_page.add_log(connection, wiki_row, changes)
    wiki_feed.store(connection, wiki_row.wiki_id, wiki_row.host_id, fed)
    wiki_event.add(connection, wiki_row.wiki_id, events)
    if gap:
        wiki_listed.resolve_again(connection, wiki_row.wiki_id)


class FanOutSource(WikiSource):
    """Lists pages that are possibly stale because something else was edited."""

    kind = "fan_out"

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether templates or pages are queued."""
        pending = PendingTemplates.from_json(row.cursor)
        return bool(pending.templates or pending.pages)

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Report pages that are already known, else query the users of the next template."""
        pending, now = PendingTemplates.from_json(row.cursor), self.clock.now()
        if pending.pages:
            rest = replace(pending, pages=())
            pages = [PageHint(*page) for page in pending.pages]
            wait_s = None if pending.templates else hint.RENDER_S
            return Poll(at=now, pages=pages, cursor=rest.to_json(), requests=0, wait_s=wait_s)
        if not pending.templates:
            return await self._idle(row, now)
        response = await self.ask(self._listing_query(pending), row)
        if isinstance(response, PollTrouble):
            if response.trouble not in (TroubleKind.BAD_CURSOR, TroubleKind.BROKEN):
                return response
            (title, _), *others = pending.templates
            log.warning("wiki_template_skipped", title=title, why=response.trouble)
            return Poll(at=now, cursor=PendingTemplates(tuple(others)).to_json())
        return await self.read_listing(row, response)

    async def next_listing(self) -> tuple[SourceRow, Parameters] | None:
        """Return the query for the users of the next template, None if none waits for its first.

        The row of the source comes with it, as it is stored now.
        """
        row = await self.database.read(hint_source.get, self.row.hint_source_id)
        pending = PendingTemplates.from_json(row.cursor)
        if pending.pages or pending.continuation or not pending.templates:
            return None
        return row, self._listing_query(pending)

    def _listing_query(self, pending: PendingTemplates) -> Parameters:
        title, _ = pending.templates[0]
        return template_users_query(title, pending.continuation, is_file=self._is_file(title))

    def _is_file(self, title: str) -> bool:
        return self.wiki.facts.titles.namespace_of(title) == FILE_SPACE

    async def read_listing(self, row: SourceRow, response: ApiResponse) -> Poll:
        """Return the pages that a response to the query of `row` reports."""
        pending = PendingTemplates.from_json(row.cursor)
        (title, at), *others = pending.templates
        now, asked, is_file = self.clock.now(), pending.requests + 1, self._is_file(title)
        changes = [
            self.change_of(user, None, (at, now), of_text=True)
            for user in read_template_users(response)
        ]
        # The cursor of the versions of a file is left out.
        cursor = part_of(response, template_users_query(title, {}, is_file=is_file)).cursor
        if is_file and keeps_shape(response, at, at - UPLOADS_S):
            changes, cursor = [], None
        more = cursor is not None and asked < MAX_TEMPLATE_REQUESTS
        rest = (
            replace(pending, continuation=cursor, requests=asked)
            if more
            else PendingTemplates(tuple(others))
        )
        pages = await self.affected_pages(changes)
        return Poll(
            at=now,
            pages=pages,
            cursor=rest.to_json(),
            wait_s=None if rest.templates else hint.RENDER_S,
            cause=title,
            also_write=partial(
                fan_out.record,
                hint_source_id=row.hint_source_id,
                cause=title,
                pages=len(pages),
                at=now,
                continued=pending.continuation is not None,
            ),
        )

    async def _idle(self, row: SourceRow, now: float) -> Poll | PollTrouble:
        """Report pages again whose visits came too early, else ask about templates if due."""
        pages, next_at = await self.database.read(
            hint.due_again, row.hint_source_id, now, limit=MAX_EARLY
        )
        if pages:
            return Poll(at=now, pages=pages, cursor=row.cursor, requests=0, wait_s=LOOK_S)
        found = await survey(self, row)
        if isinstance(found, PollTrouble) or next_at is None:
            return found
        return replace(found, wait_s=min(found.wait_s or IDLE_S, next_at - now + 1.0))
