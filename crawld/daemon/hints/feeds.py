"""Feeds and listing pages as hint sources: small documents, fetched conditionally and read whole.

A feed reports each new entry once (`FeedWindow`). A listing is a page of links: new links are
admitted to the frontier, entries with a date beside them (directory listings) are reported like
those of a sitemap, and the listing itself, if it is a known page, changes with its Last-Modified.

The state of the last poll is the source's cursor, as JSON. The poll interval follows how often the
document changed, within the share of requests that polls may use.
"""

from __future__ import annotations

import base64
import json
from array import array
from dataclasses import asdict, dataclass, replace
from typing import Final

import structlog
import xxhash

from crawld.core.units import DAY_S
from crawld.core.url import split_url
from crawld.daemon.analyser import FEED_WEIGHT
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.hints.documents import Document, DocumentFetcher, DocumentRequest
from crawld.daemon.hints.gap import reconcile_gap
from crawld.daemon.hints.sitemaps import dated_hint
from crawld.daemon.hints.source import CursorUpdates, Hint, Poll, PollTrouble
from crawld.sources.feed import MAX_FEED_BYTES, FeedError, FeedWindow, read_feed
from crawld.sources.listed_page import ListedPage
from crawld.sources.listing import Listing, read_listing
from crawld.store.changes.hint_source import SourceRow

log = structlog.get_logger(__name__)

FIRST_EVERY_S: Final = 900.0
LEAST_EVERY_S, MOST_EVERY_S = 60.0, DAY_S
"""Poll interval of a document: the first, the shortest and the longest."""


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """The state of a document at the last poll, stored as the cursor.

    Attributes:
        at: time of the poll, Unix seconds; None before the first.
        every_s: pause before the next poll.
        digest: hash of the body, hexadecimal.
        keys: hashes of the entries of a feed, 8 bytes each, in base64.
        gaps: how often entries had left the feed before a poll saw them.
    """

    at: float | None = None
    every_s: float = FIRST_EVERY_S
    etag: str | None = None
    last_modified: str | None = None
    digest: str = ""
    keys: str = ""
    gaps: int = 0

    @classmethod
    def from_json(cls, cursor: str | None) -> DocumentCursor:
        """Parse the stored form; one of another version counts as none."""
        if cursor is None:
            return cls()
        try:
            return cls(**json.loads(cursor))
        except (ValueError, TypeError):
            return cls()

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self))

    def window(self) -> FeedWindow:
        """Return the entries of a feed at the last poll."""
        return FeedWindow(array("Q", base64.b64decode(self.keys)))

    def after(self, document: Document, *, moved: bool) -> DocumentCursor:
        """Return the next cursor; the interval halves after a change, else grows by half."""
        every_s = self.every_s / 2.0 if moved else self.every_s * 1.5
        return replace(
            self,
            at=document.at,
            every_s=min(max(every_s, LEAST_EVERY_S), MOST_EVERY_S),
            etag=document.etag,
            last_modified=document.last_modified,
            digest=self.digest if document.body is None else _digest(document.body),
        )


def _digest(body: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(body)


class _DocumentSource(BackgroundWork):
    """A document that is polled with conditional requests."""

    is_free = False

    def __init__(self, context: CrawlContext, row: SourceRow, documents: DocumentFetcher) -> None:
        super().__init__(context)
        self.row = row
        self.polite_host = split_url(row.url).host
        self._documents = documents

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether a poll is due at once after a start: never, the files have their own times."""
        return False

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Fetch the document and read it if it changed."""
        before = DocumentCursor.from_json(row.cursor)
        wanted = DocumentRequest(
            row.site_id, row.url, MAX_FEED_BYTES, before.etag, before.last_modified
        )
        document = await self._documents.get(wanted)
        if isinstance(document, PollTrouble):
            return document
        if document.body is None or _digest(document.body) == before.digest:
            after = before.after(document, moved=False)
            return Poll(
                at=document.at,
                cursor=after.to_json(),
                requests=document.requests,
                wait_s=after.every_s,
            )
        return await self._read(before, document)

    async def _read(self, before: DocumentCursor, document: Document) -> Poll | PollTrouble:
        raise NotImplementedError

    def _own_hints(self, entries: list[ListedPage], now: float) -> list[Hint]:
        hints = [dated_hint(entry, now) for entry in entries]
        return [hint for hint in hints if hint and split_url(hint.url).host == self.row.host]


class FeedSource(_DocumentSource):
    """A feed."""

    async def _read(self, before: DocumentCursor, document: Document) -> Poll | PollTrouble:
        assert document.body is not None
        try:
            feed = await self._analyser.read(
                read_feed,
                document.body,
                document.url,
                url=document.url,
                bodies=(document.body,),
                weight=FEED_WEIGHT,
            )
        except FeedError as error:
            return PollTrouble("no_feed", str(error), requests=document.requests)
        window = before.window()
        news = window.new_entries(feed, document.at, before.at)
        if window.gap:
            log.warning("feed_gap", url=self.row.url, entries=len(feed.entries))
        after = replace(
            before.after(document, moved=bool(news)),
            keys=base64.b64encode(array("Q", sorted(window.keys)).tobytes()).decode(),
            gaps=before.gaps + window.gap,
        )
        hints = self._own_hints(news, document.at)
        newest_at = max((hint.first_at for hint in hints), default=None)
        return Poll(
            at=document.at,
            hints=hints,
            cursor=after.to_json(),
            # After a gap, entries between the two windows are unknown.
            told_until=None if window.gap else newest_at,
            requests=document.requests,
            wait_s=max(after.every_s, feed.ttl_s or 0.0),
            found_urls=[entry.url for entry in news],
            cursor_updates=await self._gap_updates(window, before, document),
        )

    async def _gap_updates(
        self, window: FeedWindow, before: DocumentCursor, document: Document
    ) -> CursorUpdates:
        if not window.gap or before.at is None:
            return ()
        return await reconcile_gap(self._database, [self.row], before.at, document.at)


class ListingSource(_DocumentSource):
    """A page of links."""

    async def _read(self, before: DocumentCursor, document: Document) -> Poll | PollTrouble:
        assert document.body is not None
        listing: Listing = await self._analyser.read(
            read_listing,
            document.body,
            document.url,
            document.last_modified,
            url=document.url,
            bodies=(document.body,),
        )
        hints = self._own_hints([*listing.entries, listing.own_page], document.at)
        after = before.after(document, moved=True)
        return Poll(
            at=document.at,
            hints=hints,
            cursor=after.to_json(),
            requests=document.requests,
            wait_s=after.every_s,
            found_urls=[entry.url for entry in listing.entries],
        )
