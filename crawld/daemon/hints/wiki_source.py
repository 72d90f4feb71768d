"""What the hint sources of a MediaWiki have in common: whom and how they ask, and the two clocks.

Instants are told by the wiki's clock, brought to ours by its own `curtimestamp`. A change is taken
to have happened up to `SLACK_S` later than told: the copy of a page that was being made at that
moment is asked for once more rather than believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crawld.core.url import parse, url_hash
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api, ApiClient
from crawld.daemon.hints.source import HELD, PollTrouble
from crawld.sources.mediawiki_api import ApiResponse, ApiTroubleKind, Parameters
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import hint_source, wiki_probe
from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_probe import TitleChange
from crawld.store.engine.database import Database

SLACK_S: Final = 1.0
"""Longest time that a page view is being made: it may show what was there before an edit."""

SKEW_LEAST_S: Final = 2.0
"""Smaller differences of clocks are not told apart from whole seconds and the way of the answer."""

ALONE_PAGES: Final = 50
"""So many pages fit into one request: probing them costs what recent changes would."""

LOOK_S: Final = 10.0
"""Pause of a source that has nothing to ask for; looking again costs no request."""


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


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """The wiki's clock and ours, at one answer."""

    served_at: float | None
    now: float

    def span(self, at: float) -> tuple[float, float]:
        """Return when a change of the wiki's clock was by ours: at the earliest, at the latest."""
        skew_s = self.served_at - self.now if self.served_at is not None else 0.0
        first_at = min(at - skew_s if abs(skew_s) > SKEW_LEAST_S else at, self.now)
        return first_at, min(first_at + 1.0 + SLACK_S, self.now)


class WikiSource:
    """What the sources of a wiki have in common: how they ask."""

    kind: str
    is_free = False

    def __init__(self, known: Wiki, database: Database, client: ApiClient, clock: Clock) -> None:
        self.wiki = known
        self.database = database
        self.client = client
        self.clock = clock

    @property
    def row(self) -> SourceRow:
        """Its row as it was found."""
        return self.wiki.sources[self.kind]

    @property
    def polite_host(self) -> str:
        """The host of the API."""
        return parse(self.wiki.api.url).host

    async def ask(self, query: Parameters, row: SourceRow) -> ApiResponse | PollTrouble:
        """Ask the API once, in a turn that the budget gave."""
        answer = await self.client.ask(self.wiki.api, query, due=True)
        if isinstance(answer, ApiResponse):
            return answer
        if answer.trouble is ApiTroubleKind.HELD:
            return PollTrouble(HELD, answer.detail, answer.retry_after_s, 0)
        requests = int(answer.trouble is not ApiTroubleKind.FORBIDDEN)
        pause_s = answer.pause_s(row.trouble_count + 1)
        return PollTrouble(str(answer.trouble), answer.detail, pause_s, requests, answer.limit)

    def change_of(self, title: str, number: int | None, span: tuple[float, float]) -> TitleChange:
        """Return a change of a title as the store takes it.

        Args:
            title: the title.
            number: the wiki's number of the page, None where it is not known.
            span: when it changed.
        """
        url = self.wiki.facts.titles.url_of(title, self.wiki.row.origin)
        return TitleChange(url_hash(url) if url else None, number, *span)

    async def affected_pages(self, changes: Sequence[TitleChange]) -> list[PageHint]:
        """Return the pages held that show something else after changes."""
        row = self.wiki.row
        return await self.database.read(
            wiki_probe.affected_pages, row.wiki_id, row.host_id, changes
        )

    async def sibling(self, kind: str) -> tuple[int, str | None]:
        """Return number and cursor of another source of the wiki, as the file has it."""
        number = self.wiki.sources[kind].hint_source_id
        return number, (await self.database.read(hint_source.get, number)).cursor

    async def fits_one_request(self) -> bool:
        """Whether all pages of the wiki can be asked for at once."""
        most = ALONE_PAGES + 1
        return await self.database.read(wiki_probe.count, self.wiki.row.wiki_id, most=most) < most
