"""Feeds and listing pages as hint sources: small documents, asked for on condition and read whole.

A feed tells once of each entry (`FeedWindow`). A listing is a page of links that moves when what it
lists does: its links are let in where they are new; entries with a date beside them, as servers
write directories, are told like those of a sitemap; and the listing itself, if it is held, changed
when its Last-Modified says so.

What there was at the last look is the source's cursor, as JSON. How often a document is asked for
follows from how often it had moved, within the share of the host's turns that polls may take.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import structlog
import xxhash

from crawld.core.url import parse
from crawld.daemon.hints.documents import Document, DocumentFetcher, DocumentRequest
from crawld.daemon.hints.gap import reconcile_gap
from crawld.daemon.hints.sitemaps import dated_hint
from crawld.daemon.hints.source import Hint, Poll, PollTrouble
from crawld.sources.feed import MAX_FEED_BYTES, FeedError, FeedWindow, read_feed
from crawld.sources.listed_page import ListedPage
from crawld.sources.listing import Listing, read_listing
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database
from crawld.workers import Workers

log = structlog.get_logger(__name__)

FIRST_EVERY_S: Final = 900.0
LEAST_EVERY_S, MOST_EVERY_S = 60.0, 86_400.0
"""Pause before a document is asked for again: at first, at least and at most."""


@dataclass(frozen=True, slots=True)
class DocumentCursor:
    """What there was at the last look, as it is kept.

    Attributes:
        at: Unix seconds, None before the first.
        every_s: pause before the next.
        etag, last_modified: validators.
        digest: of the body, in hexadecimal.
        keys: hashes of the entries of a feed, 8 bytes each in base64.
        gaps: how often a feed had moved on by more than it holds.
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
        """Return a look from its stored form; one of another version counts as none."""
        if cursor is None:
            return cls()
        try:
            return cls(**json.loads(cursor))
        except (ValueError, TypeError):
            return cls()

    def cursor(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self))

    def window(self) -> FeedWindow:
        """Return the entries a feed held."""
        return FeedWindow(array("Q", base64.b64decode(self.keys)))

    def after(self, said: Document, *, moved: bool) -> DocumentCursor:
        """Return the look that an answer was."""
        every_s = self.every_s / 2.0 if moved else self.every_s * 1.5
        return replace(
            self,
            at=said.at,
            every_s=min(max(every_s, LEAST_EVERY_S), MOST_EVERY_S),
            etag=said.etag,
            last_modified=said.last_modified,
            digest=self.digest if said.body is None else _digest(said.body),
        )


def _digest(body: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(body)


class _DocumentSource:
    """A document that is asked for on condition."""

    is_free = False

    def __init__(self, row: SourceRow, documents: DocumentFetcher, *, workers: Workers) -> None:
        self.row = row
        self.polite_host = parse(row.url).host
        self._documents = documents
        self._workers = workers

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Ask for the document, and read it if it is not the one read before."""
        look = DocumentCursor.from_json(row.cursor)
        wanted = DocumentRequest(
            row.site_id, row.url, MAX_FEED_BYTES, look.etag, look.last_modified
        )
        said = await self._documents.get(wanted)
        if isinstance(said, PollTrouble):
            return said
        if said.body is None or _digest(said.body) == look.digest:
            after = look.after(said, moved=False)
            return Poll(
                at=said.at, cursor=after.cursor(), requests=said.requests, wait_s=after.every_s
            )
        return await self._read(look, said)

    async def _read(self, look: DocumentCursor, said: Document) -> Poll | PollTrouble:
        raise NotImplementedError

    def _own(self, entries: list[ListedPage], now: float) -> list[Hint]:
        hints = [dated_hint(entry, now) for entry in entries]
        return [hint for hint in hints if hint and parse(hint.url).host == self.row.host]


class FeedSource(_DocumentSource):
    """One feed."""

    def __init__(
        self, row: SourceRow, documents: DocumentFetcher, database: Database, *, workers: Workers
    ) -> None:
        super().__init__(row, documents, workers=workers)
        self._database = database

    async def _read(self, look: DocumentCursor, said: Document) -> Poll | PollTrouble:
        assert said.body is not None
        try:
            feed = await self._workers.run(read_feed, said.body, said.url)
        except FeedError as error:
            return PollTrouble("no_feed", str(error), requests=said.requests)
        window = look.window()
        news = window.new_entries(feed, said.at, look.at)
        if window.gap:
            log.warning("feed_gap", url=self.row.url, entries=len(feed.entries))
        after = replace(
            look.after(said, moved=bool(news)),
            keys=base64.b64encode(array("Q", window.keys).tobytes()).decode(),
            gaps=look.gaps + window.gap,
        )
        hints = self._own(news, said.at)
        newest_at = max((hint.first_at for hint in hints), default=None)
        return Poll(
            at=said.at,
            hints=hints,
            cursor=after.cursor(),
            # What lies between the window and the one before was never told.
            told_until=None if window.gap else newest_at,
            requests=said.requests,
            wait_s=max(after.every_s, feed.ttl_s or 0.0),
            found_urls=[entry.url for entry in news],
            cursor_updates=await self._reconciled(window, look, said),
        )

    async def _reconciled(
        self, window: FeedWindow, look: DocumentCursor, said: Document
    ) -> Sequence[tuple[int, str | None]]:
        if not window.gap or look.at is None:
            return ()
        return await reconcile_gap(self._database, [self.row], look.at, said.at)


class ListingSource(_DocumentSource):
    """One page of links."""

    async def _read(self, look: DocumentCursor, said: Document) -> Poll | PollTrouble:
        assert said.body is not None
        listing: Listing = await self._workers.run(
            read_listing, said.body, said.url, said.last_modified
        )
        hints = self._own([*listing.entries, listing.own_page], said.at)
        after = look.after(said, moved=True)
        return Poll(
            at=said.at,
            hints=hints,
            cursor=after.cursor(),
            requests=said.requests,
            wait_s=after.every_s,
            found_urls=[entry.url for entry in listing.entries],
        )
