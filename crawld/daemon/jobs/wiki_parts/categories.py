"""The `categories` job: find pages that edited templates put into categories, or took out of them.

A wiki reports who enters a category only for edits of the page itself, and some wikis never do. The
pages that use an edited template change when the wiki's own jobs have rendered them, some seconds
or minutes later. So the sizes of the followed categories are asked for several times after such an
edit, 50 in a request, and only those whose size does not agree with the part are listed. As many
pages may enter as leave: each such request also asks for the newest pages of one category, in turn.

After a start they are asked for once: a kill forgets which edits wait.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import structlog
import trio

from crawld.core.url import split_url
from crawld.daemon.crawl.api_client import ApiClient, api_of
from crawld.daemon.crawl.api_shared import Urgency
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.wiki_parts.asking import SHARED_WAIT_S, Ask, AskOnce, resolve_titles
from crawld.daemon.jobs.wiki_parts.members import PartMembers
from crawld.sources.mediawiki_api import ApiTrouble, batch
from crawld.sources.mediawiki_members import (
    MAX_NAMED,
    MemberReason,
    Membership,
    MemberWalk,
    count_query,
    read_counts,
    read_newest,
)
from crawld.sources.mediawiki_scope import TitleScope
from crawld.store.changes import wiki, wiki_event, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_member import Part

log = structlog.get_logger(__name__)

IDLE_S: Final = 3_600.0
"""Pause without a doubt."""

FIRST_S: Final = 5.0
"""Pause after a start."""

CHECKS_S: Final = (6.0, 14.0, 22.0, 45.0, 120.0)
"""When sizes are asked for after the edit of a template; the wiki's jobs need some time."""

PROMPT_CHECKS: Final = 3
"""How many of them are early: new members are copied in time."""

JOINED_S: Final = 4.0
"""A check does the work of those that are due this soon after it."""

ABOUT: Final = 0.3
"""A late check need not be on time: another that is this part of its pause away will do."""

REST_FACTOR: Final = 8.0
"""Time from the beginning of a check to the next one at least, as a multiple of the turns of its
requests: after one with 100 categories to be listed, 15 minutes at one request a second. How long
the requests wait for a poll that takes them along does not count: they cost no turn then."""

PATIENCE_S: Final = 5.0
"""How long edited pages come before a request that no poll took along."""

LISTING_WAIT_S: Final = 6.0
"""How long the listing of a category that differs waits for a poll that takes it along, while
copies are known to be stale: new members are to be copied in time."""

LISTING_PATIENCE_S: Final = 2.0
"""How long edited pages come before a listing that no poll took along."""

EVENTS_LOOK_S, EVENTS_LOOKS = 0.5, 20
"""How often and for how long a check waits for what the wiki reported until its sizes came: who
enters a category or leaves it is asked for anyway, and until then the sizes differ from the part.
"""

RETRY_S: Final = 30.0
"""Pause before a wiki that did not answer is asked again."""

MAX_CHECKED: Final = 500
"""Followed categories that are checked; of more, the whole part is listed again."""


class _Check(NamedTuple):
    """A check to be made.

    Attributes:
        at: when (trio's clock).
        about_s: how much earlier or later it may be.
    """

    at: float
    about_s: float = 0.0

    def stands_for(self, other: _Check) -> bool:
        """Whether it does the work of another one, too."""
        return other.at - other.about_s <= self.at <= other.at + max(JOINED_S, other.about_s)


class _Sizes(NamedTuple):
    """How many pages categories have, and the newest pages of one of them."""

    counts: dict[str, int]
    newest_of: str
    newest: list[str]


class WikiCategoriesJob(BackgroundWork):
    """The `categories` job."""

    name = "categories"

    def __init__(
        self, context: CrawlContext, client: ApiClient, *, list_again: Callable[[], None]
    ) -> None:
        """Create the job; `list_again` is called when whole parts have to be listed again."""
        super().__init__(context)
        self._client = client
        self._members = PartMembers(context)
        self._list_again = list_again
        self._due: dict[int, list[_Check]] = {}
        self._rested_at = -math.inf
        self._has_run = False
        # Sizes that a wiki keeps may be wrong by some pages; they stay wrong.
        self._excess = defaultdict[tuple[int, str], int](int)
        self._checks = defaultdict[int, int](int)

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        if not self._has_run:
            return FIRST_S
        due_at = min((checks[0].at for checks in self._due.values() if checks), default=math.inf)
        pause_s = max(due_at, self._rested_at) - trio.current_time()
        return min(max(pause_s, 0.0), IDLE_S)

    def doubt(self, wiki_id: int) -> None:
        """Note that the followed categories of a wiki may change in the next minutes."""
        now, due = trio.current_time(), self._due.get(wiki_id, [])
        for place, pause_s in enumerate(CHECKS_S):
            new = _Check(now + pause_s, 0.0 if place < PROMPT_CHECKS else ABOUT * pause_s)
            # An early one is never put off for a later one: edits that do not end would starve it.
            due = [each for each in due if not (each.about_s and new.stands_for(each))]
            if not any(each.stands_for(new) for each in due):
                due.append(new)
        due.sort()
        most = len(CHECKS_S)
        self._due[wiki_id] = [*due[:most], *due[most:][-most:]]

    async def run(self) -> str:
        """Check the wikis that are due."""
        rows = {row.wiki_id: row for row in await self._database.read(wiki.list_wikis)}
        began_at, turns_s = trio.current_time(), 0.0
        if not self._has_run:
            self._has_run = True
            first = [_Check(began_at), _Check(began_at + CHECKS_S[2], ABOUT * CHECKS_S[2])]
            self._due |= dict.fromkeys(rows, first)
        results = []
        for wiki_id, checks in list(self._due.items()):
            now = trio.current_time()
            if not checks or checks[0].at > now or now < self._rested_at:
                continue
            self._due[wiki_id] = [
                each for each in checks if each.at > now + max(JOINED_S, each.about_s)
            ]
            row = rows.get(wiki_id)
            if row is None:
                continue
            result, requests = await self._check(row)
            turns_s += requests * self._delay_s(row)
            if isinstance(result, ApiTrouble):
                pause_s = max(result.pause_s(1), RETRY_S)
                self._due[wiki_id] = sorted([*self._due[wiki_id], _Check(now + pause_s)])
                result = f"{row.origin}: {result.trouble}: {result.detail}"
            results.append(result)
        if results:
            self._rested_at = began_at + REST_FACTOR * turns_s
        return "; ".join(each for each in results if each) or "nothing to check"

    async def progress(self) -> dict[str, int]:
        """Return how many checks wait."""
        return {"checks": sum(map(len, self._due.values()))}

    def _delay_s(self, row: WikiRow) -> float:
        host = self._state.hosts.get(split_url(f"{row.origin}/").host)
        return 0.0 if host is None else self._state.rates.turn_every_s(host)

    async def _check(self, row: WikiRow) -> tuple[str | ApiTrouble, int]:
        """Compare the categories that sites of a wiki follow, and list those that differ.

        Return a summary or a trouble, and the number of requests.
        """
        parts = {
            site_id: scope
            for site_id, scope in self._state.wiki_scope.parts_of(row).items()
            if scope.scoped and scope.has_categories and scope.followed is not None
        }
        api = api_of(row, self._state.sites)
        if not parts or api is None:
            return "", 0
        followed = sorted(frozenset[str]().union(*(part.followed or () for part in parts.values())))
        if len(followed) > MAX_CHECKED:
            self._list_again()
            return f"{row.origin}: {len(followed)} categories", 0
        at_once = partial(self._client.ask, api, due=True, urgency=Urgency.CAUSED)
        # Sizes are asked for often and agree as a rule.
        sizing = AskOnce(partial(at_once, patience_s=PATIENCE_S, waits_s=SHARED_WAIT_S))
        listing = AskOnce(partial(at_once, patience_s=LISTING_PATIENCE_S, waits_s=LISTING_WAIT_S))
        sizes = await _ask_sizes(sizing, followed, self._checks[row.wiki_id])
        if isinstance(sizes, ApiTrouble):
            return sizes, sizing.sent
        self._checks[row.wiki_id] += 1
        await self._wait_for_events(row)
        counts, differing = sizes.counts, await self._differing(row, parts, sizes)
        for category in differing:
            trouble = await self._list(row, parts, category, counts[category], listing)
            if trouble is not None:
                return trouble, sizing.sent + listing.sent
        await self._members.refresh()
        summary = f"{row.origin}: {len(differing)} of {len(followed)} categories listed"
        return summary, sizing.sent + listing.sent

    async def _wait_for_events(self, row: WikiRow) -> None:
        """Wait until the events that the wiki reported so far are applied, but not for long."""
        for _ in range(EVENTS_LOOKS):
            if not await self._database.read(wiki_event.count, row.wiki_id):
                return
            await trio.sleep(EVENTS_LOOK_S)

    async def _differing(
        self, row: WikiRow, parts: Mapping[int, TitleScope], sizes: _Sizes
    ) -> list[str]:
        found = set[str]()
        for site_id, scope in parts.items():
            part, followed = Part(site_id, row.wiki_id), scope.followed or frozenset()
            held = await self._database.read(wiki_member.count_by_category, part)
            for category in followed:
                excess = sizes.counts[category] - held.get(category, 0)
                if excess != self._excess[row.wiki_id, category]:
                    found.add(category)
            if sizes.newest_of in followed:
                unknown = await self._database.read(
                    wiki_member.without_category, part, sizes.newest_of, sizes.newest
                )
                found.update([sizes.newest_of] if unknown else [])
        return sorted(found)

    async def _list(
        self,
        row: WikiRow,
        parts: Mapping[int, TitleScope],
        category: str,
        count: int,
        ask: Ask,
    ) -> ApiTrouble | None:
        """List a category to its end; let the parts of the sites that follow it agree with it."""
        walk = MemberWalk(((category, 1),), frozenset({category}))
        members: list[Membership] = []
        redirects: list[str] = []
        discussed: list[str] = []
        rules = next(iter(parts.values())).rules
        asked_at = self._clock.now()
        while not walk.is_done and walk.subject == category:
            response = await ask(walk.query(rules))
            if isinstance(response, ApiTrouble):
                return response
            found, walk = walk.read(response)
            members += found.members
            redirects += found.redirects
            discussed += found.discussed
        self._excess[row.wiki_id, category] = count - len(members)
        below = walk.seen - {category}
        for site_id, scope in parts.items():
            if scope.followed is None or category not in scope.followed:
                continue
            if not below <= scope.followed:
                self._list_again()
            await self._set(row, site_id, category, members, asked_at)
            await self._members.admit_talk(row, site_id, discussed)
            new = [title for title in redirects if title not in scope.redirects]
            if new:
                answers = await resolve_titles(ask, new)
                if isinstance(answers, ApiTrouble):
                    return answers
                await self._members.set_redirects(row, site_id, answers, self._clock.now())
        log.info("wiki_category_listed", wiki=row.origin, category=category, pages=len(members))
        return None

    async def _set(
        self,
        row: WikiRow,
        site_id: int,
        category: str,
        members: Sequence[Membership],
        asked_at: float,
    ) -> None:
        part, named = Part(site_id, row.wiki_id), {member.title for member in members}
        of_part = partial(wiki_member.list_by_reason, part=part, reason=MemberReason.CATEGORY)
        by_category = await self._database.read(of_part)
        known = {each.title for each in by_category if each.via == category}
        # An event that was applied meanwhile may be newer than the list.
        by_category = await self._database.read(partial(of_part, before=asked_at))
        older = {each.title for each in by_category if each.via == category}
        fresh = [member for member in members if member.title not in known]
        await self._members.put(row, site_id, fresh, self._clock.now())
        ended = [Membership(title, MemberReason.CATEGORY, category) for title in older - named]
        await self._members.remove(row, site_id, ended)


async def _ask_sizes(ask: Ask, categories: Sequence[str], turn: int) -> _Sizes | ApiTrouble:
    """Ask for the sizes of categories, and for the newest pages of the one whose turn it is."""
    newest_of = categories[turn % len(categories)] if categories else ""
    found: dict[str, int] = {}
    newest: list[str] = []
    left = list(categories)
    while left:
        some = batch(left, MAX_NAMED)
        left = left[len(some) :]
        response = await ask(count_query(some, newest_of if newest_of in some else None))
        if isinstance(response, ApiTrouble):
            return response
        found |= read_counts(response, some)
        newest += read_newest(response)
    return _Sizes(found, newest_of, newest)
