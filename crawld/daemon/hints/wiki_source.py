"""Common parts of MediaWiki hint sources: API requests and the clock skew.

Times of the wiki are converted to our clock with the `curtimestamp` of each response. A change may
have happened up to `SLACK_S` after its time: a page rendered at that moment may still show the old
text, so it is visited again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crawld.core.url import split_url, url_hash
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import Api, ApiClient
from crawld.daemon.hints.source import HELD, PollTrouble
from crawld.sources.mediawiki_api import ApiResponse, Parameters, TroubleKind
from crawld.sources.mediawiki_history import WikiRevision
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import hint_source, wiki_probe
from crawld.store.changes.change import Change
from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_probe import UrlChange
from crawld.store.engine.database import Database

SLACK_S: Final = 1.0
"""Longest time to render a page: the view may show the text before an edit."""

SKEW_LEAST_S: Final = 2.0
"""A smaller skew is indistinguishable from rounding and network delay."""

LOOK_S: Final = 10.0
"""Pause of a source with nothing to ask for; checking again costs no request."""


@dataclass(frozen=True, slots=True)
class Wiki:
    """A wiki with its API and its hint sources.

    Attributes:
        facts: the wiki's own description (siteinfo).
        sources: source rows by kind.
        scoped: whether some site covers only some titles, which may change.
    """

    row: WikiRow
    facts: WikiFacts
    api: Api
    sources: dict[str, SourceRow]
    scoped: bool = False


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """The wiki's time and ours at one response, Unix seconds."""

    served_at: float | None
    now: float

    def span(self, at: float) -> tuple[float, float]:
        """Return the earliest and the latest time of a change, by our clock."""
        skew_s = self.served_at - self.now if self.served_at is not None else 0.0
        first_at = min(at - skew_s if abs(skew_s) > SKEW_LEAST_S else at, self.now)
        return first_at, min(first_at + 1.0 + SLACK_S, self.now)


def change_of_revision(revision: WikiRevision) -> Change:
    """Return a revision as a change in the history of its page."""
    return Change(
        revision.at,
        revision.revision_id,
        "revision",
        revision.kind,
        revision.size_bytes,
        revision.digest,
    )


class WikiSource:
    """Base of the sources of a wiki."""

    kind: str
    is_free = False

    def __init__(self, known: Wiki, database: Database, client: ApiClient, clock: Clock) -> None:
        self.wiki = known
        self.database = database
        self.client = client
        self.clock = clock

    @property
    def row(self) -> SourceRow:
        """The source row, as read when the source was found."""
        return self.wiki.sources[self.kind]

    @property
    def polite_host(self) -> str:
        """The host of the API."""
        return split_url(self.wiki.api.url).host

    async def ask(
        self, query: Parameters, row: SourceRow, *, takes_along: bool = False
    ) -> ApiResponse | PollTrouble:
        """Send one API request; the budget has already allowed it.

        Args:
            takes_along: whether it takes a question along that waits.
        """
        api, now = self.wiki.api, self.clock.now()
        due_for_s = 0.0 if row.next_poll_at is None else max(now - row.next_poll_at, 0.0)
        response = await self.client.ask(
            api, query, due=True, takes_along=takes_along, due_for_s=due_for_s
        )
        if isinstance(response, ApiResponse):
            return response
        if response.trouble is TroubleKind.HELD:
            return PollTrouble(HELD, response.detail, response.retry_after_s, 0)
        requests = int(response.trouble is not TroubleKind.FORBIDDEN)
        pause_s = response.pause_s(row.trouble_count + 1)
        return PollTrouble(
            str(response.trouble), response.detail, pause_s, requests, response.limit
        )

    def change_of(
        self, title: str, number: int | None, span: tuple[float, float], *, of_text: bool
    ) -> UrlChange:
        """Return a change of a title for the store.

        Args:
            number: the wiki's page id.
            of_text: whether redirects to the page still lead there.
        """
        url = self.wiki.facts.titles.url_of(title, self.wiki.row.origin)
        return UrlChange(url_hash(url) if url else None, number, *span, of_text)

    async def affected_pages(self, changes: Sequence[UrlChange]) -> list[PageHint]:
        """Return hints for the known pages that changes affect."""
        row = self.wiki.row
        return await self.database.read(
            wiki_probe.affected_pages, row.wiki_id, row.host_id, changes
        )

    async def sibling(self, kind: str) -> tuple[int, str | None]:
        """Return id and stored cursor of another source of the wiki."""
        number = self.wiki.sources[kind].hint_source_id
        return number, (await self.database.read(hint_source.get, number)).cursor
