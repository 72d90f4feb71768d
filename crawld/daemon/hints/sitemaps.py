"""Sitemaps as hint sources: a file is asked for when its time has come, and read in parts.

One poll asks for one file of the tree, or hands on the next part of the file being read; a part is
small enough that no fetch slot waits for it. A file is read twice: first its dates are counted,
since one that nearly all pages share is the file's own and says nothing of them (`Census`), then
its entries are told. What a file was, validators included, is stored with its last part; a process
killed before asks for it again, and what was told already is no news.

How often a file is asked for follows from what came of it: twice as often after one that had moved,
half as often after one that had not, within the share of the host's turns that polls may take. A
list that gives a date of its files spares those that are as they were.

Pages without a date to believe, but with a frequency (`changefreq`), go to a source of their own:
what a site says of its pages in general is mostly wishful, and must not cost the dates their trust.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import apsw
import structlog
import trio
import xxhash

from crawld.core.url import parse
from crawld.daemon.clock import Clock
from crawld.daemon.hints.documents import Document, Documents, Wanted
from crawld.daemon.hints.source import HELD, Hint, Poll, PollTrouble
from crawld.sources.entry import Entry, Span
from crawld.sources.feed import MAX_FEED_BYTES, FeedError, read_feed
from crawld.sources.sitemap import (
    MAX_WIRE_BYTES,
    Census,
    SitemapError,
    SitemapKind,
    SitemapReader,
    unpack,
)
from crawld.store import sitemap as rows
from crawld.store.database import Database
from crawld.store.hint_source import SourceRow
from crawld.store.sitemap import Listed, SitemapRow

log = structlog.get_logger(__name__)

PART: Final = 1_000
"""Entries told at a time: their URLs are judged in ten milliseconds."""

FIRST_EVERY_S: Final = 3_600.0
LEAST_EVERY_S, MOST_EVERY_S = 300.0, 7 * 86_400.0
"""Pause before a file is asked for again: at first, at least and at most."""

MAX_FILES: Final = 50_000
"""Files of one sitemap: as many as one list may name."""

MAX_LISTS: Final = 3
"""Lists within lists; the format allows one."""

FILE_PAUSE_S: Final = 3_600.0
"""Pause after trouble with one file, doubling with each in a row; the others go on."""

EARLY_S: Final = 1.0
"""A poll so long before its time comes from an operator."""

Take = Callable[[SourceRow, Poll], Awaitable[None]]
"""Puts what another source said into the file and tells the policies."""


@dataclass(slots=True)
class _Reading:
    """A file being handed on: its row, and the parts that are left."""

    file: SitemapRow
    parts: AsyncIterator[Poll]


class SitemapSource:
    """One sitemap, that is one tree of files, as a site uses it for one host.

    Attributes:
        row: of the sitemap.
        often: of the frequencies its pages are said to have.
    """

    def __init__(
        self,
        row: SourceRow,
        often: SourceRow,
        documents: Documents,
        database: Database,
        clock: Clock,
        take: Take,
    ) -> None:
        self.row = row
        self.often = often
        self.polite_host = parse(row.url).host
        self._documents = documents
        self._database = database
        self._clock = clock
        self._take = take
        self._reading: _Reading | None = None

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Hand on the next part of the file being read, or ask for the next file."""
        if self._reading is None:
            said = await self._ask_next(row)
            if said is not None:
                return said
        reading = self._reading
        assert reading is not None
        part = await anext(reading.parts, None)
        if part is not None:
            return part
        self._reading = None
        return await self._waiting()

    async def _waiting(self) -> Poll:
        """Return a poll of nothing that says when the next file's time comes."""
        now = self._clock.now()
        first = await self._database.read(rows.next_file, self.row.hint_source_id)
        wait_s = max(first.next_at - now, 0.0) if first else MOST_EVERY_S
        return Poll(at=now, cursor=None, requests=0, wait_s=min(wait_s, MOST_EVERY_S))

    # --- asking --------------------------------------------------------------------------------

    async def _ask_next(self, row: SourceRow) -> Poll | PollTrouble | None:
        """Ask for the file whose time has come; None: it is ready to be read."""
        now = self._clock.now()
        file = await self._database.read(rows.next_file, row.hint_source_id)
        if file is None:
            await self._database.write(rows.ensure, row.hint_source_id, row.url, now)
            return await self._waiting()
        # A time far off is of a clock that was set back; a poll before its time was asked for.
        asked_for = row.next_poll_at is not None and now < row.next_poll_at - EARLY_S
        if 0 < file.next_at - now <= MOST_EVERY_S and not asked_for:
            return await self._waiting()
        wanted = Wanted(row.site_id, file.url, MAX_WIRE_BYTES, file.etag, file.last_modified)
        said = await self._documents.get(wanted)
        if isinstance(said, PollTrouble):
            return await self._refused(file, said)
        if said.body is None or xxhash.xxh3_128_digest(said.body) == file.digest:
            same = file._replace(etag=said.etag, last_modified=said.last_modified)
            return await self._poll(said, same, news=False)
        self._reading = _Reading(file, self._parts(file, said))
        return None

    async def _refused(self, file: SitemapRow, said: PollTrouble) -> Poll | PollTrouble:
        """Leave a file alone for a time; trouble with the first file is that of the source."""
        if said.trouble == HELD:
            return said
        count = file.trouble_count + 1
        pause_s = said.pause_s or min(FILE_PAUSE_S * 2.0 ** min(count - 1, 10), MOST_EVERY_S)
        at = self._clock.now()
        troubled = file._replace(
            trouble=f"{said.trouble}: {said.detail}"[:200],
            trouble_count=count,
            next_at=at + pause_s,
        )
        await self._database.write(rows.put, troubled)
        if file.parent is None:
            return replace(said, pause_s=pause_s)
        log.warning("sitemap_trouble", url=file.url, why=said.trouble, detail=said.detail)
        return Poll(at=at, requests=said.requests)

    async def _poll(self, said: Document, file: SitemapRow, *, news: bool) -> Poll:
        """Return the last word on a file; what it was goes into the file of crawld with it."""
        every_s = file.every_s or FIRST_EVERY_S
        every_s = every_s / 2.0 if news else every_s * 2.0
        every_s = min(max(every_s, LEAST_EVERY_S), MOST_EVERY_S)
        done = file._replace(read_at=said.at, every_s=every_s, next_at=said.at + every_s)
        others = await self._database.read(rows.newest, file.hint_source_id, file.url, said.at)
        # Whoever made the files had seen all changes before the latest that it names.
        told_until = max((file.newest_at or 0.0, *others)) if others is not None else 0.0
        return Poll(
            at=said.at,
            cursor=file.url,
            requests=said.requests,
            told_until=told_until or None,
            along=partial(_put, row=done),
        )

    # --- reading -------------------------------------------------------------------------------

    async def _parts(self, file: SitemapRow, said: Document) -> AsyncIterator[Poll]:
        """Yield what a file says, part by part; the last one carries what the file was."""
        assert said.body is not None
        trouble = None
        census, first, second = Census(said.at), SitemapReader(), SitemapReader()
        try:
            async for entries in _entries(said, first):
                census.add(entries)
        except SitemapError as error:
            trouble = str(error)
        shared = census.shared()
        dated = census.dated - census.future > census.count / 2 and shared is None
        listed_at = self._clock.now()
        try:
            async for entries in _entries(said, second):
                for start in range(0, len(entries), PART):
                    part = entries[start : start + PART]
                    if second.kind is SitemapKind.INDEX:
                        await self._list(file, part, listed_at)
                    else:
                        yield await self._part(said, part, shared)
        except SitemapError:
            pass  # at the same place as before
        newest_at = census.newest if dated else None
        news = file.read_at is None or (census.count, newest_at) != (
            file.entry_count,
            file.newest_at,
        )
        if said.cut:
            trouble = trouble or f"more than {MAX_WIRE_BYTES} bytes"
        if trouble:
            log.warning("sitemap_trouble", url=file.url, why=trouble, entries=census.count)
        whole = trouble is None
        if whole:
            await self._database.write(rows.unlist, file, listed_at)
        yield await self._poll(
            said,
            file._replace(
                # Half a file is asked for again as a whole.
                etag=said.etag if whole else None,
                last_modified=said.last_modified if whole else None,
                digest=xxhash.xxh3_128_digest(said.body),
                entry_count=census.count,
                newest_at=newest_at,
                trouble=trouble,
                trouble_count=0 if whole else file.trouble_count + 1,
            ),
            news=news,
        )

    async def _part(self, said: Document, entries: Sequence[Entry], shared: Span | None) -> Poll:
        dated, often = [], []
        for entry in entries:
            hint = dated_hint(entry, said.at) if entry.changed not in (None, shared) else None
            if hint is not None:
                dated.append(hint)
            elif entry.every_s is not None and entry.every_s < said.at:
                stale_at = said.at - entry.every_s
                often.append(Hint(entry.url, stale_at, stale_at))
        if often:
            await self._take(self.often, Poll(at=said.at, hints=self._own(often), requests=0))
        urls = [entry.url for entry in entries]
        return Poll(at=said.at, hints=self._own(dated), requests=0, more=True, found=urls)

    def _own(self, hints: list[Hint]) -> list[Hint]:
        return [hint for hint in hints if parse(hint.url).host == self.row.host]

    async def _list(self, file: SitemapRow, entries: Sequence[Entry], at: float) -> None:
        if file.depth >= MAX_LISTS:
            return
        found = [Listed(url, changed.first if changed else None) for url, changed, _ in entries]
        await self._database.write(
            partial(rows.listed, by=file, files=found, at=at, most=MAX_FILES)
        )


def dated_hint(entry: Entry, now: float) -> Hint | None:
    """Return what the date of an entry says, by the three cases of `crawld.sources.entry`.

    A span that is not over makes only those copies stale that are older than all of it.
    """
    changed = entry.changed
    if changed is None or changed.first > now:
        return None
    return Hint(entry.url, changed.first, changed.end if changed.end <= now else changed.first)


async def _entries(said: Document, reader: SitemapReader) -> AsyncIterator[list[Entry]]:
    """Yield the entries of a document, some at a time; a pause for others after each piece.

    Raises:
        SitemapError: it is no sitemap, or not to its end; what came before was yielded.
    """
    assert said.body is not None
    for piece in unpack(said.body):
        await trio.lowlevel.checkpoint()
        try:
            entries = reader.feed(piece)
        except SitemapError:
            yield reader.taken()
            raise
        if reader.kind is SitemapKind.FEED:
            yield await trio.to_thread.run_sync(_feed_entries, said.body, said.url)
            return
        if entries:
            yield entries
    if not said.cut:
        yield reader.close()


def _feed_entries(body: bytes, url: str) -> list[Entry]:
    try:
        return [row.entry for row in read_feed(body[:MAX_FEED_BYTES], url).entries]
    except FeedError as error:
        raise SitemapError(str(error)) from error


def _put(connection: apsw.Connection, row: SitemapRow) -> None:
    rows.put(connection, row)
