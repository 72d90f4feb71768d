"""Sitemaps as hint sources: a file is asked for when its time has come, and read in parts.

One poll asks for one file of the tree, or hands on the next part of the file being read; a part is
small enough that no fetch slot waits for it. A file is read twice: first its dates are counted,
since one that nearly all pages share is the file's own and says nothing of them (`DateStatistics`),
then its entries are told. What a file was, validators included, is stored with its last part; a
process killed before asks for it again, and what was told already is no news. A file with the date
of today is read again when the day is over, as it is or not: only then the date says all that it
can.

How often a file is asked for follows from what came of it: twice as often after one that had moved,
half as often after one that had not, within the share of the host's turns that polls may take. A
list that gives a date of its files spares those that are as they were.

Pages without a date to believe, but with a frequency (`changefreq`), go to a source of their own:
what a site says of its pages in general is mostly wishful, and must not cost the dates their trust.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import apsw
import structlog
import trio
import xxhash

from crawld.core.url import parse
from crawld.daemon.clock import Clock
from crawld.daemon.hints.documents import Document, DocumentFetcher, DocumentRequest
from crawld.daemon.hints.source import HELD, AcceptPoll, Hint, Poll, PollTrouble
from crawld.sources.feed import MAX_FEED_BYTES, FeedError, read_feed
from crawld.sources.listed_page import ListedPage, TimeSpan, change_bounds
from crawld.sources.sitemap import (
    MAX_WIRE_BYTES,
    DateStatistics,
    SitemapError,
    SitemapKind,
    SitemapReader,
    unpack,
)
from crawld.store.changes import sitemap as rows
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.sitemap import ListedFile, SitemapRow
from crawld.store.engine.database import Database
from crawld.workers import Workers

log = structlog.get_logger(__name__)

PART: Final = 4_000
"""Entries told at a time; a part waits for two or three commits."""

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


@dataclass(slots=True)
class _OpenFile:
    """A file being handed on.

    Attributes:
        file: its row. said: what was answered.
        kind: what it is. census: what its dates are worth.
        trouble: why it ends before its end, None if it does not.
        rest: what is left of it, some entries at a time.
        listed_at: when handing on began, Unix seconds.
    """

    file: SitemapRow
    said: Document
    kind: SitemapKind | None
    census: DateStatistics
    trouble: str | None
    rest: Iterator[list[ListedPage]]
    listed_at: float


class SitemapSource:
    """One sitemap, that is one tree of files, as a site uses it for one host.

    Attributes:
        row: of the sitemap.
    """

    is_free = False

    def __init__(
        self,
        row: SourceRow,
        often: Callable[[], Awaitable[SourceRow]],
        documents: DocumentFetcher,
        database: Database,
        clock: Clock,
        accept: AcceptPoll,
        *,
        workers: Workers,
    ) -> None:
        """Take how it is asked; `often` returns the source of the frequencies of its pages."""
        self.row = row
        self._often = often
        self.polite_host = parse(row.url).host
        self._documents = documents
        self._database = database
        self._clock = clock
        self._accept = accept
        self._workers = workers
        self._reading: _OpenFile | None = None

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Hand on the next part of the file being read, or ask for the next file."""
        if self._reading is None:
            said = await self._ask_next(row)
            if said is not None:
                return said
        reading = self._reading
        assert reading is not None
        part = await self._next_part(reading)
        if part is None:
            part = await self._last_part(reading)
            self._reading = None
        return part

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
        ripe = file.open_until is not None and file.open_until <= now
        wanted = DocumentRequest(
            row.site_id, file.url, MAX_WIRE_BYTES, file.etag, file.last_modified
        )
        said = await self._documents.get(wanted.unconditional() if ripe else wanted)
        if isinstance(said, PollTrouble):
            return await self._refused(file, said)
        same = said.body is None or xxhash.xxh3_128_digest(said.body) == file.digest
        if same and (said.body is None or not ripe):
            known = file._replace(etag=said.etag, last_modified=said.last_modified)
            return await self._poll(said, known, news=False)
        self._reading = await self._begin(file, said)
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
        await self._database.write(rows.update, troubled)
        if file.parent is None:
            return replace(said, pause_s=pause_s)
        log.warning("sitemap_trouble", url=file.url, why=said.trouble, detail=said.detail)
        return Poll(at=at, requests=said.requests)

    async def _poll(self, said: Document, file: SitemapRow, *, news: bool) -> Poll:
        """Return the last word on a file; what it was goes into the file of crawld with it."""
        every_s = file.every_s or FIRST_EVERY_S
        every_s = every_s / 2.0 if news else every_s * 2.0
        every_s = min(max(every_s, LEAST_EVERY_S), MOST_EVERY_S)
        next_at = said.at + every_s
        if file.open_until is not None:
            next_at = min(next_at, max(file.open_until, said.at + LEAST_EVERY_S))
        done = file._replace(read_at=said.at, every_s=every_s, next_at=next_at)
        others = await self._database.read(
            rows.newest_dates, file.hint_source_id, file.url, said.at
        )
        # Whoever made the files had seen all changes before the latest that it names.
        told_until = max((file.newest_at or 0.0, *others)) if others is not None else 0.0
        return Poll(
            at=said.at,
            cursor=file.url,
            requests=said.requests,
            told_until=told_until or None,
            also_write=partial(_put, row=done),
        )

    # --- reading -------------------------------------------------------------------------------

    async def _begin(self, file: SitemapRow, said: Document) -> _OpenFile:
        """Count the dates of a file, and be ready to hand it on."""
        assert said.body is not None
        census, reader, trouble = DateStatistics(said.at), SitemapReader(), None
        rest = _entries(said, SitemapReader())
        try:
            for entries in _entries(said, reader):
                census.add(entries)
                await trio.lowlevel.checkpoint()
                if reader.kind is SitemapKind.FEED:
                    whole = await self._workers.run(_feed_entries, said.body, said.url)
                    census.add(whole)
                    rest = (whole[start : start + PART] for start in range(0, len(whole), PART))
                    break
        except SitemapError as error:
            trouble = str(error)
        if said.cut and trouble is None:
            trouble = f"more than {MAX_WIRE_BYTES} bytes"
        if trouble is not None:
            log.warning("sitemap_trouble", url=file.url, why=trouble, entries=census.count)
        return _OpenFile(file, said, reader.kind, census, trouble, rest, self._clock.now())

    async def _next_part(self, reading: _OpenFile) -> Poll | None:
        """Return the next part of a file, None at its end."""
        shared, part = reading.census.shared_date(), _EntryBatch()
        try:
            for entries in reading.rest:
                await trio.lowlevel.checkpoint()
                if reading.kind is SitemapKind.INDEX:
                    await self._list(reading.file, entries, reading.listed_at)
                    continue
                part.add(entries, shared, reading.said.at, self.row.host)
                if len(part.urls) >= PART:
                    break
        except SitemapError:
            pass  # at the same place as at the first reading
        return await self._part(reading.said, part) if part.urls else None

    async def _last_part(self, reading: _OpenFile) -> Poll:
        """Return what the file was, to be stored with the end of it."""
        file, said, census = reading.file, reading.said, reading.census
        assert said.body is not None
        dated = census.dated - census.future > census.count / 2 and census.shared_date() is None
        newest_at = census.newest if dated else None
        seen = (file.entry_count, file.newest_at)
        news = file.read_at is None or seen != (census.count, newest_at)
        whole = reading.trouble is None
        if whole:
            await self._database.write(rows.delete_unlisted, file, reading.listed_at)
        done = file._replace(
            # Half a file is asked for again as a whole.
            etag=said.etag if whole else None,
            last_modified=said.last_modified if whole else None,
            digest=xxhash.xxh3_128_digest(said.body),
            entry_count=census.count,
            newest_at=newest_at,
            open_until=census.open_until,
            trouble=reading.trouble,
            trouble_count=0 if whole else file.trouble_count + 1,
        )
        return await self._poll(said, done, news=news)

    async def _part(self, said: Document, part: _EntryBatch) -> Poll:
        if part.often:
            await self._accept(await self._often(), Poll(at=said.at, hints=part.often, requests=0))
        return Poll(at=said.at, hints=part.dated, requests=0, more=True, found_urls=part.urls)

    async def _list(self, file: SitemapRow, entries: Sequence[ListedPage], at: float) -> None:
        if file.depth >= MAX_LISTS:
            return
        found = [ListedFile(url, changed.first if changed else None) for url, changed, _ in entries]
        await self._database.write(
            partial(rows.add_listed, by=file, files=found, at=at, most=MAX_FILES)
        )


@dataclass(slots=True)
class _EntryBatch:
    """Some entries of a file.

    Attributes:
        urls: all of them. dated: changes by the dates of those of the host.
        often: changes of others by their frequencies.
    """

    urls: list[str] = field(default_factory=list)
    dated: list[Hint] = field(default_factory=list)
    often: list[Hint] = field(default_factory=list)

    def add(
        self, entries: Iterable[ListedPage], shared: TimeSpan | None, now: float, host: str
    ) -> None:
        """Take some entries; dates that are `shared` say nothing."""
        for entry in entries:
            self.urls.append(entry.url)
            dated = entry.changed is not None and entry.changed != shared
            hint = dated_hint(entry, now) if dated else None
            every_s = entry.every_s
            if hint is None and (every_s is None or every_s >= now):
                continue
            if parse(entry.url).host != host:
                continue
            if hint is not None:
                self.dated.append(hint)
            elif every_s is not None:
                self.often.append(Hint(entry.url, now - every_s, now - every_s))


def dated_hint(entry: ListedPage, now: float) -> Hint | None:
    """Return what the date of an entry says, None where it says nothing."""
    told = change_bounds(entry.changed, now) if entry.changed is not None else None
    return None if told is None else Hint(entry.url, *told)


def _entries(said: Document, reader: SitemapReader) -> Iterator[list[ListedPage]]:
    """Yield the entries of a document, those of a small piece at a time.

    Raises:
        SitemapError: it is no sitemap, or not to its end; what came before was yielded.
    """
    assert said.body is not None
    for piece in unpack(said.body):
        try:
            yield reader.feed(piece)
        except SitemapError:
            yield reader.take_entries()
            raise
    if not said.cut:
        yield reader.close()


def _feed_entries(body: bytes, url: str) -> list[ListedPage]:
    try:
        return [row.entry for row in read_feed(body[:MAX_FEED_BYTES], url).entries]
    except FeedError as error:
        raise SitemapError(str(error)) from error


def _put(connection: apsw.Connection, row: SitemapRow) -> None:
    rows.update(connection, row)
