"""MediaWikis as hint sources: recent changes, probes of many pages, users of templates.

Three sources a wiki, all asked through its API inside its host's politeness, where the site says
`api = true`:

- `recent_changes` tells titles that were edited, moved, deleted, restored or imported;
- `probe` asks for the newest revisions of the pages held, 50 a request, round after round: it finds
  what the other never told, and after a gap all of it. Where all pages fit into one request it is
  asked alone, since it tells more for the same price;
- `fan_out` tells pages that are only possibly stale: they include a template that was edited, or
  the wiki made them anew without a new revision. It is called by the other two.

Instants are told by the wiki's clock, brought to ours by its own `curtimestamp`. A change is taken
to have happened up to `SLACK_S` later than told: the copy of a page that was being made at that
moment is asked for once more rather than believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import apsw
import structlog

from crawld.core.page import Outcome
from crawld.core.url import parse, url_hash
from crawld.daemon.apiclient import Api, ApiClient
from crawld.daemon.clock import Clock
from crawld.daemon.crawl import Crawl
from crawld.daemon.hints.source import HELD, Poll, PollTrouble, Source
from crawld.sources.mediawiki_api import ApiAnswer, Parameters, Trouble, batch
from crawld.sources.mediawiki_changes import (
    TEMPLATE_SPACES,
    Changed,
    Cursor,
    Place,
    Wanted,
    changes_query,
    oldest_query,
    read_changes,
    read_oldest,
    read_users,
    users_query,
)
from crawld.sources.mediawiki_history import ShownPage, read_titles, titles_query
from crawld.sources.mediawiki_site import WikiFacts, revision_in
from crawld.store import hint_source, version, wiki, wiki_probe
from crawld.store.database import Database
from crawld.store.hint import OfPage
from crawld.store.hint_source import SourceRow
from crawld.store.wiki import WikiRow
from crawld.store.wiki_probe import Concern, ProbePage, Said

log = structlog.get_logger(__name__)

SLACK_S: Final = 1.0
"""Longest time that a page view is being made: it may show what was there before an edit."""

SKEW_LEAST_S: Final = 2.0
"""Smaller differences of clocks are not told apart from whole seconds and the way of the answer."""

CLOSE_S: Final = 120.0
"""A visit so soon after an edit may have got what was there before: its copy is asked which."""

ALONE_PAGES: Final = 50
"""So many pages fit into one request: probing them costs what recent changes would."""

PROBE_PATIENCE: Final = 10.0
"""Beside recent changes a probe is asked for so many times less often."""

GAP_PATIENCE: Final = 2.0
"""The same while it makes good a gap."""

LOOK_S: Final = 10.0
"""Pause of a source that has nothing to ask for; looking again costs no request."""

IDLE_S: Final = 86_400.0
"""Pause of a source that is called by others."""

MAX_TEMPLATES: Final = 1_000
"""Templates that wait; a wiki whose bots edit more of them is probed sooner than through this."""

MAX_PARTS: Final = 10
"""Requests spent on one template: 5,000 pages; of one on more pages the probe tells."""

MAX_TOUCHED: Final = 20_000

_GONE = (Outcome.GONE, Outcome.SOFT_GONE)


@dataclass(frozen=True, slots=True)
class Wiki:
    """A wiki and whom to ask.

    Attributes:
        row: the wiki.
        facts: what it says of itself.
        api: its API.
        sources: its sources by kind.
        scoped: whether the site is a part of it, which titles enter and leave.
    """

    row: WikiRow
    facts: WikiFacts
    api: Api
    sources: dict[str, SourceRow]
    scoped: bool = False


class WikiFinder:
    """Knows the wikis of the sites that permit their APIs."""

    kinds: Final = ("recent_changes", "probe", "fan_out")

    def __init__(self, crawl: Crawl, database: Database, client: ApiClient, clock: Clock) -> None:
        self._crawl = crawl
        self._database = database
        self._client = client
        self._clock = clock

    async def find(self) -> Sequence[Source]:
        """Return the sources of every wiki that said what it is."""
        found: list[Source] = []
        for row in await self._database.read(wiki.list_wikis):
            site = self._crawl.sites.get(row.site_id)
            if site is None or not site.config.api or row.api_url is None or row.facts is None:
                continue
            sources = {
                kind: await self._database.write(
                    hint_source.ensure,
                    *(row.site_id, row.host_id, kind, row.api_url, self._clock.now()),
                )
                for kind in self.kinds
            }
            api = Api(row.site_id, row.api_url)
            scoped = site.config.wiki_scoped
            known = Wiki(row, WikiFacts.from_json(row.facts), api, sources, scoped)
            found += (
                source(known, self._database, self._client, self._clock)
                for source in (RecentChanges, Probe, FanOut)
            )
        return found


class _WikiSource:
    """What the sources of a wiki have in common: how they ask."""

    kind: str

    def __init__(self, known: Wiki, database: Database, client: ApiClient, clock: Clock) -> None:
        self._wiki = known
        self._database = database
        self._client = client
        self._clock = clock

    @property
    def row(self) -> SourceRow:
        """Its row as it was found."""
        return self._wiki.sources[self.kind]

    @property
    def polite_host(self) -> str:
        """The host of the API."""
        return parse(self._wiki.api.url).host

    async def _ask(self, query: Parameters, row: SourceRow) -> ApiAnswer | PollTrouble:
        answer = await self._client.ask(self._wiki.api, query, due=True)
        if isinstance(answer, ApiAnswer):
            return answer
        if answer.trouble is Trouble.HELD:
            return PollTrouble(HELD, answer.detail, answer.retry_after_s, 0)
        requests = int(answer.trouble is not Trouble.FORBIDDEN)
        pause_s = answer.pause_s(row.trouble_count + 1)
        return PollTrouble(str(answer.trouble), answer.detail, pause_s, requests)

    def _concern(self, title: str, number: int | None, span: tuple[float, float]) -> Concern:
        url = self._wiki.facts.titles.url_of(title, self._wiki.row.origin)
        return Concern(url_hash(url) if url else None, number, *span)

    async def _concerned(self, changes: Sequence[Concern]) -> list[OfPage]:
        row = self._wiki.row
        return await self._database.read(wiki_probe.concerned, row.wiki_id, row.host_id, changes)

    async def _beside(self, kind: str) -> tuple[int, str | None]:
        """Return number and cursor of another source of the wiki, as the file has it."""
        number = self._wiki.sources[kind].hint_source_id
        return number, (await self._database.read(hint_source.get, number)).cursor

    async def _fits_one_request(self) -> bool:
        most = ALONE_PAGES + 1
        return await self._database.read(wiki_probe.count, self._wiki.row.wiki_id, most=most) < most


class RecentChanges(_WikiSource):
    """What was edited, moved, deleted, restored, imported."""

    kind = "recent_changes"

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Ask for what is new since the last answer."""
        cursor, asked_at = Cursor.from_json(row.cursor), self._clock.now()
        if await self._fits_one_request():
            return Poll(at=asked_at, cursor=row.cursor, requests=0, wait_s=LOOK_S)
        in_doubt = cursor.doubt > 0.0 and cursor.part is None
        query = oldest_query() if in_doubt else changes_query(cursor, asked_at)
        answer = await self._ask(query, row)
        if isinstance(answer, PollTrouble):
            if answer.trouble == Trouble.BAD_CURSOR:
                whole = replace(cursor, part=None).to_json()
                return Poll(at=self._clock.now(), cursor=whole)
            return answer
        now = self._clock.now()
        clocks = _Clocks(answer.served_at, now)
        read = read_oldest(answer, cursor) if in_doubt else read_changes(answer, cursor, now)
        if read.unusable:
            log.warning("unusable_changes", api=self._wiki.api.url, count=read.unusable)
        handed_on = await self._hand_on(read.changed, gap=read.gap, now=now)
        more = read.cursor.part is not None or read.cursor.doubt > 0.0
        changes = [
            self._concern(each.title, each.number, clocks.span(each.at)) for each in read.changed
        ]
        return Poll(
            at=now,
            pages=await self._concerned(changes),
            cursor=read.cursor.to_json(),
            told_until=None if more else asked_at - 1.0,
            more=more,
            handed_on=handed_on,
            found=self._met(read.changed),
        )

    def _met(self, changed: Sequence[Changed]) -> list[str]:
        """Return the addresses of titles that may have come into the part that the site is."""
        if not self._wiki.scoped:
            return []
        titles, origin = self._wiki.facts.titles, self._wiki.row.origin
        found = [titles.url_of(each.title, origin) for each in changed]
        return [url for url in found if url]

    async def _hand_on(
        self, changed: Sequence[Changed], *, gap: bool, now: float
    ) -> list[tuple[int, str | None]]:
        """Return what other sources are to do: ask for the users of templates, make good a gap."""
        handed_on: list[tuple[int, str | None]] = []
        templates = {each.title: now for each in changed if each.space in TEMPLATE_SPACES}
        if templates:
            number, text = await self._beside("fan_out")
            wanted = Wanted.from_json(text)
            queue = tuple((dict(wanted.templates) | templates).items())[:MAX_TEMPLATES]
            handed_on.append((number, replace(wanted, templates=queue).to_json()))
        if gap:
            log.warning("changes_gap", api=self._wiki.api.url)
            number, text = await self._beside("probe")
            place = replace(Place.from_json(text), after=0, began_at=0.0, urgent=True)
            handed_on.append((number, place.to_json()))
        return handed_on


class Probe(_WikiSource):
    """The newest revisions of the pages held, many a request."""

    kind = "probe"

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Ask for the next pages of the round."""
        place, asked_at = Place.from_json(row.cursor), self._clock.now()
        if not place.after:
            place = replace(place, began_at=asked_at)
        pages = await self._database.read(
            wiki_probe.following, self._wiki.row.wiki_id, place.after, limit=place.titles
        )
        if not pages:
            return self._round_over(place, asked_at)
        titles = batch(list(dict.fromkeys(page.title for page in pages)), place.titles)
        last = len(titles) == len({page.title for page in pages}) and len(pages) < place.titles
        pages = [page for page in pages if page.title in titles]
        answer = await self._ask({**titles_query(titles), "curtimestamp": 1}, row)
        if isinstance(answer, PollTrouble):
            return self._fewer(answer, place, len(titles))
        now, shown = self._clock.now(), read_titles(answer, titles)
        clocks = _Clocks(answer.served_at, now)
        known = [page for page in pages if page.title in shown and not shown[page.title].refused]
        close = [page for page in known if _is_close(page, shown[page.title], clocks)]
        copies = await self._database.read(_revisions, close) if close else {}
        findings = [
            _found(page, shown[page.title], clocks, copies.get(page.page_id)) for page in known
        ]
        alone = last and place.began_at == asked_at
        after, urgent = (0, False) if last else (pages[-1].page_id, place.urgent)
        return Poll(
            at=now,
            pages=[found.revised for found in findings if found.revised],
            cursor=replace(place, after=after, urgent=urgent).to_json(),
            told_until=place.began_at - 1.0 if last else None,
            patience=1.0 if alone else GAP_PATIENCE if place.urgent else PROBE_PATIENCE,
            handed_on=await self._touched([found.touched for found in findings if found.touched]),
            along=partial(_remember, said=[found.said for found in findings]),
        )

    def _round_over(self, place: Place, now: float) -> Poll:
        over = replace(place, after=0, urgent=False).to_json()
        told_until = place.began_at - 1.0 if place.after else None
        return Poll(at=now, cursor=over, requests=0, told_until=told_until, wait_s=LOOK_S)

    def _fewer(self, trouble: PollTrouble, place: Place, titles: int) -> Poll | PollTrouble:
        """Name fewer titles the next time, where so many were the trouble."""
        if trouble.trouble != Trouble.TOO_MANY or titles <= 1:
            return trouble
        fewer = replace(place, titles=max(titles // 2, 1)).to_json()
        return Poll(at=self._clock.now(), cursor=fewer)

    async def _touched(self, pages: Sequence[OfPage]) -> list[tuple[int, str | None]]:
        if not pages:
            return []
        number, text = await self._beside("fan_out")
        wanted = Wanted.from_json(text)
        spans = tuple((page.page_id, page.first_at, page.last_at) for page in pages)
        return [(number, replace(wanted, pages=(wanted.pages + spans)[:MAX_TOUCHED]).to_json())]


class FanOut(_WikiSource):
    """Pages that are possibly stale, since something else was edited."""

    kind = "fan_out"

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Tell what needs no request; else ask who includes the next template."""
        wanted, now = Wanted.from_json(row.cursor), self._clock.now()
        if wanted.pages:
            rest = replace(wanted, pages=())
            pages = [OfPage(*page) for page in wanted.pages]
            wait_s = None if wanted.templates else IDLE_S
            return Poll(at=now, pages=pages, cursor=rest.to_json(), requests=0, wait_s=wait_s)
        if not wanted.templates:
            return Poll(at=now, cursor=row.cursor, requests=0, wait_s=IDLE_S)
        (title, at), *others = wanted.templates
        answer = await self._ask(users_query(title, wanted.part), row)
        if isinstance(answer, PollTrouble):
            if answer.trouble not in (Trouble.BAD_CURSOR, Trouble.BROKEN):
                return answer
            log.warning("template_skipped", title=title, why=answer.trouble)
            return Poll(at=now, cursor=Wanted(tuple(others)).to_json())
        now, asked = self._clock.now(), wanted.asked + 1
        changes = [self._concern(user, None, (at, now)) for user in read_users(answer)]
        more = answer.cursor is not None and asked < MAX_PARTS
        rest = replace(wanted, part=answer.cursor, asked=asked) if more else Wanted(tuple(others))
        return Poll(
            at=now,
            pages=await self._concerned(changes),
            cursor=rest.to_json(),
            wait_s=None if rest.templates else IDLE_S,
        )


@dataclass(frozen=True, slots=True)
class _Finding:
    """What a probe says of one page.

    Attributes:
        said: what the next probe is compared with.
        revised: the page shows another revision, or came, or went.
        touched: the page was made anew without a new revision.
    """

    said: Said
    revised: OfPage | None = None
    touched: OfPage | None = None


def _is_close(page: ProbePage, shown: ShownPage, clocks: _Clocks) -> bool:
    """Whether a page was visited so soon after its newest revision that it may not have it."""
    if not shown.revisions or shown.revisions[0].revision_id == page.revision_id:
        return False
    return 0.0 <= page.last_visit_at - clocks.span(shown.revisions[0].at)[0] <= CLOSE_S


def _revisions(connection: apsw.Connection, pages: Sequence[ProbePage]) -> dict[int, int]:
    """Return which revisions copies show, as far as they say; on a reader's thread."""
    found = {}
    for page in pages:
        body = version.read_body(connection, page.version_id) if page.version_id else None
        if body and (revision_id := revision_in(body)) is not None:
            found[page.page_id] = revision_id
    return found


def _found(
    page: ProbePage, shown: ShownPage, clocks: _Clocks, copied: int | None = None
) -> _Finding:
    """Compare a page with its last visit and with what the probe before said of it.

    Args:
        page: the page.
        shown: what the wiki says of it.
        clocks: of this answer.
        copied: the revision its copy shows, where instants are too close to tell.
    """
    now, newest = clocks.now, shown.revisions[0] if shown.revisions else None
    revision_id = newest.revision_id if newest and shown.number is not None else None
    said = Said(page.page_id, revision_id, shown.touched_at, now)
    since = page.probed_at if page.probed_at is not None else page.last_visit_at
    some_time = OfPage(page.page_id, min(since, now), now)
    if (revision_id is None) != (page.last_outcome in _GONE):
        return _Finding(said, revised=some_time)
    if newest is None or revision_id is None:
        return _Finding(said)
    if copied is not None:
        return _Finding(said, revised=None if copied == revision_id else some_time)
    first_at, last_at = clocks.span(newest.at)
    if page.revision_id is None:
        new = last_at > page.last_visit_at
    else:
        new = revision_id != page.revision_id
    if new:
        # What is older than the probe before, and was not there then, was imported or restored.
        dated = page.probed_at is None or last_at >= page.probed_at
        return _Finding(said, OfPage(page.page_id, first_at, last_at) if dated else some_time)
    if shown.touched_at is None or shown.touched_at == page.touched_at:
        return _Finding(said)
    first_at, last_at = clocks.span(shown.touched_at)
    late = last_at > page.last_visit_at
    return _Finding(said, touched=OfPage(page.page_id, first_at, last_at) if late else None)


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The wiki's clock and ours, at one answer."""

    served_at: float | None
    now: float

    def span(self, at: float) -> tuple[float, float]:
        """Return when a change of the wiki's clock was by ours: at the earliest, at the latest."""
        skew_s = self.served_at - self.now if self.served_at is not None else 0.0
        first_at = min(at - skew_s if abs(skew_s) > SKEW_LEAST_S else at, self.now)
        return first_at, min(first_at + 1.0 + SLACK_S, self.now)


def _remember(connection: apsw.Connection, *, said: Sequence[Said]) -> None:
    wiki_probe.put(connection, said)
