"""The `wiki_events` job: let parts of wikis follow what the wikis report.

A rename is applied without a request, also while a question waits for its turn: the history of the
page goes to its new title, and a page of a part stays in it or leaves, as configured. A page that
entered a category or left it, was created, deleted, restored or imported is asked for, up to 50 at
once; what the wiki says then counts, so the order of the reports does not matter. A new subcategory
starts the `members` job.

The events are in the file until they are applied, so that a kill loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from crawld.daemon.crawl.api_client import ApiClient, api_of
from crawld.daemon.crawl.api_shared import Urgency
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.wiki_parts.asking import (
    SHARED_WAIT_S,
    Ask,
    AskOnce,
    ask_pages,
    resolve_titles,
)
from crawld.daemon.jobs.wiki_parts.members import PartMembers
from crawld.sources.mediawiki_api import REFUSALS, ApiTrouble, TroubleKind
from crawld.sources.mediawiki_listed import TitleAnswer, TitleOutcome
from crawld.sources.mediawiki_members import MemberPage, MemberReason, Membership
from crawld.sources.mediawiki_scope import TitleScope
from crawld.sources.mediawiki_title import CATEGORY_SPACE, TEMPLATE_SPACES
from crawld.store.changes import wiki, wiki_event, wiki_listed, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_event import StoredEvent, WikiEvent
from crawld.store.changes.wiki_member import MemberRow, Part
from crawld.store.frontier import rename
from crawld.store.frontier.rename import Rename

log = structlog.get_logger(__name__)

EVENTS_AT_ONCE: Final = 500

IDLE_S: Final = 3_600.0
"""Pause without work; each poll with events starts a run."""

FIRST_S: Final = 1.0
"""Pause after a start: events may wait since before."""

RETRY_S: Final = 15.0
"""Shortest pause before a wiki that did not answer is asked again."""

MAX_RETRY_S: Final = 600.0
"""Longest such pause, unless the API is closed."""

_CLOSED: Final = frozenset({TroubleKind.CLOSED, TroubleKind.FORBIDDEN, TroubleKind.NOT_JSON})

PATIENCE_S: Final = 5.0
"""How long edited pages come before a question that no poll took along: a new member is copied in
time."""

RENEWED_FOR_S: Final = 10.0
"""How long a question is asked again with what is reported while it waits."""

MAX_REFUSALS: Final = 3
"""Refusals of a question about events, in a row; then they are left to the `members` job."""

RENAME_SLACK_S: Final = 1.0
"""Times of a log are whole seconds, rounded down."""


_OF_MISSING: Final = frozenset({MemberReason.TITLE, MemberReason.REDIRECT})
"""Reasons for which a title belongs to a part even while the wiki has no such page."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked about some events, for all sites of a wiki together.

    Attributes:
        entered: pages that entered or left categories that a site follows.
        titles: titles that were created, deleted, restored, imported or made redirects, with the
            wiki's numbers of the pages that they had then.
        followed: the categories that some site follows.
    """

    entered: tuple[WikiEvent, ...]
    titles: Mapping[str, frozenset[int]]
    followed: tuple[str, ...]

    @classmethod
    def about(cls, events: Sequence[WikiEvent], scopes: Sequence[TitleScope]) -> _Asked:
        """Return what is asked for the parts of some sites."""
        entered = (
            each
            for each in events
            if each.kind == "category"
            and each.page_number is not None
            and any(scope.follows(each.title) for scope in scopes)
        )
        titles: dict[str, frozenset[int]] = {}
        for each in events:
            if each.kind == "page":
                own = frozenset(() if each.page_number is None else (each.page_number,))
                titles[each.title] = titles.get(each.title, frozenset()) | own
        followed = frozenset[str]().union(*(scope.followed or () for scope in scopes))
        return cls(tuple(entered), titles, tuple(sorted(followed)))

    def was_moved(self, page: MemberPage) -> bool:
        """Whether a title leads away from its page, whose rename is not reported yet."""
        before = self.titles.get(page.title, frozenset())
        return len(before) > 0 and page.is_redirect and page.number not in before

    @property
    def entered_categories(self) -> list[str]:
        """The categories that pages entered or left."""
        return list(dict.fromkeys(each.title for each in self.entered))

    @property
    def numbers(self) -> list[int]:
        """The wiki's numbers of these pages."""
        return [each.page_number for each in self.entered if each.page_number is not None]


class WikiEventsJob(BackgroundWork):
    """The `wiki_events` job."""

    name = "wiki_events"

    def __init__(
        self,
        context: CrawlContext,
        client: ApiClient,
        *,
        list_again: Callable[[], None],
        doubt: Callable[[int], None],
    ) -> None:
        """Create the job.

        Args:
            list_again: called when whole parts have to be listed again.
            doubt: called with the number of a wiki when pages may enter or leave categories
                without a report: a template was edited.
        """
        super().__init__(context)
        self._client = client
        self._members = PartMembers(context)
        self._list_again = list_again
        self._doubt = doubt
        self._pause_s = FIRST_S
        self._failures = 0
        self._is_settled = False
        self._reported = trio.Event()
        self._asked_at: float | None = None

    def note_reports(self) -> None:
        """Note that events were stored: a question that waits is asked again with them."""
        self._reported.set()

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return self._pause_s

    async def run(self) -> str:
        """Apply what is stored."""
        if not self._is_settled:  # a kill may have come between an event and its consequences
            await self._members.settle()
            self._is_settled = True
        applied, trouble = 0, None
        for row in await self._database.read(wiki.list_wikis):
            before = frozenset[int]()
            while trouble is None:
                self._reported = trio.Event()
                stored = await self._database.read(
                    wiki_event.list_events, row.wiki_id, EVENTS_AT_ONCE
                )
                if not stored:
                    break
                done, trouble = await self._apply(row, stored, before)
                before = frozenset(each.wiki_event_id for each in stored)
                numbers = [each.wiki_event_id for each in done]
                await self._database.write(wiki_event.remove, numbers)
                applied += len(done)
                if trouble is not None and self._is_renewed(trouble):
                    trouble = None
                else:
                    self._asked_at = None
        self._failures = self._failures + 1 if trouble is not None else 0
        self._pause_s = IDLE_S
        if trouble is not None:
            self._pause_s = _retry_s(trouble, self._failures)
            return f"{applied} events applied, then: {trouble.trouble}: {trouble.detail}"
        return f"{applied} events applied"

    async def progress(self) -> dict[str, int]:
        """Return the number of events that wait."""
        rows = await self._database.read(wiki.list_wikis)
        waiting = [await self._database.read(wiki_event.count, row.wiki_id) for row in rows]
        return {"events": sum(waiting)}

    def _is_renewed(self, trouble: ApiTrouble) -> bool:
        """Whether a question was not sent because more was reported while it waited."""
        return trouble.trouble is TroubleKind.HELD and self._reported.is_set()

    async def _apply(
        self, row: WikiRow, stored: Sequence[StoredEvent], before: frozenset[int]
    ) -> tuple[list[StoredEvent], ApiTrouble | None]:
        """Apply events; return those that are done, and what kept the others from it.

        Args:
            before: numbers of those that were tried just before.
        """
        moves = [each for each in stored if each.event.kind == "move"]
        others = [each for each in stored if each.event.kind != "move"]
        parts = self._state.wiki_scope.parts_of(row)
        for site_id, scope in parts.items():
            await self._rename(row, site_id, scope, [each.event for each in moves])
        if moves:
            await self._members.refresh()
        parts = self._state.wiki_scope.parts_of(row)
        scoped = {site_id: scope for site_id, scope in parts.items() if scope.scoped}
        new = (each.event for each in stored if each.wiki_event_id not in before)
        if any(_is_doubtful(event, scoped.values()) for event in new):
            self._doubt(row.wiki_id)
        events = [each for each in others if _is_asked(each.event, scoped.values())]
        ask = self._ask_of(row)
        if not events or ask is None:
            return list(stored), None
        # One question at a time: a rename that is reported meanwhile does not wait for a second.
        first = [each for each in events if each.event.kind == "category"] or events
        asked = _Asked.about([each.event for each in first], list(scoped.values()))
        ask = AskOnce(ask)
        for site_id, scope in scoped.items():
            trouble = await self._look(row, site_id, scope, asked, ask)
            if trouble is not None:
                return await self._give_up(trouble, moves, first)
        await self._members.refresh()
        later = {each.wiki_event_id for each in events} - {each.wiki_event_id for each in first}
        return [each for each in stored if each.wiki_event_id not in later], None

    async def _give_up(
        self, trouble: ApiTrouble, moves: list[StoredEvent], others: list[StoredEvent]
    ) -> tuple[list[StoredEvent], ApiTrouble | None]:
        if trouble.trouble in REFUSALS and self._failures + 1 >= MAX_REFUSALS:
            log.warning("wiki_events_refused", count=len(others), why=trouble.detail)
            self._list_again()
            return [*moves, *others], None
        return moves, trouble

    def _ask_of(self, row: WikiRow) -> Ask | None:
        api = api_of(row, self._state.sites)
        if api is None:
            return None
        now = trio.current_time()
        self._asked_at = now if self._asked_at is None else self._asked_at
        waited_s = now - self._asked_at
        return partial(
            self._client.ask,
            api,
            due=True,
            patience_s=PATIENCE_S,
            waits_s=max(SHARED_WAIT_S - waited_s, 0.0),
            urgency=Urgency.REPORTED,
            unless=self._reported if waited_s < RENEWED_FOR_S else None,
        )

    # --- renames ---------------------------------------------------------------------------------

    async def _rename(
        self, row: WikiRow, site_id: int, scope: TitleScope, events: Sequence[WikiEvent]
    ) -> None:
        """Let the pages of a part follow to their new titles, with their histories."""
        renames = []
        for event in events:
            new_title = event.target or ""
            if scope.scoped and not await self._follow(row, site_id, event):
                continue
            old_url = scope.rules.url_of(event.title, row.origin)
            new_url = scope.rules.url_of(new_title, row.origin)
            if old_url and new_url:
                at = event.at + RENAME_SLACK_S
                renames.append(Rename(old_url, new_url, new_title, at, event.leaves_redirect))
        known = await self._database.read(rename.known_urls, site_id, [r.old_url for r in renames])
        renames = [each for each in rename.net_renames(renames) if each.old_url in known]
        if renames:
            await self._members.admit(row, site_id, [each.new_title for each in renames])
            apply = partial(rename.apply, beside=row.site_ids)
            moved = await self._database.write(apply, site_id, renames)
            log.info("wiki_pages_renamed", wiki=row.origin, pages=len(renames), histories=moved)

    async def _follow(self, row: WikiRow, site_id: int, event: WikiEvent) -> bool:
        """Change the part of a site after a rename; return whether the new title belongs to it."""
        scope = self._state.wiki_scope.part(site_id, row.origin)
        part, old, new = Part(site_id, row.wiki_id), event.title, event.target or ""
        reasons = await self._database.read(wiki_member.reasons_of, part, old)
        if scope is None or not (reasons or old.startswith(scope.prefixes)):
            return scope is not None and scope.has(new)
        # A page keeps its categories; its former title is at most a redirect.
        carried = [each for each in reasons if each.reason == MemberReason.CATEGORY]
        given = [Membership(new, MemberReason.CATEGORY, each.via) for each in carried]
        kept = scope.follows_moves or bool(given) or new.startswith(scope.prefixes)
        by_category = reasons and all(each.reason == MemberReason.CATEGORY for each in reasons)
        if scope.follows_moves and not by_category:
            first = next((each.via for each in reasons if each.reason == MemberReason.MOVE), old)
            given += [Membership(new, MemberReason.MOVE, first)] if first != new else []
        if event.leaves_redirect:
            given.append(Membership(old, MemberReason.FORMER, new))
        before = await self._database.read(wiki_member.reasons_of, part, new)
        ended = [
            each for each in reasons if each.reason in (MemberReason.CATEGORY, MemberReason.MOVE)
        ]
        ended += [each for each in before if each.reason == MemberReason.FORMER]
        await self._members.put(row, site_id, given, event.at)
        await self._members.remove(row, site_id, list(map(_membership, ended)))
        if not kept:
            log.info("wiki_page_left", wiki=row.origin, title=old, to=new)
        return kept

    # --- pages and categories --------------------------------------------------------------------

    async def _look(
        self,
        row: WikiRow,
        site_id: int,
        scope: TitleScope,
        asked: _Asked,
        ask: Ask,
    ) -> ApiTrouble | None:
        """Ask for the pages of some events, and let the part of a site follow; return a trouble.

        The questions are those of all sites of the wiki, so that each is sent once.
        """
        redirects: list[str] = []
        entered = [each for each in asked.entered if scope.follows(each.title)]
        own = {each.page_number for each in entered}
        if own:
            pages = await ask_pages(ask, asked.entered_categories, numbers=asked.numbers)
            if isinstance(pages, ApiTrouble):
                return pages
            categories = list(dict.fromkeys(each.title for each in entered))
            pages = [page for page in pages if page.number in own]
            redirects += await self._set_categories(row, site_id, scope, pages, categories)
        if asked.titles:
            pages = await ask_pages(ask, asked.followed, titles=list(asked.titles))
            if isinstance(pages, ApiTrouble):
                return pages
            followed = sorted(scope.followed or ())
            # Its part and its history follow the rename.
            pages = [page for page in pages if not asked.was_moved(page)]
            redirects += await self._set_pages(row, site_id, scope, pages, followed)
        if redirects:
            found = await resolve_titles(ask, redirects)
            if isinstance(found, ApiTrouble):
                return found
            await self._set_listed(row, site_id, found)
            await self._members.set_redirects(row, site_id, found, self._clock.now())
        return None

    async def _set_categories(
        self,
        row: WikiRow,
        site_id: int,
        scope: TitleScope,
        pages: Sequence[MemberPage],
        categories: Sequence[str],
    ) -> list[str]:
        """Store which pages are in which categories; return those of them that redirect."""
        part, named = Part(site_id, row.wiki_id), frozenset(categories)
        is_in: list[Membership] = []
        is_out: list[Membership] = []
        for page in pages:
            if page.number is None:
                continue
            space = scope.rules.namespace_of(page.title)
            if space == CATEGORY_SPACE:
                self._list_again()  # pages below it enter or leave, too
                continue
            if space in TEMPLATE_SPACES:
                self._doubt(row.wiki_id)  # so do the pages that use it
            now_in = page.categories & named
            is_in += [Membership(page.title, MemberReason.CATEGORY, each) for each in now_in]
            reasons = await self._database.read(wiki_member.reasons_of, part, page.title)
            is_out += [
                _membership(each)
                for each in reasons
                if each.reason == MemberReason.CATEGORY and each.via in named - now_in
            ]
        await self._members.put(row, site_id, is_in, self._clock.now())
        await self._members.remove(row, site_id, is_out)
        entered = {each.title for each in is_in}
        discussed = [page.title for page in pages if page.has_talk and page.title in entered]
        await self._members.admit_talk(row, site_id, discussed)
        return [page.title for page in pages if page.is_redirect and page.categories & named]

    async def _set_pages(
        self,
        row: WikiRow,
        site_id: int,
        scope: TitleScope,
        pages: Sequence[MemberPage],
        followed: Sequence[str],
    ) -> list[str]:
        """Store what became of pages; return the redirects of the part, former and present."""
        redirects = await self._set_categories(row, site_id, scope, pages, followed)
        part, now = Part(site_id, row.wiki_id), self._clock.now()
        for page in pages:
            title = page.title
            prefix = next((each for each in scope.prefixes if title.startswith(each)), None)
            if page.number is None:
                reasons = await self._database.read(wiki_member.reasons_of, part, title)
                ended = [each for each in reasons if each.reason not in _OF_MISSING]
                await self._members.remove(row, site_id, list(map(_membership, ended)))
                missing = TitleAnswer(title, TitleOutcome.MISSING)
                await self._set_listed(row, site_id, {title: missing})
                redirects += [title] if title in scope.redirects else []
                continue
            if prefix is not None:
                members = [Membership(title, MemberReason.PREFIX, prefix)]
                await self._members.put(row, site_id, members, now)
            elif scope.has(title):
                await self._members.admit(row, site_id, [title])
            if page.has_talk and (prefix is not None or scope.has(title)):
                await self._members.admit_talk(row, site_id, [title])
            if title in scope.redirects or (page.is_redirect and scope.has(title)):
                redirects.append(title)
            else:
                answer = TitleAnswer(title, TitleOutcome.PAGE)
                await self._set_listed(row, site_id, {title: answer})
        return list(dict.fromkeys(redirects))

    async def _set_listed(self, row: WikiRow, site_id: int, found: dict[str, TitleAnswer]) -> None:
        """Store what became of titles that the operator listed."""
        part = Part(site_id, row.wiki_id)
        listed = await self._database.read(wiki_listed.by_title, part, list(found))
        if listed:
            await self._members.store_listed(row, site_id, listed, found, self._clock.now())


def _is_doubtful(event: WikiEvent, parts: Iterable[TitleScope]) -> bool:
    """Whether pages may enter or leave a category some time after an event, without a report.

    The pages that use a template do, and a page that was imported, restored, or edited in a wiki
    that does not report who enters a category.
    """
    return event.kind != "category" and any(
        part.has_categories
        and (
            part.rules.namespace_of(event.title) in TEMPLATE_SPACES
            or (event.page_number is None and not part.has(event.title))
        )
        for part in parts
    )


def _is_asked(event: WikiEvent, parts: Iterable[TitleScope]) -> bool:
    """Whether the wiki has to be asked about an event; templates concern only other pages."""
    return event.kind != "page" or any(
        part.has(event.title) or part.rules.namespace_of(event.title) not in TEMPLATE_SPACES
        for part in parts
    )


def _membership(row: MemberRow) -> Membership:
    return Membership(row.title, MemberReason(row.reason), row.via)


def _retry_s(trouble: ApiTrouble, failures: int) -> float:
    """Return the pause before the next attempt, seconds: a closed API is left alone for longer."""
    pause_s = max(trouble.pause_s(failures), RETRY_S)
    return pause_s if trouble.trouble in _CLOSED else min(pause_s, MAX_RETRY_S)
